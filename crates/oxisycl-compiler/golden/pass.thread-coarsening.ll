; passes: thread-coarsening coarsened-loads
; A kernel that copies, with two work-items at each position but the last.
declare i1 @oxisycl.is_paired()
declare void @oxisycl.next_item()
declare void @oxisycl.only_item()
define void @k(ptr %p, ptr %q, i64 %i, i64 %j, i64 %n) {
  %paired = call i1 @oxisycl.is_paired()
  br i1 %paired, label %two, label %one
two:
  %both = icmp ult i64 %j, %n
  br i1 %both, label %pair, label %one
one:
  %from = getelementptr double, ptr %p, i64 %i
  %to = getelementptr double, ptr %q, i64 %i
  %x = load double, ptr %from, !invariant.load !0
  store double %x, ptr %to
  call void @oxisycl.only_item()
  ret void
pair:
  %from.1 = getelementptr double, ptr %p, i64 %i
  %to.1 = getelementptr double, ptr %q, i64 %i
  %x.1 = load double, ptr %from.1, !invariant.load !0
  store double %x.1, ptr %to.1
  call void @oxisycl.next_item()
  %from.2 = getelementptr double, ptr %p, i64 %j
  %to.2 = getelementptr double, ptr %q, i64 %j
  %x.2 = load double, ptr %from.2, !invariant.load !0
  store double %x.2, ptr %to.2
  ret void
}
!0 = !{}
