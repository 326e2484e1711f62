//! Mathematical functions under names of our own, so that they never stand in for the platform's in native code.

macro_rules! functions {
    ($($name:ident = $function:ident($($argument:ident: $type:ty),*) -> $result:ty;)*) => { $(
        #[unsafe(no_mangle)]
        extern "C" fn $name($($argument: $type),*) -> $result {
            libm::$function($($argument),*)
        }
    )* };
}

functions! {
    __oxisycl_sin = sin(x: f64) -> f64;
    __oxisycl_sinf = sinf(x: f32) -> f32;
    __oxisycl_cos = cos(x: f64) -> f64;
    __oxisycl_cosf = cosf(x: f32) -> f32;
    __oxisycl_tan = tan(x: f64) -> f64;
    __oxisycl_tanf = tanf(x: f32) -> f32;
    __oxisycl_asin = asin(x: f64) -> f64;
    __oxisycl_asinf = asinf(x: f32) -> f32;
    __oxisycl_acos = acos(x: f64) -> f64;
    __oxisycl_acosf = acosf(x: f32) -> f32;
    __oxisycl_atan = atan(x: f64) -> f64;
    __oxisycl_atanf = atanf(x: f32) -> f32;
    __oxisycl_atan2 = atan2(y: f64, x: f64) -> f64;
    __oxisycl_atan2f = atan2f(y: f32, x: f32) -> f32;
    __oxisycl_sinh = sinh(x: f64) -> f64;
    __oxisycl_sinhf = sinhf(x: f32) -> f32;
    __oxisycl_cosh = cosh(x: f64) -> f64;
    __oxisycl_coshf = coshf(x: f32) -> f32;
    __oxisycl_tanh = tanh(x: f64) -> f64;
    __oxisycl_tanhf = tanhf(x: f32) -> f32;
    __oxisycl_exp = exp(x: f64) -> f64;
    __oxisycl_expf = expf(x: f32) -> f32;
    __oxisycl_exp2 = exp2(x: f64) -> f64;
    __oxisycl_exp2f = exp2f(x: f32) -> f32;
    __oxisycl_exp10 = exp10(x: f64) -> f64;
    __oxisycl_exp10f = exp10f(x: f32) -> f32;
    __oxisycl_expm1 = expm1(x: f64) -> f64;
    __oxisycl_expm1f = expm1f(x: f32) -> f32;
    __oxisycl_log = log(x: f64) -> f64;
    __oxisycl_logf = logf(x: f32) -> f32;
    __oxisycl_log2 = log2(x: f64) -> f64;
    __oxisycl_log2f = log2f(x: f32) -> f32;
    __oxisycl_log10 = log10(x: f64) -> f64;
    __oxisycl_log10f = log10f(x: f32) -> f32;
    __oxisycl_log1p = log1p(x: f64) -> f64;
    __oxisycl_log1pf = log1pf(x: f32) -> f32;
    __oxisycl_pow = pow(x: f64, y: f64) -> f64;
    __oxisycl_powf = powf(x: f32, y: f32) -> f32;
    __oxisycl_hypot = hypot(x: f64, y: f64) -> f64;
    __oxisycl_hypotf = hypotf(x: f32, y: f32) -> f32;
    __oxisycl_cbrt = cbrt(x: f64) -> f64;
    __oxisycl_cbrtf = cbrtf(x: f32) -> f32;
    __oxisycl_fmod = fmod(x: f64, y: f64) -> f64;
    __oxisycl_fmodf = fmodf(x: f32, y: f32) -> f32;
    __oxisycl_fdim = fdim(x: f64, y: f64) -> f64;
    __oxisycl_fdimf = fdimf(x: f32, y: f32) -> f32;
    __oxisycl_ldexp = ldexp(x: f64, n: i32) -> f64;
    __oxisycl_ldexpf = ldexpf(x: f32, n: i32) -> f32;
    __oxisycl_tgamma = tgamma(x: f64) -> f64;
    __oxisycl_tgammaf = tgammaf(x: f32) -> f32;
    __oxisycl_erf = erf(x: f64) -> f64;
    __oxisycl_erff = erff(x: f32) -> f32;
    __oxisycl_erfc = erfc(x: f64) -> f64;
    __oxisycl_erfcf = erfcf(x: f32) -> f32;
}

macro_rules! powers {
    ($($name:ident: $type:ty;)*) => { $(
        /// By repeated squaring, as LLVM's own runtime library does.
        #[unsafe(no_mangle)]
        extern "C" fn $name(x: $type, n: i32) -> $type {
            let mut result: $type = 1.0;
            let mut factor = x;
            let mut exponent = n.unsigned_abs();
            loop {
                if exponent & 1 == 1 {
                    result *= factor;
                }
                exponent >>= 1;
                if exponent == 0 {
                    break;
                }
                factor *= factor;
            }
            if n < 0 { 1.0 / result } else { result }
        }
    )* };
}

powers! {
    __oxisycl_powi: f64;
    __oxisycl_powif: f32;
}

#[cfg(test)]
mod tests {
    extern crate std;

    #[test]
    fn integer_powers_agree_with_the_platforms() {
        for n in [-7, -1, 0, 1, 2, 3, 10, 31] {
            for x in [-1.5, 0.5, 1.0, 3.0_f64] {
                let (ours, theirs) = (super::__oxisycl_powi(x, n), x.powi(n));
                assert!((ours - theirs).abs() <= 4.0 * f64::EPSILON * theirs.abs(), "{x}^{n}: {ours} {theirs}");
            }
        }
    }

    #[test]
    fn functions_agree_with_the_platforms() {
        for step in 1..1000 {
            let x = f64::from(step) * 0.01;
            for (ours, theirs) in [
                (super::__oxisycl_sin(x), x.sin()),
                (super::__oxisycl_exp(x), x.exp()),
                (super::__oxisycl_log(x), x.ln()),
                (super::__oxisycl_pow(x, 1.5), x.powf(1.5)),
                (super::__oxisycl_cbrt(x), x.cbrt()),
            ] {
                assert!(
                    (ours - theirs).abs() <= 4.0 * f64::EPSILON * theirs.abs().max(f64::MIN_POSITIVE),
                    "{x}: {ours} {theirs}"
                );
            }
        }
    }
}
