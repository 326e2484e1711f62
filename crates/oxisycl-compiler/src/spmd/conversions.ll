; Conversions of vectors for which processors without AVX-512 have no instruction. LLVM makes each lane by itself there, with branches. `conversions.rs`
; puts the number of lanes in place of LANES.

; What `as i32` makes of floats.
define <LANES x i32> @oxisycl.lanes.i32_of_f32.LANES(<LANES x float> %x) {
  %is_large = fcmp oge <LANES x float> %x, splat (float 0x41E0000000000000)
  ; False for what is not a number.
  %is_above_least = fcmp ogt <LANES x float> %x, splat (float 0xC1E0000000000000)
  %at_least = select <LANES x i1> %is_above_least, <LANES x float> %x, <LANES x float> splat (float 0xC1E0000000000000)
  %inside = select <LANES x i1> %is_large, <LANES x float> zeroinitializer, <LANES x float> %at_least
  %converted = fptosi <LANES x float> %inside to <LANES x i32>
  %limited = select <LANES x i1> %is_large, <LANES x i32> splat (i32 2147483647), <LANES x i32> %converted
  %is_number = fcmp ord <LANES x float> %x, zeroinitializer
  %result = select <LANES x i1> %is_number, <LANES x i32> %limited, <LANES x i32> zeroinitializer
  ret <LANES x i32> %result
}

; What `as u32` makes of floats.
define <LANES x i32> @oxisycl.lanes.u32_of_f32.LANES(<LANES x float> %x) {
  %is_large = fcmp oge <LANES x float> %x, splat (float 0x41F0000000000000)
  ; False for what is not a number.
  %is_above_zero = fcmp ogt <LANES x float> %x, zeroinitializer
  %at_least = select <LANES x i1> %is_above_zero, <LANES x float> %x, <LANES x float> zeroinitializer
  %inside = select <LANES x i1> %is_large, <LANES x float> zeroinitializer, <LANES x float> %at_least
  %converted = fptoui <LANES x float> %inside to <LANES x i32>
  %result = select <LANES x i1> %is_large, <LANES x i32> splat (i32 -1), <LANES x i32> %converted
  ret <LANES x i32> %result
}

; Numbers such as indices, nearly all of which are small.
define <LANES x float> @oxisycl.lanes.f32_of_u64.LANES(<LANES x i64> %any) {
begin:
  ; Lanes that are not active may hold poison.
  %x = freeze <LANES x i64> %any
  %bits = call i64 @llvm.vector.reduce.or.vLANESi64(<LANES x i64> %x)
  %are_small = icmp ult i64 %bits, 2147483648
  br i1 %are_small, label %small, label %large, !prof !0
small:
  %low = trunc <LANES x i64> %x to <LANES x i32>
  %of_small = sitofp <LANES x i32> %low to <LANES x float>
  br label %end
large:
  %of_large = uitofp <LANES x i64> %x to <LANES x float>
  br label %end
end:
  %result = phi <LANES x float> [ %of_small, %small ], [ %of_large, %large ]
  ret <LANES x float> %result
}

declare i64 @llvm.vector.reduce.or.vLANESi64(<LANES x i64>)

!0 = !{!"branch_weights", i32 1048575, i32 1}
