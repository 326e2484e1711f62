//! Access of command groups to images.

use std::ptr::NonNull;

use oxisycl_device::images::{
    ChunkedImageAccessor, PixelData, PixelFormat, Pixels, SampledImageAccessor, UnsampledImageAccessor,
};
use oxisycl_device::{Accessor, ModeFor, Stores};
use oxisycl_types::{Aspect, ErrorCode, Id, ImageFormat, Range};

use super::create::check_sampled;
use super::{SampledImage, UnsampledImage};
use crate::handler::check_block;
use crate::{Error, Handler, Read, Result};

/// An error unless pixels of the format are read and written as `V`.
pub(super) fn check_data<V: PixelData>(format: ImageFormat, id: u64) -> Result {
    if V::takes(format.channel_type()) {
        return Ok(());
    }
    let expected = match format.channel_type() {
        t if t.is_signed() => "Int4",
        t if t.is_unsigned() => "Uint4",
        _ => "Float4 or Half4",
    };
    let name = V::NAME;
    Err(Error::invalid(format!("image {id} has the format {format}: its pixels are {expected}, not {name}")))
}

impl<'cg> Handler<'cg> {
    /// Access of this group's kernel to an image, whose pixels it reads and writes as `V`: [`Float4`](crate::vector::Float4),
    /// [`Int4`](crate::vector::Int4), [`Uint4`](crate::vector::Uint4) or `Half4`.
    ///
    /// Failures as for [`access`](Self::access). `Invalid` if pixels of the format are not read as `V`; `FeatureNotSupported` if the device lacks
    /// the aspect `image`. `MemoryAllocation` if the image is larger than the device's [largest allocation](crate::Device::image_limits).
    ///
    /// ```
    /// use oxisycl::images::Rgba8Unorm;
    /// use oxisycl::prelude::*;
    /// use oxisycl::vector::Float4;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let picture = UnsampledImage::from_vec(Rgba8Unorm, vec![[255u8, 128, 0, 255]; 6], [2, 3])?;
    /// Queue::default()?.submit(|cg| {
    ///     let picture = cg.access_image(&picture, ReadWrite);
    ///     cg.parallel_for([2, 3], move |item| picture.update(item, |colour: Float4| Float4::splat(1.0) - colour))
    /// })?;
    /// assert_eq!(picture.to_vec::<[u8; 4]>()?[5], [0, 127, 255, 0]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn access_image<V: PixelData, const D: usize, M: ModeFor<u8>, F: PixelFormat>(
        &mut self,
        image: &UnsampledImage<D, F>,
        _mode: M,
    ) -> UnsampledImageAccessor<'cg, V, D, M, F> {
        self.try_access_image(image).unwrap_or_else(|error| {
            self.record(error);
            // SAFETY: nothing is enqueued after a failure, so that the accessor is never used.
            unsafe { UnsampledImageAccessor::from_pixels(nowhere(image)) }
        })
    }

    /// Access of this group's kernel to an image in blocks, whose pixels it reads and writes as `V`. The work-item with id `i` owns block `i`. Addition
    /// to SYCL 2020, section 4.7.6.13.
    ///
    /// Failures as for [`access_image`](Self::access_image), and `Invalid` if the block has a zero extent.
    ///
    /// ```
    /// use oxisycl::images::R8Uint;
    /// use oxisycl::prelude::*;
    /// use oxisycl::vector::Uint4;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let levels = UnsampledImage::from_vec(R8Uint, vec![1u8, 2, 3, 4, 5, 6, 7], 7)?;
    /// Queue::default()?.submit(|cg| {
    ///     let levels = cg.access_image_chunks(&levels, ReadWrite, 3);
    ///     cg.parallel_for(levels.n_blocks(), move |item| {
    ///         let block = levels.block(item);
    ///         let mut sum = Uint4::splat(0);
    ///         for i in 0..block.len() {
    ///             sum += block.get(i);
    ///             block.set(i, sum);
    ///         }
    ///     })
    /// })?;
    /// assert_eq!(levels.to_vec::<u8>()?, [1, 3, 6, 4, 9, 15, 7]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn access_image_chunks<V: PixelData, const D: usize, M: ModeFor<u8> + Stores, F: PixelFormat>(
        &mut self,
        image: &UnsampledImage<D, F>,
        _mode: M,
        block: impl Into<Range<D>>,
    ) -> ChunkedImageAccessor<'cg, V, D, M, F> {
        let block = block.into();
        self.try_access_image_chunks(image, block).unwrap_or_else(|error| {
            self.record(error);
            // SAFETY: nothing is enqueued after a failure, so that the accessor is never used.
            unsafe { ChunkedImageAccessor::from_pixels(nowhere(image), block) }
        })
    }

    /// Access of this group's kernel to an image by its sampler, as `V`: [`Float4`](crate::vector::Float4), [`Int4`](crate::vector::Int4),
    /// [`Uint4`](crate::vector::Uint4) or `Half4`.
    ///
    /// Failures as for [`access_image`](Self::access_image), and `Invalid` if an extent is 2^23 or more.
    ///
    /// ```
    /// use oxisycl::images::Rgba8Unorm;
    /// use oxisycl::prelude::*;
    /// use oxisycl::vector::Float4;
    ///
    /// # fn main() -> oxisycl::Result {
    /// // Half as large, by normalized coordinates.
    /// let bytes: Vec<[u8; 4]> = (0..16).map(|i| [16 * i, 0, 0, 255]).collect();
    /// let picture = SampledImage::from_vec(Rgba8Unorm, ImageSampler::LINEAR.normalized(), bytes, [4, 4])?;
    /// let smaller = UnsampledImage::uninit(Rgba8Unorm, [2, 2])?;
    /// Queue::default()?.submit(|cg| {
    ///     let (from, to) = (cg.access_sampled::<Float4, _, _>(&picture), cg.access_image(&smaller, Write.no_init()));
    ///     cg.parallel_for([2, 2], move |item: Item<2>| {
    ///         let [y, x] = [item.get(0), item.get(1)].map(|i| (i as f32 + 0.5) / 2.0);
    ///         to.set(item, from.sample(item, [y, x]));
    ///     })
    /// })?;
    /// assert_eq!(smaller.to_vec::<[u8; 4]>()?[0], [40, 0, 0, 255]); // of 0, 16, 64 and 80
    /// # Ok(())
    /// # }
    /// ```
    pub fn access_sampled<V: PixelData, const D: usize, F: PixelFormat>(
        &mut self,
        image: &SampledImage<D, F>,
    ) -> SampledImageAccessor<'cg, V, D, F> {
        self.try_access_sampled(image).unwrap_or_else(|error| {
            self.record(error);
            // SAFETY: nothing is enqueued after a failure, so that the accessor is never used.
            unsafe { SampledImageAccessor::from_pixels(nowhere(image.image()), image.sampler()) }
        })
    }

    /// Access to an image, or why there is none.
    pub(super) fn try_access_image<V: PixelData, const D: usize, M: ModeFor<u8>, F: PixelFormat>(
        &mut self,
        image: &UnsampledImage<D, F>,
    ) -> Result<UnsampledImageAccessor<'cg, V, D, M, F>> {
        let pixels = self.try_access_pixels::<V, D, M, F>(image)?;
        // SAFETY: the requirement that was made orders the command with all other use of the memory, and keeps it alive. Allocations and
        // vectors that images take over are aligned to all formats.
        Ok(unsafe { UnsampledImageAccessor::from_pixels(pixels) })
    }

    /// Access to an image in blocks, or why there is none.
    pub(super) fn try_access_image_chunks<V: PixelData, const D: usize, M: ModeFor<u8> + Stores, F: PixelFormat>(
        &mut self,
        image: &UnsampledImage<D, F>,
        block: Range<D>,
    ) -> Result<ChunkedImageAccessor<'cg, V, D, M, F>> {
        check_block(block)?;
        let pixels = self.try_access_pixels::<V, D, M, F>(image)?;
        // SAFETY: as in `try_access_image`. The mode stores, so that the requirement has refused other accessors to the image.
        Ok(unsafe { ChunkedImageAccessor::from_pixels(pixels, block) })
    }

    /// Access to an image by its sampler, or why there is none.
    pub(super) fn try_access_sampled<V: PixelData, const D: usize, F: PixelFormat>(
        &mut self,
        image: &SampledImage<D, F>,
    ) -> Result<SampledImageAccessor<'cg, V, D, F>> {
        check_sampled(image.range())?;
        let pixels = self.try_access_pixels::<V, D, Read, F>(image.image())?;
        // SAFETY: as in `try_access_image`; the requirement only reads, and what writes is ordered before or after.
        Ok(unsafe { SampledImageAccessor::from_pixels(pixels, image.sampler()) })
    }

    fn try_access_pixels<V: PixelData, const D: usize, M: ModeFor<u8>, F: PixelFormat>(
        &mut self,
        image: &UnsampledImage<D, F>,
    ) -> Result<Pixels<D, F>> {
        check_data::<V>(image.format(), image.id())?;
        let device = self.queue().device();
        if !device.has(Aspect::Image) {
            let message = format!("device \"{}\" lacks the aspect {}", device.name(), Aspect::Image);
            return Err(Error::new(ErrorCode::FeatureNotSupported, message));
        }
        image.check_fits(device)?;
        let bytes: Accessor<'cg, u8, D, M> = self.try_access(&image.bytes, Id::default(), image.bytes.range())?;
        Ok(Pixels::new(bytes.as_ptr(), image.range.0, image.format))
    }
}

/// Pixels of the image that are not in memory.
fn nowhere<const D: usize, F: PixelFormat>(image: &UnsampledImage<D, F>) -> Pixels<D, F> {
    Pixels::new(NonNull::dangling().as_ptr(), image.range.0, image.format)
}
