//! Parts of constant extent of an image that is read, as convolutions need them.

use core::fmt;
use core::marker::PhantomData;

use oxisycl_types::ImageFormat;

use super::index::Index;
use super::{PixelData, PixelFormat, PixelIndex, Pixels, UnsampledImageAccessor};
use crate::item::Brand;
use crate::{Inside, Mode, OnlyLoads};

/// `Y` rows of `X` pixels of an image, as [`UnsampledImageAccessor::window`] gives them. What lies outside of the image is the
/// [border colour](ImageFormat::border_alpha).
///
/// Whether all of it lies inside is asked once, and not for each pixel.
pub struct ImageWindow<'k, V, const Y: usize, const X: usize, F = ImageFormat> {
    pixels: Pixels<2, F>,
    origin: [usize; 2],
    is_inside: bool,
    brand: Brand<'k>,
    types: PhantomData<fn() -> V>,
}

impl<V, const Y: usize, const X: usize, F: Copy> Clone for ImageWindow<'_, V, Y, X, F> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}
impl<V, const Y: usize, const X: usize, F: Copy> Copy for ImageWindow<'_, V, Y, X, F> {}

impl<V: PixelData, M: Mode, F: PixelFormat> UnsampledImageAccessor<'_, V, 2, M, F> {
    /// The pixels from `origin` on, `Y` rows of `X`, of an accessor with mode [`Read`](crate::Read). The origin may lie outside of the image. Addition
    /// to SYCL 2020, section 4.7.6.13.
    ///
    /// ```
    /// use oxisycl::images::R32Float;
    /// use oxisycl::prelude::*;
    /// use oxisycl::vector::Float4;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let picture = UnsampledImage::from_vec(R32Float, vec![1.0f32; 12], [3, 4])?;
    /// let sums = UnsampledImage::uninit(R32Float, [3, 4])?;
    /// let arguments = (picture.read::<Float4>(), sums.with(Write.no_init()));
    /// Queue::default()?.parallel_for_with([3, 4], arguments, |item: Item<2>, (picture, sums)| {
    ///     let around = picture.window::<3, 3>(item, [item.get(0) as isize - 1, item.get(1) as isize - 1]);
    ///     sums.set(item, around.fold(Float4::splat(0.0), |sum, _, pixel| sum + pixel))
    /// })?;
    /// assert_eq!(sums.to_vec::<f32>()?[..8], [4.0, 6.0, 6.0, 4.0, 6.0, 9.0, 9.0, 6.0]);
    /// # Ok(())
    /// # }
    /// ```
    #[inline(always)]
    pub fn window<'k, const Y: usize, const X: usize>(
        self,
        _inside: impl Inside<'k>,
        origin: impl PixelIndex<2>,
    ) -> ImageWindow<'k, V, Y, X, F>
    where
        M: OnlyLoads,
    {
        let (origin, extent) = (Index::index(origin), self.pixels.extent());
        let ends_inside = |d: usize, n: usize| origin[d].checked_add(n).is_some_and(|end| end <= extent[d]);
        let is_inside = ends_inside(0, Y) && ends_inside(1, X);
        ImageWindow { pixels: self.pixels, origin, is_inside, brand: PhantomData, types: PhantomData }
    }
}

impl<V: PixelData, const Y: usize, const X: usize, F: PixelFormat> ImageWindow<'_, V, Y, X, F> {
    /// Whether all of it lies inside of the image.
    #[inline(always)]
    pub fn is_inside(self) -> bool {
        self.is_inside
    }

    /// The pixel at that position in the window. Positions beyond it are read, too.
    #[inline(always)]
    pub fn get(self, [y, x]: [usize; 2]) -> V {
        // Wrapping: a position before the image is a huge one.
        let position = [self.origin[0].wrapping_add(y), self.origin[1].wrapping_add(x)];
        if self.is_inside && y < Y && x < X {
            // SAFETY: the window lies inside, and the position in it. Nothing writes what a read accessor reads while the kernel of the token
            // runs.
            unsafe { self.pixels.load_inside::<V, true>(position) }
        } else {
            // SAFETY: as above.
            unsafe { self.pixels.load::<V, true>(position) }
        }
    }

    /// Combines all pixels with `first`, row by row. `f` gets what it gave before, the position in the window and the pixel.
    ///
    /// ```
    /// use oxisycl::images::R32Float;
    /// use oxisycl::prelude::*;
    /// use oxisycl::vector::Float4;
    ///
    /// # fn main() -> oxisycl::Result {
    /// const WEIGHTS: [[f32; 3]; 1] = [[0.25, 0.5, 0.25]];
    /// let levels = UnsampledImage::from_vec(R32Float, vec![0.0f32, 8.0, 0.0, 4.0], [1, 4])?;
    /// let smooth = UnsampledImage::uninit(R32Float, [1, 4])?;
    /// let arguments = (levels.read::<Float4>(), smooth.with(Write.no_init()));
    /// Queue::default()?.parallel_for_with([1, 4], arguments, |item: Item<2>, (levels, smooth)| {
    ///     let around = levels.window::<1, 3>(item, [0, item.get(1) as isize - 1]);
    ///     let sum = around.fold(Float4::splat(0.0), |sum, [y, x], level| sum + level * WEIGHTS[y][x]);
    ///     smooth.set(item, sum)
    /// })?;
    /// assert_eq!(smooth.to_vec::<f32>()?, [2.0, 4.0, 3.0, 2.0]);
    /// # Ok(())
    /// # }
    /// ```
    #[inline(always)]
    pub fn fold<A>(self, first: A, f: impl FnMut(A, [usize; 2], V) -> A) -> A {
        let position = |[y, x]: [usize; 2]| [self.origin[0].wrapping_add(y), self.origin[1].wrapping_add(x)];
        // One question for all pixels, also where LLVM asks again in a loop.
        if self.is_inside {
            // SAFETY: the window lies inside, and so do its positions. Nothing writes what a read accessor reads while the kernel of the token runs.
            fold::<A, V, Y, X>(first, |at| unsafe { self.pixels.load_inside::<V, true>(position(at)) }, f)
        } else {
            // SAFETY: as above.
            fold::<A, V, Y, X>(first, |at| unsafe { self.pixels.load::<V, true>(position(at)) }, f)
        }
    }
}

/// Combines the pixels of a window row by row.
#[inline(always)]
fn fold<A, V, const Y: usize, const X: usize>(
    first: A,
    pixel: impl Fn([usize; 2]) -> V,
    mut f: impl FnMut(A, [usize; 2], V) -> A,
) -> A {
    let mut all = first;
    for y in 0..Y {
        for x in 0..X {
            all = f(all, [y, x], pixel([y, x]));
        }
    }
    all
}

impl<V, const Y: usize, const X: usize, F: PixelFormat> fmt::Debug for ImageWindow<'_, V, Y, X, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ImageWindow")
            .field("rows", &Y)
            .field("columns", &X)
            .field("is_inside", &self.is_inside)
            .finish_non_exhaustive()
    }
}
