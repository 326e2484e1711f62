//! Images that are read by a sampler.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use bytemuck::Pod;
use oxisycl_device::DeviceCopyable;
use oxisycl_device::images::{ImageFormat, ImageSampler, PixelFormat};
use oxisycl_types::Range;

use super::properties::properties;
use super::{ImagePitch, IntoPixelsError, UnsampledImage};
use crate::{Device, FinalData, Result};

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

    /// An image with a copy of shared bytes of all pixels, as [`UnsampledImage::from_shared`] makes, with its errors.
    #[track_caller]
    pub fn from_shared<P: DeviceCopyable + Pod>(
        format: F,
        sampler: ImageSampler,
        data: Arc<[P]>,
        range: impl Into<Range<D>>,
    ) -> Result<Self> {
        Ok(Self::new(UnsampledImage::from_shared(format, data, range)?, sampler))
    }

    /// An image with a copy of pixels whose rows begin `pitch` bytes after each other, as [`UnsampledImage::from_slice_pitched`] makes, with its
    /// errors.
    #[track_caller]
    pub fn from_slice_pitched<P: Pod>(
        format: F,
        sampler: ImageSampler,
        data: &[P],
        range: impl Into<Range<D>>,
        pitch: ImagePitch,
    ) -> Result<Self> {
        Ok(Self::new(UnsampledImage::from_slice_pitched(format, data, range, pitch)?, sampler))
    }

    /// The sampler of the image.
    pub fn sampler(&self) -> ImageSampler {
        self.sampler
    }

    /// The image without the sampler, whose pixels are reached one by one. Both are the same image.
    ///
    /// ```
    /// use oxisycl::images::R8Unorm;
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let smooth = SampledImage::from_vec(R8Unorm, ImageSampler::LINEAR, vec![0u8, 50, 100], 3)?;
    /// let rough = smooth.unsampled().sampled(ImageSampler::NEAREST);
    /// assert_eq!((rough.id(), rough.unsampled()), (smooth.id(), smooth.unsampled()));
    /// assert_ne!(rough, smooth);
    /// # Ok(())
    /// # }
    /// ```
    pub fn unsampled(&self) -> &UnsampledImage<D, F> {
        &self.image
    }

    /// As [`unsampled`](Self::unsampled), for what both kinds of image have.
    pub(super) fn image(&self) -> &UnsampledImage<D, F> {
        &self.image
    }

    /// The image without the sampler.
    #[cfg(any(feature = "image", feature = "ndarray"))]
    pub(super) fn into_unsampled(self) -> UnsampledImage<D, F> {
        self.image
    }

    /// This image with its format as a type, or as a value, as [`UnsampledImage::with_format`] gives, with its errors.
    pub fn with_format<G: PixelFormat>(&self, format: G) -> Result<SampledImage<D, G>> {
        Ok(SampledImage::new(self.image.with_format(format)?, self.sampler))
    }

    /// A copy of the bytes of all pixels, as [`UnsampledImage::to_vec`] gives, with its errors.
    pub fn to_vec<P: DeviceCopyable + Pod>(&self) -> Result<Vec<P>> {
        self.image.to_vec()
    }

    /// The bytes of all pixels, as [`UnsampledImage::into_vec`] gives, with its errors. The error gives the image back without its sampler.
    ///
    /// ```
    /// use oxisycl::images::R8Unorm;
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let smooth = SampledImage::from_vec(R8Unorm, ImageSampler::LINEAR, vec![0u8, 50, 100], 3)?;
    /// assert_eq!(smooth.into_vec::<u8>()?, [0, 50, 100]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn into_vec<P: DeviceCopyable + Pod>(self) -> Result<Vec<P>, IntoPixelsError<D, F>> {
        self.image.into_vec()
    }

    /// Says where the bytes of all pixels go when the last handle is dropped, as [`UnsampledImage::set_final_data`] does, with its errors.
    pub fn set_final_data<P: DeviceCopyable + Pod>(&self, destination: FinalData<P>) -> Result {
        self.image.set_final_data(destination)
    }
}

properties!(SampledImage);

impl<const D: usize, F: PixelFormat> fmt::Debug for SampledImage<D, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SampledImage")
            .field("id", &self.id())
            .field("name", &self.name())
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
impl<const D: usize, F: PixelFormat> Hash for SampledImage<D, F> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.image, self.sampler).hash(state);
    }
}
