; passes: cold-blocks
; Panics between what goes on.
declare void @record(i64)
define void @f(i64 %i, i64 %n, ptr %p) {
start:
  %inside = icmp ult i64 %i, %n
  br i1 %inside, label %read, label %outside
outside:
  call void @record(i64 %i)
  br label %end
end:
  unreachable
read:
  %place = getelementptr i64, ptr %p, i64 %i
  %value = load i64, ptr %place
  %more = icmp ult i64 %value, %n
  br i1 %more, label %write, label %large
large:
  call void @record(i64 %value)
  unreachable
write:
  store i64 0, ptr %place
  ret void
}
