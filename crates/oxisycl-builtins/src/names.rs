//! The names under which the compiler finds the functions. They are names of our own, so that the functions never stand in for the
//! platform's in native code.

use crate::exact;
use crate::{double, single};

macro_rules! functions {
    ($($double:ident $single:ident = $function:ident($($argument:ident $(: $type:ty)?),*);)*) => { $(
        #[unsafe(no_mangle)]
        extern "C" fn $double($($argument: functions!(@ f64 $($type)?)),*) -> f64 {
            double::$function($($argument),*)
        }

        #[unsafe(no_mangle)]
        extern "C" fn $single($($argument: functions!(@ f32 $($type)?)),*) -> f32 {
            single::$function($($argument),*)
        }
    )* };
    (@ $float:ident) => { $float };
    (@ $float:ident $type:ty) => { $type };
}

functions! {
    __oxisycl_sin __oxisycl_sinf = sin(x);
    __oxisycl_cos __oxisycl_cosf = cos(x);
    __oxisycl_tan __oxisycl_tanf = tan(x);
    __oxisycl_asin __oxisycl_asinf = asin(x);
    __oxisycl_acos __oxisycl_acosf = acos(x);
    __oxisycl_atan __oxisycl_atanf = atan(x);
    __oxisycl_atan2 __oxisycl_atan2f = atan2(y, x);
    __oxisycl_sinh __oxisycl_sinhf = sinh(x);
    __oxisycl_cosh __oxisycl_coshf = cosh(x);
    __oxisycl_tanh __oxisycl_tanhf = tanh(x);
    __oxisycl_asinh __oxisycl_asinhf = asinh(x);
    __oxisycl_acosh __oxisycl_acoshf = acosh(x);
    __oxisycl_atanh __oxisycl_atanhf = atanh(x);
    __oxisycl_exp __oxisycl_expf = exp(x);
    __oxisycl_exp2 __oxisycl_exp2f = exp2(x);
    __oxisycl_exp10 __oxisycl_exp10f = exp10(x);
    __oxisycl_expm1 __oxisycl_expm1f = expm1(x);
    __oxisycl_log __oxisycl_logf = log(x);
    __oxisycl_log2 __oxisycl_log2f = log2(x);
    __oxisycl_log10 __oxisycl_log10f = log10(x);
    __oxisycl_log1p __oxisycl_log1pf = log1p(x);
    __oxisycl_pow __oxisycl_powf = pow(x, y);
    __oxisycl_powi __oxisycl_powif = powi(x, n: i32);
    __oxisycl_hypot __oxisycl_hypotf = hypot(x, y);
    __oxisycl_cbrt __oxisycl_cbrtf = cbrt(x);
    __oxisycl_tgamma __oxisycl_tgammaf = tgamma(x);
    __oxisycl_lgamma __oxisycl_lgammaf = lgamma(x);
    __oxisycl_erf __oxisycl_erff = erf(x);
    __oxisycl_erfc __oxisycl_erfcf = erfc(x);
}

macro_rules! exact_functions {
    ($($double:ident $single:ident = $function:ident($($argument:ident $(: $type:ty)?),*);)*) => { $(
        #[unsafe(no_mangle)]
        extern "C" fn $double($($argument: functions!(@ f64 $($type)?)),*) -> f64 {
            exact::double::$function($($argument),*)
        }

        #[unsafe(no_mangle)]
        extern "C" fn $single($($argument: functions!(@ f32 $($type)?)),*) -> f32 {
            exact::single::$function($($argument),*)
        }
    )* };
}

exact_functions! {
    __oxisycl_fmod __oxisycl_fmodf = fmod(x, y);
    __oxisycl_remainder __oxisycl_remainderf = remainder(x, y);
    __oxisycl_fdim __oxisycl_fdimf = fdim(x, y);
    __oxisycl_midpoint __oxisycl_midpointf = midpoint(x, y);
    __oxisycl_ldexp __oxisycl_ldexpf = ldexp(x, n: i32);
}

macro_rules! with_sign {
    ($($name:ident = $module:ident, $float:ty;)*) => { $(
        /// C's function, which stores the sign of the gamma function.
        ///
        /// # Safety
        /// `sign` leads to a number that may be written.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(x: $float, sign: *mut i32) -> $float {
            // SAFETY: by contract.
            unsafe { *sign = $module::gamma_sign(x) };
            $module::lgamma(x)
        }
    )* };
}

with_sign! {
    __oxisycl_lgamma_r = double, f64;
    __oxisycl_lgammaf_r = single, f32;
}
