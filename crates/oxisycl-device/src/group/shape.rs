//! How many work-items a group has.

use oxisycl_types::Range;

/// The local range of a launch over groups: a type for a fixed one, or a [`Range`] for one that the program computes. Implemented by this
/// crate only.
///
/// A fixed shape gives the compiler loops of constant length on the host, and on devices a size that drivers know.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not the shape of a work-group of {D} dimensions",
    note = "use `Fixed1::<X>`, `Fixed2::<Y, X>`, `Fixed3::<Z, Y, X>`, or `Range::new([..])` of as many dimensions as the number of groups has"
)]
pub trait Shape<const D: usize>: sealed::Sealed + Copy + Send + Sync + 'static {
    /// Work-items of a group per dimension.
    fn extent(self) -> [usize; D];

    /// The extent if it is part of the type, else zeros.
    #[doc(hidden)]
    const FIXED: [usize; D];
}

mod sealed {
    pub trait Sealed {}
}

/// Groups of `X` work-items.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fixed1<const X: usize>;
/// Groups of `Y * X` work-items; `X` varies fastest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fixed2<const Y: usize, const X: usize>;
/// Groups of `Z * Y * X` work-items; `X` varies fastest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fixed3<const Z: usize, const Y: usize, const X: usize>;

macro_rules! fixed {
    ($($dimensions:literal $name:ident [$($extent:ident),*])*) => { $(
        impl<$(const $extent: usize),*> sealed::Sealed for $name<$($extent),*> {}
        impl<$(const $extent: usize),*> $name<$($extent),*> {
            // With a name: the compiler's message has it, and no number that may change.
            const HAS_WORK_ITEMS: () = assert!($($extent > 0)&&*, "a work-group has no work-items if an extent is zero");
        }
        impl<$(const $extent: usize),*> Shape<$dimensions> for $name<$($extent),*> {
            const FIXED: [usize; $dimensions] = [$($extent),*];

            #[inline(always)]
            fn extent(self) -> [usize; $dimensions] {
                let () = Self::HAS_WORK_ITEMS;
                [$($extent),*]
            }
        }
    )* };
}

fixed! { 1 Fixed1 [X] 2 Fixed2 [Y, X] 3 Fixed3 [Z, Y, X] }

impl<const D: usize> sealed::Sealed for Range<D> {}
impl<const D: usize> Shape<D> for Range<D> {
    const FIXED: [usize; D] = [0; D];

    #[inline(always)]
    fn extent(self) -> [usize; D] {
        self.0
    }
}
