//! Functions of less precision (SYCL 2020 section 4.17.6), for `f32` only, as SYCL has them.

macro_rules! unary {
    ($($name:ident = $function:expr;)*) => { $(
        #[doc = concat!("As [`", stringify!($name), "`](crate::math::", stringify!($name), "), of less precision.")]
        #[inline]
        pub fn $name(x: f32) -> f32 {
            $function(x)
        }
    )* };
}

/// Functions whose precision is the target's affair.
///
/// On NVIDIA GPUs `sin`, `cos`, `exp2`, `log2`, `rsqrt`, `sqrt` and `divide` are single instructions. Sine and cosine
/// have an absolute error of about 2^-21 between -pi and pi. The others have a relative error of about 2^-22. The
/// remaining functions are made of these. On other devices and on the host they are made of the functions of
/// [`math`](super).
pub mod native {
    use core::f32::consts::{LN_2, LOG2_10, LOG2_E, LOG10_2};

    use crate::math::float::sealed::Functions;

    unary! {
        cos = Functions::native_cos;
        exp = |x: f32| Functions::native_exp2(x * LOG2_E);
        exp10 = |x: f32| Functions::native_exp2(x * LOG2_10);
        exp2 = Functions::native_exp2;
        log = |x: f32| Functions::native_log2(x) * LN_2;
        log10 = |x: f32| Functions::native_log2(x) * LOG10_2;
        log2 = Functions::native_log2;
        rsqrt = Functions::native_rsqrt;
        sin = Functions::native_sin;
        sqrt = Functions::native_sqrt;
        tan = |x: f32| Functions::native_divide(Functions::native_sin(x), Functions::native_cos(x));
    }

    /// `x / y`, of less precision.
    #[inline]
    pub fn divide(x: f32, y: f32) -> f32 {
        Functions::native_divide(x, y)
    }

    /// `x` to the power of `y` for `x` that is not negative, of less precision.
    #[inline]
    pub fn powr(x: f32, y: f32) -> f32 {
        Functions::native_exp2(y * Functions::native_log2(x))
    }

    /// One over `x`, of less precision.
    #[inline]
    pub fn recip(x: f32) -> f32 {
        Functions::native_divide(1.0_f32, x)
    }
}

/// Functions that may be wrong by 8192 ULP. They are those of [`math`](super), which are more precise than that and no slower where it counts;
/// SYCL 2020 deprecates them. [`native`] has faster ones.
pub mod half_precision {
    use crate::math;

    unary! {
        cos = math::cos;
        exp = math::exp;
        exp10 = math::exp10;
        exp2 = math::exp2;
        log = math::log;
        log10 = math::log10;
        log2 = math::log2;
        rsqrt = math::rsqrt;
        sin = math::sin;
        sqrt = math::sqrt;
        tan = math::tan;
    }

    /// `x / y`.
    #[inline]
    pub fn divide(x: f32, y: f32) -> f32 {
        x / y
    }

    /// `x` to the power of `y` for `x` that is not negative.
    #[inline]
    pub fn powr(x: f32, y: f32) -> f32 {
        math::powr(x, y)
    }

    /// One over `x`.
    #[inline]
    pub fn recip(x: f32) -> f32 {
        1.0 / x
    }
}
