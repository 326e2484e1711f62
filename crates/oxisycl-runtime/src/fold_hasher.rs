//! Tables by addresses, which look-ups on the way of every command need.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher};

/// A table by addresses.
pub(crate) type AddressMap<T> = HashMap<usize, T, FoldHasher>;

/// Hashes keys that are made of addresses and hashes: no input chooses them to collide.
#[derive(Clone, Copy, Default)]
pub(crate) struct FoldHasher(u64);

impl FoldHasher {
    pub(crate) const fn new() -> Self {
        Self(0)
    }
}

impl BuildHasher for FoldHasher {
    type Hasher = Self;

    fn build_hasher(&self) -> Self {
        *self
    }
}

impl Hasher for FoldHasher {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    #[inline]
    fn write_u64(&mut self, number: u64) {
        let product = u128::from(self.0 ^ number ^ 0xf39c_c060_5ced_c835) * 0x9e37_79b9_7f4a_7c15;
        self.0 = (product as u64) ^ (product >> 64) as u64;
    }

    #[inline]
    fn write_u8(&mut self, number: u8) {
        self.write_u64(u64::from(number));
    }

    #[inline]
    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }

    #[inline]
    fn write_isize(&mut self, number: isize) {
        self.write_u64(number as u64);
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
}
