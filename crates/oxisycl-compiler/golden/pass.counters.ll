; passes: counters
; A loop whose counter is between constants of 32 bits, around one whose counter may be wider.
define void @k(ptr %p, i64 %n) {
start:
  br label %outer
outer:
  %i = phi i64 [ 0, %start ], [ %next_i, %again ]
  br label %inner
inner:
  %j = phi i64 [ 0, %outer ], [ %next_j, %inner ]
  %at = getelementptr i32, ptr %p, i64 %j
  store volatile i32 1, ptr %at
  %next_j = add nuw i64 %j, 1
  %is_last = icmp eq i64 %next_j, %n
  br i1 %is_last, label %again, label %inner
again:
  %next_i = add nuw nsw i64 %i, 64
  %is_over = icmp eq i64 %next_i, 4096
  br i1 %is_over, label %end, label %outer
end:
  ret void
}
