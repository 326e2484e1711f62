; passes: x86
; Intrinsics of SSE.
declare <4 x float> @llvm.x86.sse.max.ps(<4 x float>, <4 x float>)
declare <4 x float> @llvm.x86.sse.cmp.ps(<4 x float>, <4 x float>, i8 immarg)
define <4 x float> @f(<4 x float> %a, <4 x float> %b) {
    %m = call <4 x float> @llvm.x86.sse.max.ps(<4 x float> %a, <4 x float> %b)
    %c = call <4 x float> @llvm.x86.sse.cmp.ps(<4 x float> %m, <4 x float> %b, i8 1)
    ret <4 x float> %c
}
