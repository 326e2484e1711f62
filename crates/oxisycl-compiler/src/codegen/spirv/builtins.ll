; The builtins of `oxisycl_device::builtin` on devices of OpenCL, by functions that the translator knows.
; Kernels are launched without an offset of OpenCL's own: the position in the grid is the global id.

declare i64 @oxisycl.spirv.global_id(i32) nounwind willreturn memory(none)
declare i64 @oxisycl.spirv.local_id(i32) nounwind willreturn memory(none)
declare i64 @oxisycl.spirv.group_id(i32) nounwind willreturn memory(none)
declare void @oxisycl.spirv.barrier() convergent nounwind
declare i32 @oxisycl.spirv.shuffle(i32, i32) convergent nounwind
declare i1 @oxisycl.spirv.was_cut_off() nounwind

define i64 @oxisycl.grid_position_x() {
  %position = call i64 @oxisycl.spirv.global_id(i32 0)
  ret i64 %position
}

define i64 @oxisycl.grid_position_y() {
  %position = call i64 @oxisycl.spirv.global_id(i32 1)
  ret i64 %position
}

define i64 @oxisycl.grid_position_z() {
  %position = call i64 @oxisycl.spirv.global_id(i32 2)
  ret i64 %position
}

define i64 @oxisycl.local_position_x() {
  %position = call i64 @oxisycl.spirv.local_id(i32 0)
  ret i64 %position
}

define i64 @oxisycl.local_position_y() {
  %position = call i64 @oxisycl.spirv.local_id(i32 1)
  ret i64 %position
}

define i64 @oxisycl.local_position_z() {
  %position = call i64 @oxisycl.spirv.local_id(i32 2)
  ret i64 %position
}

define i64 @oxisycl.group_position_x() {
  %position = call i64 @oxisycl.spirv.group_id(i32 0)
  ret i64 %position
}

define i64 @oxisycl.group_position_y() {
  %position = call i64 @oxisycl.spirv.group_id(i32 1)
  ret i64 %position
}

define i64 @oxisycl.group_position_z() {
  %position = call i64 @oxisycl.spirv.group_id(i32 2)
  ret i64 %position
}

define void @oxisycl.group_barrier() convergent {
  call void @oxisycl.spirv.barrier()
  ret void
}

define i32 @oxisycl.shuffle_u32(i32 %value, i32 %lane) convergent {
  %result = call i32 @oxisycl.spirv.shuffle(i32 %value, i32 %lane)
  ret i32 %result
}

; The translator knows how deep formatting is.
define i1 @oxisycl.has_call_stack() {
  ret i1 false
}

define i1 @oxisycl.formatting_was_cut_off() {
  %result = call i1 @oxisycl.spirv.was_cut_off()
  ret i1 %result
}

declare ptr @oxisycl.spirv.as_global(ptr) nounwind willreturn memory(none)
declare i1 @oxisycl.spirv.is_global(ptr) nounwind willreturn memory(none)
declare i1 @oxisycl.spirv.is_local(ptr) nounwind willreturn memory(none)
declare i1 @oxisycl.spirv.is_private(ptr) nounwind willreturn memory(none)

define ptr @oxisycl.as_global(ptr %address) {
  %result = call ptr @oxisycl.spirv.as_global(ptr %address)
  ret ptr %result
}

define i1 @oxisycl.is_global_address(ptr %address) {
  %result = call i1 @oxisycl.spirv.is_global(ptr %address)
  ret i1 %result
}

define i1 @oxisycl.is_local_address(ptr %address) {
  %result = call i1 @oxisycl.spirv.is_local(ptr %address)
  ret i1 %result
}

define i1 @oxisycl.is_private_address(ptr %address) {
  %result = call i1 @oxisycl.spirv.is_private(ptr %address)
  ret i1 %result
}

@oxisycl_local_memory = external addrspace(3) global [0 x i8], align 64

define ptr @oxisycl.local_memory() {
  ret ptr addrspacecast (ptr addrspace(3) @oxisycl_local_memory to ptr)
}
