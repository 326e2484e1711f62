//! Images against a model in double precision, which knows bytes and formulas and no code of this crate.

mod model;
mod pixels;
mod samples;

use std::vec::Vec;

use oxisycl_types::ImageFormat;

use super::Pixels;

/// Pixels with the alignment of all formats.
struct Memory {
    words: Vec<u128>,
    format: ImageFormat,
}

impl Memory {
    fn new(format: ImageFormat, bytes: &[u8]) -> Self {
        let mut words = std::vec![0_u128; bytes.len().div_ceil(16)];
        bytemuck::cast_slice_mut::<_, u8>(&mut words)[..bytes.len()].copy_from_slice(bytes);
        Self { words, format }
    }

    /// The pixels, until the memory is used again.
    fn pixels<const D: usize>(&mut self, extent: [usize; D]) -> Pixels<D, ImageFormat> {
        assert!(extent.iter().product::<usize>() * self.format.pixel_size() <= 16 * self.words.len());
        Pixels::new(self.words.as_mut_ptr().cast(), extent, self.format)
    }

    fn bytes(&self) -> &[u8] {
        bytemuck::cast_slice(&self.words)
    }
}

/// Random numbers (SplitMix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ x >> 31
    }

    /// A float of that range.
    fn float(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }
}
