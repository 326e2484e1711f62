; What the intrinsics of x86's SSE instructions mean, in LLVM's own operations: one function `oxisycl.x86.<rest of the name>` each.
;
; Results are those of the processor, bit for bit, with two exceptions: `rcp` and `rsqrt` are exact to rounding where the processor is
; within 1.5 * 2^-12, and rounding is always to nearest, whatever the control register says. Immediate operands are ordinary parameters
; here, which are constant once the function is inlined.

; Comparisons.

define <4 x i1> @oxisycl.x86.compare.ps(<4 x float> %a, <4 x float> %b, i8 %predicate) {
  %c0 = fcmp oeq <4 x float> %a, %b
  %c1 = fcmp olt <4 x float> %a, %b
  %c2 = fcmp ole <4 x float> %a, %b
  %c3 = fcmp uno <4 x float> %a, %b
  %c4 = fcmp une <4 x float> %a, %b
  %c5 = fcmp uge <4 x float> %a, %b
  %c6 = fcmp ugt <4 x float> %a, %b
  %c7 = fcmp ord <4 x float> %a, %b
  %low = and i8 %predicate, 7
  %is6 = icmp eq i8 %low, 6
  %r6 = select i1 %is6, <4 x i1> %c6, <4 x i1> %c7
  %is5 = icmp eq i8 %low, 5
  %r5 = select i1 %is5, <4 x i1> %c5, <4 x i1> %r6
  %is4 = icmp eq i8 %low, 4
  %r4 = select i1 %is4, <4 x i1> %c4, <4 x i1> %r5
  %is3 = icmp eq i8 %low, 3
  %r3 = select i1 %is3, <4 x i1> %c3, <4 x i1> %r4
  %is2 = icmp eq i8 %low, 2
  %r2 = select i1 %is2, <4 x i1> %c2, <4 x i1> %r3
  %is1 = icmp eq i8 %low, 1
  %r1 = select i1 %is1, <4 x i1> %c1, <4 x i1> %r2
  %is0 = icmp eq i8 %low, 0
  %r0 = select i1 %is0, <4 x i1> %c0, <4 x i1> %r1
  ret <4 x i1> %r0
}

define <4 x float> @oxisycl.x86.sse.cmp.ps(<4 x float> %a, <4 x float> %b, i8 %predicate) {
  %c = call <4 x i1> @oxisycl.x86.compare.ps(<4 x float> %a, <4 x float> %b, i8 %predicate)
  %bits = sext <4 x i1> %c to <4 x i32>
  %r = bitcast <4 x i32> %bits to <4 x float>
  ret <4 x float> %r
}

define <4 x float> @oxisycl.x86.sse.cmp.ss(<4 x float> %a, <4 x float> %b, i8 %predicate) {
  %c = call <4 x float> @oxisycl.x86.sse.cmp.ps(<4 x float> %a, <4 x float> %b, i8 %predicate)
  %r = shufflevector <4 x float> %c, <4 x float> %a, <4 x i32> <i32 0, i32 5, i32 6, i32 7>
  ret <4 x float> %r
}

define i32 @oxisycl.x86.sse.comieq.ss(<4 x float> %a, <4 x float> %b) {
  %x = extractelement <4 x float> %a, i32 0
  %y = extractelement <4 x float> %b, i32 0
  %c = fcmp oeq float %x, %y
  %r = zext i1 %c to i32
  ret i32 %r
}

define i32 @oxisycl.x86.sse.comilt.ss(<4 x float> %a, <4 x float> %b) {
  %x = extractelement <4 x float> %a, i32 0
  %y = extractelement <4 x float> %b, i32 0
  %c = fcmp olt float %x, %y
  %r = zext i1 %c to i32
  ret i32 %r
}

define i32 @oxisycl.x86.sse.comile.ss(<4 x float> %a, <4 x float> %b) {
  %x = extractelement <4 x float> %a, i32 0
  %y = extractelement <4 x float> %b, i32 0
  %c = fcmp ole float %x, %y
  %r = zext i1 %c to i32
  ret i32 %r
}

define i32 @oxisycl.x86.sse.comigt.ss(<4 x float> %a, <4 x float> %b) {
  %x = extractelement <4 x float> %a, i32 0
  %y = extractelement <4 x float> %b, i32 0
  %c = fcmp ogt float %x, %y
  %r = zext i1 %c to i32
  ret i32 %r
}

define i32 @oxisycl.x86.sse.comige.ss(<4 x float> %a, <4 x float> %b) {
  %x = extractelement <4 x float> %a, i32 0
  %y = extractelement <4 x float> %b, i32 0
  %c = fcmp oge float %x, %y
  %r = zext i1 %c to i32
  ret i32 %r
}

define i32 @oxisycl.x86.sse.comineq.ss(<4 x float> %a, <4 x float> %b) {
  %x = extractelement <4 x float> %a, i32 0
  %y = extractelement <4 x float> %b, i32 0
  %c = fcmp une float %x, %y
  %r = zext i1 %c to i32
  ret i32 %r
}

define i32 @oxisycl.x86.sse.ucomieq.ss(<4 x float> %a, <4 x float> %b) {
  %x = extractelement <4 x float> %a, i32 0
  %y = extractelement <4 x float> %b, i32 0
  %c = fcmp oeq float %x, %y
  %r = zext i1 %c to i32
  ret i32 %r
}

define i32 @oxisycl.x86.sse.ucomilt.ss(<4 x float> %a, <4 x float> %b) {
  %x = extractelement <4 x float> %a, i32 0
  %y = extractelement <4 x float> %b, i32 0
  %c = fcmp olt float %x, %y
  %r = zext i1 %c to i32
  ret i32 %r
}

define i32 @oxisycl.x86.sse.ucomile.ss(<4 x float> %a, <4 x float> %b) {
  %x = extractelement <4 x float> %a, i32 0
  %y = extractelement <4 x float> %b, i32 0
  %c = fcmp ole float %x, %y
  %r = zext i1 %c to i32
  ret i32 %r
}

define i32 @oxisycl.x86.sse.ucomigt.ss(<4 x float> %a, <4 x float> %b) {
  %x = extractelement <4 x float> %a, i32 0
  %y = extractelement <4 x float> %b, i32 0
  %c = fcmp ogt float %x, %y
  %r = zext i1 %c to i32
  ret i32 %r
}

define i32 @oxisycl.x86.sse.ucomige.ss(<4 x float> %a, <4 x float> %b) {
  %x = extractelement <4 x float> %a, i32 0
  %y = extractelement <4 x float> %b, i32 0
  %c = fcmp oge float %x, %y
  %r = zext i1 %c to i32
  ret i32 %r
}

define i32 @oxisycl.x86.sse.ucomineq.ss(<4 x float> %a, <4 x float> %b) {
  %x = extractelement <4 x float> %a, i32 0
  %y = extractelement <4 x float> %b, i32 0
  %c = fcmp une float %x, %y
  %r = zext i1 %c to i32
  ret i32 %r
}

define <2 x i1> @oxisycl.x86.compare.pd(<2 x double> %a, <2 x double> %b, i8 %predicate) {
  %c0 = fcmp oeq <2 x double> %a, %b
  %c1 = fcmp olt <2 x double> %a, %b
  %c2 = fcmp ole <2 x double> %a, %b
  %c3 = fcmp uno <2 x double> %a, %b
  %c4 = fcmp une <2 x double> %a, %b
  %c5 = fcmp uge <2 x double> %a, %b
  %c6 = fcmp ugt <2 x double> %a, %b
  %c7 = fcmp ord <2 x double> %a, %b
  %low = and i8 %predicate, 7
  %is6 = icmp eq i8 %low, 6
  %r6 = select i1 %is6, <2 x i1> %c6, <2 x i1> %c7
  %is5 = icmp eq i8 %low, 5
  %r5 = select i1 %is5, <2 x i1> %c5, <2 x i1> %r6
  %is4 = icmp eq i8 %low, 4
  %r4 = select i1 %is4, <2 x i1> %c4, <2 x i1> %r5
  %is3 = icmp eq i8 %low, 3
  %r3 = select i1 %is3, <2 x i1> %c3, <2 x i1> %r4
  %is2 = icmp eq i8 %low, 2
  %r2 = select i1 %is2, <2 x i1> %c2, <2 x i1> %r3
  %is1 = icmp eq i8 %low, 1
  %r1 = select i1 %is1, <2 x i1> %c1, <2 x i1> %r2
  %is0 = icmp eq i8 %low, 0
  %r0 = select i1 %is0, <2 x i1> %c0, <2 x i1> %r1
  ret <2 x i1> %r0
}

define <2 x double> @oxisycl.x86.sse2.cmp.pd(<2 x double> %a, <2 x double> %b, i8 %predicate) {
  %c = call <2 x i1> @oxisycl.x86.compare.pd(<2 x double> %a, <2 x double> %b, i8 %predicate)
  %bits = sext <2 x i1> %c to <2 x i64>
  %r = bitcast <2 x i64> %bits to <2 x double>
  ret <2 x double> %r
}

define <2 x double> @oxisycl.x86.sse2.cmp.sd(<2 x double> %a, <2 x double> %b, i8 %predicate) {
  %c = call <2 x double> @oxisycl.x86.sse2.cmp.pd(<2 x double> %a, <2 x double> %b, i8 %predicate)
  %r = shufflevector <2 x double> %c, <2 x double> %a, <2 x i32> <i32 0, i32 3>
  ret <2 x double> %r
}

define i32 @oxisycl.x86.sse2.comieq.sd(<2 x double> %a, <2 x double> %b) {
  %x = extractelement <2 x double> %a, i32 0
  %y = extractelement <2 x double> %b, i32 0
  %c = fcmp oeq double %x, %y
  %r = zext i1 %c to i32
  ret i32 %r
}

define i32 @oxisycl.x86.sse2.comilt.sd(<2 x double> %a, <2 x double> %b) {
  %x = extractelement <2 x double> %a, i32 0
  %y = extractelement <2 x double> %b, i32 0
  %c = fcmp olt double %x, %y
  %r = zext i1 %c to i32
  ret i32 %r
}

define i32 @oxisycl.x86.sse2.comile.sd(<2 x double> %a, <2 x double> %b) {
  %x = extractelement <2 x double> %a, i32 0
  %y = extractelement <2 x double> %b, i32 0
  %c = fcmp ole double %x, %y
  %r = zext i1 %c to i32
  ret i32 %r
}

define i32 @oxisycl.x86.sse2.comigt.sd(<2 x double> %a, <2 x double> %b) {
  %x = extractelement <2 x double> %a, i32 0
  %y = extractelement <2 x double> %b, i32 0
  %c = fcmp ogt double %x, %y
  %r = zext i1 %c to i32
  ret i32 %r
}

define i32 @oxisycl.x86.sse2.comige.sd(<2 x double> %a, <2 x double> %b) {
  %x = extractelement <2 x double> %a, i32 0
  %y = extractelement <2 x double> %b, i32 0
  %c = fcmp oge double %x, %y
  %r = zext i1 %c to i32
  ret i32 %r
}

define i32 @oxisycl.x86.sse2.comineq.sd(<2 x double> %a, <2 x double> %b) {
  %x = extractelement <2 x double> %a, i32 0
  %y = extractelement <2 x double> %b, i32 0
  %c = fcmp une double %x, %y
  %r = zext i1 %c to i32
  ret i32 %r
}

define i32 @oxisycl.x86.sse2.ucomieq.sd(<2 x double> %a, <2 x double> %b) {
  %x = extractelement <2 x double> %a, i32 0
  %y = extractelement <2 x double> %b, i32 0
  %c = fcmp oeq double %x, %y
  %r = zext i1 %c to i32
  ret i32 %r
}

define i32 @oxisycl.x86.sse2.ucomilt.sd(<2 x double> %a, <2 x double> %b) {
  %x = extractelement <2 x double> %a, i32 0
  %y = extractelement <2 x double> %b, i32 0
  %c = fcmp olt double %x, %y
  %r = zext i1 %c to i32
  ret i32 %r
}

define i32 @oxisycl.x86.sse2.ucomile.sd(<2 x double> %a, <2 x double> %b) {
  %x = extractelement <2 x double> %a, i32 0
  %y = extractelement <2 x double> %b, i32 0
  %c = fcmp ole double %x, %y
  %r = zext i1 %c to i32
  ret i32 %r
}

define i32 @oxisycl.x86.sse2.ucomigt.sd(<2 x double> %a, <2 x double> %b) {
  %x = extractelement <2 x double> %a, i32 0
  %y = extractelement <2 x double> %b, i32 0
  %c = fcmp ogt double %x, %y
  %r = zext i1 %c to i32
  ret i32 %r
}

define i32 @oxisycl.x86.sse2.ucomige.sd(<2 x double> %a, <2 x double> %b) {
  %x = extractelement <2 x double> %a, i32 0
  %y = extractelement <2 x double> %b, i32 0
  %c = fcmp oge double %x, %y
  %r = zext i1 %c to i32
  ret i32 %r
}

define i32 @oxisycl.x86.sse2.ucomineq.sd(<2 x double> %a, <2 x double> %b) {
  %x = extractelement <2 x double> %a, i32 0
  %y = extractelement <2 x double> %b, i32 0
  %c = fcmp une double %x, %y
  %r = zext i1 %c to i32
  ret i32 %r
}

; The second operand is the result where the operands are equal or unordered.

define <4 x float> @oxisycl.x86.sse.min.ps(<4 x float> %a, <4 x float> %b) {
  %c = fcmp olt <4 x float> %a, %b
  %r = select <4 x i1> %c, <4 x float> %a, <4 x float> %b
  ret <4 x float> %r
}

define <4 x float> @oxisycl.x86.sse.min.ss(<4 x float> %a, <4 x float> %b) {
  %m = call <4 x float> @oxisycl.x86.sse.min.ps(<4 x float> %a, <4 x float> %b)
  %r = shufflevector <4 x float> %m, <4 x float> %a, <4 x i32> <i32 0, i32 5, i32 6, i32 7>
  ret <4 x float> %r
}

define <4 x float> @oxisycl.x86.sse.max.ps(<4 x float> %a, <4 x float> %b) {
  %c = fcmp ogt <4 x float> %a, %b
  %r = select <4 x i1> %c, <4 x float> %a, <4 x float> %b
  ret <4 x float> %r
}

define <4 x float> @oxisycl.x86.sse.max.ss(<4 x float> %a, <4 x float> %b) {
  %m = call <4 x float> @oxisycl.x86.sse.max.ps(<4 x float> %a, <4 x float> %b)
  %r = shufflevector <4 x float> %m, <4 x float> %a, <4 x i32> <i32 0, i32 5, i32 6, i32 7>
  ret <4 x float> %r
}

define <2 x double> @oxisycl.x86.sse2.min.pd(<2 x double> %a, <2 x double> %b) {
  %c = fcmp olt <2 x double> %a, %b
  %r = select <2 x i1> %c, <2 x double> %a, <2 x double> %b
  ret <2 x double> %r
}

define <2 x double> @oxisycl.x86.sse2.min.sd(<2 x double> %a, <2 x double> %b) {
  %m = call <2 x double> @oxisycl.x86.sse2.min.pd(<2 x double> %a, <2 x double> %b)
  %r = shufflevector <2 x double> %m, <2 x double> %a, <2 x i32> <i32 0, i32 3>
  ret <2 x double> %r
}

define <2 x double> @oxisycl.x86.sse2.max.pd(<2 x double> %a, <2 x double> %b) {
  %c = fcmp ogt <2 x double> %a, %b
  %r = select <2 x i1> %c, <2 x double> %a, <2 x double> %b
  ret <2 x double> %r
}

define <2 x double> @oxisycl.x86.sse2.max.sd(<2 x double> %a, <2 x double> %b) {
  %m = call <2 x double> @oxisycl.x86.sse2.max.pd(<2 x double> %a, <2 x double> %b)
  %r = shufflevector <2 x double> %m, <2 x double> %a, <2 x i32> <i32 0, i32 3>
  ret <2 x double> %r
}

; Reciprocals.

define <4 x float> @oxisycl.x86.sse.rcp.ps(<4 x float> %a) {
  %r = fdiv <4 x float> <float 1.0, float 1.0, float 1.0, float 1.0>, %a
  ret <4 x float> %r
}

define <4 x float> @oxisycl.x86.sse.rsqrt.ps(<4 x float> %a) {
  %root = call <4 x float> @llvm.sqrt.v4f32(<4 x float> %a)
  %r = fdiv <4 x float> <float 1.0, float 1.0, float 1.0, float 1.0>, %root
  ret <4 x float> %r
}

define <4 x float> @oxisycl.x86.sse.rcp.ss(<4 x float> %a) {
  %q = call <4 x float> @oxisycl.x86.sse.rcp.ps(<4 x float> %a)
  %r = shufflevector <4 x float> %q, <4 x float> %a, <4 x i32> <i32 0, i32 5, i32 6, i32 7>
  ret <4 x float> %r
}

define <4 x float> @oxisycl.x86.sse.rsqrt.ss(<4 x float> %a) {
  %q = call <4 x float> @oxisycl.x86.sse.rsqrt.ps(<4 x float> %a)
  %r = shufflevector <4 x float> %q, <4 x float> %a, <4 x i32> <i32 0, i32 5, i32 6, i32 7>
  ret <4 x float> %r
}

; Conversions to integers: what does not fit becomes the lowest number.

define <4 x i32> @oxisycl.x86.to_i32.ps(<4 x float> %integral) {
  %low = fcmp oge <4 x float> %integral, <float 0xC1E0000000000000, float 0xC1E0000000000000, float 0xC1E0000000000000, float 0xC1E0000000000000>
  %high = fcmp olt <4 x float> %integral, <float 0x41E0000000000000, float 0x41E0000000000000, float 0x41E0000000000000, float 0x41E0000000000000>
  %fits = and <4 x i1> %low, %high
  %i = call <4 x i32> @llvm.fptosi.sat.v4i32.v4f32(<4 x float> %integral)
  %r = select <4 x i1> %fits, <4 x i32> %i, <4 x i32> <i32 -2147483648, i32 -2147483648, i32 -2147483648, i32 -2147483648>
  ret <4 x i32> %r
}

define <4 x i64> @oxisycl.x86.to_i64.ps(<4 x float> %integral) {
  %low = fcmp oge <4 x float> %integral, <float 0xC3E0000000000000, float 0xC3E0000000000000, float 0xC3E0000000000000, float 0xC3E0000000000000>
  %high = fcmp olt <4 x float> %integral, <float 0x43E0000000000000, float 0x43E0000000000000, float 0x43E0000000000000, float 0x43E0000000000000>
  %fits = and <4 x i1> %low, %high
  %i = call <4 x i64> @llvm.fptosi.sat.v4i64.v4f32(<4 x float> %integral)
  %r = select <4 x i1> %fits, <4 x i64> %i, <4 x i64> <i64 -9223372036854775808, i64 -9223372036854775808, i64 -9223372036854775808, i64 -9223372036854775808>
  ret <4 x i64> %r
}

define i32 @oxisycl.x86.sse.cvtss2si(<4 x float> %a) {
  %whole = call <4 x float> @llvm.roundeven.v4f32(<4 x float> %a)
  %i = call <4 x i32> @oxisycl.x86.to_i32.ps(<4 x float> %whole)
  %r = extractelement <4 x i32> %i, i32 0
  ret i32 %r
}

define i64 @oxisycl.x86.sse.cvtss2si64(<4 x float> %a) {
  %whole = call <4 x float> @llvm.roundeven.v4f32(<4 x float> %a)
  %i = call <4 x i64> @oxisycl.x86.to_i64.ps(<4 x float> %whole)
  %r = extractelement <4 x i64> %i, i32 0
  ret i64 %r
}

define <4 x i32> @oxisycl.x86.sse2.cvtps2dq(<4 x float> %a) {
  %whole = call <4 x float> @llvm.roundeven.v4f32(<4 x float> %a)
  %i = call <4 x i32> @oxisycl.x86.to_i32.ps(<4 x float> %whole)
  ret <4 x i32> %i
}

define i32 @oxisycl.x86.sse.cvttss2si(<4 x float> %a) {
  %whole = call <4 x float> @llvm.trunc.v4f32(<4 x float> %a)
  %i = call <4 x i32> @oxisycl.x86.to_i32.ps(<4 x float> %whole)
  %r = extractelement <4 x i32> %i, i32 0
  ret i32 %r
}

define i64 @oxisycl.x86.sse.cvttss2si64(<4 x float> %a) {
  %whole = call <4 x float> @llvm.trunc.v4f32(<4 x float> %a)
  %i = call <4 x i64> @oxisycl.x86.to_i64.ps(<4 x float> %whole)
  %r = extractelement <4 x i64> %i, i32 0
  ret i64 %r
}

define <4 x i32> @oxisycl.x86.sse2.cvttps2dq(<4 x float> %a) {
  %whole = call <4 x float> @llvm.trunc.v4f32(<4 x float> %a)
  %i = call <4 x i32> @oxisycl.x86.to_i32.ps(<4 x float> %whole)
  ret <4 x i32> %i
}

define <2 x i32> @oxisycl.x86.to_i32.pd(<2 x double> %integral) {
  %low = fcmp oge <2 x double> %integral, <double 0xC1E0000000000000, double 0xC1E0000000000000>
  %high = fcmp olt <2 x double> %integral, <double 0x41E0000000000000, double 0x41E0000000000000>
  %fits = and <2 x i1> %low, %high
  %i = call <2 x i32> @llvm.fptosi.sat.v2i32.v2f64(<2 x double> %integral)
  %r = select <2 x i1> %fits, <2 x i32> %i, <2 x i32> <i32 -2147483648, i32 -2147483648>
  ret <2 x i32> %r
}

define <2 x i64> @oxisycl.x86.to_i64.pd(<2 x double> %integral) {
  %low = fcmp oge <2 x double> %integral, <double 0xC3E0000000000000, double 0xC3E0000000000000>
  %high = fcmp olt <2 x double> %integral, <double 0x43E0000000000000, double 0x43E0000000000000>
  %fits = and <2 x i1> %low, %high
  %i = call <2 x i64> @llvm.fptosi.sat.v2i64.v2f64(<2 x double> %integral)
  %r = select <2 x i1> %fits, <2 x i64> %i, <2 x i64> <i64 -9223372036854775808, i64 -9223372036854775808>
  ret <2 x i64> %r
}

define i32 @oxisycl.x86.sse2.cvtsd2si(<2 x double> %a) {
  %whole = call <2 x double> @llvm.roundeven.v2f64(<2 x double> %a)
  %i = call <2 x i32> @oxisycl.x86.to_i32.pd(<2 x double> %whole)
  %r = extractelement <2 x i32> %i, i32 0
  ret i32 %r
}

define i64 @oxisycl.x86.sse2.cvtsd2si64(<2 x double> %a) {
  %whole = call <2 x double> @llvm.roundeven.v2f64(<2 x double> %a)
  %i = call <2 x i64> @oxisycl.x86.to_i64.pd(<2 x double> %whole)
  %r = extractelement <2 x i64> %i, i32 0
  ret i64 %r
}

define <4 x i32> @oxisycl.x86.sse2.cvtpd2dq(<2 x double> %a) {
  %whole = call <2 x double> @llvm.roundeven.v2f64(<2 x double> %a)
  %i = call <2 x i32> @oxisycl.x86.to_i32.pd(<2 x double> %whole)
  %r = shufflevector <2 x i32> %i, <2 x i32> zeroinitializer, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  ret <4 x i32> %r
}

define i32 @oxisycl.x86.sse2.cvttsd2si(<2 x double> %a) {
  %whole = call <2 x double> @llvm.trunc.v2f64(<2 x double> %a)
  %i = call <2 x i32> @oxisycl.x86.to_i32.pd(<2 x double> %whole)
  %r = extractelement <2 x i32> %i, i32 0
  ret i32 %r
}

define i64 @oxisycl.x86.sse2.cvttsd2si64(<2 x double> %a) {
  %whole = call <2 x double> @llvm.trunc.v2f64(<2 x double> %a)
  %i = call <2 x i64> @oxisycl.x86.to_i64.pd(<2 x double> %whole)
  %r = extractelement <2 x i64> %i, i32 0
  ret i64 %r
}

define <4 x i32> @oxisycl.x86.sse2.cvttpd2dq(<2 x double> %a) {
  %whole = call <2 x double> @llvm.trunc.v2f64(<2 x double> %a)
  %i = call <2 x i32> @oxisycl.x86.to_i32.pd(<2 x double> %whole)
  %r = shufflevector <2 x i32> %i, <2 x i32> zeroinitializer, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  ret <4 x i32> %r
}

define <4 x float> @oxisycl.x86.sse2.cvtsd2ss(<4 x float> %a, <2 x double> %b) {
  %wide = extractelement <2 x double> %b, i32 0
  %narrow = fptrunc double %wide to float
  %r = insertelement <4 x float> %a, float %narrow, i32 0
  ret <4 x float> %r
}

; Rounding: 0 to nearest, 1 down, 2 up, 3 towards zero, 4 as the control register says, which is to nearest.

define <4 x float> @oxisycl.x86.sse41.round.ps(<4 x float> %a, i32 %mode) {
  %nearest = call <4 x float> @llvm.roundeven.v4f32(<4 x float> %a)
  %down = call <4 x float> @llvm.floor.v4f32(<4 x float> %a)
  %up = call <4 x float> @llvm.ceil.v4f32(<4 x float> %a)
  %zero = call <4 x float> @llvm.trunc.v4f32(<4 x float> %a)
  %how = and i32 %mode, 7
  %is_down = icmp eq i32 %how, 1
  %is_up = icmp eq i32 %how, 2
  %is_zero = icmp eq i32 %how, 3
  %r1 = select i1 %is_down, <4 x float> %down, <4 x float> %nearest
  %r2 = select i1 %is_up, <4 x float> %up, <4 x float> %r1
  %r3 = select i1 %is_zero, <4 x float> %zero, <4 x float> %r2
  ret <4 x float> %r3
}

define <4 x float> @oxisycl.x86.sse41.round.ss(<4 x float> %a, <4 x float> %b, i32 %mode) {
  %q = call <4 x float> @oxisycl.x86.sse41.round.ps(<4 x float> %b, i32 %mode)
  %r = shufflevector <4 x float> %q, <4 x float> %a, <4 x i32> <i32 0, i32 5, i32 6, i32 7>
  ret <4 x float> %r
}

define <2 x double> @oxisycl.x86.sse41.round.pd(<2 x double> %a, i32 %mode) {
  %nearest = call <2 x double> @llvm.roundeven.v2f64(<2 x double> %a)
  %down = call <2 x double> @llvm.floor.v2f64(<2 x double> %a)
  %up = call <2 x double> @llvm.ceil.v2f64(<2 x double> %a)
  %zero = call <2 x double> @llvm.trunc.v2f64(<2 x double> %a)
  %how = and i32 %mode, 7
  %is_down = icmp eq i32 %how, 1
  %is_up = icmp eq i32 %how, 2
  %is_zero = icmp eq i32 %how, 3
  %r1 = select i1 %is_down, <2 x double> %down, <2 x double> %nearest
  %r2 = select i1 %is_up, <2 x double> %up, <2 x double> %r1
  %r3 = select i1 %is_zero, <2 x double> %zero, <2 x double> %r2
  ret <2 x double> %r3
}

define <2 x double> @oxisycl.x86.sse41.round.sd(<2 x double> %a, <2 x double> %b, i32 %mode) {
  %q = call <2 x double> @oxisycl.x86.sse41.round.pd(<2 x double> %b, i32 %mode)
  %r = shufflevector <2 x double> %q, <2 x double> %a, <2 x i32> <i32 0, i32 3>
  ret <2 x double> %r
}

; Products of lanes that the upper half of the mask chooses, summed in pairs, in the lanes that the lower half chooses.

define <4 x float> @oxisycl.x86.sse41.dpps(<4 x float> %a, <4 x float> %b, i8 %mask) {
  %p = fmul <4 x float> %a, %b
  %p0 = extractelement <4 x float> %p, i32 0
  %m0 = and i8 %mask, 16
  %off0 = icmp eq i8 %m0, 0
  %x0 = select i1 %off0, float 0.0, float %p0
  %p1 = extractelement <4 x float> %p, i32 1
  %m1 = and i8 %mask, 32
  %off1 = icmp eq i8 %m1, 0
  %x1 = select i1 %off1, float 0.0, float %p1
  %p2 = extractelement <4 x float> %p, i32 2
  %m2 = and i8 %mask, 64
  %off2 = icmp eq i8 %m2, 0
  %x2 = select i1 %off2, float 0.0, float %p2
  %p3 = extractelement <4 x float> %p, i32 3
  %m3 = and i8 %mask, 128
  %off3 = icmp eq i8 %m3, 0
  %x3 = select i1 %off3, float 0.0, float %p3
  %low = fadd float %x0, %x1
  %high = fadd float %x2, %x3
  %sum = fadd float %low, %high
  %n0 = and i8 %mask, 1
  %none0 = icmp eq i8 %n0, 0
  %y0 = select i1 %none0, float 0.0, float %sum
  %r0 = insertelement <4 x float> poison, float %y0, i32 0
  %n1 = and i8 %mask, 2
  %none1 = icmp eq i8 %n1, 0
  %y1 = select i1 %none1, float 0.0, float %sum
  %r1 = insertelement <4 x float> %r0, float %y1, i32 1
  %n2 = and i8 %mask, 4
  %none2 = icmp eq i8 %n2, 0
  %y2 = select i1 %none2, float 0.0, float %sum
  %r2 = insertelement <4 x float> %r1, float %y2, i32 2
  %n3 = and i8 %mask, 8
  %none3 = icmp eq i8 %n3, 0
  %y3 = select i1 %none3, float 0.0, float %sum
  %r3 = insertelement <4 x float> %r2, float %y3, i32 3
  ret <4 x float> %r3
}

define <2 x double> @oxisycl.x86.sse41.dppd(<2 x double> %a, <2 x double> %b, i8 %mask) {
  %p = fmul <2 x double> %a, %b
  %p0 = extractelement <2 x double> %p, i32 0
  %m0 = and i8 %mask, 16
  %off0 = icmp eq i8 %m0, 0
  %x0 = select i1 %off0, double 0.0, double %p0
  %p1 = extractelement <2 x double> %p, i32 1
  %m1 = and i8 %mask, 32
  %off1 = icmp eq i8 %m1, 0
  %x1 = select i1 %off1, double 0.0, double %p1
  %sum = fadd double %x0, %x1
  %n0 = and i8 %mask, 1
  %none0 = icmp eq i8 %n0, 0
  %y0 = select i1 %none0, double 0.0, double %sum
  %r0 = insertelement <2 x double> poison, double %y0, i32 0
  %n1 = and i8 %mask, 2
  %none1 = icmp eq i8 %n1, 0
  %y1 = select i1 %none1, double 0.0, double %sum
  %r1 = insertelement <2 x double> %r0, double %y1, i32 1
  ret <2 x double> %r1
}

define <4 x float> @oxisycl.x86.sse41.insertps(<4 x float> %a, <4 x float> %b, i8 %control) {
  %from8 = lshr i8 %control, 6
  %to8 = lshr i8 %control, 4
  %to2 = and i8 %to8, 3
  %from = zext i8 %from8 to i32
  %to = zext i8 %to2 to i32
  %x = extractelement <4 x float> %b, i32 %from
  %r = insertelement <4 x float> %a, float %x, i32 %to
  %z0 = and i8 %control, 1
  %is0 = icmp ne i8 %z0, 0
  %w0 = insertelement <4 x float> %r, float 0.0, i32 0
  %r0 = select i1 %is0, <4 x float> %w0, <4 x float> %r
  %z1 = and i8 %control, 2
  %is1 = icmp ne i8 %z1, 0
  %w1 = insertelement <4 x float> %r0, float 0.0, i32 1
  %r1 = select i1 %is1, <4 x float> %w1, <4 x float> %r0
  %z2 = and i8 %control, 4
  %is2 = icmp ne i8 %z2, 0
  %w2 = insertelement <4 x float> %r1, float 0.0, i32 2
  %r2 = select i1 %is2, <4 x float> %w2, <4 x float> %r1
  %z3 = and i8 %control, 8
  %is3 = icmp ne i8 %z3, 0
  %w3 = insertelement <4 x float> %r2, float 0.0, i32 3
  %r3 = select i1 %is3, <4 x float> %w3, <4 x float> %r2
  ret <4 x float> %r3
}

; Narrowing with saturation.

define <16 x i8> @oxisycl.x86.sse2.packsswb.128(<8 x i16> %a, <8 x i16> %b) {
  %both = shufflevector <8 x i16> %a, <8 x i16> %b, <16 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15>
  %low = call <16 x i16> @llvm.smin.v16i16(<16 x i16> %both, <16 x i16> splat (i16 127))
  %in = call <16 x i16> @llvm.smax.v16i16(<16 x i16> %low, <16 x i16> splat (i16 -128))
  %r = trunc <16 x i16> %in to <16 x i8>
  ret <16 x i8> %r
}

define <16 x i8> @oxisycl.x86.sse2.packuswb.128(<8 x i16> %a, <8 x i16> %b) {
  %both = shufflevector <8 x i16> %a, <8 x i16> %b, <16 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15>
  %low = call <16 x i16> @llvm.smin.v16i16(<16 x i16> %both, <16 x i16> splat (i16 255))
  %in = call <16 x i16> @llvm.smax.v16i16(<16 x i16> %low, <16 x i16> splat (i16 0))
  %r = trunc <16 x i16> %in to <16 x i8>
  ret <16 x i8> %r
}

define <8 x i16> @oxisycl.x86.sse2.packssdw.128(<4 x i32> %a, <4 x i32> %b) {
  %both = shufflevector <4 x i32> %a, <4 x i32> %b, <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>
  %low = call <8 x i32> @llvm.smin.v8i32(<8 x i32> %both, <8 x i32> splat (i32 32767))
  %in = call <8 x i32> @llvm.smax.v8i32(<8 x i32> %low, <8 x i32> splat (i32 -32768))
  %r = trunc <8 x i32> %in to <8 x i16>
  ret <8 x i16> %r
}

define <8 x i16> @oxisycl.x86.sse41.packusdw(<4 x i32> %a, <4 x i32> %b) {
  %both = shufflevector <4 x i32> %a, <4 x i32> %b, <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>
  %low = call <8 x i32> @llvm.smin.v8i32(<8 x i32> %both, <8 x i32> splat (i32 65535))
  %in = call <8 x i32> @llvm.smax.v8i32(<8 x i32> %low, <8 x i32> splat (i32 0))
  %r = trunc <8 x i32> %in to <8 x i16>
  ret <8 x i16> %r
}

; Shifts by the lower 64 bits of the second operand; a count beyond the width shifts everything out.

define <8 x i16> @oxisycl.x86.sse2.psll.w(<8 x i16> %a, <8 x i16> %by) {
  %pair = bitcast <8 x i16> %by to <2 x i64>
  %count = extractelement <2 x i64> %pair, i32 0
  %beyond = icmp ugt i64 %count, 15
  %inside = select i1 %beyond, i64 15, i64 %count
  %narrow = trunc i64 %inside to i16
  %first = insertelement <8 x i16> poison, i16 %narrow, i32 0
  %all = shufflevector <8 x i16> %first, <8 x i16> poison, <8 x i32> zeroinitializer
  %shifted = shl <8 x i16> %a, %all
  %r = select i1 %beyond, <8 x i16> zeroinitializer, <8 x i16> %shifted
  ret <8 x i16> %r
}

define <8 x i16> @oxisycl.x86.sse2.psrl.w(<8 x i16> %a, <8 x i16> %by) {
  %pair = bitcast <8 x i16> %by to <2 x i64>
  %count = extractelement <2 x i64> %pair, i32 0
  %beyond = icmp ugt i64 %count, 15
  %inside = select i1 %beyond, i64 15, i64 %count
  %narrow = trunc i64 %inside to i16
  %first = insertelement <8 x i16> poison, i16 %narrow, i32 0
  %all = shufflevector <8 x i16> %first, <8 x i16> poison, <8 x i32> zeroinitializer
  %shifted = lshr <8 x i16> %a, %all
  %r = select i1 %beyond, <8 x i16> zeroinitializer, <8 x i16> %shifted
  ret <8 x i16> %r
}

define <8 x i16> @oxisycl.x86.sse2.psra.w(<8 x i16> %a, <8 x i16> %by) {
  %pair = bitcast <8 x i16> %by to <2 x i64>
  %count = extractelement <2 x i64> %pair, i32 0
  %beyond = icmp ugt i64 %count, 15
  %inside = select i1 %beyond, i64 15, i64 %count
  %narrow = trunc i64 %inside to i16
  %first = insertelement <8 x i16> poison, i16 %narrow, i32 0
  %all = shufflevector <8 x i16> %first, <8 x i16> poison, <8 x i32> zeroinitializer
  %shifted = ashr <8 x i16> %a, %all
  ret <8 x i16> %shifted
}

define <4 x i32> @oxisycl.x86.sse2.psll.d(<4 x i32> %a, <4 x i32> %by) {
  %pair = bitcast <4 x i32> %by to <2 x i64>
  %count = extractelement <2 x i64> %pair, i32 0
  %beyond = icmp ugt i64 %count, 31
  %inside = select i1 %beyond, i64 31, i64 %count
  %narrow = trunc i64 %inside to i32
  %first = insertelement <4 x i32> poison, i32 %narrow, i32 0
  %all = shufflevector <4 x i32> %first, <4 x i32> poison, <4 x i32> zeroinitializer
  %shifted = shl <4 x i32> %a, %all
  %r = select i1 %beyond, <4 x i32> zeroinitializer, <4 x i32> %shifted
  ret <4 x i32> %r
}

define <4 x i32> @oxisycl.x86.sse2.psrl.d(<4 x i32> %a, <4 x i32> %by) {
  %pair = bitcast <4 x i32> %by to <2 x i64>
  %count = extractelement <2 x i64> %pair, i32 0
  %beyond = icmp ugt i64 %count, 31
  %inside = select i1 %beyond, i64 31, i64 %count
  %narrow = trunc i64 %inside to i32
  %first = insertelement <4 x i32> poison, i32 %narrow, i32 0
  %all = shufflevector <4 x i32> %first, <4 x i32> poison, <4 x i32> zeroinitializer
  %shifted = lshr <4 x i32> %a, %all
  %r = select i1 %beyond, <4 x i32> zeroinitializer, <4 x i32> %shifted
  ret <4 x i32> %r
}

define <4 x i32> @oxisycl.x86.sse2.psra.d(<4 x i32> %a, <4 x i32> %by) {
  %pair = bitcast <4 x i32> %by to <2 x i64>
  %count = extractelement <2 x i64> %pair, i32 0
  %beyond = icmp ugt i64 %count, 31
  %inside = select i1 %beyond, i64 31, i64 %count
  %narrow = trunc i64 %inside to i32
  %first = insertelement <4 x i32> poison, i32 %narrow, i32 0
  %all = shufflevector <4 x i32> %first, <4 x i32> poison, <4 x i32> zeroinitializer
  %shifted = ashr <4 x i32> %a, %all
  ret <4 x i32> %shifted
}

define <2 x i64> @oxisycl.x86.sse2.psll.q(<2 x i64> %a, <2 x i64> %by) {
  %pair = bitcast <2 x i64> %by to <2 x i64>
  %count = extractelement <2 x i64> %pair, i32 0
  %beyond = icmp ugt i64 %count, 63
  %inside = select i1 %beyond, i64 63, i64 %count
  %narrow = add i64 %inside, 0
  %first = insertelement <2 x i64> poison, i64 %narrow, i32 0
  %all = shufflevector <2 x i64> %first, <2 x i64> poison, <2 x i32> zeroinitializer
  %shifted = shl <2 x i64> %a, %all
  %r = select i1 %beyond, <2 x i64> zeroinitializer, <2 x i64> %shifted
  ret <2 x i64> %r
}

define <2 x i64> @oxisycl.x86.sse2.psrl.q(<2 x i64> %a, <2 x i64> %by) {
  %pair = bitcast <2 x i64> %by to <2 x i64>
  %count = extractelement <2 x i64> %pair, i32 0
  %beyond = icmp ugt i64 %count, 63
  %inside = select i1 %beyond, i64 63, i64 %count
  %narrow = add i64 %inside, 0
  %first = insertelement <2 x i64> poison, i64 %narrow, i32 0
  %all = shufflevector <2 x i64> %first, <2 x i64> poison, <2 x i32> zeroinitializer
  %shifted = lshr <2 x i64> %a, %all
  %r = select i1 %beyond, <2 x i64> zeroinitializer, <2 x i64> %shifted
  ret <2 x i64> %r
}

; Sums of products and of differences.

define <4 x i32> @oxisycl.x86.sse2.pmadd.wd(<8 x i16> %a, <8 x i16> %b) {
  %x = sext <8 x i16> %a to <8 x i32>
  %y = sext <8 x i16> %b to <8 x i32>
  %p = mul <8 x i32> %x, %y
  %even = shufflevector <8 x i32> %p, <8 x i32> poison, <4 x i32> <i32 0, i32 2, i32 4, i32 6>
  %odd = shufflevector <8 x i32> %p, <8 x i32> poison, <4 x i32> <i32 1, i32 3, i32 5, i32 7>
  %r = add <4 x i32> %even, %odd
  ret <4 x i32> %r
}

define <8 x i16> @oxisycl.x86.ssse3.pmadd.ub.sw.128(<16 x i8> %a, <16 x i8> %b) {
  %x = zext <16 x i8> %a to <16 x i32>
  %y = sext <16 x i8> %b to <16 x i32>
  %p = mul <16 x i32> %x, %y
  %even = shufflevector <16 x i32> %p, <16 x i32> poison, <8 x i32> <i32 0, i32 2, i32 4, i32 6, i32 8, i32 10, i32 12, i32 14>
  %odd = shufflevector <16 x i32> %p, <16 x i32> poison, <8 x i32> <i32 1, i32 3, i32 5, i32 7, i32 9, i32 11, i32 13, i32 15>
  %sum = add <8 x i32> %even, %odd
  %low = call <8 x i32> @llvm.smin.v8i32(<8 x i32> %sum, <8 x i32> splat (i32 32767))
  %in = call <8 x i32> @llvm.smax.v8i32(<8 x i32> %low, <8 x i32> splat (i32 -32768))
  %r = trunc <8 x i32> %in to <8 x i16>
  ret <8 x i16> %r
}

define <8 x i16> @oxisycl.x86.ssse3.pmul.hr.sw.128(<8 x i16> %a, <8 x i16> %b) {
  %x = sext <8 x i16> %a to <8 x i32>
  %y = sext <8 x i16> %b to <8 x i32>
  %p = mul <8 x i32> %x, %y
  %s = ashr <8 x i32> %p, splat (i32 14)
  %t = add <8 x i32> %s, splat (i32 1)
  %u = ashr <8 x i32> %t, splat (i32 1)
  %r = trunc <8 x i32> %u to <8 x i16>
  ret <8 x i16> %r
}

define <2 x i64> @oxisycl.x86.sse2.psad.bw(<16 x i8> %a, <16 x i8> %b) {
  %small = call <16 x i8> @llvm.umin.v16i8(<16 x i8> %a, <16 x i8> %b)
  %large = call <16 x i8> @llvm.umax.v16i8(<16 x i8> %a, <16 x i8> %b)
  %difference = sub <16 x i8> %large, %small
  %wide = zext <16 x i8> %difference to <16 x i16>
  %low = shufflevector <16 x i16> %wide, <16 x i16> poison, <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>
  %high = shufflevector <16 x i16> %wide, <16 x i16> poison, <8 x i32> <i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15>
  %first = call i16 @llvm.vector.reduce.add.v8i16(<8 x i16> %low)
  %second = call i16 @llvm.vector.reduce.add.v8i16(<8 x i16> %high)
  %x = zext i16 %first to i64
  %y = zext i16 %second to i64
  %one = insertelement <2 x i64> poison, i64 %x, i32 0
  %r = insertelement <2 x i64> %one, i64 %y, i32 1
  ret <2 x i64> %r
}

; Bit 2 of the control moves the window over the first operand by four bytes, bits 0 and 1 choose four bytes of the second.
define <8 x i16> @oxisycl.x86.sse41.mpsadbw(<16 x i8> %a, <16 x i8> %b, i8 %control) {
  %bit = and i8 %control, 4
  %move8 = shl i8 %bit, 3
  %move = zext i8 %move8 to i128
  %bits = and i8 %control, 3
  %choose8 = shl i8 %bits, 5
  %choose = zext i8 %choose8 to i128
  %a1 = bitcast <16 x i8> %a to i128
  %b1 = bitcast <16 x i8> %b to i128
  %a2 = lshr i128 %a1, %move
  %b2 = lshr i128 %b1, %choose
  %x = bitcast i128 %a2 to <16 x i8>
  %y = bitcast i128 %b2 to <16 x i8>
  %x0 = shufflevector <16 x i8> %x, <16 x i8> poison, <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>
  %y0 = shufflevector <16 x i8> %y, <16 x i8> poison, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %small0 = call <8 x i8> @llvm.umin.v8i8(<8 x i8> %x0, <8 x i8> %y0)
  %large0 = call <8 x i8> @llvm.umax.v8i8(<8 x i8> %x0, <8 x i8> %y0)
  %d0 = sub <8 x i8> %large0, %small0
  %w0 = zext <8 x i8> %d0 to <8 x i16>
  %s0 = add <8 x i16> zeroinitializer, %w0
  %x1 = shufflevector <16 x i8> %x, <16 x i8> poison, <8 x i32> <i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8>
  %y1 = shufflevector <16 x i8> %y, <16 x i8> poison, <8 x i32> <i32 1, i32 1, i32 1, i32 1, i32 1, i32 1, i32 1, i32 1>
  %small1 = call <8 x i8> @llvm.umin.v8i8(<8 x i8> %x1, <8 x i8> %y1)
  %large1 = call <8 x i8> @llvm.umax.v8i8(<8 x i8> %x1, <8 x i8> %y1)
  %d1 = sub <8 x i8> %large1, %small1
  %w1 = zext <8 x i8> %d1 to <8 x i16>
  %s1 = add <8 x i16> %s0, %w1
  %x2 = shufflevector <16 x i8> %x, <16 x i8> poison, <8 x i32> <i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9>
  %y2 = shufflevector <16 x i8> %y, <16 x i8> poison, <8 x i32> <i32 2, i32 2, i32 2, i32 2, i32 2, i32 2, i32 2, i32 2>
  %small2 = call <8 x i8> @llvm.umin.v8i8(<8 x i8> %x2, <8 x i8> %y2)
  %large2 = call <8 x i8> @llvm.umax.v8i8(<8 x i8> %x2, <8 x i8> %y2)
  %d2 = sub <8 x i8> %large2, %small2
  %w2 = zext <8 x i8> %d2 to <8 x i16>
  %s2 = add <8 x i16> %s1, %w2
  %x3 = shufflevector <16 x i8> %x, <16 x i8> poison, <8 x i32> <i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10>
  %y3 = shufflevector <16 x i8> %y, <16 x i8> poison, <8 x i32> <i32 3, i32 3, i32 3, i32 3, i32 3, i32 3, i32 3, i32 3>
  %small3 = call <8 x i8> @llvm.umin.v8i8(<8 x i8> %x3, <8 x i8> %y3)
  %large3 = call <8 x i8> @llvm.umax.v8i8(<8 x i8> %x3, <8 x i8> %y3)
  %d3 = sub <8 x i8> %large3, %small3
  %w3 = zext <8 x i8> %d3 to <8 x i16>
  %s3 = add <8 x i16> %s2, %w3
  ret <8 x i16> %s3
}

; The smallest number and its first position.
define <8 x i16> @oxisycl.x86.sse41.phminposuw(<8 x i16> %a) {
  %least = call i16 @llvm.vector.reduce.umin.v8i16(<8 x i16> %a)
  %x6 = extractelement <8 x i16> %a, i32 6
  %is6 = icmp eq i16 %x6, %least
  %i6 = select i1 %is6, i16 6, i16 7
  %x5 = extractelement <8 x i16> %a, i32 5
  %is5 = icmp eq i16 %x5, %least
  %i5 = select i1 %is5, i16 5, i16 %i6
  %x4 = extractelement <8 x i16> %a, i32 4
  %is4 = icmp eq i16 %x4, %least
  %i4 = select i1 %is4, i16 4, i16 %i5
  %x3 = extractelement <8 x i16> %a, i32 3
  %is3 = icmp eq i16 %x3, %least
  %i3 = select i1 %is3, i16 3, i16 %i4
  %x2 = extractelement <8 x i16> %a, i32 2
  %is2 = icmp eq i16 %x2, %least
  %i2 = select i1 %is2, i16 2, i16 %i3
  %x1 = extractelement <8 x i16> %a, i32 1
  %is1 = icmp eq i16 %x1, %least
  %i1 = select i1 %is1, i16 1, i16 %i2
  %x0 = extractelement <8 x i16> %a, i32 0
  %is0 = icmp eq i16 %x0, %least
  %i0 = select i1 %is0, i16 0, i16 %i1
  %r = insertelement <8 x i16> zeroinitializer, i16 %least, i32 0
  %s = insertelement <8 x i16> %r, i16 %i0, i32 1
  ret <8 x i16> %s
}

; Signs and shuffles.

define <16 x i8> @oxisycl.x86.ssse3.psign.b.128(<16 x i8> %a, <16 x i8> %b) {
  %negative = icmp slt <16 x i8> %b, zeroinitializer
  %zero = icmp eq <16 x i8> %b, zeroinitializer
  %negated = sub <16 x i8> zeroinitializer, %a
  %x = select <16 x i1> %negative, <16 x i8> %negated, <16 x i8> %a
  %r = select <16 x i1> %zero, <16 x i8> zeroinitializer, <16 x i8> %x
  ret <16 x i8> %r
}

define <8 x i16> @oxisycl.x86.ssse3.psign.w.128(<8 x i16> %a, <8 x i16> %b) {
  %negative = icmp slt <8 x i16> %b, zeroinitializer
  %zero = icmp eq <8 x i16> %b, zeroinitializer
  %negated = sub <8 x i16> zeroinitializer, %a
  %x = select <8 x i1> %negative, <8 x i16> %negated, <8 x i16> %a
  %r = select <8 x i1> %zero, <8 x i16> zeroinitializer, <8 x i16> %x
  ret <8 x i16> %r
}

define <4 x i32> @oxisycl.x86.ssse3.psign.d.128(<4 x i32> %a, <4 x i32> %b) {
  %negative = icmp slt <4 x i32> %b, zeroinitializer
  %zero = icmp eq <4 x i32> %b, zeroinitializer
  %negated = sub <4 x i32> zeroinitializer, %a
  %x = select <4 x i1> %negative, <4 x i32> %negated, <4 x i32> %a
  %r = select <4 x i1> %zero, <4 x i32> zeroinitializer, <4 x i32> %x
  ret <4 x i32> %r
}

define <16 x i8> @oxisycl.x86.ssse3.pshuf.b.128(<16 x i8> %a, <16 x i8> %by) {
  %clear = icmp slt <16 x i8> %by, zeroinitializer
  %places = and <16 x i8> %by, splat (i8 15)
  %p0 = extractelement <16 x i8> %places, i32 0
  %x0 = extractelement <16 x i8> %a, i8 %p0
  %r0 = insertelement <16 x i8> poison, i8 %x0, i32 0
  %p1 = extractelement <16 x i8> %places, i32 1
  %x1 = extractelement <16 x i8> %a, i8 %p1
  %r1 = insertelement <16 x i8> %r0, i8 %x1, i32 1
  %p2 = extractelement <16 x i8> %places, i32 2
  %x2 = extractelement <16 x i8> %a, i8 %p2
  %r2 = insertelement <16 x i8> %r1, i8 %x2, i32 2
  %p3 = extractelement <16 x i8> %places, i32 3
  %x3 = extractelement <16 x i8> %a, i8 %p3
  %r3 = insertelement <16 x i8> %r2, i8 %x3, i32 3
  %p4 = extractelement <16 x i8> %places, i32 4
  %x4 = extractelement <16 x i8> %a, i8 %p4
  %r4 = insertelement <16 x i8> %r3, i8 %x4, i32 4
  %p5 = extractelement <16 x i8> %places, i32 5
  %x5 = extractelement <16 x i8> %a, i8 %p5
  %r5 = insertelement <16 x i8> %r4, i8 %x5, i32 5
  %p6 = extractelement <16 x i8> %places, i32 6
  %x6 = extractelement <16 x i8> %a, i8 %p6
  %r6 = insertelement <16 x i8> %r5, i8 %x6, i32 6
  %p7 = extractelement <16 x i8> %places, i32 7
  %x7 = extractelement <16 x i8> %a, i8 %p7
  %r7 = insertelement <16 x i8> %r6, i8 %x7, i32 7
  %p8 = extractelement <16 x i8> %places, i32 8
  %x8 = extractelement <16 x i8> %a, i8 %p8
  %r8 = insertelement <16 x i8> %r7, i8 %x8, i32 8
  %p9 = extractelement <16 x i8> %places, i32 9
  %x9 = extractelement <16 x i8> %a, i8 %p9
  %r9 = insertelement <16 x i8> %r8, i8 %x9, i32 9
  %p10 = extractelement <16 x i8> %places, i32 10
  %x10 = extractelement <16 x i8> %a, i8 %p10
  %r10 = insertelement <16 x i8> %r9, i8 %x10, i32 10
  %p11 = extractelement <16 x i8> %places, i32 11
  %x11 = extractelement <16 x i8> %a, i8 %p11
  %r11 = insertelement <16 x i8> %r10, i8 %x11, i32 11
  %p12 = extractelement <16 x i8> %places, i32 12
  %x12 = extractelement <16 x i8> %a, i8 %p12
  %r12 = insertelement <16 x i8> %r11, i8 %x12, i32 12
  %p13 = extractelement <16 x i8> %places, i32 13
  %x13 = extractelement <16 x i8> %a, i8 %p13
  %r13 = insertelement <16 x i8> %r12, i8 %x13, i32 13
  %p14 = extractelement <16 x i8> %places, i32 14
  %x14 = extractelement <16 x i8> %a, i8 %p14
  %r14 = insertelement <16 x i8> %r13, i8 %x14, i32 14
  %p15 = extractelement <16 x i8> %places, i32 15
  %x15 = extractelement <16 x i8> %a, i8 %p15
  %r15 = insertelement <16 x i8> %r14, i8 %x15, i32 15
  %r = select <16 x i1> %clear, <16 x i8> zeroinitializer, <16 x i8> %r15
  ret <16 x i8> %r
}

; Tests of bits.

define i32 @oxisycl.x86.sse41.ptestz(<2 x i64> %a, <2 x i64> %b) {
  %x = bitcast <2 x i64> %a to i128
  %y = bitcast <2 x i64> %b to i128
  %both = and i128 %x, %y
  %not = xor i128 %x, -1
  %rest = and i128 %not, %y
  %z = icmp eq i128 %both, 0
  %c = icmp eq i128 %rest, 0
  %r = zext i1 %z to i32
  ret i32 %r
}

define i32 @oxisycl.x86.sse41.ptestc(<2 x i64> %a, <2 x i64> %b) {
  %x = bitcast <2 x i64> %a to i128
  %y = bitcast <2 x i64> %b to i128
  %both = and i128 %x, %y
  %not = xor i128 %x, -1
  %rest = and i128 %not, %y
  %z = icmp eq i128 %both, 0
  %c = icmp eq i128 %rest, 0
  %r = zext i1 %c to i32
  ret i32 %r
}

define i32 @oxisycl.x86.sse41.ptestnzc(<2 x i64> %a, <2 x i64> %b) {
  %x = bitcast <2 x i64> %a to i128
  %y = bitcast <2 x i64> %b to i128
  %both = and i128 %x, %y
  %not = xor i128 %x, -1
  %rest = and i128 %not, %y
  %z = icmp eq i128 %both, 0
  %c = icmp eq i128 %rest, 0
  %either = or i1 %z, %c
  %flag = xor i1 %either, true
  %r = zext i1 %flag to i32
  ret i32 %r
}

; CRC-32C, one bit after another.

define i32 @oxisycl.x86.sse42.crc32.32.8(i32 %crc, i8 %byte) {
  %wide = zext i8 %byte to i32
  %s0 = xor i32 %crc, %wide
  %bit0 = and i32 %s0, 1
  %mask0 = sub i32 0, %bit0
  %poly0 = and i32 %mask0, -2097792136
  %half0 = lshr i32 %s0, 1
  %s1 = xor i32 %half0, %poly0
  %bit1 = and i32 %s1, 1
  %mask1 = sub i32 0, %bit1
  %poly1 = and i32 %mask1, -2097792136
  %half1 = lshr i32 %s1, 1
  %s2 = xor i32 %half1, %poly1
  %bit2 = and i32 %s2, 1
  %mask2 = sub i32 0, %bit2
  %poly2 = and i32 %mask2, -2097792136
  %half2 = lshr i32 %s2, 1
  %s3 = xor i32 %half2, %poly2
  %bit3 = and i32 %s3, 1
  %mask3 = sub i32 0, %bit3
  %poly3 = and i32 %mask3, -2097792136
  %half3 = lshr i32 %s3, 1
  %s4 = xor i32 %half3, %poly3
  %bit4 = and i32 %s4, 1
  %mask4 = sub i32 0, %bit4
  %poly4 = and i32 %mask4, -2097792136
  %half4 = lshr i32 %s4, 1
  %s5 = xor i32 %half4, %poly4
  %bit5 = and i32 %s5, 1
  %mask5 = sub i32 0, %bit5
  %poly5 = and i32 %mask5, -2097792136
  %half5 = lshr i32 %s5, 1
  %s6 = xor i32 %half5, %poly5
  %bit6 = and i32 %s6, 1
  %mask6 = sub i32 0, %bit6
  %poly6 = and i32 %mask6, -2097792136
  %half6 = lshr i32 %s6, 1
  %s7 = xor i32 %half6, %poly6
  %bit7 = and i32 %s7, 1
  %mask7 = sub i32 0, %bit7
  %poly7 = and i32 %mask7, -2097792136
  %half7 = lshr i32 %s7, 1
  %s8 = xor i32 %half7, %poly7
  ret i32 %s8
}

define i32 @oxisycl.x86.sse42.crc32.32.16(i32 %crc, i16 %value) {
  %v0 = lshr i16 %value, 0
  %b0 = trunc i16 %v0 to i8
  %c0 = call i32 @oxisycl.x86.sse42.crc32.32.8(i32 %crc, i8 %b0)
  %v1 = lshr i16 %value, 8
  %b1 = trunc i16 %v1 to i8
  %c1 = call i32 @oxisycl.x86.sse42.crc32.32.8(i32 %c0, i8 %b1)
  ret i32 %c1
}

define i32 @oxisycl.x86.sse42.crc32.32.32(i32 %crc, i32 %value) {
  %v0 = lshr i32 %value, 0
  %b0 = trunc i32 %v0 to i8
  %c0 = call i32 @oxisycl.x86.sse42.crc32.32.8(i32 %crc, i8 %b0)
  %v1 = lshr i32 %value, 8
  %b1 = trunc i32 %v1 to i8
  %c1 = call i32 @oxisycl.x86.sse42.crc32.32.8(i32 %c0, i8 %b1)
  %v2 = lshr i32 %value, 16
  %b2 = trunc i32 %v2 to i8
  %c2 = call i32 @oxisycl.x86.sse42.crc32.32.8(i32 %c1, i8 %b2)
  %v3 = lshr i32 %value, 24
  %b3 = trunc i32 %v3 to i8
  %c3 = call i32 @oxisycl.x86.sse42.crc32.32.8(i32 %c2, i8 %b3)
  ret i32 %c3
}

define i64 @oxisycl.x86.sse42.crc32.64.64(i64 %crc, i64 %value) {
  %start = trunc i64 %crc to i32
  %low = trunc i64 %value to i32
  %upper = lshr i64 %value, 32
  %high = trunc i64 %upper to i32
  %c = call i32 @oxisycl.x86.sse42.crc32.32.32(i32 %start, i32 %low)
  %d = call i32 @oxisycl.x86.sse42.crc32.32.32(i32 %c, i32 %high)
  %r = zext i32 %d to i64
  ret i64 %r
}

; Memory: the order of the processor's fences is that of sequential consistency, and caches are not the program's business.

define <16 x i8> @oxisycl.x86.sse3.ldu.dq(ptr %p) {
  %r = load <16 x i8>, ptr %p, align 1
  ret <16 x i8> %r
}

define void @oxisycl.x86.sse.sfence() {
  fence seq_cst
  ret void
}

define void @oxisycl.x86.sse2.lfence() {
  fence seq_cst
  ret void
}

define void @oxisycl.x86.sse2.mfence() {
  fence seq_cst
  ret void
}

define void @oxisycl.x86.sse2.clflush(ptr %p) {
  ret void
}

define void @oxisycl.x86.sse2.pause() {
  ret void
}

declare <16 x i16> @llvm.smax.v16i16(<16 x i16>, <16 x i16>)
declare <16 x i16> @llvm.smin.v16i16(<16 x i16>, <16 x i16>)
declare <16 x i8> @llvm.umax.v16i8(<16 x i8>, <16 x i8>)
declare <16 x i8> @llvm.umin.v16i8(<16 x i8>, <16 x i8>)
declare <2 x double> @llvm.ceil.v2f64(<2 x double>)
declare <2 x double> @llvm.floor.v2f64(<2 x double>)
declare <2 x double> @llvm.roundeven.v2f64(<2 x double>)
declare <2 x double> @llvm.trunc.v2f64(<2 x double>)
declare <2 x i32> @llvm.fptosi.sat.v2i32.v2f64(<2 x double>)
declare <2 x i64> @llvm.fptosi.sat.v2i64.v2f64(<2 x double>)
declare <4 x float> @llvm.ceil.v4f32(<4 x float>)
declare <4 x float> @llvm.floor.v4f32(<4 x float>)
declare <4 x float> @llvm.roundeven.v4f32(<4 x float>)
declare <4 x float> @llvm.sqrt.v4f32(<4 x float>)
declare <4 x float> @llvm.trunc.v4f32(<4 x float>)
declare <4 x i32> @llvm.fptosi.sat.v4i32.v4f32(<4 x float>)
declare <4 x i64> @llvm.fptosi.sat.v4i64.v4f32(<4 x float>)
declare <8 x i32> @llvm.smax.v8i32(<8 x i32>, <8 x i32>)
declare <8 x i32> @llvm.smin.v8i32(<8 x i32>, <8 x i32>)
declare <8 x i8> @llvm.umax.v8i8(<8 x i8>, <8 x i8>)
declare <8 x i8> @llvm.umin.v8i8(<8 x i8>, <8 x i8>)
declare i16 @llvm.vector.reduce.add.v8i16(<8 x i16>)
declare i16 @llvm.vector.reduce.umin.v8i16(<8 x i16>)
