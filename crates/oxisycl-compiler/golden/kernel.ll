; A kernel with a bounds check, an atomic operation of each kind of scope, local memory, a shuffle and a barrier.
@file = private constant [12 x i8] c"src/main.rs\00"
@place = private constant <{ ptr, [16 x i8] }> <{ ptr @file, [16 x i8] c"\0B\00\00\00\00\00\00\00\11\00\00\00\0D\00\00\00" }>

declare void @_RNvNtCs1234_4core9panicking18panic_bounds_check(i64, i64, ptr) noreturn
define i64 @_ZN14oxisycl_device7builtin15grid_position_x17h0123456789abcdefE() { unreachable }
define i32 @_ZN14oxisycl_device7builtin11shuffle_u3217h0123456789abcdefE(i32 %v, i32 %l) { unreachable }
define void @_ZN14oxisycl_device7builtin13group_barrier17h0123456789abcdefE() { unreachable }
define ptr @_ZN14oxisycl_device7builtin12local_memory17h0123456789abcdefE() { unreachable }
define void @__oxisycl_record_panic_numbers(ptr %launch, i32 %site, i64 %kinds, i64 %first, i64 %second, i64 %third) { %record = load ptr, ptr %launch %old = cmpxchg ptr %record, i32 0, i32 %site monotonic monotonic ret void }

define void @oxisycl_entry.k(ptr %captures, ptr %launch, ptr %chunk) {
  %length = getelementptr i8, ptr %captures, i64 8
  %p = load ptr, ptr %captures
  %n = load i64, ptr %length
  %i = call i64 @_ZN14oxisycl_device7builtin15grid_position_x17h0123456789abcdefE()
  %c = icmp ult i64 %i, %n
  br i1 %c, label %ok, label %bad
ok:
  %place = getelementptr i32, ptr %p, i64 %i
  %v = load i32, ptr %place
  %local = call ptr @_ZN14oxisycl_device7builtin12local_memory17h0123456789abcdefE()
  store i32 %v, ptr %local
  call void @_ZN14oxisycl_device7builtin13group_barrier17h0123456789abcdefE()
  %w = load i32, ptr %local
  %s = call i32 @_ZN14oxisycl_device7builtin11shuffle_u3217h0123456789abcdefE(i32 %w, i32 3)
  %old = atomicrmw add ptr %place, i32 %s acq_rel
  %wide = zext i32 %old to i128
  %square = mul i128 %wide, %wide
  %high = lshr i128 %square, 7
  %low = trunc i128 %high to i32
  store atomic i32 %low, ptr %place release, align 4
  ret void
bad:
  call void @_RNvNtCs1234_4core9panicking18panic_bounds_check(i64 %i, i64 %n, ptr @place)
  unreachable
}
