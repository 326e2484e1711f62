//! What the functions give on the host, where no library is behind them. Accuracy is tested with kernels (`crates/oxisycl/tests/math`).

use super::*;

#[test]
fn integer_functions_neither_overflow_nor_lose_bits() {
    assert_eq!((abs(-7_i8), abs(i8::MIN), abs(7_u8)), (7, i8::MIN, 7));
    assert_eq!((abs_diff(i32::MIN, i32::MAX), abs_diff(3_u8, 5)), (u32::MAX, 2));
    assert_eq!((add_sat(100_i8, 100), sub_sat(3_u8, 5)), (127, 0));
    assert_eq!((hadd(255_u8, 254), rhadd(255_u8, 254)), (254, 255));
    assert_eq!((hadd(-7_i8, 4), rhadd(-7_i8, 4)), (-2, -1));
    assert_eq!((hadd(i64::MAX, i64::MAX), rhadd(i64::MIN, i64::MIN)), (i64::MAX, i64::MIN));
    assert_eq!((clz(1_u16), ctz(8_i64), clz(0_u8), ctz(0_i32), popcount(-1_i16)), (15, 3, 8, 32, 16));
    assert_eq!(
        (mul_hi(u64::MAX, u64::MAX), mul_hi(-1_i32, 1), mul_hi(i64::MIN, i64::MIN)),
        (u64::MAX - 1, -1, 1 << 62)
    );
    assert_eq!((mad_hi(1_u8 << 7, 4, 255), mad_sat(100_i8, -100, 0), mad_sat(200_u8, 2, 1)), (1, i8::MIN, 255));
    assert_eq!((rotate(0x81_u8, 1), rotate(0x81_u8, 9), rotate(0x0102_i16, -8)), (0x03, 0x03, 0x0201));
    assert_eq!((upsample(-1_i8, 2_u8), upsample(0xdead_u16, 0xbeef)), (-254, 0xdead_beef));
    assert_eq!(
        (mul24(0x7f_ffff_i32, -1), mul24(0xff_0000_0001_u64 as u32, 5), mad24(3_u32, 4, 5)),
        (-0x7f_ffff, 5, 17)
    );
}

#[test]
fn rounding_up_a_mean_needs_no_wider_type() {
    for x in i8::MIN..=i8::MAX {
        for y in i8::MIN..=i8::MAX {
            let sum = i16::from(x) + i16::from(y);
            assert_eq!((i16::from(hadd(x, y)), i16::from(rhadd(x, y))), (sum >> 1, (sum + 1) >> 1), "{x} {y}");
            assert_eq!(i16::from(mul_hi(x, y)), (i16::from(x) * i16::from(y)) >> 8, "{x} {y}");
        }
    }
}

#[test]
fn common_functions_follow_their_definitions() {
    assert_eq!((clamp(5.0, 0.0, 1.0), clamp(-5, 0, 1), clamp(0.5_f32, 0.0, 1.0)), (1.0, 0, 0.5));
    assert!(clamp(f32::NAN, 0.0, 1.0).is_nan());
    assert_eq!((max(2, 3), min(2.0, 3.0), max(1.0, f64::NAN)), (3, 2.0, 1.0));
    assert_eq!((degrees(core::f64::consts::PI), radians(180.0_f32)), (180.0, core::f32::consts::PI));
    assert_eq!((mix(2.0, 4.0, 0.25), step(1.0, 0.5), step(1.0_f32, 1.0)), (2.5, 0.0, 1.0));
    assert_eq!((sign(-3.0), sign(f32::INFINITY), sign(f64::NAN)), (-1.0, 1.0, 0.0));
    assert!(sign(-0.0_f32).is_sign_negative());
    assert_eq!((smoothstep(0.0, 1.0, -1.0), smoothstep(0.0, 1.0, 0.5), smoothstep(0.0, 2.0, 3.0_f32)), (0.0, 0.5, 1.0));
}

#[test]
fn geometric_functions_keep_their_range() {
    assert_eq!(cross([1.0, 2.0, 3.0], [4.0, 5.0, 6.0]), [-3.0, 6.0, -3.0]);
    assert_eq!(cross([1.0_f32, 0.0, 0.0, 9.0], [0.0, 1.0, 0.0, 9.0]), [0.0, 0.0, 1.0, 0.0]);
    assert_eq!((dot([1.0, 2.0], [3.0, 4.0]), length([3.0, 4.0]), distance([1.0_f32], [-1.0])), (11.0, 5.0, 2.0));
    assert_eq!((length([3.0e30_f32, 4.0e30]), length([3.0e-40_f32, 4.0e-40]) / 5.0e-40), (5.0e30, 1.0));
    assert_eq!((length([3.0e300, 4.0e300]), length([f64::NAN, f64::INFINITY])), (5.0e300, f64::INFINITY));
    assert_eq!(
        (normalize([0.0, 5.0]), normalize([0.0_f32; 3]), normalize([3.0e38_f32, 0.0])),
        ([0.0, 1.0], [0.0; 3], [1.0, 0.0])
    );
    assert_eq!(normalize([f64::INFINITY, 1.0]), [1.0, 0.0]);
    assert_eq!((fast_length([3.0, 4.0]), fast_distance([3.0, 0.0], [0.0, 4.0])), (5.0, 5.0));
    assert!((fast_normalize([0.0, 3.0])[1] - 1.0).abs() < 1.0e-6);
}

#[test]
fn relational_functions_tell_nan_from_numbers() {
    let nan = f64::NAN;
    assert!(isequal(1.0, 1.0) && !isequal(nan, nan) && isnotequal(nan, nan));
    assert!(isgreater(2.0, 1.0) && isgreaterequal(1.0, 1.0) && isless(1.0, 2.0) && islessequal(1.0, 1.0));
    assert!(islessgreater(1.0, 2.0) && !islessgreater(1.0, nan) && isordered(1.0, 2.0) && isunordered(1.0, nan));
    assert!(
        isfinite(1.0)
            && !isfinite(nan)
            && isinf(f32::INFINITY)
            && isnan(nan)
            && !isnormal(1.0e-310_f64)
            && signbit(-0.0)
    );
    assert!(any([false, true]) && !any([false]) && all([true, true]) && !all([true, false]));
    assert_eq!((select(1, 2, true), select(1, 2, false)), (2, 1));
    assert_eq!(bitselect(1.0_f32, -2.0, -0.0), -1.0);
}

#[test]
fn results_in_parts_make_up_the_number() {
    assert_eq!((modf(-2.75), modf(f32::INFINITY)), ((-0.75, -2.0), (0.0, f32::INFINITY)));
    assert_eq!((fract(-2.75), fract(-1.0e-30_f32).1), ((0.25, -3.0), -1.0));
    assert!(fract(-1.0e-30_f32).0 < 1.0);
    assert_eq!((frexp(-10.0), ilogb(10.0_f32), ldexp(0.75, 3), logb(0.1)), ((-0.625, 4), 3, 6.0, -4.0));
    assert_eq!((remquo(7.0, 2.0), remquo(-7.0_f32, 2.0), lgamma_r(-0.5).1), ((-1.0, 4), (1.0, -4), -1));
    assert_eq!(
        (maxmag(-3.0, 2.0), minmag(-3.0, 2.0), maxmag(-3.0_f32, 3.0), minmag(-3.0_f32, 3.0)),
        (-3.0, 2.0, 3.0, -3.0)
    );
    assert!(nan::<f32>(5).is_nan() && nan::<f32>(5).to_bits() & 0xff == 5 && nan::<f64>(u64::MAX).is_nan());
}

#[cfg(feature = "half")]
mod of_half {
    use ::half::f16;

    use super::*;

    fn all() -> impl Iterator<Item = f16> {
        (0..=u16::MAX).map(f16::from_bits)
    }

    /// The number of steps between two numbers of `f16`; none between NaNs.
    fn steps(found: f16, expected: f16) -> u32 {
        let place = |x: f16| if x.is_sign_negative() { -i32::from(x.to_bits() & 0x7FFF) } else { x.to_bits().into() };
        match (found.is_nan(), expected.is_nan()) {
            (true, true) => 0,
            (false, false) => place(found).abs_diff(place(expected)),
            _ => u32::MAX,
        }
    }

    /// The nearest number of `f16`, of two the even one. The conversion of the crate `half` looks at the upper bits only.
    fn rounded(x: f64) -> f16 {
        let near = f16::from_f64(x);
        if !x.is_finite() || near.is_infinite() {
            return near;
        }
        let distance = |candidate: f16| ((candidate.to_f64() - x).abs(), candidate.to_bits() & 1);
        let [down, up] = [f16::NEG_INFINITY, f16::INFINITY].map(|to| nextafter(near, to));
        let others = [down, up].into_iter().filter(|other| other.is_finite());
        others.fold(near, |best, other| if distance(other) < distance(best) { other } else { best })
    }

    /// Each number of `f16`, and the function of `f64` as the reference.
    #[test]
    fn functions_of_half_are_rounded_from_wider_results() {
        macro_rules! check {
            ($($name:ident)*) => { $(
                for x in all() {
                    let (found, expected) = ($name(x), rounded($name(x.to_f64())));
                    assert!(steps(found, expected) <= 1, "{}({x:?}): {found:?}, expected {expected:?}", stringify!($name));
                }
            )* };
        }
        check! {
            acos acosh acospi asin asinh asinpi atan atanh atanpi cbrt cos cosh cospi erf erfc exp exp10 exp2 expm1 lgamma log log10 log1p
            log2 rsqrt sin sinh sinpi tan tanh tanpi tgamma
        }
        macro_rules! check_exactly {
            ($($name:ident)*) => { $(
                for x in all() {
                    let (found, expected) = ($name(x), rounded($name(x.to_f64())));
                    assert_eq!(steps(found, expected), 0, "{}({x:?}): {found:?}", stringify!($name));
                }
            )* };
        }
        check_exactly! { ceil fabs floor logb rint round sign sqrt trunc }
        for x in all().filter(|x| x.is_finite()) {
            let (mantissa, exponent) = frexp(x);
            assert_eq!((mantissa.to_f64(), exponent), frexp(x.to_f64()), "{x:?}");
            assert_eq!((ldexp(mantissa, exponent), ilogb(x)), (x, ilogb(x.to_f64())), "{x:?}");
        }
    }

    #[test]
    fn functions_of_several_halves_are_rounded_once() {
        // Numbers of every exponent, in an order without pattern, and ones near ties.
        let number = |i: u32| f16::from_bits((i.wrapping_mul(0x9E37_79B9) >> 13) as u16);
        for i in 0..300_000 {
            let [x, y, z] = [number(3 * i), number(3 * i + 1), number(3 * i + 2)];
            let [a, b, c] = [x, y, z].map(f16::to_f64);
            // Exact in `f64`, or so far from a tie that rounding twice is harmless.
            assert_eq!(steps(fma(x, y, z), rounded(a * b + c)), 0, "{x:?} * {y:?} + {z:?}");
            assert_eq!(steps(fmod(x, y), rounded(fmod(a, b))), 0, "{x:?} % {y:?}");
            assert_eq!(steps(remainder(x, y), rounded(remainder(a, b))), 0, "{x:?} rem {y:?}");
            assert_eq!(steps(fdim(x, y), rounded(fdim(a, b))), 0, "{x:?} - {y:?}");
            for (found, expected) in [(hypot(x, y), hypot(a, b)), (atan2(x, y), atan2(a, b)), (pow(x, y), pow(a, b))] {
                assert!(steps(found, rounded(expected)) <= 1, "{x:?}, {y:?}: {found:?}, {expected}");
            }
        }
        // The product is 2^-11 - 2^-31, so the sum is just below a tie. `f32` rounds it to the tie, and that would be rounded up.
        let [x, y, z] =
            [(1.0 + 1.0 / 1024.0) / 32.0, (1.0 - 1.0 / 1024.0) / 64.0, 1.0 + 1.0 / 1024.0].map(f16::from_f32);
        assert_eq!(fma(x, y, z), z);
        assert_eq!(f16::from_f32(x.to_f32() * y.to_f32() + z.to_f32()), f16::from_f32(1.0 + 2.0 / 1024.0));
    }

    #[test]
    fn the_numbers_of_half_are_next_to_each_other() {
        let (infinity, zero) = (f16::INFINITY, f16::ZERO);
        for x in all().filter(|x| x.is_finite() && *x != zero) {
            let (up, down) = (nextafter(x, infinity), nextafter(x, f16::NEG_INFINITY));
            assert_eq!((steps(up, x), steps(down, x)), (1, 1), "{x:?}");
            assert!(down < x && x < up && nextafter(up, x) == x, "{x:?}");
        }
        assert_eq!((nextafter(zero, infinity).to_bits(), nextafter(zero, f16::NEG_ONE).to_bits()), (1, 0x8001));
        assert!(nextafter(f16::NAN, zero).is_nan() && nextafter(zero, f16::NAN).is_nan());
    }

    #[test]
    fn vectors_and_points_of_half_are_as_those_of_other_floats() {
        use crate::vector::{Half3, Half4, Short4};
        let of = f16::from_f32;
        let v = Half4::new(of(1.0), of(-4.0), of(2.25), f16::NAN);
        assert_eq!(sqrt(fabs(v)).to_array()[..3], [1.0, 2.0, 1.5].map(of));
        assert_eq!((signbit(v), isnan(v)), (Short4::new(0, -1, 0, 0), Short4::new(0, 0, 0, -1)));
        let p = Half3::new(of(3.0), of(0.0), of(4.0));
        assert_eq!((length(p), dot(p, p), normalize(p)[2]), (of(5.0), of(25.0), of(0.8)));
        assert_eq!((length([of(30000.0), of(40000.0)]), length([of(3e-6), of(4e-6)])), (of(50000.0), of(5e-6)));
        assert_eq!(
            (mix(of(2.0), of(4.0), of(0.25)), degrees(of(0.5)), step(of(1.0), of(0.5))),
            (of(2.5), of(28.648), f16::ZERO)
        );
    }
}
