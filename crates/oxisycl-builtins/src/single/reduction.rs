//! Angles as multiples of a quarter turn and a rest.

use core::f32::consts::{FRAC_2_PI, FRAC_PI_2};

use crate::operation::Operations;

/// Up to here a quarter turn in three parts suffices.
const LARGEST_DIRECT: f32 = 65_536.0;

/// The rest of an angle, at most an eighth of a turn, and the number of quarter turns, of which the last two bits count.
///
/// NaN for infinities and NaN.
#[inline(always)]
pub(super) fn quarters(x: f32) -> (f32, i32) {
    if x.abs() <= LARGEST_DIRECT {
        let n = (x * FRAC_2_PI).nearest();
        // Exact, since the rest is a multiple of the last bit of either.
        let r = (-n).fma(FRAC_PI_2, x);
        ((-n).fma(-1.7151245e-15, (-n).fma(-4.371139e-8, r)), n as i32)
    } else if x.abs() < f32::INFINITY {
        large(x)
    } else {
        (f32::NAN, 0)
    }
}

/// By Payne and Hanek: the product with those bits of 2/pi that decide about the last quarter turns, in integers.
#[inline(always)]
fn large(x: f32) -> (f32, i32) {
    /// 2/pi after the point; a word of zeros comes before it.
    const BITS: [u32; 8] =
        [0, 0xa2f9_836e, 0x4e44_1529, 0xfc27_57d1, 0xf534_ddc0, 0xdb62_9599, 0x3c43_9041, 0xfe51_63ab];
    let magnitude = x.abs().to_bits();
    // |x| = mantissa * 2^exponent, with an exponent from -7 to 104.
    let mantissa = u64::from(magnitude & 0x007f_ffff | 0x0080_0000);
    let exponent = (magnitude >> 23) as i32 - 150;
    // Bits before this one contribute multiples of four quarter turns.
    let first = (exponent + 30) as u32;
    // Selects, where an index would need a table in memory.
    let [w0, w1, w2, w3, w4, w5, w6, w7] = BITS;
    let (word, skip) = (first >> 5, first & 31);
    let [a0, a1, a2, a3, a4] = if word & 2 != 0 { [w2, w3, w4, w5, w6] } else { [w0, w1, w2, w3, w4] };
    let [b0, b1, b2, b3] = if word & 1 != 0 { [a1, a2, a3, a4] } else { [a0, a1, a2, a3] };
    let [c0, c1, c2, c3] = if word & 4 != 0 { [w4, w5, w6, w7] } else { [b0, b1, b2, b3] };
    let join = |high: u32, low: u32| u64::from(((u64::from(high) << 32 | u64::from(low)) << skip >> 32) as u32);
    let product = ((mantissa * join(c0, c1)) << 32)
        .wrapping_add(mantissa * join(c1, c2))
        .wrapping_add((mantissa * join(c2, c3)) >> 32);
    // Quarter turns, with 62 bits after the point; rounded to the nearest.
    let n = (product.wrapping_add(1 << 61) >> 62) as i32;
    let rest = product.wrapping_sub((n as u64) << 62) as i64;
    let high = rest as f32;
    let low = (rest - high as i64) as f32;
    // pi / 2 * 2^-62, in two parts.
    const UNIT: f32 = FRAC_PI_2 / 4_611_686_018_427_387_904.0;
    const UNIT_LOW: f32 = -4.371139e-8 / 4_611_686_018_427_387_904.0;
    let r = high.fma(UNIT, high.fma(UNIT_LOW, low * UNIT));
    if x < 0.0 { (-r, -n) } else { (r, n) }
}
