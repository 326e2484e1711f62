//! Published crates that do not need the standard library, called from kernels.

use arrayvec::{ArrayString, ArrayVec};
use bitflags::bitflags;
use crc::{CRC_16_IBM_SDLC, CRC_32_ISCSI, Crc};
use fixed::types::{I16F16, U8F8};
use num_complex::{Complex32, Complex64};
use num_traits::{Bounded, CheckedMul, Float, Num, PrimInt, ToPrimitive};
use ordered_float::{NotNan, OrderedFloat};
use rand_pcg::rand_core::{Rng, SeedableRng};
use rand_pcg::{Lcg64Xsh32, Pcg32};

use crate::harness::{Env, fraction, kernels, scramble};
use crate::outcome::Tolerance::{Approximate, Contracted};

kernels![
    num_complex_products_and_quotients,
    num_complex_powers_and_exponentials,
    num_complex_julia_sets,
    libm_single_precision,
    libm_double_precision,
    libm_fractions_and_exponents,
    arrayvec_vectors_and_strings,
    bitflags_sets,
    num_traits_generic_arithmetic,
    ordered_float_keys,
    rand_pcg_generators,
    crc_checksums,
    fixed_point_numbers,
    heapless_maps_and_queues,
];

fn num_complex_products_and_quotients(env: &Env) {
    env.compare_within(Contracted(1e-5), |i| {
        let a = Complex32::new(fraction(i) - 0.5, fraction(i + 1) + 0.5);
        let b = Complex32::new(fraction(i + 2) + 1.0, fraction(i + 3) - 0.5);
        let c = (a * b + a.conj()) / b - a.inv() * 2.0;
        [c.re, c.im, c.norm_sqr(), a.scale(3.0).im, (a - b).l1_norm()]
    });
}

fn num_complex_powers_and_exponentials(env: &Env) {
    env.compare_within(Approximate(1e-12), |i| {
        let a = Complex64::new(f64::from(fraction(i)) * 2.0 - 1.0, f64::from(fraction(i + 1)) - 0.5);
        let roots = (a.sqrt(), a.exp(), a.powu(5), Complex64::from_polar(2.0, a.arg()));
        [roots.0.re, roots.0.im, roots.1.re, roots.1.im, roots.2.re, roots.3.im, a.norm(), a.sin().re]
    });
}

fn num_complex_julia_sets(env: &Env) {
    env.compare(|i| {
        // Gaussian integers modulo a prime: the same code as for floating-point numbers, without rounding.
        let reduce =
            |z: num_complex::Complex<i64>| num_complex::Complex::new(z.re.rem_euclid(10_007), z.im.rem_euclid(10_007));
        let c = num_complex::Complex::new(i as i64, 355);
        let mut z = num_complex::Complex::new(0, 1);
        let steps = (0..50_u32).take_while(|_| {
            z = reduce(z * z + c);
            z.re % 61 != 7
        });
        (steps.count() as u32, z.re, z.im)
    });
}

fn libm_single_precision(env: &Env) {
    env.compare_within(Contracted(1e-5), |i| {
        let x = fraction(i) * 10.0 + 0.1;
        let (mantissa, exponent) = libm::frexpf(x * 1000.0);
        let functions = [libm::sinf(x), libm::expf(-x), libm::logf(x), libm::powf(x, 0.3), libm::cbrtf(x)];
        (functions, libm::erff(x - 5.0), libm::tgammaf(x * 0.5), mantissa, exponent)
    });
}

fn libm_double_precision(env: &Env) {
    env.compare_within(Contracted(1e-10), |i| {
        let x = f64::from(fraction(i)) * 20.0 - 10.0;
        let (sine, cosine) = libm::sincos(x);
        let (fractional, integral) = libm::modf(x);
        [
            sine,
            cosine,
            fractional,
            integral,
            libm::j0(x),
            libm::remainder(x, 0.7),
            libm::nextafter(x, 0.0),
            libm::lgamma(x + 11.0),
        ]
    });
}

fn libm_fractions_and_exponents(env: &Env) {
    env.compare(|i| {
        let bits = u64::from(scramble(i)) << 32 | u64::from(scramble(i + 7));
        // Numbers of all sizes, those below the normal ones, zeros, and infinities.
        let of_kind = |keep: u64, set: u64| f64::from_bits(bits & keep | set);
        let double = [
            of_kind(0xBFFF_FFFF_FFFF_FFFF, 0),
            of_kind(0x800F_FFFF_FFFF_FFFF, 0),
            of_kind(1 << 63, 0),
            of_kind(1 << 63, 0x7FF0_0000_0000_0000),
        ][i % 4];
        let bits = scramble(i + 20);
        let of_kind = |keep: u32, set: u32| f32::from_bits(bits & keep | set);
        let single =
            [of_kind(0xBFFF_FFFF, 0), of_kind(0x807F_FFFF, 0), of_kind(1 << 31, 0), of_kind(1 << 31, 0x7F80_0000)];
        (libm::frexp(double), libm::frexpf(single[i / 4 % 4]))
    });
}

fn arrayvec_vectors_and_strings(env: &Env) {
    env.compare(|i| {
        let mut values: ArrayVec<u32, 12> = (0..i % 10).map(|k| scramble(i + k) % 100).collect();
        values.retain(|value| *value % 3 != 0);
        values.try_push(7).unwrap_or(());
        values.sort_unstable();
        values.dedup_by_key_of_tests();
        let removed = values.pop_at(1);
        let sum: u32 = values.drain(..values.len() / 2).sum();
        let mut text = ArrayString::<8>::new();
        let is_full = text.try_push_str("work").and_then(|()| text.try_push_str("-items")).is_err();
        (values.len() as u32, values.last().copied(), removed, sum, (is_full, text.len() as u8))
    });
}

trait DedupForTests {
    fn dedup_by_key_of_tests(&mut self);
}

impl<const CAPACITY: usize> DedupForTests for ArrayVec<u32, CAPACITY> {
    /// Removes equal neighbours.
    fn dedup_by_key_of_tests(&mut self) {
        let mut last = None;
        self.retain(|value| last.replace(*value) != Some(*value));
    }
}

bitflags! {
    #[derive(Clone, Copy, PartialEq, Eq)]
    struct Access: u16 {
        const READ = 1;
        const WRITE = 1 << 1;
        const ATOMIC = 1 << 7;
        const READ_WRITE = Self::READ.bits() | Self::WRITE.bits();
    }
}

fn bitflags_sets(env: &Env) {
    env.compare(|i| {
        let (a, b) = (Access::from_bits_truncate(scramble(i) as u16), Access::from_bits_retain(scramble(i + 1) as u16));
        let mut both = (a | Access::READ) & !b;
        both.toggle(Access::ATOMIC);
        let names = both.iter_names().map(|(name, _)| name.len() as u16).sum::<u16>();
        let flags = [a.contains(Access::READ_WRITE), a.intersects(b), both.is_empty(), Access::from_bits(9).is_none()];
        (both.bits(), names, flags, a.union(b).complement().bits())
    });
}

fn num_traits_generic_arithmetic(env: &Env) {
    fn power_sum<T: PrimInt + CheckedMul + Bounded>(base: T, n: usize) -> T {
        let powers = std::iter::successors(Some(base), |power| power.checked_mul(&base));
        powers.take(n).fold(T::zero(), |sum, power| if T::max_value() - sum > power { sum + power } else { sum })
    }
    fn norm<T: Float>(values: [T; 3]) -> T {
        values.iter().fold(T::zero(), |sum, value| sum + value.powi(2)).sqrt().max(T::epsilon())
    }
    env.compare_within(Contracted(1e-6), |i| {
        let sums = (power_sum((scramble(i) % 10 + 2) as u16, 7), power_sum(u64::from(scramble(i) % 1000), 9));
        let norms = (norm([fraction(i), fraction(i + 1), -1.0]), norm([f64::from(fraction(i)), 3.0, 4.0]));
        let parsed = <u32 as Num>::from_str_radix("1A2b", 16).ok();
        let narrow = (fraction(i) * 600.0).to_u8();
        (sums, norms, parsed, narrow, scramble(i).leading_zeros() + PrimInt::count_ones(i as u64))
    });
}

fn ordered_float_keys(env: &Env) {
    env.compare(|i| {
        let mut values: [OrderedFloat<f32>; 9] = std::array::from_fn(|k| OrderedFloat(fraction(i * 9 + k) - 0.5));
        values[i % 9].0 = f32::NAN;
        values.sort_unstable();
        let largest = values.iter().max().is_some_and(|value| value.is_nan());
        let smallest = values.iter().min().map(|value| value.0);
        let sum = NotNan::new(values[0].0).ok().map(|value| value.into_inner() + 1.0);
        (smallest, largest, sum, values[4].0)
    });
}

fn rand_pcg_generators(env: &Env) {
    env.compare(|i| {
        let mut generator = Pcg32::new(i as u64, 0xA02_BDBF_7BB3_C0A7);
        let mut bytes = [0; 11];
        generator.fill_bytes(&mut bytes);
        let mut seeded = Lcg64Xsh32::seed_from_u64(i as u64);
        seeded.advance(1 << 40);
        (generator.next_u32(), generator.next_u64(), bytes, seeded.next_u32())
    });
}

fn crc_checksums(env: &Env) {
    const CASTAGNOLI: Crc<u32> = Crc::<u32>::new(&CRC_32_ISCSI);
    const SDLC: Crc<u16> = Crc::<u16>::new(&CRC_16_IBM_SDLC);
    env.compare(|i| {
        let message: [u8; 70] = std::array::from_fn(|k| scramble(i + k) as u8);
        let (left, right) = message[..i % 71].split_at(i % 71 / 2);
        let mut digest = CASTAGNOLI.digest();
        digest.update(left);
        digest.update(right);
        (digest.finalize(), SDLC.checksum(left))
    });
}

fn fixed_point_numbers(env: &Env) {
    env.compare(|i| {
        let (a, b) = (I16F16::from_bits(scramble(i) as i32 >> 8), I16F16::from_num(i as i32 - 500) / 64);
        let product = a.saturating_mul(b);
        let quotient = a.checked_div(b).map(I16F16::to_bits);
        let rounded: i32 = (product.round().saturating_add(I16F16::ONE)).to_num();
        let narrow = U8F8::saturating_from_num(a).to_bits();
        (product.to_bits(), quotient, rounded, narrow, (a > b, a.abs().leading_zeros(), b.frac().to_bits()).1)
    });
}

fn heapless_maps_and_queues(env: &Env) {
    env.compare(|i| {
        let mut queue = heapless::Deque::<u16, 8>::new();
        let mut refused = 0_u32;
        for k in 0..12 {
            refused += u32::from(queue.push_back(scramble(i + k) as u16).is_err());
            if k % 3 == 0 {
                queue.pop_front();
            }
        }
        let mut map = heapless::LinearMap::<u8, u32, 6>::new();
        for k in 0..20 {
            let key = (scramble(i * 20 + k) % 8) as u8;
            match map.get_mut(&key) {
                Some(count) => *count += 1,
                None => refused += u32::from(map.insert(key, 1).is_err()),
            }
        }
        let mut index = heapless::index_map::FnvIndexMap::<u16, u32, 8>::new();
        for k in 0..12 {
            let key = scramble(i * 12 + k) as u16 % 10;
            refused += u32::from(index.insert(key, k as u32).is_err());
            if k % 4 == 3 {
                index.remove(&(key / 2));
            }
        }
        let indexed = index
            .iter()
            .fold(index.len() as u32, |sum, (key, value)| sum.wrapping_mul(7) + u32::from(*key) * 12 + value);
        let mut heap = heapless::BinaryHeap::<u16, heapless::binary_heap::Min, 8>::new();
        queue.iter().for_each(|value| _ = heap.push(*value));
        (queue.len() as u32, refused, heap.pop(), map.values().sum::<u32>(), (map.get(&3).copied(), indexed))
    });
}
