//! Host accessors of images (SYCL 2020 section 4.7.6.13).

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
use crate::{HostAccessor, Read, Result};

/// An image's pixels on the host, for the thread that made it (SYCL 2020 `host_unsampled_image_accessor`). It holds commands back as a
/// [`HostAccessor`] does.
pub struct HostUnsampledImageAccessor<V, const D: usize, M, F = ImageFormat> {
    bytes: HostAccessor<u8, D, M>,
    pixels: Pixels<D, F>,
    data: PhantomData<fn() -> V>,
}

impl<V: PixelData, const D: usize, M: Mode, F: PixelFormat> HostUnsampledImageAccessor<V, D, M, F> {
    /// The extent of the image.
    pub fn range(&self) -> Range<D> {
        Range(self.pixels.extent())
    }

    /// The format of the image.
    pub fn format(&self) -> ImageFormat {
        self.pixels.format()
    }

    /// The pixel at `index`, or the border colour outside of the image.
    ///
    /// ```
    /// use oxisycl::images::Rgba8Unorm;
    /// use oxisycl::prelude::*;
    /// use oxisycl::vector::Float4;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let picture = UnsampledImage::from_vec(Rgba8Unorm, vec![[255u8, 0, 51, 255]; 6], [2, 3])?;
    /// let host = picture.host_access::<Float4, _>(Read)?;
    /// assert_eq!(host.read([1, 2]), Float4::new(1.0, 0.0, 0.2, 1.0));
    /// assert_eq!(host.read([1, -1]), Float4::splat(0.0));
    /// # Ok(())
    /// # }
    /// ```
    #[inline]
    pub fn read(&self, index: impl PixelIndex<D>) -> V
    where
        M: Loads,
    {
        // SAFETY: the accessor keeps the memory alive, and conflicting commands wait until it is dropped. Stores need `&mut self`.
        unsafe { self.pixels.load::<V, false>(index.index()) }
    }

    /// Replaces the pixel at `index`. Does nothing outside of the image.
    ///
    /// ```
    /// use oxisycl::images::R8Uint;
    /// use oxisycl::prelude::*;
    /// use oxisycl::vector::Uint4;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let numbers = UnsampledImage::zeroed(R8Uint, [2, 2])?;
    /// let mut host = numbers.host_access(ReadWrite)?;
    /// host.write([1, 0], Uint4::splat(7));
    /// host.write([2, 0], Uint4::splat(8)); // outside
    /// drop(host); // lets later commands use the image
    /// assert_eq!(numbers.to_vec::<u8>()?, [0, 0, 7, 0]);
    /// # Ok(())
    /// # }
    /// ```
    #[inline]
    pub fn write(&mut self, index: impl PixelIndex<D>, value: V)
    where
        M: Stores,
    {
        // SAFETY: as in `read`, with exclusive access to the accessor, which is the only one for its bytes.
        unsafe { self.pixels.store(index.index(), value) }
    }

    /// The bytes of all pixels, rows first.
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.to_slice().unwrap_or(&[])
    }

    /// The bytes of all pixels, rows first.
    pub fn as_mut_bytes(&mut self) -> &mut [u8]
    where
        M: Stores,
    {
        self.bytes.to_slice_mut().unwrap_or(&mut [])
    }
}

impl<V, const D: usize, M: Mode, F: PixelFormat> fmt::Debug for HostUnsampledImageAccessor<V, D, M, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostUnsampledImageAccessor")
            .field("mode", &M::MODE)
            .field("range", &self.pixels.extent())
            .field("format", &self.pixels.format())
            .finish_non_exhaustive()
    }
}

/// A sampled image on the host, for the thread that made it (SYCL 2020 `host_sampled_image_accessor`). It holds commands back as a
/// [`HostAccessor`] for reading does.
pub struct HostSampledImageAccessor<V, const D: usize, F = ImageFormat> {
    /// Keeps the memory, and what writes it waiting.
    _bytes: HostAccessor<u8, D, Read>,
    pixels: Pixels<D, F>,
    sampler: ImageSampler,
    data: PhantomData<fn() -> V>,
}

impl<V: PixelData, const D: usize, F: PixelFormat> HostSampledImageAccessor<V, D, F> {
    /// The extent of the image.
    pub fn range(&self) -> Range<D> {
        Range(self.pixels.extent())
    }

    /// The format of the image.
    pub fn format(&self) -> ImageFormat {
        self.pixels.format()
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
    /// assert_eq!(levels.host_access::<Float4>()?.sample(1.0), Float4::new(15.0, 0.0, 0.0, 1.0));
    /// # Ok(())
    /// # }
    /// ```
    #[inline]
    pub fn sample(&self, coordinates: impl SampleCoordinates<D>) -> V {
        self.sample_with(self.sampler, coordinates)
    }

    /// What another sampler reads.
    #[inline]
    pub fn sample_with(&self, sampler: ImageSampler, coordinates: impl SampleCoordinates<D>) -> V {
        // SAFETY: the accessor keeps the memory alive, and commands that write it wait until the accessor is dropped.
        unsafe { self.pixels.sample(sampler, coordinates.coordinates()) }
    }
}

impl<V, const D: usize, F: PixelFormat> fmt::Debug for HostSampledImageAccessor<V, D, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostSampledImageAccessor")
            .field("range", &self.pixels.extent())
            .field("format", &self.pixels.format())
            .field("sampler", &self.sampler)
            .finish_non_exhaustive()
    }
}

impl<const D: usize, F: PixelFormat> UnsampledImage<D, F> {
    fn host_pixels<V: PixelData, M: ModeFor<u8>>(&self, mode: M) -> Result<(HostAccessor<u8, D, M>, Pixels<D, F>)> {
        check_data::<V>(self.format(), self.id())?;
        let bytes = self.bytes.host_access(mode)?;
        let pixels = Pixels::new(bytes.as_ptr().cast_mut(), self.range.0, self.format);
        Ok((bytes, pixels))
    }

    /// The pixels on the host, as `V`. Blocks until the commands submitted before that conflict with the access have ended.
    ///
    /// Errors: as those of [`Buffer::host_access`](crate::Buffer::host_access), and `Invalid` if pixels of the format are not read as `V`.
    pub fn host_access<V: PixelData, M: ModeFor<u8>>(&self, mode: M) -> Result<HostUnsampledImageAccessor<V, D, M, F>> {
        let (bytes, pixels) = self.host_pixels::<V, M>(mode)?;
        Ok(HostUnsampledImageAccessor { bytes, pixels, data: PhantomData })
    }
}

impl<const D: usize, F: PixelFormat> SampledImage<D, F> {
    /// The image on the host, read as `V` by its sampler. Blocks until the commands submitted before that write the image have ended.
    ///
    /// Errors: as those of [`UnsampledImage::host_access`], and `Invalid` if an extent is 2^23 or more.
    pub fn host_access<V: PixelData>(&self) -> Result<HostSampledImageAccessor<V, D, F>> {
        check_sampled(self.range())?;
        let (bytes, pixels) = self.image().host_pixels::<V, Read>(Read)?;
        Ok(HostSampledImageAccessor { _bytes: bytes, pixels, sampler: self.sampler(), data: PhantomData })
    }
}
