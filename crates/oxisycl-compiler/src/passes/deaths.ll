; Whether a work-item of the group has panicked: a word in local memory, on all targets. Stands behind the target's `builtins.ll`.

@oxisycl_deaths = internal addrspace(3) global i32 poison, align 4

; At the start of the kernel. All work-items write the same.
define void @oxisycl.deaths.begin() convergent {
  store atomic i32 0, ptr addrspace(3) @oxisycl_deaths monotonic, align 4
  call void @oxisycl.group_barrier()
  ret void
}

; Where a work-item ends before its kernel does.
define void @oxisycl.deaths.note() {
  store atomic i32 1, ptr addrspace(3) @oxisycl_deaths monotonic, align 4
  ret void
}

define i1 @oxisycl.deaths.any() {
  %word = load atomic i32, ptr addrspace(3) @oxisycl_deaths monotonic, align 4
  %any = icmp ne i32 %word, 0
  ret i1 %any
}
