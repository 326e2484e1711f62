//! Every function of `math` for `half::f16`. Those of one number meet all 65536, those of several meet chosen and random ones.

use std::fmt::Debug;

use half::f16;
use oxisycl::prelude::*;
use oxisycl::{float, math};

use crate::harness::{Env, kernels, scramble};
use crate::outcome::Outcome;

kernels![every_function_of_halves];

/// The numbers of `f16`, and how many groups of several numbers there are.
const ALL: usize = 1 << 16;
const SEVERAL: usize = 8192;

/// Zeros, ones, numbers about them, ends of ranges, infinities and NaN.
const CHOSEN: [u16; 16] = [
    0x0000, 0x8000, 0x3C00, 0xBC00, 0x3800, 0x4000, 0xC200, 0x3555, 0x0001, 0x8001, 0x0400, 0x7BFF, 0xFBFF, 0x7C00,
    0xFC00, 0x7E00,
];
const INTEGERS: [i32; 16] = [0, 1, -1, 2, -2, 3, -3, 4, 15, -15, 24, -25, 40, -40, i32::MAX, i32::MIN];

fn number(i: usize) -> f16 {
    f16::from_bits(i as u16)
}

/// Any number. Every other one is between 2^-8 and 2^8, where functions are neither zero nor infinite.
fn any(i: usize) -> f16 {
    let bits = scramble(i);
    let exponent = 7 + (bits >> 16) % 16;
    f16::from_bits(if bits >> 31 == 0 { bits } else { bits & 0x83FF | exponent << 10 } as u16)
}

fn pair(i: usize) -> (f16, f16) {
    let chosen = |place: usize| f16::from_bits(CHOSEN[place % 16]);
    if i < 256 { (chosen(i / 16), chosen(i)) } else { (any(2 * i), any(2 * i + 1)) }
}

fn triple(i: usize) -> (f16, f16, f16) {
    let chosen = |place: usize| f16::from_bits(CHOSEN[place % 16]);
    if i < 4096 { (chosen(i / 256), chosen(i / 16), chosen(i)) } else { (any(3 * i), any(3 * i + 1), any(3 * i + 2)) }
}

fn with_integer(i: usize) -> (f16, i32) {
    let n = if i < 256 { INTEGERS[i % 16] } else { (scramble(i + SEVERAL) % 64) as i32 - 32 };
    (if i < 256 { f16::from_bits(CHOSEN[i / 16]) } else { any(i) }, n)
}

/// Equal bits, or NaN of any kind.
fn same<T: Outcome>(found: &T, expected: &T) -> bool {
    found.agrees(expected, 0.0)
}

/// As [`same`], but the sign of a zero is not said.
fn same_number(found: &f16, expected: &f16) -> bool {
    found == expected || same(found, expected)
}

/// Not more than a unit in the last place apart, and of one sign.
fn near(found: &f16, expected: &f16) -> bool {
    let magnitude = |x: &f16| x.to_bits() & 0x7FFF;
    let is_near = magnitude(found).abs_diff(magnitude(expected)) <= 1;
    same(found, expected)
        || !found.is_nan() && !expected.is_nan() && is_near && found.is_sign_negative() == expected.is_sign_negative()
}

/// As [`near`], for results of two numbers and an integer.
fn all_near(found: &(f16, f16, i32), expected: &(f16, f16, i32)) -> bool {
    near(&found.0, &expected.0) && near(&found.1, &expected.1) && found.2 == expected.2
}

/// Runs a function in a kernel for inputs below `n`, and on the host.
fn compare<T: Outcome>(
    env: &Env,
    name: impl Debug,
    n: usize,
    agree: impl Fn(&T, &T) -> bool,
    function: impl Fn(usize) -> T + Copy + Send + Sync + 'static,
) {
    let results = Buffer::from_vec(vec![T::NOTHING; n]).expect("a buffer");
    env.finish(env.queue().submit(|cg| {
        let results = cg.access(&results, Write);
        cg.parallel_for(n, float::strict(move |item| results.set(item, function(item.index()))))
    }));
    for (i, found) in results.to_vec().expect("the results").iter().enumerate() {
        let expected = function(i);
        assert!(agree(found, &expected), "{name:?} of input {i}: {found:?} instead of {expected:?}");
    }
}

/// Compares some functions, each as it is to agree. One kernel has all of them, and an argument chooses.
macro_rules! check {
    ($env:ident, $n:ident, $input:pat = $inputs:ident;
        $($agree:ident: $($name:ident($($argument:expr),*))*;)*) => {{
        #[derive(Clone, Copy, Debug)]
        #[allow(non_camel_case_types, reason = "they are the names of functions")]
        enum Function { $($($name),*),* }
        let check = |function: Function, agree: fn(&_, &_) -> bool| {
            compare($env, function, $n, agree, move |i| {
                let $input = $inputs(i);
                match function { $($(Function::$name => math::$name($($argument),*)),*),* }
            });
        };
        $($(check(Function::$name, $agree);)*)*
    }};
}

fn every_function_of_halves(env: &Env) {
    of_one_number(env);
    of_one_number_with_other_results(env);
    of_several_numbers(env);
}

fn of_one_number(env: &Env) {
    check! { env, ALL, x = number; near: acos(x) acosh(x) acospi(x) asin(x) asinh(x) asinpi(x); }
    check! { env, ALL, x = number; near: atan(x) atanh(x) atanpi(x) cbrt(x) cosh(x) sinh(x) tanh(x); }
    check! { env, ALL, x = number; near: cos(x) cospi(x) sin(x) sinpi(x) tan(x) tanpi(x); }
    check! { env, ALL, x = number; near: erf(x) erfc(x) lgamma(x) tgamma(x); }
    check! { env, ALL, x = number; near: exp(x) exp10(x) exp2(x) expm1(x); }
    check! { env, ALL, x = number; near: log(x) log10(x) log1p(x) log2(x) rsqrt(x); }
    check! { env, ALL, x = number;
        same: ceil(x) degrees(x) fabs(x) floor(x) logb(x) radians(x) rint(x) round(x) sign(x) sqrt(x) trunc(x);
    }
}

fn of_one_number_with_other_results(env: &Env) {
    check! { env, ALL, x = number; same: isfinite(x) isinf(x) isnan(x) isnormal(x) signbit(x); }
    check! { env, ALL, x = number; same: fract(x) modf(x); }
    // The code of a NaN is in its bits.
    compare(env, "nan", ALL, same, |i| math::nan::<f16>(i as u16).to_bits());
    for function in 0..4_u32 {
        let agree = if function < 2 { same } else { all_near };
        compare(env, ["frexp", "ilogb", "lgamma_r", "sincos"][function as usize], ALL, agree, move |i| {
            let x = number(i);
            match function {
                0 => {
                    let (mantissa, exponent) = math::frexp(x);
                    (mantissa, f16::ZERO, exponent)
                }
                1 => (f16::ZERO, f16::ZERO, math::ilogb(x)),
                2 => {
                    let (logarithm, sign) = math::lgamma_r(x);
                    (logarithm, f16::ZERO, sign)
                }
                _ => {
                    let (sin, cos) = math::sincos(x);
                    (sin, cos, 0)
                }
            }
        });
    }
}

fn of_several_numbers(env: &Env) {
    check! { env, SEVERAL, (x, y) = pair; near: atan2(x, y) atan2pi(x, y) hypot(x, y) pow(x, y) powr(x, y); }
    check! { env, SEVERAL, (x, y) = pair;
        same: copysign(x, y) fdim(x, y) fmod(x, y) max(x, y) min(x, y) nextafter(x, y) remainder(x, y) step(x, y);
        same_number: fmax(x, y) fmin(x, y) maxmag(x, y) minmag(x, y);
    }
    check! { env, SEVERAL, (x, y) = pair; same: remquo(x, y); }
    check! { env, SEVERAL, (x, y) = pair;
        same:
            isequal(x, y) isgreater(x, y) isgreaterequal(x, y) isless(x, y) islessequal(x, y) islessgreater(x, y)
            isnotequal(x, y) isordered(x, y) isunordered(x, y);
    }
    check! { env, SEVERAL, (x, n) = with_integer; near: pown(x, n) rootn(x, n); same: ldexp(x, n); }
    check! { env, SEVERAL, (x, y, z) = triple;
        same:
            bitselect(x, y, z) clamp(x, y, z) fma(x, y, z) mad(x, y, z) mix(x, y, z) select(x, y, x < z)
            smoothstep(x, y, z);
    }
}
