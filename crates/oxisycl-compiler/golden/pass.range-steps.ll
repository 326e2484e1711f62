; passes: range-steps
; A loop over a range that ends where a number is found, with the next number after it.
define i64 @f(ptr %list, i64 %end) {
    entry: br label %head
    head:
    %n = phi i64 [ 0, %entry ], [ %after, %body ]
    %is_below = icmp ult i64 %n, %end
    %step = zext i1 %is_below to i64
    %after = add nuw i64 %n, %step
    br i1 %is_below, label %body, label %last
    body:
    %element = getelementptr inbounds nuw i32, ptr %list, i64 %n
    %x = load i32, ptr %element
    %is_found = icmp eq i32 %x, 0
    br i1 %is_found, label %found, label %head
    found: ret i64 %after
    last: ret i64 %after
}
