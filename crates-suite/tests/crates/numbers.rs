//! Integers beyond 128 bits, and decimal fractions.

use bnum::types::U256 as Bnum;
use crypto_bigint::{NonZero, U256 as Big};
use ethnum::{I256, U256};
use rust_decimal::{Decimal, RoundingStrategy};

use crate::harness::{Env, kernels, scramble};

kernels![crypto_bigint, ethnum, bnum, rust_decimal];

fn word(index: usize) -> u64 {
    u64::from(scramble(index)) << 32 | u64::from(scramble(index + 1))
}

fn crypto_bigint(env: &Env) {
    env.compare(|i| {
        let number = |start: usize| Big::from_words([word(start), word(start + 2), word(start + 4), word(start + 6)]);
        let (a, b) = (number(i), number(i + 8));
        let modulus = Big::from_u64(word(i + 16) | 1);
        let modulus = NonZero::new(modulus).expect("it is odd");
        let reduced = a.rem(&modulus).add_mod(&b.rem(&modulus), &modulus);
        let product = a.wrapping_mul(&b).wrapping_add(&reduced);
        (product.as_words()[3], reduced.as_words()[0], a < b, product.bits())
    });
}

fn ethnum(env: &Env) {
    env.compare(|i| {
        let a = U256::from_words(u128::from(word(i)), u128::from(word(i + 1)) << 50);
        let b = U256::from(word(i + 2)) + 1;
        let root = a / b + a % b;
        let signed = I256::from(i as i64 - 500) * I256::from(12_345_i64).pow(5);
        ((root >> 100_u32).as_u64(), signed.leading_zeros(), (signed / 7).as_i64(), a.checked_mul(a).is_some())
    });
}

fn bnum(env: &Env) {
    env.compare(|i| {
        let a = Bnum::from(word(i)).pow(3);
        let b = Bnum::from(word(i + 3)) | Bnum::ONE;
        let (quotient, remainder) = (a / b, a % b);
        let back = quotient.wrapping_mul(b).wrapping_add(remainder);
        (back == a, quotient.count_ones(), remainder.trailing_zeros(), (a >> 60_u32).bits())
    });
}

fn rust_decimal(env: &Env) {
    env.compare(|i| {
        let price = Decimal::new(i64::from(scramble(i)), 2);
        let rate = Decimal::new(1_975, 4);
        let tax = (price * rate).round_dp_with_strategy(2, RoundingStrategy::MidpointNearestEven);
        let each = price / Decimal::from(i as u32 + 3);
        (tax.mantissa(), each.mantissa(), (price + tax).scale(), tax > each)
    });
}
