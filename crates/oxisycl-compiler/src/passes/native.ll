; Conversions between numbers of 16 bits, as integers that hold their bits, and wider ones; functions of `libm`.

define i16 @oxisycl.half.f32_to_f16(float %x) {
  %narrow = fptrunc float %x to half
  %bits = bitcast half %narrow to i16
  ret i16 %bits
}

define float @oxisycl.half.f16_to_f32(i16 %bits) {
  %narrow = bitcast i16 %bits to half
  %wide = fpext half %narrow to float
  ret float %wide
}

define i16 @oxisycl.half.f64_to_f16(double %x) {
  %narrow = fptrunc double %x to half
  %bits = bitcast half %narrow to i16
  ret i16 %bits
}

define double @oxisycl.half.f16_to_f64(i16 %bits) {
  %narrow = bitcast i16 %bits to half
  %wide = fpext half %narrow to double
  ret double %wide
}

define i16 @oxisycl.half.f32_to_bf16(float %x) {
  %narrow = fptrunc float %x to bfloat
  %bits = bitcast bfloat %narrow to i16
  ret i16 %bits
}

define float @oxisycl.half.bf16_to_f32(i16 %bits) {
  %narrow = bitcast i16 %bits to bfloat
  %wide = fpext bfloat %narrow to float
  ret float %wide
}

define i16 @oxisycl.half.f64_to_bf16(double %x) {
  %narrow = fptrunc double %x to bfloat
  %bits = bitcast bfloat %narrow to i16
  ret i16 %bits
}

define double @oxisycl.half.bf16_to_f64(i16 %bits) {
  %narrow = bitcast i16 %bits to bfloat
  %wide = fpext bfloat %narrow to double
  ret double %wide
}

define double @oxisycl.libm.sqrt(double %x) {
  %r = call double @llvm.sqrt.f64(double %x)
  ret double %r
}

define float @oxisycl.libm.sqrtf(float %x) {
  %r = call float @llvm.sqrt.f32(float %x)
  ret float %r
}

define double @oxisycl.libm.fma(double %x, double %y, double %z) {
  %r = call double @llvm.fma.f64(double %x, double %y, double %z)
  ret double %r
}

define float @oxisycl.libm.fmaf(float %x, float %y, float %z) {
  %r = call float @llvm.fma.f32(float %x, float %y, float %z)
  ret float %r
}

; Fraction and exponent. What is below the normal numbers is made larger first, by 2^64.
define { double, i32 } @oxisycl.libm.frexp(double %x) {
  %is_tiny = call i1 @llvm.is.fpclass.f64(double %x, i32 144)
  %larger = fmul double %x, 0x43F0000000000000
  %y = select i1 %is_tiny, double %larger, double %x
  %bias = select i1 %is_tiny, i32 -1086, i32 -1022
  %bits = bitcast double %y to i64
  %high = lshr i64 %bits, 52
  %masked = and i64 %high, 2047
  %field = trunc i64 %masked to i32
  %below = sub i32 %field, 1
  %has_exponent = icmp ult i32 %below, 2046
  %kept = and i64 %bits, -9218868437227405313
  %fraction = or i64 %kept, 4602678819172646912
  %number = bitcast i64 %fraction to double
  %exponent = add i32 %field, %bias
  %r0 = select i1 %has_exponent, double %number, double %x
  %r1 = select i1 %has_exponent, i32 %exponent, i32 0
  %first = insertvalue { double, i32 } poison, double %r0, 0
  %both = insertvalue { double, i32 } %first, i32 %r1, 1
  ret { double, i32 } %both
}

; Fraction and exponent. What is below the normal numbers is made larger first, by 2^64.
define { float, i32 } @oxisycl.libm.frexpf(float %x) {
  %is_tiny = call i1 @llvm.is.fpclass.f32(float %x, i32 144)
  %larger = fmul float %x, 0x43F0000000000000
  %y = select i1 %is_tiny, float %larger, float %x
  %bias = select i1 %is_tiny, i32 -190, i32 -126
  %bits = bitcast float %y to i32
  %high = lshr i32 %bits, 23
  %field = and i32 %high, 255
  %below = sub i32 %field, 1
  %has_exponent = icmp ult i32 %below, 254
  %kept = and i32 %bits, -2139095041
  %fraction = or i32 %kept, 1056964608
  %number = bitcast i32 %fraction to float
  %exponent = add i32 %field, %bias
  %r0 = select i1 %has_exponent, float %number, float %x
  %r1 = select i1 %has_exponent, i32 %exponent, i32 0
  %first = insertvalue { float, i32 } poison, float %r0, 0
  %both = insertvalue { float, i32 } %first, i32 %r1, 1
  ret { float, i32 } %both
}

declare double @llvm.sqrt.f64(double)
declare float @llvm.sqrt.f32(float)
declare double @llvm.fma.f64(double, double, double)
declare float @llvm.fma.f32(float, float, float)
declare i1 @llvm.is.fpclass.f64(double, i32 immarg)
declare i1 @llvm.is.fpclass.f32(float, i32 immarg)
