@file = private constant [12 x i8] c"src/main.rs\00"
@place = private constant <{ ptr, [16 x i8] }> <{ ptr @file, [16 x i8] c"\0B\00\00\00\00\00\00\00\11\00\00\00\0D\00\00\00" }>
@per_thread = thread_local global i32 0, section ".tdata"
@llvm.used = appending global [1 x ptr] [ptr @file], section "llvm.metadata"

declare void @_RNvNtCs1234_4core9panicking18panic_bounds_check(i64, i64, ptr) noreturn
declare float @llvm.sin.f32(float)
declare float @tanhf(float)
declare i32 @personality(...)
declare void @barrier()

define i1 @_ZN14oxisycl_device7builtin14is_device_code17hd37baa6394757393E() { ret i1 false }
define i64 @_ZN14oxisycl_device7builtin15grid_position_x17h0123456789abcdefE() { unreachable }
define void @_ZN4core3ptr18precondition_check17h0123456789abcdefE(i1 %c) { call void @barrier() ret void }

define void @entry(i64 %n, ptr %p) unnamed_addr noinline optnone "target-cpu"="x86-64" personality ptr @personality {
  %slot = alloca [4 x i8], align 4
  %d = call i1 @_ZN14oxisycl_device7builtin14is_device_code17hd37baa6394757393E()
  br i1 %d, label %device, label %end
device:
  %i = call i64 @_ZN14oxisycl_device7builtin15grid_position_x17h0123456789abcdefE()
  call void @_ZN4core3ptr18precondition_check17h0123456789abcdefE(i1 %d)
  %c = icmp ult i64 %i, %n
  br i1 %c, label %ok, label %bad
ok:
  %x = load float, ptr %p
  %s = call float @llvm.sin.f32(float %x)
  %t = call float @tanhf(float %s)
  %m = fmul float %s, %t
  %a = fadd float %m, %x
  store float %a, ptr %slot
  %old = atomicrmw add ptr %p, i32 1 acq_rel
  %seen = load atomic i32, ptr %p seq_cst, align 4
  fence syncscope("singlethread") seq_cst
  invoke void @barrier() to label %end unwind label %cleanup
bad:
  call void @_RNvNtCs1234_4core9panicking18panic_bounds_check(i64 %i, i64 %n, ptr @place)
  unreachable
cleanup:
  %pad = landingpad { ptr, i32 } cleanup
  resume { ptr, i32 } %pad
end:
  ret void
}
