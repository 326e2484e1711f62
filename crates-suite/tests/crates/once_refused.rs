//! Crates that the device compiler once refused. Some remember what the processor can do. Others have private tables in functions that
//! rustc gives to other crates.

use memchr::memmem::Finder;
use sha2::{Digest as _, Sha256};

use crate::bytes;
use crate::harness::{Env, kernels, scramble};

kernels![sha2, memchr, itoa];

fn sha2(env: &Env) {
    env.compare(|i| {
        let digest = Sha256::digest(&bytes::<100>(i)[..i % 100]);
        (digest[0], digest[31], digest.iter().map(|byte| u32::from(*byte)).sum::<u32>())
    });
}

fn memchr(env: &Env) {
    env.compare(|i| {
        let text = bytes::<90>(i).map(|byte| byte % 16);
        let text = &text[..i % 90];
        let needle = [(i % 16) as u8, 3];
        let place = Finder::new(&needle).find(text);
        (memchr::memchr(7, text).is_some(), memchr::memrchr(5, text), memchr::memchr2(1, 2, text), place)
    });
}

fn itoa(env: &Env) {
    env.compare(|i| {
        let number = u64::from(scramble(i)) * u64::from(scramble(i + 1)) >> (i % 64);
        let (mut buffer, mut small) = (itoa::Buffer::new(), itoa::Buffer::new());
        let sum = |text: &str| text.bytes().fold(0_u32, |sum, byte| sum.wrapping_mul(31) + u32::from(byte));
        (sum(buffer.format(number)), sum(small.format(scramble(i) as i32)))
    });
}
