; passes: conversions
; What `as` makes of a float: integers of 32 bits, and one of 64.
define void @k(ptr %p, float %f) {
  %signed = call i32 @llvm.fptosi.sat.i32.f32(float %f)
  store i32 %signed, ptr %p
  %unsigned = call i32 @llvm.fptoui.sat.i32.f32(float %f)
  store i32 %unsigned, ptr %p
  %wide = call i64 @llvm.fptosi.sat.i64.f32(float %f)
  store i64 %wide, ptr %p
  ret void
}
declare i32 @llvm.fptosi.sat.i32.f32(float)
declare i32 @llvm.fptoui.sat.i32.f32(float)
declare i64 @llvm.fptosi.sat.i64.f32(float)
