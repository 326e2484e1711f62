; passes: conversions
; The four channels of a pixel as numbers, and a number that is more than bytes.
define void @k(ptr %p, i32 %pixel) {
  %red = and i32 %pixel, 255
  %above = lshr i32 %pixel, 8
  %green = trunc i32 %above to i8
  %upper = lshr i32 %pixel, 16
  %blue = and i32 %upper, 255
  %alpha = lshr i32 %pixel, 24
  %r = uitofp nneg i32 %red to float
  %g = uitofp i8 %green to float
  %b = sitofp i32 %blue to float
  %a = uitofp nneg i32 %alpha to float
  %whole = uitofp i32 %pixel to float
  %rg = fadd float %r, %g
  %rgb = fadd float %rg, %b
  %rgba = fadd float %rgb, %a
  %sum = fadd float %rgba, %whole
  store float %sum, ptr %p
  %limited = call i32 @llvm.fptosi.sat.i32.f32(float %sum)
  store i32 %limited, ptr %p
  %wide = call i64 @llvm.fptosi.sat.i64.f32(float %sum)
  store i64 %wide, ptr %p
  ret void
}
declare i32 @llvm.fptosi.sat.i32.f32(float)
declare i64 @llvm.fptosi.sat.i64.f32(float)
