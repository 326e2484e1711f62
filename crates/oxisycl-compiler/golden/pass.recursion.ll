; passes: recursion
; A recursive function, and a kernel that calls it.
define internal i32 @sum(i32 %n) noinline {
  %c = icmp eq i32 %n, 0
  br i1 %c, label %end, label %again
again:
  %m = sub i32 %n, 1
  %rest = call i32 @sum(i32 %m)
  %r = mul i32 %rest, %n
  %s = add i32 %r, %n
  br label %end
end:
  %all = phi i32 [ 0, %0 ], [ %s, %again ]
  ret i32 %all
}
define ptx_kernel void @k(ptr byval([104 x i8]) align 8 %launch, ptr %out) {
  %r = call i32 @sum(i32 7)
  store i32 %r, ptr %out
  ret void
}
define ptx_kernel void @plain(ptr byval([104 x i8]) align 8 %launch, ptr %out) {
  store i32 7, ptr %out
  ret void
}
