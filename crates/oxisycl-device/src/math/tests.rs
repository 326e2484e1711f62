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
