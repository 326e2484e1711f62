; passes: fast-math
; A sine and a power in the program's own code, and one in the library's.
declare float @__oxisycl_sinf(float)
declare float @__oxisycl_powf(float, float)
define internal float @"_ZN16oxisycl_builtins6single4half17h0123456789abcdefE"(float %x) {
  %s = call float @__oxisycl_sinf(float %x)
  ret float %s
}
define float @k(float %x) {
  %s = call float @__oxisycl_sinf(float %x)
  %p = call float @__oxisycl_powf(float %s, float 2.0)
  %h = call float @"_ZN16oxisycl_builtins6single4half17h0123456789abcdefE"(float %p)
  ret float %h
}
