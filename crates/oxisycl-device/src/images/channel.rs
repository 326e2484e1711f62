//! Numbers of single channels: what their bits stand for, and the bits for a number. Under the policies `strict` and
//! `contract`, an integer or a half means the same float everywhere.

use crate::{builtin, math};

/// A number of 0 to `MAX` as a part of it, rounded once.
#[inline(always)]
pub(super) fn unorm<const MAX: u32>(bits: u32) -> f32 {
    // Devices have slow divisions, and old processors slow fused products. Tests compare both.
    if builtin::is_device_code() && MAX <= FEW {
        unorm_by_products::<MAX>(bits)
    } else {
        part::<MAX>(bits as i32 as f32)
    }
}

/// A number of `-MAX` to `MAX` as a part of `MAX`, rounded once. The number below is -1, too.
#[inline(always)]
pub(super) fn snorm<const MAX: u32>(bits: i32) -> f32 {
    part::<MAX>(bits.max(-(MAX as i32)) as f32)
}

/// An integer of `-MAX` to `MAX` as a part of `MAX`, rounded once.
#[inline(always)]
fn part<const MAX: u32>(number: f32) -> f32 {
    if builtin::is_device_code() { part_by_products::<MAX>(number) } else { number / MAX as f32 }
}

/// A number of `-MAX` to `MAX`, such as a mixture of integers, as a part of `MAX`, rounded once.
#[inline(always)]
pub(super) fn part_of_mixture<const MAX: u32>(number: f32) -> f32 {
    if builtin::is_device_code() { quotient::<MAX>(number) } else { number / MAX as f32 }
}

/// The greatest number that leaves bits in a float for a part of an inverse.
const FEW: u32 = 1023;

/// A part of an inverse whose product with an integer up to `max` is exact, and what the whole inverse is of it beyond 1.
const fn inverse(max: u32) -> (f32, f32) {
    let whole = 1.0 / max as f64;
    // As many bits as such an integer leaves.
    let n_dropped = 29 + (32 - max.leading_zeros());
    let part = f64::from_bits(whole.to_bits() >> n_dropped << n_dropped);
    (part as f32, (whole / part - 1.0) as f32)
}

/// A number of 0 to `MAX`, at most [`FEW`], as a part of it without a conversion and a division.
#[inline(always)]
pub(super) fn unorm_by_products<const MAX: u32>(bits: u32) -> f32 {
    let (inverse, beyond) = const { inverse(MAX) };
    // 2^23 and the number, which is in the lowest bits.
    let number = f32::from_bits(0x4b00_0000 | bits);
    let nearly = math::fma(number, inverse, -8_388_608.0 * inverse);
    math::fma(nearly, beyond, nearly)
}

/// A number as a part of `MAX` without a division.
#[inline(always)]
pub(super) fn part_by_products<const MAX: u32>(number: f32) -> f32 {
    if MAX <= FEW {
        let (inverse, beyond) = const { inverse(MAX) };
        let nearly = number * inverse;
        return math::fma(nearly, beyond, nearly);
    }
    quotient::<MAX>(number)
}

/// A number divided by `MAX`, rounded once. The inverse is rounded once, too, so that Markstein's theorem holds.
#[inline(always)]
pub(super) fn quotient<const MAX: u32>(number: f32) -> f32 {
    // A quotient that is nearly right, and what it lacks.
    let inverse = const { 1.0 / MAX as f32 };
    let nearly = number * inverse;
    math::fma(math::fma(-nearly, MAX as f32, number), inverse, nearly)
}

/// The number of 0 to `MAX` that is nearest to `value * MAX`, the even one of two. Zero for a NaN.
#[inline(always)]
pub(super) fn to_unorm<const MAX: u32>(value: f32) -> u32 {
    let max = MAX as i32 as f32;
    let scaled = value * max;
    let scaled = if builtin::is_device_code() {
        // One instruction each.
        scaled.max(0.0).min(max)
    } else {
        // The same on most processors, in this order of operands.
        let at_least = if scaled > 0.0 { scaled } else { 0.0 };
        if at_least < max { at_least } else { max }
    };
    // A float from 2^23 on has no fraction: the sum is rounded, and the number is in its lowest bits.
    (scaled + 8_388_608.0).to_bits() & 0x007f_ffff
}

/// The number of `-MAX` to `MAX` that is nearest to `value * MAX`, the even one of two. Zero for a NaN.
#[inline(always)]
pub(super) fn to_snorm<const MAX: u32>(value: f32) -> i32 {
    let max = MAX as f32;
    let scaled = value * max;
    let at_least = if scaled > -max { scaled } else { -max };
    let scaled = if at_least < max { at_least } else { max };
    let scaled = if value.is_nan() { 0.0 } else { scaled };
    // 2^23 and half of it, so that negative numbers have room below.
    (scaled + 12_582_912.0).to_bits() as i32 - 0x4b40_0000
}

/// The float that 16 bits stand for.
#[inline(always)]
pub(super) fn from_half(bits: u16) -> f32 {
    builtin::float_of_half(bits.into())
}

/// The 16 bits of the float that is nearest to `value`, the even one of two.
#[inline(always)]
pub(super) fn to_half(value: f32) -> u16 {
    builtin::half_of_float(value) as u16
}
