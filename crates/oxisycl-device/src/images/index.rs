//! Positions of pixels, and coordinates of samplers.

use oxisycl_types::Id;

mod sealed {
    pub trait Index<const D: usize> {
        /// Along each dimension. A negative position becomes one that no image has.
        fn index(self) -> [usize; D];
    }

    pub trait Coordinates<const D: usize> {
        fn coordinates(self) -> [f32; D];
    }
}
pub(super) use sealed::{Coordinates, Index};

/// The position of a pixel, in the order of the image's range: `[x]`, `[y, x]` or `[z, y, x]`. An [`Id`], an array of `usize`, `isize` or `i32`, or a
/// number for one dimension. Implemented by this crate only.
///
/// A position below that of the work-item is best an `isize`, such as `item.get(0) as isize - 1`. Vector code sees that neighbours
/// read neighbours then, which an `i32` hides.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not the position of a pixel in {D} dimensions",
    note = "positions are an `Id`, or an array of `usize`, `isize` or `i32`: `[y, x]` in two dimensions"
)]
pub trait PixelIndex<const D: usize>: sealed::Index<D> {}

/// The coordinates of a sample, in the order of the image's range: `[x]`, `[y, x]` or `[z, y, x]`. An array of `f32`, or a number for one
/// dimension. Implemented by this crate only.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a coordinate of a sampled image in {D} dimensions",
    note = "coordinates are an array of `f32`: `[y, x]` in two dimensions"
)]
pub trait SampleCoordinates<const D: usize>: sealed::Coordinates<D> {}

macro_rules! positions {
    ($([$($generics:tt)*] $type:ty, $d:expr, $value:ident => $index:expr;)*) => { $(
        impl<$($generics)*> PixelIndex<$d> for $type {}
        impl<$($generics)*> sealed::Index<$d> for $type {
            #[inline(always)]
            fn index(self) -> [usize; $d] {
                let $value = self;
                $index
            }
        }
    )* };
}

positions! {
    [const D: usize] Id<D>, D, id => id.0;
    [const D: usize] [usize; D], D, index => index;
    [const D: usize] [isize; D], D, index => index.map(isize::cast_unsigned);
    [const D: usize] [i32; D], D, index => index.map(|i| i as usize);
    [] usize, 1, index => [index];
    [] isize, 1, index => [index.cast_unsigned()];
    [] i32, 1, index => [index as usize];
}

impl<const D: usize> SampleCoordinates<D> for [f32; D] {}
impl<const D: usize> sealed::Coordinates<D> for [f32; D] {
    #[inline(always)]
    fn coordinates(self) -> [f32; D] {
        self
    }
}

impl SampleCoordinates<1> for f32 {}
impl sealed::Coordinates<1> for f32 {
    #[inline(always)]
    fn coordinates(self) -> [f32; 1] {
        [self]
    }
}
