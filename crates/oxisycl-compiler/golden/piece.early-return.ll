; A kernel that ends its work-item.
declare void @oxisycl.end_work_item() noreturn
define void @k(i64 %i, i64 %n, ptr %p) {
  %inside = icmp ult i64 %i, %n
  br i1 %inside, label %go, label %bad
go:
  store i64 %i, ptr %p
  ret void
bad:
  call void @oxisycl.end_work_item()
  unreachable
}
