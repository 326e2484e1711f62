; The entry of a kernel over a range, as rustc writes it: a fused product for each item, a bounds check that unwinds through a guard, a
; table, a function of the program and one of C.
target triple = "x86_64-unknown-linux-gnu"
@file = private unnamed_addr constant [12 x i8] c"src/main.rs\00"
@place = private unnamed_addr constant <{ ptr, [16 x i8] }> <{ ptr @file, [16 x i8] c"\0B\00\00\00\00\00\00\00\11\00\00\00\0D\00\00\00" }>
@alloc_1234 = private unnamed_addr constant [4 x float] [float 1.0, float 2.0, float 3.0, float 4.0], align 4

declare i32 @rust_eh_personality(i32, i32, i64, ptr, ptr)
declare void @_RNvNtCs1234_4core9panicking18panic_bounds_check(i64, i64, ptr) noreturn #0
declare float @llvm.fma.f32(float, float, float)
declare void @foreign(ptr)

define float @_RNvCs1234_3app5scale(float %v, i64 %i) #0 {
  %k = and i64 %i, 3
  %slot = getelementptr inbounds float, ptr @alloc_1234, i64 %k
  %factor = load float, ptr %slot
  %r = call float @llvm.fma.f32(float %v, float %factor, float 0.5)
  ret float %r
}

define void @oxisycl_entry.k(ptr %captures, ptr %launch, ptr %chunk) #0 personality ptr @rust_eh_personality {
  %p = load ptr, ptr %captures
  %length = getelementptr i8, ptr %captures, i64 8
  %n = load i64, ptr %length
  %begin = load i64, ptr %chunk
  %end_place = getelementptr i8, ptr %chunk, i64 8
  %end = load i64, ptr %end_place
  %some = icmp ult i64 %begin, %end
  br i1 %some, label %item, label %done
item:
  %i = phi i64 [ %begin, %0 ], [ %next, %ok ]
  %c = icmp ult i64 %i, %n
  br i1 %c, label %ok, label %bad
ok:
  %element = getelementptr float, ptr %p, i64 %i
  %v = load float, ptr %element
  %r = call float @_RNvCs1234_3app5scale(float %v, i64 %i)
  store float %r, ptr %element
  %next = add nuw i64 %i, 1
  %more = icmp ult i64 %next, %end
  br i1 %more, label %item, label %done
bad:
  invoke void @_RNvNtCs1234_4core9panicking18panic_bounds_check(i64 %i, i64 %n, ptr @place) to label %never unwind label %pad
never:
  unreachable
pad:
  %landed = landingpad { ptr, i32 } cleanup
  %id = getelementptr i8, ptr %chunk, i64 16
  store i64 %i, ptr %id
  resume { ptr, i32 } %landed
done:
  call void @foreign(ptr %launch)
  ret void
}

attributes #0 = { uwtable "target-cpu"="x86-64" "probe-stack"="inline-asm" }
