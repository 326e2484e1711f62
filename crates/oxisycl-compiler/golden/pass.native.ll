; passes: native
; Conversions of the crate half.
define internal i16 @_ZN4half8binary164arch19f32_to_f16_fallback17hd8c11f1bc84f3591E(float %value) {
    %bits = bitcast float %value to i32
    %narrow = trunc i32 %bits to i16
    ret i16 %narrow
}
define internal double @_ZN4half8binary164arch19f16_to_f64_fallback17h56255a4543018099E(i16 %i) { ret double 0.0 }
define internal i16 @_ZN4half6bfloat7convert11f32_to_bf1617hdee4e010a8e764a8E(float %value) { ret i16 0 }
define internal float @_ZN4half6bfloat7convert11bf16_to_f3217h279df7f2583263c0E(i16 %i) { ret float 0.0 }
define i16 @narrow(float %x) {
    %h = call i16 @_ZN4half8binary164arch19f32_to_f16_fallback17hd8c11f1bc84f3591E(float %x)
    ret i16 %h
}
define double @widen(i16 %x) {
    %d = call double @_ZN4half8binary164arch19f16_to_f64_fallback17h56255a4543018099E(i16 %x)
    ret double %d
}
define float @brain(float %x) {
    %h = call i16 @_ZN4half6bfloat7convert11f32_to_bf1617hdee4e010a8e764a8E(float %x)
    %r = call float @_ZN4half6bfloat7convert11bf16_to_f3217h279df7f2583263c0E(i16 %h)
    ret float %r
}
