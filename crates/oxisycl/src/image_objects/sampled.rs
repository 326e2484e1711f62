//! Images that are read by a sampler.

use std::fmt;

use bytemuck::Pod;
use oxisycl_device::DeviceCopyable;
use oxisycl_device::images::{ImageFormat, ImageSampler, PixelFormat};
use oxisycl_types::Range;

use super::UnsampledImage;
use crate::Result;

/// An image that is read by coordinates, and never written (SYCL 2020 `sampled_image`). Its sampler says what lies between pixels and beyond the edges.
///
/// It is made of data of the host, or of an [`UnsampledImage`] by [`sampled`](UnsampledImage::sampled). Then both are the same image.
pub struct SampledImage<const D: usize, F = ImageFormat> {
    image: UnsampledImage<D, F>,
    sampler: ImageSampler,
}

impl<const D: usize, F: Clone> Clone for SampledImage<D, F> {
    fn clone(&self) -> Self {
        Self { image: self.image.clone(), sampler: self.sampler }
    }
}

impl<const D: usize, F: PixelFormat> SampledImage<D, F> {
    pub(super) fn new(image: UnsampledImage<D, F>, sampler: ImageSampler) -> Self {
        Self { image, sampler }
    }

    /// An image that takes over the vector's memory, as [`UnsampledImage::from_vec`] does, with its errors.
    ///
    /// ```
    /// use oxisycl::images::Rgba8Srgb;
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let sampler = ImageSampler::LINEAR.normalized();
    /// let picture = SampledImage::from_vec(Rgba8Srgb, sampler, vec![[0u8, 128, 255, 255]; 12], [3, 4])?;
    /// assert_eq!((picture.range(), picture.sampler()), (Range([3, 4]), sampler));
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn from_vec<P: DeviceCopyable + Pod>(
        format: F,
        sampler: ImageSampler,
        data: Vec<P>,
        range: impl Into<Range<D>>,
    ) -> Result<Self> {
        Ok(Self::new(UnsampledImage::from_vec(format, data, range)?, sampler))
    }

    /// An image with a copy of the bytes of all pixels, as [`UnsampledImage::from_slice`] makes, with its errors.
    #[track_caller]
    pub fn from_slice<P: DeviceCopyable + Pod>(
        format: F,
        sampler: ImageSampler,
        data: &[P],
        range: impl Into<Range<D>>,
    ) -> Result<Self> {
        Ok(Self::new(UnsampledImage::from_slice(format, data, range)?, sampler))
    }

    /// Extent in pixels.
    pub fn range(&self) -> Range<D> {
        self.image.range()
    }

    /// Number of pixels.
    pub fn size(&self) -> usize {
        self.image.size()
    }

    /// Size in bytes.
    pub fn byte_size(&self) -> usize {
        self.image.byte_size()
    }

    /// The format of its pixels.
    pub fn format(&self) -> ImageFormat {
        self.image.format()
    }

    /// The sampler of the image.
    pub fn sampler(&self) -> ImageSampler {
        self.sampler
    }

    /// The image without the sampler.
    pub(super) fn image(&self) -> &UnsampledImage<D, F> {
        &self.image
    }
}

impl<const D: usize, F: PixelFormat> fmt::Debug for SampledImage<D, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SampledImage")
            .field("id", &self.image.id())
            .field("format", &self.format())
            .field("range", &self.range())
            .field("sampler", &self.sampler)
            .finish_non_exhaustive()
    }
}

impl<const D: usize, F: PixelFormat> PartialEq for SampledImage<D, F> {
    /// Whether both are the same image with the same sampler.
    fn eq(&self, other: &Self) -> bool {
        (&self.image, self.sampler) == (&other.image, other.sampler)
    }
}
impl<const D: usize, F: PixelFormat> Eq for SampledImage<D, F> {}
