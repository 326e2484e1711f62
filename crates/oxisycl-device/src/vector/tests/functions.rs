//! Functions of `math` on vectors and arrays against the same on numbers.

use super::super::{Double4, Float2, Float3, Float4, Int2, Int3, Int4, Long2, MArray, Vector};
use super::{Boundaries, assert_same};
use crate::math;

macro_rules! check {
    ($type:ident, $n:literal: $($name:ident($($argument:ident),*);)*) => { $(
        for (x, y) in $type::rows::<$n>() {
            let inputs: [[$type; $n]; 3] = [x, y, std::array::from_fn(|i| x[$n - 1 - i])];
            let expected: [_; $n] = std::array::from_fn(|i| check!(@ $name inputs (|x: [$type; $n]| x[i]) $($argument)*));
            assert_same(check!(@ $name inputs (Vector::from) $($argument)*), expected);
            assert_same(check!(@ $name inputs (MArray::from) $($argument)*), expected);
        }
    )* };
    (@ $name:ident $inputs:ident $of:tt x) => { math::$name($of($inputs[0])) };
    (@ $name:ident $inputs:ident $of:tt x y) => { math::$name($of($inputs[0]), $of($inputs[1])) };
    (@ $name:ident $inputs:ident $of:tt x y z) => { math::$name($of($inputs[0]), $of($inputs[1]), $of($inputs[2])) };
}

#[test]
fn math_functions_apply_to_each_element() {
    check! { f32, 4: acos(x); acosh(x); acospi(x); asin(x); asinh(x); asinpi(x); atan(x); atanh(x); atanpi(x); cbrt(x); ceil(x); cos(x); }
    check! { f32, 3: cosh(x); cospi(x); erf(x); erfc(x); exp(x); exp10(x); exp2(x); expm1(x); fabs(x); floor(x); lgamma(x); log(x); }
    check! { f32, 2: log10(x); log1p(x); log2(x); logb(x); rint(x); round(x); rsqrt(x); sin(x); sinh(x); sinpi(x); sqrt(x); tan(x); }
    check! { f64, 8: tanh(x); tanpi(x); tgamma(x); trunc(x); ceil(x); floor(x); fabs(x); sqrt(x); }
    check! { f32, 4: atan2(x, y); atan2pi(x, y); copysign(x, y); fdim(x, y); fmax(x, y); fmin(x, y); hypot(x, y); maxmag(x, y); minmag(x, y); }
    check! { f64, 2: fmod(x, y); nextafter(x, y); pow(x, y); powr(x, y); remainder(x, y); fma(x, y, z); mad(x, y, z); }
}

#[test]
fn functions_with_integers_and_several_results_apply_to_each_element() {
    for (x, y) in f32::rows::<4>() {
        let (a, b) = (Vector::from(x), Vector::from(y));
        let (c, d) = (MArray::from(x), MArray::from(y));
        macro_rules! pairs {
            ($($name:ident)*) => { $(
                let ((first, second), expected) = (math::$name(a), x.map(math::$name));
                assert_same(first, expected.map(|pair| pair.0));
                assert_same(second, expected.map(|pair| pair.1));
                let (first, second) = math::$name(c);
                assert_same(first, expected.map(|pair| pair.0));
                assert_same(second, expected.map(|pair| pair.1));
            )* };
        }
        pairs! { fract frexp lgamma_r modf sincos }
        let expected: [(f32, i32); 4] = std::array::from_fn(|i| math::remquo(x[i], y[i]));
        assert_same(math::remquo(a, b).1, expected.map(|pair| pair.1));
        assert_same(math::remquo(c, d).0, expected.map(|pair| pair.0));
        assert_same(math::ilogb(a), x.map(math::ilogb));
        assert_same(math::ilogb(c), x.map(math::ilogb));

        let n = [2, -3, 1, 0];
        let with = |f: fn(f32, i32) -> f32| -> [f32; 4] { std::array::from_fn(|i| f(x[i], n[i])) };
        assert_same(math::ldexp(a, Int4::from(n)), with(math::ldexp));
        assert_same(math::pown(a, Int4::from(n)), with(math::pown));
        assert_same(math::rootn(c, MArray::from(n)), with(math::rootn));
    }
}

macro_rules! integers {
    ($($type:ident)*) => { $(
        check! { $type, 4: abs(x); clz(x); ctz(x); popcount(x); }
        check! { $type, 8: abs_diff(x, y); add_sat(x, y); sub_sat(x, y); hadd(x, y); rhadd(x, y); mul_hi(x, y); rotate(x, y); }
        check! { $type, 3: mad_hi(x, y, z); mad_sat(x, y, z); max(x, y); min(x, y); clamp(x, y, z); }
    )* };
}

#[test]
fn integer_functions_apply_to_each_element() {
    integers! { i8 u8 i16 u16 i32 u32 i64 u64 }
    check! { i32, 4: mul24(x, y); mad24(x, y, z); }
    check! { u32, 4: mul24(x, y); mad24(x, y, z); }
    check! { u16, 2: upsample(x, y); }
    let wide = math::upsample(Vector::<i32, 2>::from([-1, 2]), Vector::from([3_u32, 4]));
    assert_eq!(wide, Long2::new(-0xffff_fffd, 0x2_0000_0004));
}

#[test]
fn common_functions_apply_to_each_element() {
    check! { f32, 4: degrees(x); radians(x); sign(x); step(x, y); mix(x, y, z); smoothstep(x, y, z); }
    check! { f64, 3: max(x, y); min(x, y); clamp(x, y, z); }
    assert_eq!(math::clamp(MArray::from([1_usize, 5]), MArray::splat(2), MArray::splat(4)), MArray::from([2, 4]));
}

#[test]
fn geometric_functions_take_vectors() {
    let (p, q) = (Float3::new(1.0, 2.0, 3.0), Float3::new(4.0, 5.0, 6.0));
    assert_eq!(math::cross(p, q), Float3::new(-3.0, 6.0, -3.0));
    let (a, b) = (Double4::new(1.0, 0.0, 0.0, 9.0), Double4::new(0.0, 1.0, 0.0, 9.0));
    assert_eq!(math::cross(a, b), Double4::new(0.0, 0.0, 1.0, 0.0));
    assert_eq!((math::dot(p, q), math::dot(MArray::from([1.0, 2.0]), MArray::from([3.0, 4.0]))), (32.0, 11.0));
    assert_eq!((math::length(Float2::new(3.0e30, 4.0e30)), math::length(-3.0_f64)), (5.0e30, 3.0));
    assert_eq!(math::distance(p, q), math::length(p - q));
    assert_eq!(math::normalize(Float2::new(0.0, -5.0)), Float2::new(0.0, -1.0));
    assert_eq!(math::normalize(MArray::from([f64::INFINITY, 1.0])), MArray::from([1.0, 0.0]));
    assert_eq!((math::fast_length(Float2::new(3.0, 4.0)), math::fast_distance(p, p)), (5.0, 0.0));
    assert!((math::fast_normalize(Float4::splat(2.0))[3] - 0.5).abs() < 1.0e-6);
}

macro_rules! relational {
    ($($type:ident $mask:ident;)*) => { $(
        for (x, y) in $type::rows::<4>() {
            let (a, b) = (Vector::from(x), Vector::from(y));
            let pairs: [fn($type, $type) -> bool; 9] = [
                math::isequal, math::isnotequal, math::isgreater, math::isgreaterequal, math::isless, math::islessequal,
                math::islessgreater, math::isordered, math::isunordered,
            ];
            let masks: [fn(Vector<$type, 4>, Vector<$type, 4>) -> Vector<$mask, 4>; 9] = [
                math::isequal, math::isnotequal, math::isgreater, math::isgreaterequal, math::isless, math::islessequal,
                math::islessgreater, math::isordered, math::isunordered,
            ];
            for (pair, mask) in pairs.iter().zip(masks) {
                assert_same(mask(a, b), std::array::from_fn(|i| -$mask::from(pair(x[i], y[i]))));
            }
            let classes: [fn($type) -> bool; 5] = [math::isfinite, math::isinf, math::isnan, math::isnormal, math::signbit];
            let masks: [fn(Vector<$type, 4>) -> Vector<$mask, 4>; 5] =
                [math::isfinite, math::isinf, math::isnan, math::isnormal, math::signbit];
            for (class, mask) in classes.iter().zip(masks) {
                assert_same(mask(a), x.map(|x| -$mask::from(class(x))));
            }
            assert_same(math::isless(MArray::from(x), MArray::from(y)), std::array::from_fn(|i| x[i] < y[i]));
            assert_same(math::isnan(MArray::from(x)), x.map($type::is_nan));
            let mask = a.lt_mask(b);
            let chosen = std::array::from_fn(|i| if x[i] < y[i] { y[i] } else { x[i] });
            assert_same(math::select(a, b, mask), chosen);
            assert_same(math::select(MArray::from(x), MArray::from(y), MArray::from(x).lt_mask(MArray::from(y))), chosen);
            // The bit of the sign alone.
            let signed: [_; 4] = std::array::from_fn(|i| math::bitselect(x[i], y[i], -0.0));
            assert_same(math::bitselect(a, b, Vector::splat(-0.0)), signed);
        }
    )* };
}

#[test]
fn relational_functions_give_masks() {
    relational! { f32 i32; f64 i64; }
    assert!(math::any(Int3::new(0, 0, i32::MIN)) && !math::any(Int3::new(0, 1, i32::MAX)));
    assert!(math::all(Int2::splat(-1)) && !math::all(Int2::new(-1, 1)));
    assert!(math::any(MArray::from([false, true])) && !math::all(MArray::from([false, true])));
    // The uppermost bit counts.
    let (a, b) = (Int4::splat(1), Int4::splat(2));
    assert_eq!(math::select(a, b, Int4::new(0, i32::MAX, i32::MIN, -1)), Int4::new(1, 1, 2, 2));
    assert_eq!((math::select(a, b, true), math::select(a, b, false)), (b, a));
}
