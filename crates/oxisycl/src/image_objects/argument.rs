//! How a kernel with arguments uses an image.

use std::fmt;
use std::marker::PhantomData;

use oxisycl_device::images::{
    ChunkedImageAccessor, ImageFormat, PixelData, PixelFormat, SampledImageAccessor, UnsampledImageAccessor,
};
use oxisycl_device::{Mode, ModeFor, Stores};
use oxisycl_types::Range;

use super::{SampledImage, UnsampledImage};
use crate::argument::{ArgumentError, Deconstruct, KernelArg, RawChunkedImage, RawImage, RawSampledImage};
use crate::{Handler, Read, ReadWrite, Result, Write};

/// An image as an [argument](crate::argument) of a kernel, and how the kernel uses it. The kernel gets an
/// [`UnsampledImageAccessor`](crate::images::UnsampledImageAccessor).
///
/// Two of them in one command group must not be of the same image if one writes, as accessors must not.
#[must_use = "it is an argument of a kernel"]
pub struct UnsampledImageAccess<'i, V, const D: usize, M, F = ImageFormat> {
    image: &'i UnsampledImage<D, F>,
    types: PhantomData<fn() -> (V, M)>,
}

/// An image as an [argument](crate::argument) of a kernel whose work-items own blocks of its pixels. The kernel gets a
/// [`ChunkedImageAccessor`](crate::images::ChunkedImageAccessor).
#[must_use = "it is an argument of a kernel"]
pub struct ChunkedImageAccess<'i, V, const D: usize, M, F = ImageFormat> {
    access: UnsampledImageAccess<'i, V, D, M, F>,
    block: Range<D>,
}

/// An image with a sampler as an [argument](crate::argument) of a kernel. The kernel gets a
/// [`SampledImageAccessor`](crate::images::SampledImageAccessor).
#[must_use = "it is an argument of a kernel"]
pub struct SampledImageAccess<'i, V, const D: usize, F = ImageFormat> {
    image: &'i SampledImage<D, F>,
    types: PhantomData<fn() -> V>,
}

impl<const D: usize, F: PixelFormat> UnsampledImage<D, F> {
    /// The image as an argument of a kernel that reads its pixels as `V`: [`Float4`](crate::vector::Float4), [`Int4`](crate::vector::Int4),
    /// [`Uint4`](crate::vector::Uint4) or `Half4`.
    ///
    /// Errors, when the command group is recorded: as those of [`access_image`](Handler::access_image).
    ///
    /// ```
    /// use oxisycl::images::Rgba8Unorm;
    /// use oxisycl::prelude::*;
    /// use oxisycl::vector::Float4;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let picture = UnsampledImage::from_vec(Rgba8Unorm, (0..16).collect::<Vec<u8>>(), [2, 2])?;
    /// let turned = UnsampledImage::uninit(Rgba8Unorm, [2, 2])?;
    /// let arguments = (picture.read::<Float4>(), turned.write());
    /// Queue::default()?.parallel_for_with([2, 2], arguments, |item: Item<2>, (picture, turned)| {
    ///     turned.set(item, picture.read(item, [item.get(1), item.get(0)]))
    /// })?;
    /// assert_eq!(turned.to_vec::<[u8; 4]>()?[1], [8, 9, 10, 11]); // at [0, 1] is what was at [1, 0]
    /// # Ok(())
    /// # }
    /// ```
    pub fn read<V: PixelData>(&self) -> UnsampledImageAccess<'_, V, D, Read, F> {
        self.with(Read)
    }

    /// The image as an argument of a kernel that writes to it. Pixels that it does not write keep their values.
    pub fn write<V: PixelData>(&self) -> UnsampledImageAccess<'_, V, D, Write, F> {
        self.with(Write)
    }

    /// The image as an argument of a kernel that reads and writes it.
    ///
    /// ```
    /// use oxisycl::images::R8Unorm;
    /// use oxisycl::prelude::*;
    /// use oxisycl::vector::Float4;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let picture = UnsampledImage::from_vec(R8Unorm, vec![0u8, 51, 255], 3)?;
    /// Queue::default()?.parallel_for_with(3, picture.update(), |item, picture| {
    ///     picture.update(item, |level: Float4| Float4::splat(1.0) - level)
    /// })?;
    /// assert_eq!(picture.to_vec::<u8>()?, [255, 204, 0]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn update<V: PixelData>(&self) -> UnsampledImageAccess<'_, V, D, ReadWrite, F> {
        self.with(ReadWrite)
    }

    /// The image as an argument of a kernel that uses it as `mode` says, such as `Write.no_init()`.
    ///
    /// ```
    /// use oxisycl::images::R32Float;
    /// use oxisycl::prelude::*;
    /// use oxisycl::vector::Float4;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let ramp = UnsampledImage::uninit(R32Float, 4)?;
    /// let arguments = ramp.with(Write.no_init()); // nothing is copied to the device
    /// Queue::default()?.parallel_for_with(4, arguments, |item, ramp| ramp.set(item, Float4::splat(item.index() as f32)))?;
    /// assert_eq!(ramp.to_vec::<f32>()?, [0.0, 1.0, 2.0, 3.0]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn with<V: PixelData, M: ModeFor<u8>>(&self, _mode: M) -> UnsampledImageAccess<'_, V, D, M, F> {
        UnsampledImageAccess { image: self, types: PhantomData }
    }
}

impl<'i, V: PixelData, const D: usize, M: ModeFor<u8>, F: PixelFormat> UnsampledImageAccess<'i, V, D, M, F> {
    /// In blocks: the work-item with id `i` owns the pixels of block `i`.
    ///
    /// Errors, when the command group is recorded: `Invalid` if the block has a zero extent.
    ///
    /// ```
    /// use oxisycl::images::R8Uint;
    /// use oxisycl::prelude::*;
    /// use oxisycl::vector::Uint4;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let levels = UnsampledImage::zeroed(R8Uint, 5)?;
    /// Queue::default()?.parallel_for_with(3, levels.write().chunks(2), |item, levels| {
    ///     levels.block(item).fill(Uint4::splat(item.index() as u32))
    /// })?;
    /// assert_eq!(levels.to_vec::<u8>()?, [0, 0, 1, 1, 2]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn chunks(self, block: impl Into<Range<D>>) -> ChunkedImageAccess<'i, V, D, M, F>
    where
        M: Stores,
    {
        ChunkedImageAccess { access: self, block: block.into() }
    }
}

impl<const D: usize, F: PixelFormat> SampledImage<D, F> {
    /// The image as an argument of a kernel that samples it as `V`: [`Float4`](crate::vector::Float4), [`Int4`](crate::vector::Int4),
    /// [`Uint4`](crate::vector::Uint4) or `Half4`.
    ///
    /// Errors, when the command group is recorded: as those of [`access_sampled`](Handler::access_sampled).
    ///
    /// ```
    /// use oxisycl::images::R32Float;
    /// use oxisycl::prelude::*;
    /// use oxisycl::vector::Float4;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let levels = SampledImage::from_vec(R32Float, ImageSampler::LINEAR, vec![10.0f32, 20.0], 2)?;
    /// let finer = Buffer::from_vec(vec![0.0f32; 5])?;
    /// Queue::default()?.parallel_for_with(5, (levels.read::<Float4>(), finer.write()), |item, (levels, finer)| {
    ///     // The centres of pixels are at 0.5 and 1.5.
    ///     finer.set(item, levels.sample(item, item.index() as f32 * 0.5)[0])
    /// })?;
    /// assert_eq!(finer.to_vec()?, [10.0, 10.0, 15.0, 20.0, 20.0]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn read<V: PixelData>(&self) -> SampledImageAccess<'_, V, D, F> {
        SampledImageAccess { image: self, types: PhantomData }
    }
}

impl<V, const D: usize, M, F> Clone for UnsampledImageAccess<'_, V, D, M, F> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<V, const D: usize, M, F> Copy for UnsampledImageAccess<'_, V, D, M, F> {}

impl<V, const D: usize, M, F> Clone for ChunkedImageAccess<'_, V, D, M, F> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<V, const D: usize, M, F> Copy for ChunkedImageAccess<'_, V, D, M, F> {}

impl<V, const D: usize, F> Clone for SampledImageAccess<'_, V, D, F> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<V, const D: usize, F> Copy for SampledImageAccess<'_, V, D, F> {}

impl<V, const D: usize, M: Mode, F: PixelFormat> fmt::Debug for UnsampledImageAccess<'_, V, D, M, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("UnsampledImageAccess");
        debug.field("image", self.image).field("mode", &M::MODE).finish_non_exhaustive()
    }
}

impl<V, const D: usize, M: Mode, F: PixelFormat> fmt::Debug for ChunkedImageAccess<'_, V, D, M, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("ChunkedImageAccess");
        debug.field("access", &self.access).field("block", &self.block).finish()
    }
}

impl<V, const D: usize, F: PixelFormat> fmt::Debug for SampledImageAccess<'_, V, D, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SampledImageAccess").field("image", self.image).finish_non_exhaustive()
    }
}

impl<V: PixelData, const D: usize, M: ModeFor<u8>, F: PixelFormat> KernelArg for UnsampledImageAccess<'_, V, D, M, F> {
    type Sent = RawImage<V, D, M, F>;
}

impl<'cg, V: PixelData, const D: usize, M: ModeFor<u8>, F: PixelFormat> Deconstruct<Handler<'cg>>
    for UnsampledImageAccess<'_, V, D, M, F>
{
    unsafe fn deconstruct(self, cg: &mut Handler<'cg>) -> Result<Self::Sent, ArgumentError> {
        let accessor = cg.try_access_image(self.image)?;
        // SAFETY: the accessor is of this group.
        Ok(unsafe { RawImage::new(accessor) })
    }
}

impl<V: PixelData, const D: usize, M: ModeFor<u8> + Stores, F: PixelFormat> KernelArg
    for ChunkedImageAccess<'_, V, D, M, F>
{
    type Sent = RawChunkedImage<V, D, M, F>;
}

impl<'cg, V: PixelData, const D: usize, M: ModeFor<u8> + Stores, F: PixelFormat> Deconstruct<Handler<'cg>>
    for ChunkedImageAccess<'_, V, D, M, F>
{
    unsafe fn deconstruct(self, cg: &mut Handler<'cg>) -> Result<Self::Sent, ArgumentError> {
        let accessor = cg.try_access_image_chunks(self.access.image, self.block)?;
        // SAFETY: the accessor is of this group.
        Ok(unsafe { RawChunkedImage::new(accessor) })
    }
}

impl<V: PixelData, const D: usize, F: PixelFormat> KernelArg for SampledImageAccess<'_, V, D, F> {
    type Sent = RawSampledImage<V, D, F>;
}

impl<'cg, V: PixelData, const D: usize, F: PixelFormat> Deconstruct<Handler<'cg>> for SampledImageAccess<'_, V, D, F> {
    unsafe fn deconstruct(self, cg: &mut Handler<'cg>) -> Result<Self::Sent, ArgumentError> {
        let accessor = cg.try_access_sampled(self.image)?;
        // SAFETY: the accessor is of this group.
        Ok(unsafe { RawSampledImage::new(accessor) })
    }
}

impl<'cg, V: PixelData, const D: usize, M: Mode, F: PixelFormat> Deconstruct<Handler<'cg>>
    for UnsampledImageAccessor<'cg, V, D, M, F>
{
    unsafe fn deconstruct(self, _cg: &mut Handler<'cg>) -> Result<Self::Sent, ArgumentError> {
        // SAFETY: the group is the accessor's, by its brand.
        Ok(unsafe { RawImage::new(self) })
    }
}

impl<'cg, V: PixelData, const D: usize, F: PixelFormat> Deconstruct<Handler<'cg>>
    for SampledImageAccessor<'cg, V, D, F>
{
    unsafe fn deconstruct(self, _cg: &mut Handler<'cg>) -> Result<Self::Sent, ArgumentError> {
        // SAFETY: the group is the accessor's, by its brand.
        Ok(unsafe { RawSampledImage::new(self) })
    }
}

impl<'cg, V: PixelData, const D: usize, M: Stores, F: PixelFormat> Deconstruct<Handler<'cg>>
    for ChunkedImageAccessor<'cg, V, D, M, F>
{
    unsafe fn deconstruct(self, _cg: &mut Handler<'cg>) -> Result<Self::Sent, ArgumentError> {
        // SAFETY: the group is the accessor's, by its brand.
        Ok(unsafe { RawChunkedImage::new(self) })
    }
}
