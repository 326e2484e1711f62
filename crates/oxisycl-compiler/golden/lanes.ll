; Function Attrs: uwtable
define dso_local void @body.lanes4(ptr %0, i64 %1) #4 personality ptr @__gcc_personality_v0 {
  %3 = getelementptr inbounds nuw i8, ptr %0, i64 16
  %4 = load ptr, ptr %3, align 8
  %5 = getelementptr inbounds nuw i8, ptr %0, i64 24
  %6 = load i64, ptr %5, align 4
  %7 = getelementptr inbounds nuw i8, ptr %0, i64 32
  %8 = load ptr, ptr %7, align 8
  %9 = getelementptr i32, ptr %4, i64 %1
  %10 = load ptr, ptr %0, align 8
  %11 = getelementptr i32, ptr %10, i64 %1
  %12 = load <4 x i32>, ptr %11, align 4
  br label %13

13:                                               ; preds = %24, %2
  %.013 = phi <4 x i32> [ undef, %2 ], [ %21, %24 ]
  %.012 = phi <4 x i1> [ splat (i1 true), %2 ], [ %.014, %24 ]
  %.0 = phi i32 [ 1, %2 ], [ %.1, %24 ]
  %14 = insertelement <4 x i32> poison, i32 %.0, i64 0
  %15 = shufflevector <4 x i32> %14, <4 x i32> poison, <4 x i32> zeroinitializer
  %16 = mul <4 x i32> %15, %12
  %17 = icmp ugt <4 x i32> %16, splat (i32 100)
  %18 = xor <4 x i1> %17, splat (i1 true)
  %19 = select <4 x i1> %.012, <4 x i1> %17, <4 x i1> zeroinitializer
  %20 = select <4 x i1> %.012, <4 x i1> %18, <4 x i1> zeroinitializer
  %21 = select <4 x i1> %19, <4 x i32> %16, <4 x i32> %.013
  %22 = bitcast <4 x i1> %20 to i4
  %.not = icmp eq i4 %22, 0
  br i1 %.not, label %24, label %26

23:                                               ; preds = %24
  store <4 x i32> %21, ptr %9, align 4
  ret void

24:                                               ; preds = %26, %13
  %.014 = phi <4 x i1> [ zeroinitializer, %13 ], [ %20, %26 ]
  %.1 = phi i32 [ %.0, %13 ], [ %27, %26 ]
  %25 = bitcast <4 x i1> %.014 to i4
  %.not15 = icmp eq i4 %25, 0
  br i1 %.not15, label %23, label %13

26:                                               ; preds = %13
  %27 = add i32 %.0, 1
  %28 = zext i32 %27 to i64
  %29 = icmp ugt i64 %6, %28
  br i1 %29, label %24, label %30

30:                                               ; preds = %26
  call void %8(i64 %28) #5
  unreachable
}
