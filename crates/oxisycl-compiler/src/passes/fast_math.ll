; Functions of `f32` for kernels under the policy `fast`, made of a target's imprecise builtins. A target without the builtins of a function
; keeps the precise one.

declare float @oxisycl.native_cos(float)
declare float @oxisycl.native_divide(float, float)
declare float @oxisycl.native_exp2(float)
declare float @oxisycl.native_log2(float)
declare float @oxisycl.native_rsqrt(float)
declare float @oxisycl.native_sin(float)
declare float @llvm.fabs.f32(float)
declare float @llvm.trunc.f32(float)
declare float @llvm.fma.f32(float, float, float)

define float @oxisycl.fast.sin(float %x) {
  %r = call float @oxisycl.native_sin(float %x)
  ret float %r
}

define float @oxisycl.fast.cos(float %x) {
  %r = call float @oxisycl.native_cos(float %x)
  ret float %r
}

define { float, float } @oxisycl.fast.sincos(float %x) {
  %s = call float @oxisycl.native_sin(float %x)
  %c = call float @oxisycl.native_cos(float %x)
  %p = insertvalue { float, float } poison, float %s, 0
  %r = insertvalue { float, float } %p, float %c, 1
  ret { float, float } %r
}

define float @oxisycl.fast.tan(float %x) {
  %s = call float @oxisycl.native_sin(float %x)
  %c = call float @oxisycl.native_cos(float %x)
  %r = call float @oxisycl.native_divide(float %s, float %c)
  ret float %r
}

define float @oxisycl.fast.exp2(float %x) {
  %r = call float @oxisycl.native_exp2(float %x)
  ret float %r
}

; The logarithm of e to base 2.
define float @oxisycl.fast.exp(float %x) {
  %y = fmul float %x, 0x3FF7154760000000
  %r = call float @oxisycl.native_exp2(float %y)
  ret float %r
}

; The logarithm of 10 to base 2.
define float @oxisycl.fast.exp10(float %x) {
  %y = fmul float %x, 0x400A934F00000000
  %r = call float @oxisycl.native_exp2(float %y)
  ret float %r
}

define float @oxisycl.fast.log2(float %x) {
  %r = call float @oxisycl.native_log2(float %x)
  ret float %r
}

; The logarithm of 2 to base e.
define float @oxisycl.fast.log(float %x) {
  %y = call float @oxisycl.native_log2(float %x)
  %r = fmul float %y, 0x3FE62E4300000000
  ret float %r
}

; The logarithm of 2 to base 10.
define float @oxisycl.fast.log10(float %x) {
  %y = call float @oxisycl.native_log2(float %x)
  %r = fmul float %y, 0x3FD3441360000000
  ret float %r
}

define float @oxisycl.fast.powr(float %x, float %y) {
  %l = call float @oxisycl.native_log2(float %x)
  %e = fmul float %y, %l
  %r = call float @oxisycl.native_exp2(float %e)
  ret float %r
}

; An odd number leaves a rest of 1 or -1 over the even number next to it towards zero. No `f32` beyond 2^24 is odd.
define float @oxisycl.fast.pow(float %x, float %y) {
  %m = call float @llvm.fabs.f32(float %x)
  %r = call float @oxisycl.fast.powr(float %m, float %y)
  %h = fmul float %y, 5.0e-1
  %w = call float @llvm.trunc.f32(float %h)
  %o = call float @llvm.fma.f32(float %w, float -2.0, float %y)
  %a = call float @llvm.fabs.f32(float %o)
  %odd = fcmp oeq float %a, 1.0
  %below = fcmp olt float %x, 0.0
  %flip = and i1 %odd, %below
  %n = fneg float %r
  %s = select i1 %flip, float %n, float %r
  ret float %s
}

define float @oxisycl.fast.rsqrt(float %x) {
  %r = call float @oxisycl.native_rsqrt(float %x)
  ret float %r
}
