; Memory that a work-item's code allocates: the first 4096 bytes of an arena, behind which stands how many of them are taken. Addresses in it are
; aligned as the arena is, to 64 bytes. What was allocated last can be given back and grow in its place.

declare void @oxisycl.panic.oxisycl.arena() noreturn cold nounwind convergent
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

define ptr @oxisycl.arena.alloc(ptr %arena, i64 %size, i64 %align) {
  %taken_at = getelementptr inbounds i8, ptr %arena, i64 4096
  %taken = load i64, ptr %taken_at, align 8
  %less = sub i64 %align, 1
  %above = add i64 %taken, %less
  %mask = sub i64 0, %align
  %start = and i64 %above, %mask
  %end = add i64 %start, %size
  %is_small = icmp ule i64 %size, 4096
  %fits = icmp ule i64 %end, 4096
  %is_aligned = icmp ule i64 %align, 64
  %both = and i1 %is_small, %fits
  %all = and i1 %both, %is_aligned
  br i1 %all, label %take, label %exhausted
take:
  store i64 %end, ptr %taken_at, align 8
  %address = getelementptr inbounds i8, ptr %arena, i64 %start
  ret ptr %address
exhausted:
  call void @oxisycl.panic.oxisycl.arena()
  unreachable
}

define ptr @oxisycl.arena.alloc_zeroed(ptr %arena, i64 %size, i64 %align) {
  %address = call ptr @oxisycl.arena.alloc(ptr %arena, i64 %size, i64 %align)
  call void @llvm.memset.p0.i64(ptr align 1 %address, i8 0, i64 %size, i1 false)
  ret ptr %address
}

define void @oxisycl.arena.dealloc(ptr %arena, ptr %address, i64 %size, i64 %align) {
  %taken_at = getelementptr inbounds i8, ptr %arena, i64 4096
  %taken = load i64, ptr %taken_at, align 8
  %top = getelementptr inbounds i8, ptr %arena, i64 %taken
  %end = getelementptr inbounds i8, ptr %address, i64 %size
  %is_last = icmp eq ptr %end, %top
  %less = sub i64 %taken, %size
  %left = select i1 %is_last, i64 %less, i64 %taken
  store i64 %left, ptr %taken_at, align 8
  ret void
}

define ptr @oxisycl.arena.realloc(ptr %arena, ptr %address, i64 %size, i64 %align, i64 %new) {
  %taken_at = getelementptr inbounds i8, ptr %arena, i64 4096
  %taken = load i64, ptr %taken_at, align 8
  %top = getelementptr inbounds i8, ptr %arena, i64 %taken
  %end = getelementptr inbounds i8, ptr %address, i64 %size
  %is_last = icmp eq ptr %end, %top
  br i1 %is_last, label %last, label %other
last:
  %start = sub i64 %taken, %size
  %more = add i64 %start, %new
  %is_small = icmp ule i64 %new, 4096
  %fits = icmp ule i64 %more, 4096
  %both = and i1 %is_small, %fits
  br i1 %both, label %grow, label %exhausted
grow:
  store i64 %more, ptr %taken_at, align 8
  ret ptr %address
exhausted:
  call void @oxisycl.panic.oxisycl.arena()
  unreachable
other:
  %shrinks = icmp ule i64 %new, %size
  br i1 %shrinks, label %stay, label %move
stay:
  ret ptr %address
move:
  %moved = call ptr @oxisycl.arena.alloc(ptr %arena, i64 %new, i64 %align)
  call void @llvm.memcpy.p0.p0.i64(ptr align 1 %moved, ptr align 1 %address, i64 %size, i1 false)
  ret ptr %moved
}
