; passes: float-atomics
; Sums of floats in memory.
declare float @oxisycl.atomic_add_f32(ptr, float)
declare double @oxisycl.atomic_add_f64(ptr, double)
define ptx_kernel void @k(ptr %p, ptr %q) {
    %a = call float @oxisycl.atomic_add_f32(ptr %p, float 1.0)
    %b = call double @oxisycl.atomic_add_f64(ptr %q, double 1.0)
    ret void
}
