//! Accessors through which a work-item owns a block of an image's pixels instead of one.

use core::fmt;
use core::marker::PhantomData;

use oxisycl_types::{Id, ImageFormat, Range};

use super::accessor::image_accessor;
use super::index::Index;
use super::{PixelData, PixelFormat, PixelIndex, Pixels};
use crate::bounds::next_row;
use crate::item::{Brand, NotSend};
use crate::{Item, Loads, Mode, Stores};

/// Access of one command group's kernel to an image in blocks, whose pixels it reads and writes as `V`. The work-item with id `i` owns the pixels from
/// `i * block` to `(i + 1) * block` per dimension, cut at the end of the image.
///
/// Blocks of different work-items never overlap, which is what makes writing to them safe. SYCL 2020 has no such accessor: its
/// `unsampled_image_accessor` (section 4.7.6.13) writes anywhere.
pub struct ChunkedImageAccessor<'cg, V, const D: usize, M, F = ImageFormat> {
    pixels: Pixels<D, F>,
    block: [usize; D],
    brand: Brand<'cg>,
    types: PhantomData<fn() -> (V, M)>,
}

image_accessor!(ChunkedImageAccessor [M] block);

impl<V: PixelData, const D: usize, M: Stores, F: PixelFormat> ChunkedImageAccessor<'_, V, D, M, F> {
    /// # Safety
    /// For every launch of the command group `'cg`, the pixels are in memory, and aligned to the format's alignment. The launch is ordered
    /// with all other use of that memory according to `M`. No other accessor of the group gives access to them.
    #[doc(hidden)]
    #[inline]
    pub unsafe fn from_pixels(pixels: Pixels<D, F>, block: Range<D>) -> Self {
        Self { pixels, block: block.0, brand: PhantomData, types: PhantomData }
    }

    /// The extent of one block.
    #[inline(always)]
    pub fn block_range(self) -> Range<D> {
        Range(self.block)
    }

    /// How many blocks there are per dimension: the range to launch over.
    ///
    /// ```
    /// use oxisycl::images::R8Uint;
    /// use oxisycl::prelude::*;
    /// use oxisycl::vector::Uint4;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let levels = UnsampledImage::zeroed(R8Uint, [2, 5])?;
    /// Queue::default()?.submit(|cg| {
    ///     let levels = cg.access_image_chunks(&levels, Write, [1, 2]);
    ///     assert_eq!(levels.n_blocks(), Range([2, 3]));
    ///     cg.parallel_for(levels.n_blocks(), move |item: Item<2>| {
    ///         levels.block(item).fill(Uint4::splat(item.linear_id() as u32))
    ///     })
    /// })?;
    /// assert_eq!(levels.to_vec::<u8>()?, [0, 0, 1, 1, 2, 3, 3, 4, 4, 5]); // the last block of a row is cut
    /// # Ok(())
    /// # }
    /// ```
    #[inline(always)]
    pub fn n_blocks(self) -> Range<D> {
        let extent = self.pixels.extent();
        Range(core::array::from_fn(|d| extent[d].div_ceil(self.block[d].max(1))))
    }

    /// The work-item's own block; empty if it lies beyond the image.
    #[inline(always)]
    pub fn block<'wi>(self, item: Item<'wi, D>) -> ImageBlock<'wi, V, D, M, F> {
        let range = self.pixels.extent();
        // Saturating, so that a huge id cannot wrap around into a block of another work-item.
        let begin: [usize; D] = core::array::from_fn(|d| item.id[d].saturating_mul(self.block[d]).min(range[d]));
        let extent = core::array::from_fn(|d| self.block[d].min(range[d] - begin[d]));
        ImageBlock { pixels: self.pixels, begin, extent, brand: PhantomData, not_send: PhantomData, types: PhantomData }
    }
}

/// The pixels that one work-item owns. Positions are relative to the block.
///
/// The block is as an image of its own. A position outside of it reads the [border colour](ImageFormat::border_alpha), and what is written there is
/// dropped.
pub struct ImageBlock<'wi, V, const D: usize, M, F = ImageFormat> {
    pixels: Pixels<D, F>,
    begin: [usize; D],
    extent: [usize; D],
    brand: Brand<'wi>,
    not_send: NotSend,
    types: PhantomData<fn() -> (V, M)>,
}

impl<V, const D: usize, M, F: Copy> Clone for ImageBlock<'_, V, D, M, F> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}
impl<V, const D: usize, M, F: Copy> Copy for ImageBlock<'_, V, D, M, F> {}

impl<V: PixelData, const D: usize, M: Stores, F: PixelFormat> ImageBlock<'_, V, D, M, F> {
    /// The position of the block's first pixel in the image.
    #[inline(always)]
    pub fn origin(self) -> Id<D> {
        Id(self.begin)
    }

    /// The extent, smaller than the block range at the end of the image.
    #[inline(always)]
    pub fn range(self) -> Range<D> {
        Range(self.extent)
    }

    /// Number of pixels.
    #[inline(always)]
    pub fn len(self) -> usize {
        Range(self.extent).size()
    }

    /// Whether the block has no pixels.
    #[inline(always)]
    pub fn is_empty(self) -> bool {
        self.extent.contains(&0)
    }

    /// The position in the image of a pixel of the block; of one that no image has, if it is outside of the block.
    #[inline(always)]
    fn position(self, index: [usize; D]) -> [usize; D] {
        let is_inside = (0..D).all(|d| index[d] < self.extent[d]);
        core::array::from_fn(|d| if is_inside { self.begin[d] + index[d] } else { usize::MAX })
    }

    /// One pixel of the block.
    ///
    /// ```
    /// use oxisycl::images::R8Uint;
    /// use oxisycl::prelude::*;
    /// use oxisycl::vector::Uint4;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let levels = UnsampledImage::from_vec(R8Uint, vec![1u8, 2, 3, 4, 5, 6], [2, 3])?;
    /// Queue::default()?.submit(|cg| {
    ///     let levels = cg.access_image_chunks(&levels, ReadWrite, [2, 1]);
    ///     cg.parallel_for(levels.n_blocks(), move |item: Item<2>| {
    ///         let column = levels.block(item);
    ///         let sum: Uint4 = column.get([0, 0]) + column.get([1, 0]);
    ///         column.set([1, 0], sum);
    ///     })
    /// })?;
    /// assert_eq!(levels.to_vec::<u8>()?, [1, 2, 3, 5, 7, 9]);
    /// # Ok(())
    /// # }
    /// ```
    #[inline(always)]
    pub fn get(self, index: impl PixelIndex<D>) -> V
    where
        M: Loads,
    {
        // SAFETY: the position is one of the block, which only this work-item uses, or of no pixel.
        unsafe { self.pixels.load::<V, false>(self.position(Index::index(index))) }
    }

    /// Stores to one pixel of the block.
    #[inline(always)]
    pub fn set(self, index: impl PixelIndex<D>, value: V) {
        // SAFETY: the position is one of the block, which only this work-item uses, or of no pixel.
        unsafe { self.pixels.store(self.position(Index::index(index)), value) }
    }

    /// Stores the same value to all pixels.
    #[inline(always)]
    pub fn fill(self, value: V) {
        self.fill_with(|_| value);
    }

    /// Stores `f` of each pixel's position in the block, in row-major order.
    ///
    /// ```
    /// use oxisycl::images::R8Uint;
    /// use oxisycl::prelude::*;
    /// use oxisycl::vector::Uint4;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let levels = UnsampledImage::zeroed(R8Uint, [2, 4])?;
    /// Queue::default()?.parallel_for_with([1, 2], levels.write().chunks([2, 2]), |item: Item<2>, levels| {
    ///     levels.block(item).fill_with(|Id([y, x])| Uint4::splat((10 * y + x) as u32));
    /// })?;
    /// assert_eq!(levels.to_vec::<u8>()?, [0, 1, 0, 1, 10, 11, 10, 11]);
    /// # Ok(())
    /// # }
    /// ```
    #[inline(always)]
    pub fn fill_with(self, mut f: impl FnMut(Id<D>) -> V) {
        let mut index = [0; D];
        let n_rows = if self.is_empty() { 0 } else { self.len() / self.extent[D - 1] };
        for _ in 0..n_rows {
            for x in 0..self.extent[D - 1] {
                index[D - 1] = x;
                self.set(index, f(Id(index)));
            }
            next_row(&mut index, self.extent);
        }
    }
}

impl<V, const D: usize, M: Mode, F: PixelFormat> fmt::Debug for ChunkedImageAccessor<'_, V, D, M, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChunkedImageAccessor")
            .field("mode", &M::MODE)
            .field("range", &self.pixels.extent())
            .field("block", &self.block)
            .field("format", &self.pixels.format())
            .finish_non_exhaustive()
    }
}

impl<V, const D: usize, M: Mode, F: PixelFormat> fmt::Debug for ImageBlock<'_, V, D, M, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ImageBlock")
            .field("mode", &M::MODE)
            .field("origin", &self.begin)
            .field("range", &self.extent)
            .field("format", &self.pixels.format())
            .finish_non_exhaustive()
    }
}
