//! Access of host tasks to images (SYCL 2020 sections 4.7.6.13 and 4.10, the target `host_task`).

use std::fmt;
use std::marker::PhantomData;

use oxisycl_device::images::{
    ImageFormat, ImageSampler, PixelData, PixelFormat, PixelIndex, Pixels, SampleCoordinates,
};
use oxisycl_device::{Loads, Mode, ModeFor, Stores};
use oxisycl_types::Range;

use super::access::check_data;
use super::create::check_sampled;
use super::{SampledImage, UnsampledImage};
use crate::{Handler, HostScope, HostTaskAccessor, Read, Result};

/// Access of a host task to an image's pixels as `V`, on the host (SYCL 2020 section 4.7.6.13, `unsampled_image_accessor` with the target
/// `host_task`). Not `Copy`, so that it can lend the bytes.
pub struct HostTaskImageAccessor<'cg, V, const D: usize, M, F = ImageFormat> {
    bytes: HostTaskAccessor<'cg, u8, D, M>,
    range: Range<D>,
    format: F,
    data: PhantomData<fn() -> V>,
}

impl<'cg, V: PixelData, const D: usize, M: Mode, F: PixelFormat> HostTaskImageAccessor<'cg, V, D, M, F> {
    /// The extent of the image.
    pub fn range(&self) -> Range<D> {
        self.range
    }

    /// The format of the image.
    pub fn format(&self) -> ImageFormat {
        self.format.format()
    }

    fn pixels(&self) -> Pixels<D, F> {
        Pixels::new(self.bytes.first(), self.range.0, self.format)
    }

    /// The pixel at `index`, or the border colour outside of the image.
    ///
    /// ```
    /// use oxisycl::images::R8Uint;
    /// use oxisycl::prelude::*;
    /// use oxisycl::vector::Uint4;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let levels = UnsampledImage::from_vec(R8Uint, vec![1u8, 2, 3, 4], [2, 2])?;
    /// let task = Queue::default()?.submit(|cg| {
    ///     let levels = cg.access_image_host::<Uint4, _, _, _>(&levels, Read);
    ///     cg.host_task(move |scope| {
    ///         assert_eq!(levels.read(scope, [1, 0])[0], 3);
    ///         assert_eq!(levels.read(scope, [1, 2])[0], 0); // outside
    ///     })
    /// })?;
    /// task.wait()?;
    /// # Ok(())
    /// # }
    /// ```
    #[inline]
    pub fn read(&self, _scope: HostScope<'_, 'cg>, index: impl PixelIndex<D>) -> V
    where
        M: Loads,
    {
        // SAFETY: the requirement keeps the host's memory, aligned to all formats, and orders the task with conflicting commands. The scope of
        // this group exists only while its task runs. Nothing else in the group overlaps, and stores need `&mut self`.
        unsafe { self.pixels().load::<V, false>(index.index()) }
    }

    /// Replaces the pixel at `index`. Does nothing outside of the image.
    ///
    /// ```
    /// use oxisycl::images::R8Uint;
    /// use oxisycl::prelude::*;
    /// use oxisycl::vector::Uint4;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let levels = UnsampledImage::zeroed(R8Uint, [2, 2])?;
    /// Queue::default()?.submit(|cg| {
    ///     let mut levels = cg.access_image_host(&levels, ReadWrite);
    ///     cg.host_task(move |scope| levels.write(scope, [1, 0], Uint4::splat(7)))
    /// })?;
    /// assert_eq!(levels.to_vec::<u8>()?, [0, 0, 7, 0]);
    /// # Ok(())
    /// # }
    /// ```
    #[inline]
    pub fn write(&mut self, _scope: HostScope<'_, 'cg>, index: impl PixelIndex<D>, value: V)
    where
        M: Stores,
    {
        // SAFETY: as in `read`, with exclusive access to the accessor.
        unsafe { self.pixels().store(index.index(), value) }
    }

    /// The bytes of all pixels, rows first.
    pub fn bytes<'s>(&'s self, scope: HostScope<'_, 'cg>) -> &'s [u8] {
        self.bytes.slice(scope)
    }

    /// The bytes of all pixels, rows first, for writing.
    ///
    /// ```
    /// use oxisycl::images::Rgba8Unorm;
    /// use oxisycl::prelude::*;
    /// use oxisycl::vector::Float4;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let picture = UnsampledImage::uninit(Rgba8Unorm, [2, 2])?;
    /// Queue::default()?.submit(|cg| {
    ///     let mut picture = cg.access_image_host::<Float4, _, _, _>(&picture, Write.no_init());
    ///     cg.host_task(move |scope| picture.bytes_mut(scope).fill(255)) // such as what a decoder gives
    /// })?;
    /// assert_eq!(picture.to_vec::<u8>()?, [255; 16]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn bytes_mut<'s>(&'s mut self, scope: HostScope<'_, 'cg>) -> &'s mut [u8]
    where
        M: Stores,
    {
        self.bytes.slice_mut(scope)
    }
}

impl<V, const D: usize, M: Mode, F: PixelFormat> fmt::Debug for HostTaskImageAccessor<'_, V, D, M, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostTaskImageAccessor")
            .field("mode", &M::MODE)
            .field("range", &self.range)
            .field("format", &self.format.format())
            .finish_non_exhaustive()
    }
}

/// Access of a host task to an image by its sampler, on the host (SYCL 2020 section 4.7.6.13, `sampled_image_accessor` with the target `host_task`).
pub struct HostTaskSampledImageAccessor<'cg, V, const D: usize, F = ImageFormat> {
    image: HostTaskImageAccessor<'cg, V, D, Read, F>,
    sampler: ImageSampler,
}

impl<'cg, V: PixelData, const D: usize, F: PixelFormat> HostTaskSampledImageAccessor<'cg, V, D, F> {
    /// The extent of the image.
    pub fn range(&self) -> Range<D> {
        self.image.range()
    }

    /// The format of the image.
    pub fn format(&self) -> ImageFormat {
        self.image.format()
    }

    /// What the image's sampler reads at the coordinates, which are in the order of the range.
    ///
    /// ```
    /// use oxisycl::images::R32Float;
    /// use oxisycl::prelude::*;
    /// use oxisycl::vector::Float4;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let levels = SampledImage::from_vec(R32Float, ImageSampler::LINEAR, vec![10.0f32, 20.0], 2)?;
    /// let task = Queue::default()?.submit(|cg| {
    ///     let levels = cg.access_sampled_host::<Float4, _, _>(&levels);
    ///     cg.host_task(move |scope| assert_eq!(levels.sample(scope, 1.0)[0], 15.0))
    /// })?;
    /// task.wait()?;
    /// # Ok(())
    /// # }
    /// ```
    #[inline]
    pub fn sample(&self, scope: HostScope<'_, 'cg>, coordinates: impl SampleCoordinates<D>) -> V {
        self.sample_with(scope, self.sampler, coordinates)
    }

    /// What another sampler reads.
    #[inline]
    pub fn sample_with(
        &self,
        _scope: HostScope<'_, 'cg>,
        sampler: ImageSampler,
        coordinates: impl SampleCoordinates<D>,
    ) -> V {
        // SAFETY: as in `HostTaskImageAccessor::read`; the mode only reads.
        unsafe { self.image.pixels().sample(sampler, coordinates.coordinates()) }
    }
}

impl<V, const D: usize, F: PixelFormat> fmt::Debug for HostTaskSampledImageAccessor<'_, V, D, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostTaskSampledImageAccessor")
            .field("range", &self.image.range)
            .field("format", &self.image.format.format())
            .field("sampler", &self.sampler)
            .finish_non_exhaustive()
    }
}

impl<'cg> Handler<'cg> {
    /// Access of this group's host task to an image, on the host. Pixels are read and written as `V`. In SYCL 2020 it is the target `host_task` of
    /// section 4.7.6.13.
    ///
    /// Failures as for [`access_host`](Self::access_host), and `Invalid` if pixels of the format are not read as `V`. The queue's device needs no
    /// images.
    pub fn access_image_host<V: PixelData, const D: usize, M: ModeFor<u8>, F: PixelFormat>(
        &mut self,
        image: &UnsampledImage<D, F>,
        mode: M,
    ) -> HostTaskImageAccessor<'cg, V, D, M, F> {
        self.keep_error(check_data::<V>(image.format(), image.id()));
        let bytes = self.access_host(&image.bytes, mode);
        HostTaskImageAccessor { bytes, range: image.range, format: image.format, data: PhantomData }
    }

    /// Access of this group's host task to an image by its sampler, on the host, as `V` (SYCL 2020 section 4.7.6.13, the target `host_task`).
    ///
    /// Failures as for [`access_image_host`](Self::access_image_host), and `Invalid` if an extent is 2^23 or more.
    pub fn access_sampled_host<V: PixelData, const D: usize, F: PixelFormat>(
        &mut self,
        image: &SampledImage<D, F>,
    ) -> HostTaskSampledImageAccessor<'cg, V, D, F> {
        self.keep_error(check_sampled(image.range()));
        HostTaskSampledImageAccessor { image: self.access_image_host(image.image(), Read), sampler: image.sampler() }
    }

    /// Keeps what is wrong, as other accessors do.
    fn keep_error(&mut self, checked: Result) {
        if let Err(error) = checked {
            self.record(error);
        }
    }
}
