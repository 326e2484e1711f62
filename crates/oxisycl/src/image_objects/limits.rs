//! What a device says of images (SYCL 2020, section 4.6.4.2, the descriptors of images and samplers).
//!
//! Invariant: images are buffers, and their accessors are parameters of kernels. So each limit follows from the largest allocation, from the most
//! bytes of parameters, or from what a position can be.

use oxisycl_device::images::{
    ImageFormat, ImageSampler, PixelFormat, Pixels, SampledImageAccessor, UnsampledImageAccessor,
};
use oxisycl_device::vector::Float4;
use oxisycl_types::{Aspect, ErrorCode};

use super::UnsampledImage;
use crate::{Device, Error, ReadWrite, Result};

/// The most that images can be on a device. Fields without a comment have the specification's names, and are in pixels. All are 0 on a device that
/// lacks the aspect [`image`](Aspect::Image).
///
/// An image of large extents also has to fit in [`max_mem_alloc_size`](crate::DeviceInfo::max_mem_alloc_size) as a whole. One that is sampled has
/// extents below 2^23, whatever these limits are: coordinates are floats.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the fields are the specification's descriptors of the same name, section 4.6.4.2")]
pub struct ImageLimits {
    /// How many images with a sampler a kernel can capture, if it captures nothing else.
    pub max_read_image_args: usize,
    /// How many images without a sampler a kernel can capture, if it captures nothing else.
    pub max_write_image_args: usize,
    pub image2d_max_width: usize,
    pub image2d_max_height: usize,
    pub image3d_max_width: usize,
    pub image3d_max_height: usize,
    pub image3d_max_depth: usize,
    /// The most pixels of an image of one dimension.
    pub image_max_buffer_size: usize,
    /// How many samplers a kernel can capture, if it captures nothing else. Constant samplers do not count.
    pub max_samplers: usize,
}

impl ImageLimits {
    fn of(device: &Device) -> Self {
        let info = device.info();
        if !info.has(Aspect::Image) {
            return Self::default();
        }
        // No pixel is smaller than a byte.
        let largest = usize::try_from(info.max_mem_alloc_size).unwrap_or(usize::MAX);
        let extent = largest.min(Pixels::<1, ImageFormat>::MAX_EXTENT);
        let captured = |size| info.max_parameter_size / size;
        Self {
            max_read_image_args: captured(size_of::<SampledImageAccessor<'static, Float4, 3, ImageFormat>>()),
            max_write_image_args: captured(
                size_of::<UnsampledImageAccessor<'static, Float4, 3, ReadWrite, ImageFormat>>(),
            ),
            image2d_max_width: extent,
            image2d_max_height: extent,
            image3d_max_width: extent,
            image3d_max_height: extent,
            image3d_max_depth: extent,
            image_max_buffer_size: extent,
            max_samplers: captured(size_of::<ImageSampler>()),
        }
    }
}

impl Device {
    /// The most that images can be on the device (`image2d_max_width` and others).
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let limits = Device::default()?.image_limits();
    /// println!("pictures of up to {} pixels by {}", limits.image2d_max_width, limits.image2d_max_height);
    /// assert!(limits.max_read_image_args >= 128);
    /// # Ok(())
    /// # }
    /// ```
    pub fn image_limits(&self) -> ImageLimits {
        ImageLimits::of(self)
    }
}

impl<const D: usize, F: PixelFormat> UnsampledImage<D, F> {
    /// An error if the image is to be on a device whose allocations are all smaller.
    pub(super) fn check_fits(&self, device: &Device) -> Result {
        let (n_bytes, most) = (self.byte_size(), device.info().max_mem_alloc_size);
        if n_bytes as u64 <= most {
            return Ok(());
        }
        let (label, name) = (self.label(), device.name());
        let message =
            format!("{label} has {n_bytes} bytes, and the largest allocation of device \"{name}\" has {most}");
        Err(Error::new(ErrorCode::MemoryAllocation, message))
    }
}
