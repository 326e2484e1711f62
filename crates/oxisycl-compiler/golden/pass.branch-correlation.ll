; passes: branch-correlation
; A loop that asks twice whether it has ended.
define float @f(ptr %list, i64 %n) {
    entry: br label %head
    head:
    %i = phi i64 [ 0, %entry ], [ %i.after, %body ]
    %sum = phi float [ 0.0, %entry ], [ %sum.after, %body ]
    %is_end = icmp eq i64 %i, %n
    br i1 %is_end, label %next, label %some
    some:
    %element = getelementptr inbounds nuw float, ptr %list, i64 %i
    %not_null = icmp ne ptr %element, null
    call void @llvm.assume(i1 %not_null)
    %i.next = add nuw i64 %i, 1
    br label %next
    next:
    %i.after = phi i64 [ %i, %head ], [ %i.next, %some ]
    %option = phi ptr [ null, %head ], [ %element, %some ]
    %is_none = icmp eq ptr %option, null
    br i1 %is_none, label %end, label %body
    body:
    %x = load float, ptr %option
    %sum.after = fadd float %sum, %x
    br label %head
    end: ret float %sum
}
declare void @llvm.assume(i1)
