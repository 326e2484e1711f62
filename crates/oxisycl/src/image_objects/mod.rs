//! Images: buffers with a format (SYCL 2020 section 4.7.3).
//!
//! Invariant: the pixels lie in the bytes of a buffer without gaps, aligned to their format. What is said of buffers holds for images: they are
//! buffers. Does not know how a pixel is read; the device library does.

mod access;
mod argument;
#[cfg(feature = "ndarray")]
mod array;
mod borrowed;
mod copy;
mod create;
mod host;
mod host_task;
mod limits;
#[cfg(feature = "image")]
mod pictures;
mod pitch;
mod properties;
mod sampled;

use std::fmt;
use std::hash::{Hash, Hasher};

use oxisycl_device::images::{ImageFormat, ImageSampler, PixelFormat};
use oxisycl_types::Range;

use crate::{Buffer, Device, Error, Result};

pub use argument::{ChunkedImageAccess, SampledImageAccess, UnsampledImageAccess};
pub use borrowed::BorrowedImage;
pub use create::IntoPixelsError;
pub use host::{HostSampledImageAccessor, HostUnsampledImageAccessor};
pub use host_task::{HostTaskImageAccessor, HostTaskSampledImageAccessor};
pub use limits::ImageLimits;
#[cfg(feature = "image")]
pub use pictures::ImagePixel;
pub use pitch::ImagePitch;
pub use sampled::SampledImage;

use properties::properties;

/// An image whose pixels are read and written one by one, on any device and on the host (SYCL 2020 `unsampled_image`).
///
/// Its range is in the order of buffers: `[height, width]` for a picture, `[depth, height, width]` for a volume. The pixels of a row are neighbours
/// in memory, and rows follow each other without gaps. `F` is its format: [`ImageFormat`], or a type of [`images`](crate::images) such as
/// [`Rgba8Unorm`](crate::images::Rgba8Unorm), which kernels are faster with.
///
/// An image is a buffer: allocations, data state, transfers, dependencies, failures and what blocks are those of a [`Buffer`]. Copies of the handle
/// are the same image.
pub struct UnsampledImage<const D: usize, F = ImageFormat> {
    bytes: Buffer<u8, D>,
    range: Range<D>,
    format: F,
}

impl<const D: usize, F: Clone> Clone for UnsampledImage<D, F> {
    fn clone(&self) -> Self {
        Self { bytes: self.bytes.clone(), range: self.range, format: self.format.clone() }
    }
}

impl<const D: usize, F: PixelFormat> UnsampledImage<D, F> {
    /// Itself, as [`properties`] asks both kinds of image.
    pub(super) fn image(&self) -> &Self {
        self
    }

    /// This image with its format as a type, or as a value.
    ///
    /// Errors: `Invalid` if the image has another format.
    ///
    /// ```
    /// use oxisycl::images::{Rgba8Srgb, Rgba8Unorm};
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let format: ImageFormat = ImageFormat::R8G8B8A8_UNORM; // known when the program runs
    /// let any: UnsampledImage<2> = UnsampledImage::uninit(format, [480, 640])?;
    /// let fast = any.with_format(Rgba8Unorm)?;
    /// assert_eq!(fast.id(), any.id());
    /// assert_eq!(any.with_format(Rgba8Srgb).unwrap_err().code(), ErrorCode::Invalid);
    /// # Ok(())
    /// # }
    /// ```
    pub fn with_format<G: PixelFormat>(&self, format: G) -> Result<UnsampledImage<D, G>> {
        let (own, other) = (self.format(), format.format());
        if own != other {
            let message = format!("image {} has the format {own}, not {other}", self.id());
            return Err(Error::invalid(message));
        }
        Ok(UnsampledImage { bytes: self.bytes.clone(), range: self.range, format })
    }

    /// This image as one that is read by a sampler. Commands that write this one come before those that sample it, or after them.
    ///
    /// ```
    /// use oxisycl::images::R32Float;
    /// use oxisycl::prelude::*;
    /// use oxisycl::vector::Float4;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let (levels, halved) = (UnsampledImage::uninit(R32Float, 4)?, UnsampledImage::uninit(R32Float, 2)?);
    /// let (queue, smooth) = (Queue::default()?, levels.sampled(ImageSampler::LINEAR));
    /// queue.submit(|cg| {
    ///     let levels = cg.access_image(&levels, Write.no_init());
    ///     cg.parallel_for(4, move |item| levels.set(item, Float4::splat(item.index() as f32)))
    /// })?;
    /// queue.submit(|cg| {
    ///     let (smooth, halved) = (cg.access_sampled(&smooth), cg.access_image::<Float4, _, _, _>(&halved, Write.no_init()));
    ///     cg.parallel_for(2, move |item| halved.set(item, smooth.sample(item, 2.0 * item.index() as f32 + 1.0)))
    /// })?;
    /// assert_eq!(halved.to_vec::<f32>()?, [0.5, 2.5]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn sampled(&self, sampler: ImageSampler) -> SampledImage<D, F> {
        SampledImage::new(self.clone(), sampler)
    }
}

properties!(UnsampledImage);

impl<const D: usize, F: PixelFormat> fmt::Debug for UnsampledImage<D, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnsampledImage")
            .field("id", &self.id())
            .field("name", &self.name())
            .field("format", &self.format())
            .field("range", &self.range)
            .finish_non_exhaustive()
    }
}

impl<const D: usize, F: PixelFormat> PartialEq for UnsampledImage<D, F> {
    /// Whether both are the same image.
    fn eq(&self, other: &Self) -> bool {
        self.bytes == other.bytes
    }
}
impl<const D: usize, F: PixelFormat> Eq for UnsampledImage<D, F> {}
impl<const D: usize, F: PixelFormat> Hash for UnsampledImage<D, F> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.bytes.hash(state);
    }
}

const _: () = {
    const fn is_send_sync<T: Send + Sync>() {}
    is_send_sync::<UnsampledImage<2>>();
    is_send_sync::<SampledImage<2>>();
};
