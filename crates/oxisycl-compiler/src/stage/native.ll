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

declare double @llvm.sqrt.f64(double)
declare float @llvm.sqrt.f32(float)
declare double @llvm.fma.f64(double, double, double)
declare float @llvm.fma.f32(float, float, float)
