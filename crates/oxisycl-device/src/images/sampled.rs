//! Accessors of images that are read by coordinates.

use core::fmt;
use core::marker::PhantomData;

use oxisycl_types::{ImageFormat, ImageSampler, Range};

use super::accessor::image_accessor;
use super::index::Coordinates;
use super::{PixelData, PixelFormat, Pixels, SampleCoordinates};
use crate::Inside;
use crate::item::Brand;

/// Access of one command group's kernel to an image by a sampler, as `V` (SYCL 2020 section 4.7.6.13, `sampled_image_accessor`).
///
/// A plain `Copy` value, captured by the kernel. It gives no access by itself: every method takes the token of a work-item.
pub struct SampledImageAccessor<'cg, V, const D: usize, F = ImageFormat> {
    pixels: Pixels<D, F>,
    sampler: ImageSampler,
    brand: Brand<'cg>,
    types: PhantomData<fn() -> V>,
}

image_accessor!(SampledImageAccessor [] sampler);

impl<V: PixelData, const D: usize, F: PixelFormat> SampledImageAccessor<'_, V, D, F> {
    /// # Safety
    /// For every launch of the command group `'cg`, the pixels are in memory, and aligned to the format's alignment. Nothing writes them
    /// while the kernel runs.
    #[doc(hidden)]
    #[inline]
    pub unsafe fn from_pixels(pixels: Pixels<D, F>, sampler: ImageSampler) -> Self {
        Self { pixels, sampler, brand: PhantomData, types: PhantomData }
    }

    /// The image's sampler.
    #[inline(always)]
    pub fn sampler(self) -> ImageSampler {
        self.sampler
    }

    /// What the image's sampler reads at the coordinates, which are in the order of the range: `[y, x]` in two dimensions.
    ///
    /// ```
    /// use oxisycl::images::R32Float;
    /// use oxisycl::prelude::*;
    /// use oxisycl::vector::Float4;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let levels = SampledImage::from_vec(R32Float, ImageSampler::LINEAR, vec![10.0f32, 20.0], 2)?;
    /// let finer = Buffer::from_vec(vec![0.0f32; 5])?;
    /// Queue::default()?.submit(|cg| {
    ///     let (levels, finer) = (cg.access_sampled::<Float4, _, _>(&levels), cg.access(&finer, Write));
    ///     // The centres of pixels are at 0.5 and 1.5.
    ///     cg.parallel_for(5, move |item| finer.set(item, levels.sample(item, item.index() as f32 * 0.5)[0]))
    /// })?;
    /// assert_eq!(finer.to_vec()?, [10.0, 10.0, 15.0, 20.0, 20.0]);
    /// # Ok(())
    /// # }
    /// ```
    #[inline(always)]
    pub fn sample<'k>(self, inside: impl Inside<'k>, coordinates: impl SampleCoordinates<D>) -> V {
        self.sample_with(inside, self.sampler, coordinates)
    }

    /// What another sampler reads. A constant one leaves no choices in a kernel.
    #[inline(always)]
    pub fn sample_with<'k>(
        self,
        _inside: impl Inside<'k>,
        sampler: ImageSampler,
        coordinates: impl SampleCoordinates<D>,
    ) -> V {
        // SAFETY: nothing writes the image while the kernel of the token runs.
        unsafe { self.pixels.sample(sampler, Coordinates::coordinates(coordinates)) }
    }
}

impl<V, const D: usize, F: PixelFormat> fmt::Debug for SampledImageAccessor<'_, V, D, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SampledImageAccessor")
            .field("range", &self.pixels.extent())
            .field("format", &self.pixels.format())
            .field("sampler", &self.sampler)
            .finish_non_exhaustive()
    }
}
