//! Integers of 8 to 64 bits: what happens at their ends, bits, powers, texts.

use std::num::{NonZeroU16, NonZeroU32, NonZeroU64, Saturating, Wrapping};

use crate::harness::{Env, kernels, scramble};

kernels![
    every_width_divides_and_shifts,
    checked_arithmetic_tells_overflow,
    wrapping_and_overflowing_arithmetic,
    saturating_arithmetic,
    bits_are_counted_and_rotated,
    powers_roots_and_logarithms,
    signed_division_rounds_as_asked,
    widening_and_carrying_products,
    wrappers_of_the_standard_library,
    numbers_are_read_in_any_radix,
    bytes_in_either_order,
    conversions_between_widths,
];

macro_rules! every_width {
    ($a:expr, $b:expr; $($type:ty),*) => {
        [$({
            let (a, b) = ($a as $type, ($b as $type) | 1);
            let quotient = a.wrapping_div(b) ^ a.wrapping_rem(b);
            let shifted = a.wrapping_shl(b as u32) ^ a.wrapping_shr(a as u32 >> 3);
            (quotient ^ shifted ^ a.wrapping_mul(b).wrapping_sub(b)) as i64 as u64
        }),*]
    };
}

fn every_width_divides_and_shifts(env: &Env) {
    env.compare(|i| {
        let (a, b) = (u64::from(scramble(i)) << 32 | u64::from(scramble(i + 1)), scramble(i + 2));
        every_width!(a, b; u8, i8, u16, i16, u32, i32, u64, i64)
    });
}

fn checked_arithmetic_tells_overflow(env: &Env) {
    env.compare(|i| {
        let (a, b) = (scramble(i) as i32, (scramble(i + 1) as i32) >> (i % 30));
        let narrow = (a as i8).checked_mul(b as i8).map(i32::from);
        let wide = (i64::from(a) << 31).checked_add(i64::from(b) << 33);
        let divided = a.checked_div(b % 3);
        let power = (b % 50).checked_pow((i % 9) as u32);
        (narrow, wide, divided, power, a.checked_neg().and(a.checked_shl((i % 40) as u32)))
    });
}

fn wrapping_and_overflowing_arithmetic(env: &Env) {
    env.compare(|i| {
        let (a, b) = (scramble(i), scramble(i + 1) >> (i % 31));
        let (sum, carry) = a.overflowing_add(b);
        let (product, too_large) = u64::from(a).wrapping_mul(0x1_0000_0001).overflowing_mul(u64::from(b) << 20);
        let (shifted, too_far) = (a as i16).overflowing_shl(b);
        let (negated, lowest) = ((a as i8) | -128).overflowing_neg();
        ((sum, carry), (product, too_large), (shifted, too_far), (negated, lowest), a.wrapping_neg().wrapping_pow(b))
    });
}

fn saturating_arithmetic(env: &Env) {
    env.compare(|i| {
        let (a, b) = (scramble(i), scramble(i + 1));
        let bytes = (a as u8).saturating_add(b as u8).saturating_sub((b >> 8) as u8);
        let signed = (a as i8).saturating_sub(b as i8).saturating_mul(3);
        let words = (a as i32).saturating_add(b as i32).saturating_abs();
        let long = (i64::from(a as i32) << 32).saturating_mul(i64::from(b as i8));
        (bytes, signed, words, long, (a as u16).saturating_pow(b % 4))
    });
}

fn bits_are_counted_and_rotated(env: &Env) {
    env.compare(|i| {
        let bits = (u64::from(scramble(i)) * u64::from(scramble(i + 1))) >> (i % 60);
        let counts = [bits.count_ones(), bits.leading_zeros(), bits.trailing_zeros(), bits.leading_ones()];
        let narrow = [(bits as u16).leading_zeros(), (bits as u8).trailing_ones(), (bits as i32).leading_zeros()];
        let moved = bits.rotate_left(i as u32) ^ bits.rotate_right(13).swap_bytes() ^ bits.reverse_bits();
        let small = (bits as u8).rotate_left(3) ^ (bits as u8).reverse_bits();
        (counts, narrow, moved, small, bits.is_power_of_two() || (bits as u32).checked_next_power_of_two().is_none())
    });
}

fn powers_roots_and_logarithms(env: &Env) {
    env.compare(|i| {
        let bits = scramble(i);
        let wide = u64::from(bits) << (i % 32);
        let roots = (bits.isqrt(), wide.isqrt());
        let logarithms = [bits.max(1).ilog2(), wide.max(1).ilog10(), bits.max(1).ilog(7)];
        let powers = (3_u64.wrapping_pow(bits % 100), 7_i32.pow(i as u32 % 11));
        (roots, logarithms, powers, bits.next_multiple_of(i as u32 % 1000 + 1) / 2, bits.div_ceil(17))
    });
}

fn signed_division_rounds_as_asked(env: &Env) {
    env.compare(|i| {
        let (a, b) = (scramble(i) as i32, (i as i32 - 500) | 1);
        let truncated = (a / b, a % b);
        let euclidean = (a.div_euclid(b), a.rem_euclid(b));
        let wide = i64::from(a).wrapping_mul(0x1_2345_6789);
        let long = (wide / i64::from(b), wide.rem_euclid(i64::from(b)));
        (truncated, euclidean, long, a.abs_diff(b), a.midpoint(b))
    });
}

fn widening_and_carrying_products(env: &Env) {
    env.compare(|i| {
        let (a, b) = (u64::from(scramble(i)) << 32 | u64::from(scramble(i + 1)), u64::from(scramble(i + 2)) << 31);
        let product = u128::from(a) * u128::from(b);
        let signed = i128::from(a as i64) * i128::from(b as i64);
        let half = u64::from(scramble(i)) * u64::from(scramble(i + 3));
        let (low, carry) = a.carrying_add(b, i % 2 == 0);
        (((product >> 64) as u64, product as u64), (signed >> 64) as i64, half, (low, carry))
    });
}

fn wrappers_of_the_standard_library(env: &Env) {
    env.compare(|i| {
        let mut wrapping = Wrapping(scramble(i));
        wrapping += Wrapping(7) * wrapping;
        wrapping = (wrapping << 3) - Wrapping(u32::MAX / 3);
        let mut saturating = Saturating(scramble(i) as i8);
        saturating += 100;
        saturating *= Saturating(2);
        let divisor = NonZeroU32::new(i as u32 % 10);
        let quotient = divisor.map(|divisor| scramble(i) / divisor);
        let bits = NonZeroU16::MIN.saturating_add(i as u16).checked_mul(NonZeroU16::MAX);
        let gcd = NonZeroU64::new(i as u64).map_or(64, |value| value.trailing_zeros());
        (wrapping.0, saturating.0, quotient, bits.map(NonZeroU16::get), gcd)
    });
}

fn numbers_are_read_in_any_radix(env: &Env) {
    const TEXTS: [&str; 12] =
        ["0", "ff", "7F", "-80", "zz", "101101", "99999999999", "+12", "", "-", "18446744073709551615", "1_0"];
    env.compare(|i| {
        let text = TEXTS[i % 12];
        let radix = 2 + (i as u32 / 12) % 35;
        let bytes = text.as_bytes();
        (
            u32::from_str_radix(text, radix).ok(),
            i8::from_str_radix(text, radix).ok(),
            u64::from_str_radix(text, radix).ok(),
            i64::from_str_radix(&text[..bytes.len().min(4)], radix).ok(),
        )
    });
}

fn bytes_in_either_order(env: &Env) {
    env.compare(|i| {
        let bits = u64::from(scramble(i)) << 24 ^ u64::from(scramble(i + 1));
        let bytes = bits.to_be_bytes();
        let little = u32::from_le_bytes([bytes[i % 8], bytes[1], bytes[2], bytes[(i + 3) % 8]]);
        let big = i16::from_be_bytes([bytes[6], bytes[7]]);
        let chunk = bytes.first_chunk::<4>().map_or(0, |chunk| u32::from_ne_bytes(*chunk).to_be());
        (little, big, chunk, bits.to_le() == bits)
    });
}

fn conversions_between_widths(env: &Env) {
    env.compare(|i| {
        let wide = (i64::from(scramble(i) as i32) << 7) >> (i % 40);
        let narrow = (u8::try_from(wide).ok(), i16::try_from(wide).ok(), u32::try_from(wide).ok());
        let casts = (wide as u8, wide as i8 as u64, (wide as u16 as i16) as i32);
        let letter = char::from_u32(wide as u32 & 0x1F_FFFF);
        (narrow, casts, letter, usize::from(wide > 0) as u32 + u32::from(wide as u8), i32::from(wide % 2 == 0))
    });
}
