//! Functions of C's mathematical library. Native code gets them from the platform, as Rust's own methods do. For a
//! device the compiler replaces them by its own, or by the processor's instructions (`oxisycl-compiler`,
//! `passes/libcalls.rs`). So one body serves both.

macro_rules! declared {
    ($($double:ident $single:ident ($($argument:ident),+);)*) => {
        // SAFETY: functions of C11's mathematical library, with its signatures. They take and give values, and have no effects but
        // floating-point flags and `errno`, which Rust code does not look at here.
        unsafe extern "C" {
            $(
                pub(super) safe fn $double($($argument: f64),+) -> f64;
                pub(super) safe fn $single($($argument: f32),+) -> f32;
            )*
        }
    };
}

declared! {
    acos acosf (x);
    acosh acoshf (x);
    asin asinf (x);
    asinh asinhf (x);
    atan atanf (x);
    atan2 atan2f (y, x);
    atanh atanhf (x);
    cbrt cbrtf (x);
    ceil ceilf (x);
    cosh coshf (x);
    erf erff (x);
    erfc erfcf (x);
    exp expf (x);
    exp2 exp2f (x);
    expm1 expm1f (x);
    floor floorf (x);
    fma fmaf (x, y, z);
    fmod fmodf (x, y);
    hypot hypotf (x, y);
    log logf (x);
    log10 log10f (x);
    log1p log1pf (x);
    log2 log2f (x);
    pow powf (x, y);
    rint rintf (x);
    round roundf (x);
    sinh sinhf (x);
    sqrt sqrtf (x);
    tanh tanhf (x);
    tgamma tgammaf (x);
    trunc truncf (x);
}

// SAFETY: as above.
unsafe extern "C" {
    pub(super) safe fn cosf(x: f32) -> f32;
    pub(super) safe fn sinf(x: f32) -> f32;
    pub(super) safe fn tanf(x: f32) -> f32;
}
