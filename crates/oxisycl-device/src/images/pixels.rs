//! The pixels of an image: an address, an extent and a format, without any rule on who may use them when.

use oxisycl_types::{ImageFormat, ImageSampler};

use super::PixelFormat;
use super::memory::{load_channels, store_channels};
use super::pixel::sealed::Data;
use super::pixel::{border_to_mix, decode_mixed, decode_to_mix, has_border_of_zeros};
use super::sample::{Position, sample};

/// What the runtime makes accessors of images from. Rows follow each other without gaps, the last dimension is that of a row.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct Pixels<const D: usize, F> {
    first: *mut u8,
    extent: [i32; D],
    format: F,
}

impl<const D: usize, F: PixelFormat> Pixels<D, F> {
    /// The most that an extent can be. Positions fit in an `i32` with room for one beyond either end.
    pub const MAX_EXTENT: usize = 1 << 30;

    /// Pixels at `first`. What is beyond [`MAX_EXTENT`](Self::MAX_EXTENT) counts as no pixels.
    #[inline]
    pub fn new(first: *mut u8, extent: [usize; D], format: F) -> Self {
        let is_small = extent.iter().all(|&n| n <= Self::MAX_EXTENT);
        Self { first, extent: extent.map(|n| if is_small { n as i32 } else { 0 }), format }
    }

    #[inline(always)]
    pub fn extent(&self) -> [usize; D] {
        self.extent.map(|n| n as usize)
    }

    #[inline(always)]
    pub fn format(&self) -> ImageFormat {
        self.format.format()
    }

    /// What makes two of them the same.
    #[inline]
    pub(super) fn identity(&self) -> (*mut u8, [i32; D], ImageFormat) {
        (self.first, self.extent, self.format())
    }

    /// Where a pixel is; `None` outside of the image.
    #[inline(always)]
    fn address(&self, index: [usize; D]) -> Option<*mut u8> {
        // By number: an iterator over arrays by value has them in memory on devices.
        let is_inside = (0..D).all(|d| index[d] < self.extent[d] as usize);
        is_inside.then(|| self.at(|d| index[d]))
    }

    /// Where a pixel is; `None` for the border.
    #[inline(always)]
    fn address_of(&self, positions: [Position; D]) -> Option<*mut u8> {
        let is_inside = (0..D).all(|d| positions[d].is_inside);
        is_inside.then(|| self.at(|d| positions[d].at as usize))
    }

    /// Where the pixel is whose position along each dimension that is.
    #[inline(always)]
    fn at(&self, along: impl Fn(usize) -> usize) -> *mut u8 {
        let add = |number: usize, d: usize| number.wrapping_mul(self.extent[d] as usize).wrapping_add(along(d));
        self.first.wrapping_add((0..D).fold(0, add).wrapping_mul(self.format().pixel_size()))
    }

    /// The pixel at `index`, which is inside of the image.
    ///
    /// # Safety
    /// As for [`load`](Self::load), and the index is below the extent in each dimension.
    #[inline(always)]
    pub unsafe fn load_inside<V: Data, const CONSTANT: bool>(&self, index: [usize; D]) -> V {
        let format = self.format();
        // SAFETY: the index is inside; the rest by the contract of this function.
        V::decode(format, unsafe { load_channels::<CONSTANT>(format, self.at(|d| index[d])) })
    }

    /// The channels of a pixel in memory, or those whose colour is the border's; `None` if no channels have it.
    ///
    /// # Safety
    /// If there is an address, it is that of one of the pixels, aligned to the [format's alignment](ImageFormat::alignment), and nothing
    /// writes there meanwhile. With `CONSTANT`, nothing writes there while the kernel runs.
    #[inline(always)]
    unsafe fn channels<const CONSTANT: bool>(&self, pixel: Option<*mut u8>) -> Option<[u32; 4]> {
        match pixel {
            // SAFETY: by the contract of this function.
            Some(pixel) => Some(unsafe { load_channels::<CONSTANT>(self.format(), pixel) }),
            // So what follows the load is the same for all work-items.
            None => has_border_of_zeros(self.format()).then_some([0; 4]),
        }
    }

    /// The pixel at `index`, or the border.
    ///
    /// # Safety
    /// All pixels are in memory, aligned to the [format's alignment](ImageFormat::alignment), and nothing writes this one meanwhile. With
    /// `CONSTANT`, nothing writes it while the kernel runs.
    #[inline(always)]
    pub unsafe fn load<V: Data, const CONSTANT: bool>(&self, index: [usize; D]) -> V {
        let format = self.format();
        // SAFETY: the index is inside; the rest by the contract of this function.
        match unsafe { self.channels::<CONSTANT>(self.address(index)) } {
            Some(channels) => V::decode(format, channels),
            None => V::border(format),
        }
    }

    /// Replaces the pixel at `index`. Does nothing outside of the image.
    ///
    /// # Safety
    /// All pixels are in memory, aligned to the [format's alignment](ImageFormat::alignment), and nothing else uses this one meanwhile.
    #[inline(always)]
    pub unsafe fn store<V: Data>(&self, index: [usize; D], value: V) {
        if let Some(pixel) = self.address(index) {
            let format = self.format();
            // SAFETY: the index is inside; the rest by the contract of this function.
            unsafe { store_channels(format, pixel, value.encode(format)) }
        }
    }

    /// What a sampler reads.
    ///
    /// # Safety
    /// All pixels are in memory, aligned to the [format's alignment](ImageFormat::alignment), and nothing writes them while the kernel runs.
    #[inline(always)]
    pub unsafe fn sample<V: Data>(&self, sampler: ImageSampler, coordinates: [f32; D]) -> V {
        if self.extent.iter().any(|&n| n < 1) {
            return V::border(self.format());
        }
        // The format is asked for inside of each closure, where it is a constant if `F` is. A captured one becomes a constant only when the
        // closure is inlined, and LLVM inlines no closure in which all formats are alive.
        sample(
            sampler,
            coordinates,
            self.extent,
            // SAFETY: a position that says so is inside. The rest by the contract of this function.
            |positions| match unsafe { self.channels::<true>(self.address_of(positions)) } {
                Some(channels) => V::decode(self.format(), channels),
                None => V::border(self.format()),
            },
            // SAFETY: as above.
            |positions| match unsafe { self.channels::<true>(self.address_of(positions)) } {
                Some(channels) => decode_to_mix(self.format(), channels),
                None => border_to_mix(self.format()),
            },
            |mixed| decode_mixed(self.format(), mixed),
        )
    }
}
