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
