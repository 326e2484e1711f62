; The builtins of `oxisycl_device::builtin` on NVIDIA GPUs.
; A grid has less than 2^32 positions per dimension (`oxisycl_types::DeviceLaunch`), so that they are computed in 32 bits.

declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.tid.y()
declare i32 @llvm.nvvm.read.ptx.sreg.tid.z()
declare i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ntid.y()
declare i32 @llvm.nvvm.read.ptx.sreg.ntid.z()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.y()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.z()
declare void @llvm.nvvm.barrier.cta.sync.all(i32)
declare i32 @llvm.nvvm.shfl.sync.up.i32(i32, i32, i32, i32)
declare i32 @llvm.nvvm.shfl.sync.idx.i32(i32, i32, i32, i32)

declare i1 @oxisycl.is_paired()

; In a paired kernel a group has twice as many work-items as threads.
define i64 @oxisycl.grid_position_x() {
  %group = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %size = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
  %item = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %is_paired = call i1 @oxisycl.is_paired()
  %shift = zext i1 %is_paired to i32
  %n_before = shl nuw i32 %group, %shift
  %start = mul nuw i32 %n_before, %size
  %position = add nuw i32 %start, %item
  %wide_position = zext i32 %position to i64
  ret i64 %wide_position
}

define i64 @oxisycl.second_position_x() {
  %size = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
  %wide_first = call i64 @oxisycl.grid_position_x()
  %first = trunc i64 %wide_first to i32
  %position = add nuw i32 %first, %size
  %wide_position = zext i32 %position to i64
  ret i64 %wide_position
}

define i64 @oxisycl.grid_position_y() {
  %group = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.y()
  %size = call i32 @llvm.nvvm.read.ptx.sreg.ntid.y()
  %item = call i32 @llvm.nvvm.read.ptx.sreg.tid.y()
  %start = mul nuw i32 %group, %size
  %position = add nuw i32 %start, %item
  %wide_position = zext i32 %position to i64
  ret i64 %wide_position
}

define i64 @oxisycl.grid_position_z() {
  %group = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.z()
  %size = call i32 @llvm.nvvm.read.ptx.sreg.ntid.z()
  %item = call i32 @llvm.nvvm.read.ptx.sreg.tid.z()
  %start = mul nuw i32 %group, %size
  %position = add nuw i32 %start, %item
  %wide_position = zext i32 %position to i64
  ret i64 %wide_position
}

define i64 @oxisycl.local_position_x() {
  %position = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %wide_position = zext i32 %position to i64
  ret i64 %wide_position
}

define i64 @oxisycl.local_position_y() {
  %position = call i32 @llvm.nvvm.read.ptx.sreg.tid.y()
  %wide_position = zext i32 %position to i64
  ret i64 %wide_position
}

define i64 @oxisycl.local_position_z() {
  %position = call i32 @llvm.nvvm.read.ptx.sreg.tid.z()
  %wide_position = zext i32 %position to i64
  ret i64 %wide_position
}

define i64 @oxisycl.group_position_x() {
  %position = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %wide_position = zext i32 %position to i64
  ret i64 %wide_position
}

define i64 @oxisycl.group_position_y() {
  %position = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.y()
  %wide_position = zext i32 %position to i64
  ret i64 %wide_position
}

define i64 @oxisycl.group_position_z() {
  %position = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.z()
  %wide_position = zext i32 %position to i64
  ret i64 %wide_position
}

; `barrier.sync`, the form that is defined also where the threads of a warp have diverged.
define void @oxisycl.group_barrier() convergent {
  call void @llvm.nvvm.barrier.cta.sync.all(i32 0)
  ret void
}

define i32 @oxisycl.shuffle_u32(i32 %value, i32 %lane) convergent {
  %result = call i32 @llvm.nvvm.shfl.sync.idx.i32(i32 -1, i32 %value, i32 %lane, i32 31)
  ret i32 %result
}

declare i32 @llvm.nvvm.vote.ballot.sync(i32, i1)
declare void @llvm.nvvm.exit()

define i32 @oxisycl.shuffle_among_u32(i32 %members, i32 %value, i32 %lane) convergent {
  %result = call i32 @llvm.nvvm.shfl.sync.idx.i32(i32 %members, i32 %value, i32 %lane, i32 31)
  ret i32 %result
}

define i32 @oxisycl.shuffle_up_among_u32(i32 %members, i32 %value, i32 %distance) convergent {
  %result = call i32 @llvm.nvvm.shfl.sync.up.i32(i32 %members, i32 %value, i32 %distance, i32 0)
  ret i32 %result
}

define i32 @oxisycl.ballot_among(i32 %members, i1 %holds) convergent {
  %result = call i32 @llvm.nvvm.vote.ballot.sync(i32 %members, i1 %holds)
  ret i32 %result
}

declare i32 @llvm.nvvm.redux.sync.add(i32, i32)
declare i32 @llvm.nvvm.redux.sync.umin(i32, i32)
declare i32 @llvm.nvvm.redux.sync.umax(i32, i32)
declare i32 @llvm.nvvm.redux.sync.min(i32, i32)
declare i32 @llvm.nvvm.redux.sync.max(i32, i32)
declare i32 @llvm.nvvm.redux.sync.and(i32, i32)
declare i32 @llvm.nvvm.redux.sync.or(i32, i32)
declare i32 @llvm.nvvm.redux.sync.xor(i32, i32)

; In the order of `operator::AtOnce`. The operation is a constant.
define i32 @oxisycl.reduce_among_u32(i32 %members, i32 %value, i32 %operation) convergent {
  switch i32 %operation, label %add [
    i32 1, label %umin
    i32 2, label %umax
    i32 3, label %min
    i32 4, label %max
    i32 5, label %and
    i32 6, label %or
    i32 7, label %xor
  ]
add:
  %add_of_all = call i32 @llvm.nvvm.redux.sync.add(i32 %value, i32 %members)
  ret i32 %add_of_all
umin:
  %umin_of_all = call i32 @llvm.nvvm.redux.sync.umin(i32 %value, i32 %members)
  ret i32 %umin_of_all
umax:
  %umax_of_all = call i32 @llvm.nvvm.redux.sync.umax(i32 %value, i32 %members)
  ret i32 %umax_of_all
min:
  %min_of_all = call i32 @llvm.nvvm.redux.sync.min(i32 %value, i32 %members)
  ret i32 %min_of_all
max:
  %max_of_all = call i32 @llvm.nvvm.redux.sync.max(i32 %value, i32 %members)
  ret i32 %max_of_all
and:
  %and_of_all = call i32 @llvm.nvvm.redux.sync.and(i32 %value, i32 %members)
  ret i32 %and_of_all
or:
  %or_of_all = call i32 @llvm.nvvm.redux.sync.or(i32 %value, i32 %members)
  ret i32 %or_of_all
xor:
  %xor_of_all = call i32 @llvm.nvvm.redux.sync.xor(i32 %value, i32 %members)
  ret i32 %xor_of_all
}

define void @oxisycl.end_work_item() noreturn {
  call void @llvm.nvvm.exit()
  unreachable
}

@oxisycl_local_memory = external addrspace(3) global [0 x i8], align 64

define ptr @oxisycl.local_memory() {
  ret ptr addrspacecast (ptr addrspace(3) @oxisycl_local_memory to ptr)
}

declare i1 @llvm.nvvm.isspacep.global(ptr)
declare i1 @llvm.nvvm.isspacep.shared(ptr)
declare i1 @llvm.nvvm.isspacep.local(ptr)

define i1 @oxisycl.is_global_address(ptr %address) {
  %result = call i1 @llvm.nvvm.isspacep.global(ptr %address)
  ret i1 %result
}

define i1 @oxisycl.is_local_address(ptr %address) {
  %result = call i1 @llvm.nvvm.isspacep.shared(ptr %address)
  ret i1 %result
}

define i1 @oxisycl.is_private_address(ptr %address) {
  %result = call i1 @llvm.nvvm.isspacep.local(ptr %address)
  ret i1 %result
}

; Imprecise instructions.
declare float @llvm.nvvm.cos.approx.f(float)
declare float @llvm.nvvm.sin.approx.f(float)
declare float @llvm.nvvm.ex2.approx.f(float)
declare float @llvm.nvvm.lg2.approx.f(float)
declare float @llvm.nvvm.rsqrt.approx.f(float)
declare float @llvm.nvvm.sqrt.approx.f(float)
declare float @llvm.nvvm.div.approx.f(float, float)

define float @oxisycl.native_cos(float %x) {
  %result = call float @llvm.nvvm.cos.approx.f(float %x)
  ret float %result
}

define float @oxisycl.native_sin(float %x) {
  %result = call float @llvm.nvvm.sin.approx.f(float %x)
  ret float %result
}

define float @oxisycl.native_exp2(float %x) {
  %result = call float @llvm.nvvm.ex2.approx.f(float %x)
  ret float %result
}

define float @oxisycl.native_log2(float %x) {
  %result = call float @llvm.nvvm.lg2.approx.f(float %x)
  ret float %result
}

define float @oxisycl.native_rsqrt(float %x) {
  %result = call float @llvm.nvvm.rsqrt.approx.f(float %x)
  ret float %result
}

define float @oxisycl.native_sqrt(float %x) {
  %result = call float @llvm.nvvm.sqrt.approx.f(float %x)
  ret float %result
}

define float @oxisycl.native_divide(float %x, float %y) {
  %result = call float @llvm.nvvm.div.approx.f(float %x, float %y)
  ret float %result
}

define float @oxisycl.float_of_half(i32 %bits) {
  %lowest = trunc i32 %bits to i16
  %half = bitcast i16 %lowest to half
  %result = fpext half %half to float
  ret float %result
}

define i32 @oxisycl.half_of_float(float %x) {
  %half = fptrunc float %x to half
  %bits = bitcast half %half to i16
  %result = zext i16 %bits to i32
  ret i32 %result
}
