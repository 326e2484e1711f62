//! Images: pixels of every format, samplers, and what holds for them as for buffers.

pub(crate) mod arguments;
pub(crate) mod blocking;
pub(crate) mod borrowed;
pub(crate) mod copies;
pub(crate) mod final_data;
pub(crate) mod host_tasks;
pub(crate) mod limits;
pub(crate) mod objects;
pub(crate) mod owned;
pub(crate) mod pixels;
pub(crate) mod samples;
pub(crate) mod windows;

use oxisycl::images::{ChannelType, ImageFormat};
use oxisycl::vector::Float4;

use crate::support::Random;

/// Bytes of pixels, with floats that are finite.
fn bytes_of(random: &mut Random, format: ImageFormat, n_pixels: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while bytes.len() < n_pixels * format.pixel_size() {
        match format.channel_type() {
            ChannelType::Float16 => {
                let value = half::f16::from_f32(random.below(4001) as f32 / 1000.0 - 2.0);
                bytes.extend(value.to_bits().to_le_bytes());
            }
            ChannelType::Float32 => bytes.extend((random.below(4001) as f32 / 1000.0 - 2.0).to_le_bytes()),
            _ => bytes.push(random.below(256) as u8),
        }
    }
    bytes
}

/// The formats whose channels are floats in memory.
fn formats_in_floats() -> impl Iterator<Item = ImageFormat> {
    ImageFormat::all().filter(|format| matches!(format.channel_type(), ChannelType::Float16 | ChannelType::Float32))
}

/// Bytes as those of [`bytes_of`], for a format of floats. Two of five channels are no numbers: quiet or signalling, of both signs.
fn bytes_without_numbers(random: &mut Random, format: ImageFormat, n_pixels: usize) -> Vec<u8> {
    let mut bytes = bytes_of(random, format, n_pixels);
    let is_half = format.channel_type() == ChannelType::Float16;
    for (i, channel) in bytes.chunks_exact_mut(if is_half { 2 } else { 4 }).enumerate() {
        match i % 5 {
            0 | 3 if is_half => channel.copy_from_slice(&[0x7E00_u16, 0x7C01, 0xFE55, 0xFD00][i % 4].to_ne_bytes()),
            0 | 3 => {
                channel.copy_from_slice(&[0x7FC0_0000_u32, 0x7F80_0001, 0xFFC1_2345, 0xFF80_4000][i % 4].to_ne_bytes())
            }
            _ => {}
        }
    }
    bytes
}

/// Whether two pixels have the same numbers, as `is_same` says, and no numbers in the same channels. The bits of a NaN do not matter.
fn have_numbers_alike(seen: Float4, expected: Float4, is_same: impl Fn(Float4, Float4) -> bool) -> bool {
    let numbers = |pixel: Float4| pixel.map(|x| if x.is_nan() { 0.0 } else { x });
    (0..4).all(|i| seen[i].is_nan() == expected[i].is_nan()) && is_same(numbers(seen), numbers(expected))
}
