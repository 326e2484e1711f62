; The builtins of `oxisycl_device::builtin` on AMD GPUs.
; The size of a group is in the packet that dispatched the kernel: 16 bits each from byte 4.

declare i32 @llvm.amdgcn.workitem.id.x()
declare i32 @llvm.amdgcn.workitem.id.y()
declare i32 @llvm.amdgcn.workitem.id.z()
declare i32 @llvm.amdgcn.workgroup.id.x()
declare i32 @llvm.amdgcn.workgroup.id.y()
declare i32 @llvm.amdgcn.workgroup.id.z()
declare ptr addrspace(4) @llvm.amdgcn.dispatch.ptr()
declare void @llvm.amdgcn.s.barrier()
declare i32 @llvm.amdgcn.ds.bpermute(i32, i32)

define i64 @oxisycl.grid_position_x() {
  %group = call i32 @llvm.amdgcn.workgroup.id.x()
  %packet = call align 4 dereferenceable(64) ptr addrspace(4) @llvm.amdgcn.dispatch.ptr()
  %place = getelementptr inbounds i8, ptr addrspace(4) %packet, i64 4
  %size = load i16, ptr addrspace(4) %place, align 4, !invariant.load !0
  %item = call i32 @llvm.amdgcn.workitem.id.x()
  %wide_group = zext i32 %group to i64
  %wide_size = zext i16 %size to i64
  %wide_item = zext i32 %item to i64
  %start = mul nuw nsw i64 %wide_group, %wide_size
  %position = add nuw nsw i64 %start, %wide_item
  ret i64 %position
}

define i64 @oxisycl.grid_position_y() {
  %group = call i32 @llvm.amdgcn.workgroup.id.y()
  %packet = call align 4 dereferenceable(64) ptr addrspace(4) @llvm.amdgcn.dispatch.ptr()
  %place = getelementptr inbounds i8, ptr addrspace(4) %packet, i64 6
  %size = load i16, ptr addrspace(4) %place, align 2, !invariant.load !0
  %item = call i32 @llvm.amdgcn.workitem.id.y()
  %wide_group = zext i32 %group to i64
  %wide_size = zext i16 %size to i64
  %wide_item = zext i32 %item to i64
  %start = mul nuw nsw i64 %wide_group, %wide_size
  %position = add nuw nsw i64 %start, %wide_item
  ret i64 %position
}

define i64 @oxisycl.grid_position_z() {
  %group = call i32 @llvm.amdgcn.workgroup.id.z()
  %packet = call align 4 dereferenceable(64) ptr addrspace(4) @llvm.amdgcn.dispatch.ptr()
  %place = getelementptr inbounds i8, ptr addrspace(4) %packet, i64 8
  %size = load i16, ptr addrspace(4) %place, align 4, !invariant.load !0
  %item = call i32 @llvm.amdgcn.workitem.id.z()
  %wide_group = zext i32 %group to i64
  %wide_size = zext i16 %size to i64
  %wide_item = zext i32 %item to i64
  %start = mul nuw nsw i64 %wide_group, %wide_size
  %position = add nuw nsw i64 %start, %wide_item
  ret i64 %position
}

define i64 @oxisycl.local_position_x() {
  %position = call i32 @llvm.amdgcn.workitem.id.x()
  %wide_position = zext i32 %position to i64
  ret i64 %wide_position
}

define i64 @oxisycl.local_position_y() {
  %position = call i32 @llvm.amdgcn.workitem.id.y()
  %wide_position = zext i32 %position to i64
  ret i64 %wide_position
}

define i64 @oxisycl.local_position_z() {
  %position = call i32 @llvm.amdgcn.workitem.id.z()
  %wide_position = zext i32 %position to i64
  ret i64 %wide_position
}

define i64 @oxisycl.group_position_x() {
  %position = call i32 @llvm.amdgcn.workgroup.id.x()
  %wide_position = zext i32 %position to i64
  ret i64 %wide_position
}

define i64 @oxisycl.group_position_y() {
  %position = call i32 @llvm.amdgcn.workgroup.id.y()
  %wide_position = zext i32 %position to i64
  ret i64 %wide_position
}

define i64 @oxisycl.group_position_z() {
  %position = call i32 @llvm.amdgcn.workgroup.id.z()
  %wide_position = zext i32 %position to i64
  ret i64 %wide_position
}

; The barrier instruction itself orders no memory.
define void @oxisycl.group_barrier() convergent {
  fence syncscope("workgroup") release
  call void @llvm.amdgcn.s.barrier()
  fence syncscope("workgroup") acquire
  ret void
}

; The lane that a value comes from is given in bytes.
define i32 @oxisycl.shuffle_u32(i32 %value, i32 %lane) convergent {
  %bytes = shl i32 %lane, 2
  %result = call i32 @llvm.amdgcn.ds.bpermute(i32 %bytes, i32 %value)
  ret i32 %result
}

declare i1 @llvm.amdgcn.is.shared(ptr)
declare i1 @llvm.amdgcn.is.private(ptr)

; What is neither of the other two.
define i1 @oxisycl.is_global_address(ptr %address) {
  %is_local = call i1 @llvm.amdgcn.is.shared(ptr %address)
  %is_private = call i1 @llvm.amdgcn.is.private(ptr %address)
  %is_other = or i1 %is_local, %is_private
  %result = xor i1 %is_other, true
  ret i1 %result
}

define i1 @oxisycl.is_local_address(ptr %address) {
  %result = call i1 @llvm.amdgcn.is.shared(ptr %address)
  ret i1 %result
}

define i1 @oxisycl.is_private_address(ptr %address) {
  %result = call i1 @llvm.amdgcn.is.private(ptr %address)
  ret i1 %result
}

@oxisycl_local_memory = external addrspace(3) global [0 x i8], align 64

define ptr @oxisycl.local_memory() {
  ret ptr addrspacecast (ptr addrspace(3) @oxisycl_local_memory to ptr)
}

!0 = !{}
