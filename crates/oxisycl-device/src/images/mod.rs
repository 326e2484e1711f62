//! Images in kernels: formats, what pixels are read and written as, and the accessors (SYCL 2020 sections 4.7.3, 4.7.6.13 and 4.7.8).
//!
//! An image is a buffer with a format. Its reads and writes are code of this module, the same on every device. So they compute what the
//! formulas of OpenCL C say (section "Image addressing and filtering"), also where a device has units for textures.
//!
//! - Ranges, positions and coordinates are in the order of buffers: the last one is x. A picture has the range `[height, width]`.
//! - A position outside of the image reads the border colour, and writes nothing. No coordinate is an error. One that is not a number lies
//!   before the image. Where the image repeats, it counts as 0, as an infinite one does.
//! - A format is an [`ImageFormat`], or a type such as [`Rgba8Unorm`]. The latter is what fast kernels use.

mod accessor;
mod channel;
mod chunks;
mod format;
mod index;
mod memory;
mod pixel;
mod pixels;
mod sample;
mod sampled;
mod srgb;
mod unsampled;
mod window;

#[cfg(test)]
mod tests;

pub use chunks::{ChunkedImageAccessor, ImageBlock};
pub use format::*;
pub use index::{PixelIndex, SampleCoordinates};
pub use pixel::PixelData;
#[doc(hidden)]
pub use pixels::Pixels;
pub use sampled::SampledImageAccessor;
pub use unsampled::UnsampledImageAccessor;
pub use window::ImageWindow;

pub use oxisycl_types::{
    AddressingMode, ChannelOrder, ChannelType, CoordinateMode, FilteringMode, ImageFormat, ImageSampler,
};
