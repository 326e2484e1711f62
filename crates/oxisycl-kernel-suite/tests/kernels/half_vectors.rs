//! Vectors and arrays of `half::f16`: what is rounded once is the same on all devices.

use half::f16;
use oxisycl::math;
use oxisycl::prelude::*;
use oxisycl::vector::{Half2, Half3, Half4, Half8, Half16, MArray, Rounding, Vector, swizzle};

use crate::harness::{Env, fraction, kernels, scramble};

kernels![vectors_of_halves];

/// Any numbers. Every other row has such of moderate size.
fn numbers<const N: usize>(i: usize) -> [f16; N] {
    std::array::from_fn(|j| match i % 2 {
        0 => f16::from_bits(scramble(16 * i + j) as u16),
        _ => f16::from_f32(fraction(16 * i + j) * 16.0 - 8.0),
    })
}

const MODES: [Rounding; 4] =
    [Rounding::ToEven, Rounding::TowardZero, Rounding::TowardPositive, Rounding::TowardNegative];

fn vectors_of_halves(env: &Env) {
    operators_and_masks(env);
    functions(env);
    conversions(env);
    parts(env);
}

fn operators_and_masks(env: &Env) {
    macro_rules! check {
        ($($type:ty),*) => { $(
            env.compare(|i| {
                let (v, w) = (<$type>::from_array(numbers(i)), <$type>::from_array(numbers(i + 2)));
                let (s, mut changed) = (f16::from_f32(1.5), v);
                changed -= s;
                changed *= w;
                let results = [v + w, v - w, v * w, v / w, v % w, -v, s * v, s / v, v + s, changed];
                let masks = [
                    v.eq_mask(v), v.ne_mask(w), v.lt_mask(w), v.le_mask(w), v.gt_mask(w), v.ge_mask(w),
                    math::isnan(v), math::isfinite(v), math::isinf(w), math::isnormal(v), math::signbit(v),
                    math::isless(v, w), math::islessgreater(v, w), math::isunordered(v, w), math::isequal(v, w),
                ];
                let chosen = [math::select(v, w, masks[2]), math::bitselect(v, w, v)];
                let truths = [math::any(masks[2]), math::all(masks[2]), v == w, v == v];
                let of_halves = (results.map(|v| v.to_array()), chosen.map(|v| v.to_array()));
                (of_halves, masks.map(|mask| mask.to_array()), truths)
            });
        )* };
    }
    check! { Half3, Half4, MArray<f16, 5> }
}

/// Common and geometric functions, and some others.
fn functions(env: &Env) {
    macro_rules! check {
        ($($type:ty),*) => { $(
            env.compare(|i| {
                let [v, w, x] = [numbers(i), numbers(i + 2), numbers(i + 4)].map(<$type>::from_array);
                let zero = <$type>::splat(f16::ZERO);
                let common = [
                    math::clamp(v, w, x), math::max(v, w), math::min(v, w), math::degrees(v), math::radians(v),
                    math::mix(v, w, x), math::sign(v), math::smoothstep(v, w, x), math::step(v, w),
                ];
                let (mantissa, exponent) = math::frexp(v);
                let others = [math::fma(v, w, x), math::rint(v), math::sqrt(v), mantissa, math::ldexp(v, exponent)];
                let numbers = [math::dot(v, w), math::length(v), math::distance(v, w), math::length(zero)];
                let units = [math::normalize(v), math::normalize(zero)];
                let vectors = (common.map(|v| v.to_array()), others.map(|v| v.to_array()));
                (vectors, exponent.to_array(), numbers, units.map(|v| v.to_array()))
            });
        )* };
    }
    check! { Half3, Half4, MArray<f16, 5> }
}

fn conversions(env: &Env) {
    env.compare(|i| {
        let v = Half4::from_array(numbers(i));
        let to_integers = MODES
            .map(|rounding| (v.convert_with::<i8>(rounding).to_array(), v.convert_with::<u32>(rounding).to_array()));
        let integers = Vector::<i32, 4>::from_fn(|j| scramble(4 * i + j) as i32 >> (i % 32));
        let singles = integers.map(|n| f32::from_bits(0x3300_0000 + (n as u32 & 0x8FFF_FFFF)));
        let to_halves = MODES.map(|rounding| {
            let wide = integers.convert::<u64>().convert_with::<f16>(rounding);
            [integers.convert_with::<f16>(rounding), singles.convert_with(rounding), wide].map(Half4::to_array)
        });
        let others =
            (v.convert::<f32>().to_array(), v.convert::<i64>().to_array(), integers.convert::<f16>().to_array());
        (to_integers, to_halves, others, v.bit_cast::<u32, 2>().to_array())
    });
    if env.has(Aspect::Fp64) {
        env.compare(|i| {
            let wide = Vector::<f64, 3>::from_fn(|j| {
                f64::from(f32::from_bits(0x3300_0000 + (scramble(3 * i + j) & 0x8FFF_FFFF))) * 1.000_000_01
            });
            let back = Half3::from_array(numbers(i)).convert::<f64>().to_array();
            (MODES.map(|rounding| wide.convert_with::<f16>(rounding).to_array()), back)
        });
    }
}

/// Elements by names and indices, vectors of all lengths, and products.
fn parts(env: &Env) {
    env.compare(|i| {
        let (v, three) = (Half4::from_array(numbers(i)), Half3::from_array(numbers(i + 2)));
        let mut w = v;
        swizzle!(w, xw = swizzle!(v, wx));
        swizzle!(w, gb += Half2::new(f16::ONE, v.x()));
        let index = i % 4;
        w[index] = -w[index];
        w.set_swizzle([index, (index + 1) % 4], swizzle!(three, zy));
        let eight = Half8::from((v, w));
        let sixteen = Half16::from((eight, -eight)) * f16::from_f32(0.5);
        let mut halves = eight;
        halves.set_odd(eight.lo());
        let products = (math::cross(three, swizzle!(w, zzx)).to_array(), math::cross(v, w).to_array());
        let parts = (swizzle!(eight, s705).to_array(), v.swizzle([3, 0]).to_array(), sixteen.hi().even().to_array());
        ((w.to_array(), three.to_array()), halves.to_array(), sixteen.to_array(), products, parts)
    });
}
