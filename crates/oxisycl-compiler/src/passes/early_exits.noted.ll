; Meetings of a group where barriers see that a work-item has ended, as on NVIDIA's processors. Stands behind the target's `builtins.ll`.
; A barrier waits for a thread until it has ended, which a panic's thread does once it has noted it.

@oxisycl_early_exits = internal addrspace(3) global i32 poison, align 4

; At the start of the kernel. All work-items write the same.
define void @oxisycl.early_exits.begin() convergent {
  store atomic i32 0, ptr addrspace(3) @oxisycl_early_exits monotonic, align 4
  call void @oxisycl.group_barrier()
  ret void
}

; Where a work-item ends before its kernel does.
define void @oxisycl.early_exits.note() {
  store atomic i32 1, ptr addrspace(3) @oxisycl_early_exits monotonic, align 4
  fence syncscope("block") seq_cst
  ret void
}

define i1 @oxisycl.early_exits.meet(i32 %items, i32 %number) convergent {
  call void @oxisycl.group_barrier()
  %word = load atomic i32, ptr addrspace(3) @oxisycl_early_exits monotonic, align 4
  %all = icmp eq i32 %word, 0
  ret i1 %all
}

; Barriers that ask, where no meeting does: the word is the same.
define void @oxisycl.early_exits.begin_passing() convergent {
  call void @oxisycl.early_exits.begin()
  ret void
}

define void @oxisycl.early_exits.pass() convergent {
  call void @oxisycl.group_barrier()
  %word = load atomic i32, ptr addrspace(3) @oxisycl_early_exits monotonic, align 4
  %all = icmp eq i32 %word, 0
  br i1 %all, label %go, label %ends

ends:
  call void @oxisycl.early_exits.end()
  unreachable

go:
  ret void
}

; Behind an exchange within a sub-group. It waits for each lane until that has ended, which notes so before. So the word is written if a lane's value is
; missing. The fences keep both in order.
define void @oxisycl.early_exits.ask() {
  fence syncscope("block") seq_cst
  %word = load atomic i32, ptr addrspace(3) @oxisycl_early_exits monotonic, align 4
  %all = icmp eq i32 %word, 0
  br i1 %all, label %go, label %ends

ends:
  call void @oxisycl.early_exits.end()
  unreachable

go:
  ret void
}

declare void @oxisycl.early_exits.end() noreturn
