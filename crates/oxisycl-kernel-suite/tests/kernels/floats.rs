//! Floating-point numbers: conversions, classes, rounding, orders.

use std::num::FpCategory;

use crate::harness::{Env, fraction, kernels, scramble};
use crate::outcome::Tolerance::{Approximate, Contracted};

kernels![
    casts_to_integers_saturate,
    casts_from_integers_round,
    bits_signs_and_classes,
    rounding_to_integers,
    remainders_and_fused_products,
    minima_maxima_and_orders,
    square_roots_and_quotients,
    library_functions,
    double_precision,
    subnormal_numbers,
];

/// Any number there is, special ones often.
fn any(i: usize) -> f32 {
    match scramble(i) % 12 {
        0 => f32::NAN,
        1 => f32::INFINITY,
        2 => f32::NEG_INFINITY,
        3 => -0.0,
        4 => (i as f32 - 500.0) * 0.5,
        5 => 4_294_967_296.0 - i as f32 * 256.0,
        _ => f32::from_bits(scramble(i + 1)),
    }
}

fn casts_to_integers_saturate(env: &Env) {
    env.compare(|i| {
        let x = any(i);
        let wide = f64::from(x) * 1.000_000_1;
        let narrow = (x as u8, x as i8, x as u16, x as i16);
        (
            (narrow.0, narrow.1),
            (narrow.2, narrow.3),
            (x as u32, x as i32),
            (x as u64, wide as i64),
            wide as usize as u64,
        )
    });
}

fn casts_from_integers_round(env: &Env) {
    env.compare(|i| {
        let bits = u64::from(scramble(i)) << 32 | u64::from(scramble(i + 1));
        let bits = bits >> (i % 64);
        (
            (bits as f32, bits as f64),
            bits as i64 as f32,
            (bits as u32 as f32, bits as i8 as f32),
            f32::from(bits as u16),
        )
    });
}

fn bits_signs_and_classes(env: &Env) {
    env.compare(|i| {
        let x = any(i);
        let class = match x.classify() {
            FpCategory::Nan => 0_u8,
            FpCategory::Infinite => 1,
            FpCategory::Zero => 2,
            FpCategory::Subnormal => 3,
            FpCategory::Normal => 4,
        };
        let flags = [x.is_finite(), x.is_sign_negative(), x.is_normal(), x == x, x < 0.0];
        (class, flags, x.abs(), x.copysign(-1.0), if x.is_nan() { 0.0 } else { x.signum() })
    });
}

fn rounding_to_integers(env: &Env) {
    env.compare(|i| {
        let x = if i % 2 == 0 { (i as f32 - 500.0) * 0.25 } else { any(i) };
        let wide = f64::from(x) / 3.0;
        ([x.floor(), x.ceil(), x.round(), x.trunc(), x.round_ties_even()], [wide.floor(), wide.round()], x.fract())
    });
}

fn remainders_and_fused_products(env: &Env) {
    env.compare(|i| {
        let (a, b, c) = ((fraction(i) - 0.5) * 1e6, fraction(i + 1) * 50.0 + 0.1, fraction(i + 2));
        let wide = (f64::from(a) % 0.3, f64::from(a).mul_add(f64::from(b), -1e-9));
        (a % b, a.mul_add(b, c), wide, a.rem_euclid(b).is_sign_positive(), any(i) % 2.0)
    });
}

fn minima_maxima_and_orders(env: &Env) {
    env.compare(|i| {
        // Of zeros of different sign either may be the smaller one.
        let (a, b) = (any(i) + 0.0, any(i + 1) + 0.0);
        let clamped = if a.is_nan() { 7.0 } else { a.clamp(-100.0, 1e9) };
        let order = a.total_cmp(&b) as i8 * 10 + a.partial_cmp(&b).map_or(5, |order| order as i8);
        (a.min(b), a.max(b), clamped, if a.is_nan() || b.is_nan() { 0 } else { order }, a.max(b) >= a)
    });
}

fn square_roots_and_quotients(env: &Env) {
    // Correctly rounded everywhere: no tolerance.
    env.compare(|i| {
        let (a, b) = (any(i), any(i + 1));
        let (wide, wide_b) = (f64::from(a) * 1.1, f64::from(b));
        (a / b, a.sqrt(), b.recip(), wide / wide_b, wide.abs().sqrt())
    });
}

fn library_functions(env: &Env) {
    env.compare_within(Approximate(2e-6), |i| {
        let x = fraction(i) * 8.0 - 4.0;
        let trigonometry = [x.sin(), x.cos(), x.atan(), (x * 0.25).asin(), x.tanh()];
        let powers = [x.exp(), x.abs().ln(), x.abs().powf(1.7), x.powi(5), x.cbrt(), x.exp2(), x.abs().log2()];
        (trigonometry, powers, x.hypot(2.0), x.atan2(0.5))
    });
}

fn double_precision(env: &Env) {
    env.compare_within(Approximate(1e-14), |i| {
        let x = f64::from(scramble(i)) / 2e8 - 10.0;
        [
            x.sin(),
            x.cos(),
            x.exp(),
            x.abs().ln(),
            x.tanh(),
            x.abs().sqrt(),
            x.to_radians(),
            (x * 0.1).acos().to_degrees(),
        ]
    });
}

fn subnormal_numbers(env: &Env) {
    env.compare_within(Contracted(1e-6), |i| {
        let small = f32::MIN_POSITIVE * fraction(i);
        let smaller = small * fraction(i + 1);
        let sum = (0..10).fold(0.0_f32, |sum, step| sum + small / (step + 1) as f32);
        // Scaled up, so that the tolerance does not hide them.
        let scale = 1e38_f32;
        (small.to_bits(), smaller * scale, sum * scale, (f64::from(small) * 1e-290) * 1e300, (small - smaller) * scale)
    });
}
