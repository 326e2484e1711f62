//! Integers of 128 bits, and big integers made of smaller ones.

use crate::harness::{Env, kernels, scramble};

kernels![
    quotients_of_128_bits,
    signed_quotients_of_128_bits,
    bits_of_128_bits,
    overflow_of_128_bits,
    numbers_of_128_bits_and_floats,
    numbers_of_128_bits_and_texts,
    factorials_of_many_digits,
    modular_powers,
];

fn wide(i: usize) -> u128 {
    let words: [u32; 4] = std::array::from_fn(|k| scramble(4 * i + k));
    words.iter().fold(0, |wide, word| wide << 32 | u128::from(*word)) >> (i % 120)
}

fn quotients_of_128_bits(env: &Env) {
    env.compare(|i| {
        let (a, b) = (wide(i), wide(i + 7) | 1);
        (a / b, a % b, a / u128::from(scramble(i) | 1), a % 1_000_000_007)
    });
}

fn signed_quotients_of_128_bits(env: &Env) {
    env.compare(|i| {
        let (a, b) = (wide(i) as i128, (wide(i + 3) as i128 >> 64) | 1);
        (a.wrapping_div(b), a.wrapping_rem(b), a.rem_euclid(1 << 70), a.checked_div(b >> 60))
    });
}

fn bits_of_128_bits(env: &Env) {
    env.compare(|i| {
        let a = wide(i);
        let counts = [a.leading_zeros(), a.trailing_zeros(), a.count_ones(), a.leading_ones()];
        let moved = (a << (i % 128)) ^ (a as i128 >> (i % 77)) as u128 ^ a.rotate_left(i as u32);
        (counts, moved, a.swap_bytes() ^ a.reverse_bits(), a > wide(i + 1), (a as i128) < wide(i + 2) as i128)
    });
}

fn overflow_of_128_bits(env: &Env) {
    env.compare(|i| {
        let (a, b) = (wide(i), wide(i + 1));
        let (sum, carry) = a.overflowing_add(b);
        (a.checked_mul(b), sum, carry, (a as i128).saturating_sub(b as i128), a.checked_pow((i % 5) as u32))
    });
}

fn numbers_of_128_bits_and_floats(env: &Env) {
    env.compare(|i| {
        let a = wide(i);
        let (single, double) = (a as f32, (a as i128) as f64);
        let scaled = f64::from(scramble(i)) * 2.0_f64.powi((i % 130) as i32) - 1e9;
        (
            (single.to_bits(), double.to_bits()),
            scaled as u128,
            scaled as i128,
            (single * 4.0) as u128,
            (single - 1e30) as i128,
        )
    });
}

fn numbers_of_128_bits_and_texts(env: &Env) {
    env.compare(|i| {
        // Digits by division, then back by parsing.
        let (mut digits, mut start, mut rest) = ([b'0'; 40], 40, wide(i));
        loop {
            start -= 1;
            digits[start] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        let parsed = std::str::from_utf8(&digits[start..]).ok().and_then(|text| text.parse::<u128>().ok());
        (parsed, parsed == Some(wide(i)), start as u8)
    });
}

#[derive(Clone, Copy)]
struct Big([u32; 8]);

impl Big {
    fn multiply(&mut self, factor: u32) -> u32 {
        self.0.iter_mut().fold(0, |carry, limb| {
            let product = u64::from(*limb) * u64::from(factor) + u64::from(carry);
            *limb = product as u32;
            (product >> 32) as u32
        })
    }

    fn divide(&mut self, divisor: u32) -> u32 {
        self.0.iter_mut().rev().fold(0, |rest, limb| {
            let dividend = u64::from(rest) << 32 | u64::from(*limb);
            *limb = (dividend / u64::from(divisor)) as u32;
            (dividend % u64::from(divisor)) as u32
        })
    }

    fn times(&self, other: &Self) -> Self {
        let mut product = Self([0; 8]);
        for (i, a) in self.0.iter().enumerate() {
            let mut carry = 0;
            for (limb, b) in product.0[i..].iter_mut().zip(&other.0) {
                let sum = u64::from(*limb) + u64::from(*a) * u64::from(*b) + carry;
                *limb = sum as u32;
                carry = sum >> 32;
            }
        }
        product
    }
}

fn factorials_of_many_digits(env: &Env) {
    env.compare(|i| {
        let mut number = Big([1, 0, 0, 0, 0, 0, 0, 0]);
        let carry = (2..=(i as u32 % 60)).fold(0, |carry: u32, factor| carry.wrapping_add(number.multiply(factor)));
        let square = number.times(&number);
        let digits = (0..30).fold(0_u32, |sum, _| sum + number.divide(10));
        (square.0, digits, carry)
    });
}

fn modular_powers(env: &Env) {
    fn power(base: u64, mut exponent: u64, modulus: u64) -> u64 {
        let (mut result, mut square) = (1, base % modulus);
        while exponent > 0 {
            if exponent & 1 == 1 {
                result = (u128::from(result) * u128::from(square) % u128::from(modulus)) as u64;
            }
            square = (u128::from(square) * u128::from(square) % u128::from(modulus)) as u64;
            exponent >>= 1;
        }
        result
    }
    fn is_probably_prime(n: u64) -> bool {
        let (twos, odd) = ((n - 1).trailing_zeros(), (n - 1) >> (n - 1).trailing_zeros());
        [2, 3, 5, 7, 11].iter().filter(|base| n % **base != 0).all(|base| {
            let mut x = power(*base, odd, n);
            x == 1
                || (0..twos).any(|_| {
                    let last = x;
                    x = power(x, 2, n);
                    last == n - 1
                })
        })
    }
    env.compare(|i| {
        let n = (u64::from(scramble(i)) << 29 | u64::from(scramble(i + 1))) | 1;
        (power(3, n, 0xFFFF_FFFF_FFFF_FFC5), is_probably_prime(n), is_probably_prime(i as u64 * 2 + 101))
    });
}
