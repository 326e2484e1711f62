//! What describes images: formats of pixels and samplers (SYCL 2020 sections 4.7.3 and 4.7.8).

mod format;
mod sampler;

pub use format::{ChannelOrder, ChannelType, ImageFormat};
pub use sampler::{AddressingMode, CoordinateMode, FilteringMode, ImageSampler};
