; passes: float-atomics llvm-optimise
; Sums of floats in memory.
declare float @oxisycl.atomic_add_f32(ptr, float, i32, i32)
declare double @oxisycl.atomic_add_f64(ptr, double, i32, i32)
define ptx_kernel void @k(ptr %p, ptr %q) {
    %a = call float @oxisycl.atomic_add_f32(ptr %p, float 1.0, i32 0, i32 1)
    %b = call double @oxisycl.atomic_add_f64(ptr %q, double 1.0, i32 4, i32 0)
    ret void
}
