//! Checksums and hashes, written in Rust.

use std::hash::{Hash, Hasher};

use crate::harness::{Env, kernels, scramble};

kernels![
    sha_256_of_a_message,
    xx_hash_of_a_slice,
    crc_32_by_table_and_by_bit,
    adler_and_fletcher,
    derived_hashes_of_structs,
    sip_hash_of_a_message,
];

const ROUND_CONSTANTS: [u32; 64] = {
    // The fractional parts of the cube roots of the first primes, by integer search.
    let mut constants = [0; 64];
    let (mut n, mut prime) = (0, 2_u128);
    while n < 64 {
        let mut divisor = 2;
        while divisor * divisor <= prime && !prime.is_multiple_of(divisor) {
            divisor += 1;
        }
        if divisor * divisor > prime {
            let (mut root, mut bit) = (0_u128, 1_u128 << 36);
            while bit > 0 {
                let next = root | bit;
                if next * next * next <= prime << 96 {
                    root = next;
                }
                bit >>= 1;
            }
            constants[n] = root as u32;
            n += 1;
        }
        prime += 1;
    }
    constants
};

fn sha_256(message: &[u8]) -> [u32; 8] {
    let mut state: [u32; 8] =
        [0x6A09_E667, 0xBB67_AE85, 0x3C6E_F372, 0xA54F_F53A, 0x510E_527F, 0x9B05_688C, 0x1F83_D9AB, 0x5BE0_CD19];
    let blocks = message.len() / 64 + 1 + usize::from(message.len() % 64 >= 56);
    let length = (message.len() as u64 * 8).to_be_bytes();
    for block in 0..blocks {
        let byte = |k: usize| match (block * 64 + k, blocks * 64 - (block * 64 + k)) {
            (at, _) if at < message.len() => message[at],
            (at, _) if at == message.len() => 0x80,
            (_, left @ 1..=8) => length[8 - left],
            _ => 0,
        };
        let mut schedule = [0_u32; 64];
        for k in 0..16 {
            schedule[k] = u32::from_be_bytes(std::array::from_fn(|b| byte(4 * k + b)));
        }
        for k in 16..64 {
            let (a, b) = (schedule[k - 15], schedule[k - 2]);
            let low = a.rotate_right(7) ^ a.rotate_right(18) ^ (a >> 3);
            let high = b.rotate_right(17) ^ b.rotate_right(19) ^ (b >> 10);
            schedule[k] = schedule[k - 16].wrapping_add(low).wrapping_add(schedule[k - 7]).wrapping_add(high);
        }
        let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = state;
        for (word, constant) in schedule.iter().zip(&ROUND_CONSTANTS) {
            let choice = (e & f) ^ (!e & g);
            let mixed = e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25);
            let first = h.wrapping_add(mixed).wrapping_add(choice).wrapping_add(*constant).wrapping_add(*word);
            let majority = (a & b) ^ (a & c) ^ (b & c);
            let second = (a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22)).wrapping_add(majority);
            (h, g, f, e, d, c, b, a) = (g, f, e, d.wrapping_add(first), c, b, a, first.wrapping_add(second));
        }
        for (value, word) in state.iter_mut().zip([a, b, c, d, e, f, g, h]) {
            *value = value.wrapping_add(word);
        }
    }
    state
}

fn sha_256_of_a_message(env: &Env) {
    assert_eq!(sha_256(b"abc")[..2], [0xBA78_16BF, 0x8F01_CFEA]);
    env.compare(|i| {
        let message: [u8; 150] = std::array::from_fn(|k| scramble(i + k) as u8);
        sha_256(&message[..i % 151])
    });
}

fn xx_hash_32(input: &[u8], seed: u32) -> u32 {
    const PRIMES: [u32; 5] = [0x9E37_79B1, 0x85EB_CA77, 0xC2B2_AE3D, 0x27D4_EB2F, 0x1656_67B1];
    let mut stripes = input.chunks_exact(16);
    let mut hash = if input.len() >= 16 {
        let start = seed.wrapping_add(PRIMES[0]);
        let mut lanes =
            [start.wrapping_add(PRIMES[1]), seed.wrapping_add(PRIMES[1]), seed, seed.wrapping_sub(PRIMES[0])];
        for stripe in &mut stripes {
            for (lane, word) in lanes.iter_mut().zip(stripe.as_chunks::<4>().0) {
                let word = u32::from_le_bytes(*word).wrapping_mul(PRIMES[1]);
                *lane = lane.wrapping_add(word).rotate_left(13).wrapping_mul(PRIMES[0]);
            }
        }
        lanes.iter().zip([1, 7, 12, 18]).fold(0_u32, |sum, (lane, by)| sum.wrapping_add(lane.rotate_left(by)))
    } else {
        seed.wrapping_add(PRIMES[4])
    };
    hash = hash.wrapping_add(input.len() as u32);
    let (words, bytes) = stripes.remainder().as_chunks::<4>();
    for word in words {
        let word = u32::from_le_bytes(*word).wrapping_mul(PRIMES[2]);
        hash = hash.wrapping_add(word).rotate_left(17).wrapping_mul(PRIMES[3]);
    }
    for byte in bytes {
        hash = hash.wrapping_add(u32::from(*byte).wrapping_mul(PRIMES[4])).rotate_left(11).wrapping_mul(PRIMES[0]);
    }
    hash = (hash ^ (hash >> 15)).wrapping_mul(PRIMES[1]);
    hash = (hash ^ (hash >> 13)).wrapping_mul(PRIMES[2]);
    hash ^ (hash >> 16)
}

fn xx_hash_of_a_slice(env: &Env) {
    assert_eq!(xx_hash_32(b"", 0), 0x02CC_5D05);
    let input: Vec<u8> = (0..900).map(|i| scramble(i) as u8).collect();
    env.compare_over(crate::outcome::Tolerance::Exact, input, |all, i| {
        xx_hash_32(&all[i..(i + scramble(i) as usize % 80).min(all.len())], i as u32)
    });
}

const CRC_TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut n = 0;
    while n < 256 {
        let (mut value, mut bit) = (n as u32, 0);
        while bit < 8 {
            value = if value & 1 == 1 { 0xEDB8_8320 ^ (value >> 1) } else { value >> 1 };
            bit += 1;
        }
        table[n] = value;
        n += 1;
    }
    table
};

fn crc_32_by_table_and_by_bit(env: &Env) {
    env.compare(|i| {
        let message: [u8; 40] = std::array::from_fn(|k| scramble(i * 40 + k) as u8);
        let message = &message[..i % 41];
        let step = |crc: u32, byte: &u8| CRC_TABLE[((crc ^ u32::from(*byte)) & 0xFF) as usize] ^ (crc >> 8);
        let by_table = !message.iter().fold(!0, step);
        let by_bit = !message.iter().fold(!0_u32, |crc, byte| {
            (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ (0xEDB8_8320 & (crc & 1).wrapping_neg()))
        });
        (by_table, by_bit == by_table)
    });
}

fn adler_and_fletcher(env: &Env) {
    env.compare(|i| {
        let message: [u8; 100] = std::array::from_fn(|k| scramble(i + 5 * k) as u8);
        let (a, b) = message.iter().fold((1_u32, 0_u32), |(a, b), byte| {
            let a = (a + u32::from(*byte)) % 65_521;
            (a, (b + a) % 65_521)
        });
        let fletcher = message.as_chunks::<2>().0.iter().fold((0_u64, 0_u64), |(low, high), pair| {
            let low = (low + u64::from(u16::from_le_bytes(*pair))) % 65_535;
            (low, (high + low) % 65_535)
        });
        (b << 16 | a, fletcher.1 << 16 | fletcher.0)
    });
}

/// FNV-1a.
struct Fowler(u64);

impl Hasher for Fowler {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x100_0000_01B3);
        }
    }
}

#[derive(Hash)]
enum Key<'a> {
    Number(i64),
    Name(&'a str, Option<u8>),
    Pair([u16; 2], bool),
}

fn derived_hashes_of_structs(env: &Env) {
    env.compare(|i| {
        let mut hasher = Fowler(0xCBF2_9CE4_8422_2325);
        match i % 3 {
            0 => Key::Number(i as i64 - 500),
            1 => Key::Name("a name", (i % 2 == 0).then_some(i as u8)),
            _ => Key::Pair([i as u16, 7], i % 5 == 0),
        }
        .hash(&mut hasher);
        hasher.finish()
    });
}

fn sip_hash_of_a_message(env: &Env) {
    fn round(v: &mut [u64; 4]) {
        v[0] = v[0].wrapping_add(v[1]);
        v[2] = v[2].wrapping_add(v[3]);
        v[1] = v[1].rotate_left(13) ^ v[0];
        v[3] = v[3].rotate_left(16) ^ v[2];
        v[0] = v[0].rotate_left(32).wrapping_add(v[3]);
        v[2] = v[2].wrapping_add(v[1]);
        v[3] = v[3].rotate_left(21) ^ v[0];
        v[1] = v[1].rotate_left(17) ^ v[2];
        v[2] = v[2].rotate_left(32);
    }
    env.compare(|i| {
        let message: [u8; 33] = std::array::from_fn(|k| (i + k) as u8);
        let message = &message[..i % 34];
        let (k0, k1) = (0x0706_0504_0302_0100_u64, 0x0F0E_0D0C_0B0A_0908_u64);
        let mut v = [
            k0 ^ 0x736F_6D65_7073_6575,
            k1 ^ 0x646F_7261_6E64_6F6D,
            k0 ^ 0x6C79_6765_6E65_7261,
            k1 ^ 0x7465_6462_7974_6573,
        ];
        let (words, rest) = message.as_chunks::<8>();
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        last[7] = message.len() as u8;
        for word in words.iter().chain([&last]) {
            let word = u64::from_le_bytes(*word);
            v[3] ^= word;
            (0..2).for_each(|_| round(&mut v));
            v[0] ^= word;
        }
        v[2] ^= 0xFF;
        (0..4).for_each(|_| round(&mut v));
        v[0] ^ v[1] ^ v[2] ^ v[3]
    });
}
