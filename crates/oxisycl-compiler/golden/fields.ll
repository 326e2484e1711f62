; Function Attrs: uwtable
define dso_local void @body.lanes4(ptr %0, i64 %1) #4 personality ptr @__gcc_personality_v0 {
  %3 = getelementptr inbounds nuw i8, ptr %0, i64 16
  %4 = load ptr, ptr %3, align 8
  %5 = load ptr, ptr %0, align 8
  %6 = getelementptr [12 x i8], ptr %5, i64 %1
  %7 = getelementptr [12 x i8], ptr %4, i64 %1
  %8 = load <4 x i32>, ptr %6, align 4
  %9 = getelementptr i8, ptr %6, i64 16
  %10 = load <4 x i32>, ptr %9, align 4
  %11 = shufflevector <4 x i32> %8, <4 x i32> %10, <4 x i32> <i32 0, i32 poison, i32 6, i32 3>
  %12 = getelementptr i8, ptr %6, i64 32
  %13 = load <4 x i32>, ptr %12, align 4
  %14 = shufflevector <4 x i32> %11, <4 x i32> %13, <4 x i32> <i32 0, i32 5, i32 2, i32 3>
  %15 = shufflevector <4 x i32> %14, <4 x i32> poison, <4 x i32> <i32 0, i32 3, i32 2, i32 1>
  %16 = shufflevector <4 x i32> %10, <4 x i32> %8, <4 x i32> <i32 0, i32 5, i32 poison, i32 3>
  %17 = shufflevector <4 x i32> %16, <4 x i32> %13, <4 x i32> <i32 0, i32 1, i32 6, i32 3>
  %18 = shufflevector <4 x i32> %17, <4 x i32> poison, <4 x i32> <i32 1, i32 0, i32 3, i32 2>
  %19 = shufflevector <4 x i32> %8, <4 x i32> %10, <4 x i32> <i32 poison, i32 5, i32 2, i32 poison>
  %20 = shufflevector <4 x i32> %13, <4 x i32> %19, <4 x i32> <i32 0, i32 5, i32 6, i32 3>
  %21 = shufflevector <4 x i32> %20, <4 x i32> poison, <4 x i32> <i32 2, i32 1, i32 0, i32 3>
  %22 = add <4 x i32> %15, %18
  %23 = shufflevector <4 x i32> %21, <4 x i32> poison, <4 x i32> <i32 0, i32 3, i32 2, i32 1>
  %24 = shufflevector <4 x i32> %22, <4 x i32> poison, <4 x i32> <i32 1, i32 0, i32 3, i32 2>
  %25 = shufflevector <4 x i32> %15, <4 x i32> poison, <4 x i32> <i32 2, i32 1, i32 0, i32 3>
  %26 = shufflevector <4 x i32> %23, <4 x i32> %24, <4 x i32> <i32 0, i32 5, i32 poison, i32 3>
  %27 = shufflevector <4 x i32> %26, <4 x i32> %25, <4 x i32> <i32 0, i32 1, i32 6, i32 3>
  %28 = shufflevector <4 x i32> %24, <4 x i32> %23, <4 x i32> <i32 0, i32 poison, i32 6, i32 3>
  %29 = shufflevector <4 x i32> %28, <4 x i32> %15, <4 x i32> <i32 0, i32 5, i32 2, i32 3>
  %30 = shufflevector <4 x i32> %23, <4 x i32> %24, <4 x i32> <i32 poison, i32 1, i32 6, i32 poison>
  %31 = shufflevector <4 x i32> %25, <4 x i32> %30, <4 x i32> <i32 0, i32 5, i32 6, i32 3>
  store <4 x i32> %27, ptr %7, align 4
  %32 = getelementptr i8, ptr %7, i64 16
  store <4 x i32> %29, ptr %32, align 4
  %33 = getelementptr i8, ptr %7, i64 32
  store <4 x i32> %31, ptr %33, align 4
  ret void
}
