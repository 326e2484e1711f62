; Meetings of a group where work-items run as lanes of vectors. Stands behind the target's `builtins.ll`.
; A lane that leaves a loop waits behind it until the others have left, and only then notes anything. So those that come are counted: in
; two words in turn, since a fast work-item may come to the next meeting before a slow one has read the word of this one.

@oxisycl_early_exits = internal addrspace(3) global [2 x i32] poison, align 4

; At the start of the kernel. All work-items write the same.
define void @oxisycl.early_exits.begin() convergent {
  store atomic i32 0, ptr addrspace(3) @oxisycl_early_exits monotonic, align 4
  store atomic i32 0, ptr addrspace(3) getelementptr inbounds ([2 x i32], ptr addrspace(3) @oxisycl_early_exits, i64 0, i64 1) monotonic, align 4
  call void @oxisycl.group_barrier()
  ret void
}

define i1 @oxisycl.early_exits.meet(i32 %items, i32 %number) convergent {
  %turn = and i32 %number, 1
  %index = zext nneg i32 %turn to i64
  %word = getelementptr inbounds [2 x i32], ptr addrspace(3) @oxisycl_early_exits, i64 0, i64 %index
  %before = atomicrmw add ptr addrspace(3) %word, i32 1 monotonic, align 4
  call void @oxisycl.group_barrier()
  %came = load atomic i32, ptr addrspace(3) %word monotonic, align 4
  %earlier = lshr i32 %number, 1
  %turns = add i32 %earlier, 1
  %expected = mul i32 %items, %turns
  %all = icmp eq i32 %came, %expected
  ret i1 %all
}

; How many work-items there are, and how many came to barriers that ask.
@oxisycl_early_exits_passed = internal addrspace(3) global [2 x i32] poison, align 4

define void @oxisycl.early_exits.begin_passing() convergent {
  store atomic i32 0, ptr addrspace(3) @oxisycl_early_exits_passed monotonic, align 4
  store atomic i32 0, ptr addrspace(3) getelementptr inbounds ([2 x i32], ptr addrspace(3) @oxisycl_early_exits_passed, i64 0, i64 1) monotonic, align 4
  call void @oxisycl.group_barrier()
  %before = atomicrmw add ptr addrspace(3) @oxisycl_early_exits_passed, i32 1 monotonic, align 4
  ret void
}

; The second barrier keeps a fast work-item from coming to the next one before a slow one has read the word.
define void @oxisycl.early_exits.pass() convergent {
  %word = getelementptr inbounds [2 x i32], ptr addrspace(3) @oxisycl_early_exits_passed, i64 0, i64 1
  %before = atomicrmw add ptr addrspace(3) %word, i32 1 monotonic, align 4
  call void @oxisycl.group_barrier()
  %came = load atomic i32, ptr addrspace(3) %word monotonic, align 4
  %items = load atomic i32, ptr addrspace(3) @oxisycl_early_exits_passed monotonic, align 4
  call void @oxisycl.group_barrier()
  %rest = urem i32 %came, %items
  %all = icmp eq i32 %rest, 0
  br i1 %all, label %go, label %ends

ends:
  call void @oxisycl.early_exits.end()
  unreachable

go:
  ret void
}

declare void @oxisycl.early_exits.end() noreturn
