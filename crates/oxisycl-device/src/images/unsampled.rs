//! Accessors of images whose pixels are read and written one by one.

use core::fmt;
use core::marker::PhantomData;

use oxisycl_types::{AccessMode, ImageFormat, Range};

use super::accessor::image_accessor;
use super::index::Index;
use super::{PixelData, PixelFormat, PixelIndex, Pixels};
use crate::item::Brand;
use crate::{InItem, Inside, Item, Loads, Mode, OnlyLoads, Single, Stores};

/// Access of one command group's kernel to the pixels of an image as `V` (SYCL 2020 section 4.7.6.13, `unsampled_image_accessor`).
///
/// A plain `Copy` value, captured by the kernel. It gives no access by itself: every method takes the token of a work-item. A pixel that is
/// read outside of the image is the [border colour](ImageFormat::border_alpha). One that is written there is dropped.
pub struct UnsampledImageAccessor<'cg, V, const D: usize, M, F = ImageFormat> {
    pub(super) pixels: Pixels<D, F>,
    brand: Brand<'cg>,
    types: PhantomData<fn() -> (V, M)>,
}

image_accessor!(UnsampledImageAccessor[M]);

impl<'cg, V: PixelData, const D: usize, M: Mode, F: PixelFormat> UnsampledImageAccessor<'cg, V, D, M, F> {
    /// # Safety
    /// For every launch of the command group `'cg`, the pixels are in memory, and aligned to the format's alignment. The launch is ordered
    /// with all other use of that memory according to `M`.
    #[doc(hidden)]
    #[inline]
    pub unsafe fn from_pixels(pixels: Pixels<D, F>) -> Self {
        Self { pixels, brand: PhantomData, types: PhantomData }
    }

    /// The work-item's own pixel.
    ///
    /// ```
    /// use oxisycl::images::{R8Unorm, UnsampledImageAccessor};
    /// use oxisycl::prelude::*;
    /// use oxisycl::vector::Float4;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let picture = UnsampledImage::from_vec(R8Unorm, vec![0u8, 51, 255], 3)?;
    /// Queue::default()?.submit(|cg| {
    ///     let picture = cg.access_image(&picture, ReadWrite);
    ///     cg.parallel_for(3, move |item| {
    ///         let level: Float4 = picture.get(item);
    ///         picture.set(item, Float4::splat(1.0) - level);
    ///     })
    /// })?;
    /// assert_eq!(picture.to_vec::<u8>()?, [255, 204, 0]);
    /// # Ok(())
    /// # }
    /// ```
    #[inline(always)]
    pub fn get(self, item: Item<'_, D>) -> V
    where
        M: Loads,
    {
        if matches!(M::MODE, AccessMode::Read) {
            // SAFETY: nothing writes what an accessor that only reads gives access to while the kernel runs.
            return unsafe { self.pixels.load::<V, true>(item.id) };
        }
        // SAFETY: nothing but this work-item writes its pixel while the kernel runs.
        unsafe { self.pixels.load::<V, false>(item.id) }
    }

    /// Any pixel of an accessor with mode [`Read`](crate::Read).
    ///
    /// ```
    /// use oxisycl::images::Rgba8Unorm;
    /// use oxisycl::prelude::*;
    /// use oxisycl::vector::Float4;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let picture = UnsampledImage::from_vec(Rgba8Unorm, (0..16).collect::<Vec<u8>>(), [2, 2])?;
    /// let turned = UnsampledImage::uninit(Rgba8Unorm, [2, 2])?;
    /// Queue::default()?.submit(|cg| {
    ///     let (from, to) = (cg.access_image::<Float4, _, _, _>(&picture, Read), cg.access_image(&turned, Write.no_init()));
    ///     cg.parallel_for([2, 2], move |item: Item<2>| to.set(item, from.read(item, [item.get(1), item.get(0)])))
    /// })?;
    /// assert_eq!(turned.to_vec::<[u8; 4]>()?[1], [8, 9, 10, 11]); // at [0, 1] is what was at [1, 0]
    /// # Ok(())
    /// # }
    /// ```
    #[inline(always)]
    pub fn read<'k>(self, _inside: impl Inside<'k>, index: impl PixelIndex<D>) -> V
    where
        M: OnlyLoads,
    {
        // SAFETY: nothing writes what a read accessor reads while the kernel of the token runs.
        unsafe { self.pixels.load::<V, true>(Index::index(index)) }
    }

    /// Stores to the work-item's own pixel.
    ///
    /// ```
    /// use oxisycl::images::R32Float;
    /// use oxisycl::prelude::*;
    /// use oxisycl::vector::Float4;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let ramp = UnsampledImage::uninit(R32Float, [2, 3])?;
    /// Queue::default()?.submit(|cg| {
    ///     let ramp = cg.access_image(&ramp, Write.no_init());
    ///     cg.parallel_for([2, 3], move |item: Item<2>| ramp.set(item, Float4::splat(item.get(1) as f32)))
    /// })?;
    /// assert_eq!(ramp.to_vec::<f32>()?, [0.0, 1.0, 2.0, 0.0, 1.0, 2.0]);
    /// # Ok(())
    /// # }
    /// ```
    #[inline(always)]
    pub fn set(self, item: Item<'_, D>, value: V)
    where
        M: Stores,
    {
        // SAFETY: no other work-item reaches the pixel.
        unsafe { self.pixels.store(item.id, value) }
    }

    /// Replaces the work-item's own pixel by `f` of it.
    #[inline(always)]
    pub fn update(self, item: Item<'_, D>, f: impl FnOnce(V) -> V)
    where
        M: Loads + Stores,
    {
        self.set(item, f(self.get(item)));
    }

    /// Stores to any pixel.
    ///
    /// # Safety
    /// No other work-item of this launch accesses the pixel.
    #[inline(always)]
    pub unsafe fn scatter<'k>(self, _item: impl InItem<'k>, index: impl PixelIndex<D>, value: V)
    where
        M: Stores,
    {
        // SAFETY: the caller's promise.
        unsafe { self.pixels.store(Index::index(index), value) }
    }

    /// Stores to any pixel from the only work-item of a single task.
    #[inline(always)]
    pub fn set_at(self, _single: Single<'_>, index: impl PixelIndex<D>, value: V)
    where
        M: Stores,
    {
        // SAFETY: a single task is the only work-item.
        unsafe { self.pixels.store(Index::index(index), value) }
    }

    /// Any pixel, for the only work-item of a single task.
    #[inline(always)]
    pub fn get_at(self, _single: Single<'_>, index: impl PixelIndex<D>) -> V
    where
        M: Loads,
    {
        // SAFETY: a single task is the only work-item.
        unsafe { self.pixels.load::<V, false>(Index::index(index)) }
    }
}

impl<V, const D: usize, M: Mode, F: PixelFormat> fmt::Debug for UnsampledImageAccessor<'_, V, D, M, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnsampledImageAccessor")
            .field("mode", &M::MODE)
            .field("range", &self.pixels.extent())
            .field("format", &self.pixels.format())
            .finish_non_exhaustive()
    }
}
