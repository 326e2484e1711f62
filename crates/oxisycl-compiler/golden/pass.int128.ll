; passes: int128
; Conversions between floats and 128 bits.
declare i128 @llvm.fptoui.sat.i128.f32(float)
define double @f(i128 %a, float %b, double %c) {
    %x = uitofp i128 %a to double
    %n = call i128 @llvm.fptoui.sat.i128.f32(float %b)
    %m = fptosi double %c to i128
    %s = add i128 %n, %m
    %y = sitofp i128 %s to float
    %z = fpext float %y to double
    %small = trunc i128 %a to i64
    %w = uitofp i64 %small to double
    %r = fadd double %x, %z
    %t = fadd double %r, %w
    ret double %t
}
