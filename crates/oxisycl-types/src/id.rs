use core::fmt;
use core::ops::{Index, IndexMut};

use crate::Range;

/// A position in a 1-, 2- or 3-dimensional index space (SYCL 2020 section 4.9.1.3).
///
/// Converts from `usize`, arrays and tuples like [`Range`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Id<const D: usize>(pub [usize; D]);

impl<const D: usize> Id<D> {
    /// The position with the given coordinates.
    ///
    /// ```
    /// use oxisycl_types::Id;
    ///
    /// let id = Id::new([2, 3]);
    /// assert_eq!((id[0], id[1]), (2, 3));
    /// assert_eq!(id + Id::from((1, 1)), Id::new([3, 4]));
    /// ```
    pub const fn new(coordinates: [usize; D]) -> Self {
        const { assert!(D >= 1 && D <= 3, "an id has 1, 2 or 3 dimensions") };
        Self(coordinates)
    }

    /// The position with the same coordinate in every dimension.
    pub const fn splat(coordinate: usize) -> Self {
        Self::new([coordinate; D])
    }

    /// The coordinate in dimension `d`.
    ///
    /// # Panics
    /// If `d >= D`.
    pub const fn get(&self, d: usize) -> usize {
        self.0[d]
    }

    /// The coordinates embedded in three dimensions, right-aligned: `[i]` becomes `[0, 0, i]`.
    #[inline(always)]
    pub const fn embed(&self) -> [usize; 3] {
        const { assert!(D >= 1 && D <= 3, "an id has 1, 2 or 3 dimensions") };
        let mut coordinates = [0; 3];
        let mut d = 0;
        while d < D {
            coordinates[3 - D + d] = self.0[d];
            d += 1;
        }
        coordinates
    }

    /// The position `range` further in every dimension, or `None` if a coordinate does not fit in `usize`.
    ///
    /// With an offset and an extent this is the end of an access range, which may come from untrusted numbers.
    pub const fn checked_add(&self, range: Range<D>) -> Option<Self> {
        let mut end = *self;
        let mut d = 0;
        while d < D {
            match self.0[d].checked_add(range.0[d]) {
                Some(coordinate) => end.0[d] = coordinate,
                None => return None,
            }
            d += 1;
        }
        Some(end)
    }
}

impl<const D: usize> Default for Id<D> {
    fn default() -> Self {
        Self([0; D])
    }
}

impl<const D: usize> fmt::Debug for Id<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0).finish()
    }
}

impl<const D: usize> Index<usize> for Id<D> {
    type Output = usize;
    fn index(&self, d: usize) -> &usize {
        &self.0[d]
    }
}

impl<const D: usize> IndexMut<usize> for Id<D> {
    fn index_mut(&mut self, d: usize) -> &mut usize {
        &mut self.0[d]
    }
}

impl<const D: usize> From<[usize; D]> for Id<D> {
    #[inline(always)]
    fn from(coordinates: [usize; D]) -> Self {
        Self::new(coordinates)
    }
}

impl From<usize> for Id<1> {
    #[inline(always)]
    fn from(coordinate: usize) -> Self {
        Self([coordinate])
    }
}

impl From<(usize, usize)> for Id<2> {
    fn from(coordinates: (usize, usize)) -> Self {
        Self([coordinates.0, coordinates.1])
    }
}

impl From<(usize, usize, usize)> for Id<3> {
    fn from(coordinates: (usize, usize, usize)) -> Self {
        Self([coordinates.0, coordinates.1, coordinates.2])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coordinates_are_embedded_right_aligned_after_zeros() {
        assert_eq!(Id([7]).embed(), [0, 0, 7]);
        assert_eq!(Id([6, 7]).embed(), [0, 6, 7]);
        assert_eq!(Id([5, 6, 7]).embed(), [5, 6, 7]);
    }

    #[test]
    fn the_default_is_the_origin() {
        assert_eq!(Id::<1>::default(), Id::splat(0));
        assert_eq!(Id::<3>::default(), Id([0, 0, 0]));
        assert_eq!(Id::<2>::splat(4), Id([4, 4]));
    }

    #[test]
    fn elements_are_read_and_written_by_dimension() {
        let mut id = Id::new([1, 2, 3]);
        id[1] += 10;
        assert_eq!((id[0], id.get(1), id[2]), (1, 12, 3));
    }

    #[test]
    fn checked_add_reports_overflow_in_any_dimension() {
        assert_eq!(Id([1]).checked_add(Range([2])), Some(Id([3])));
        assert_eq!(Id([1, 2]).checked_add(Range([0, usize::MAX - 2])), Some(Id([1, usize::MAX])));
        assert_eq!(Id([1, 2]).checked_add(Range([0, usize::MAX - 1])), None);
        assert_eq!(Id([usize::MAX, 0, 0]).checked_add(Range([1, 0, 0])), None);
    }

    #[test]
    fn values_are_made_in_constants() {
        const ORIGIN: Id<2> = Id::new([3, 4]);
        const END: Option<Id<2>> = ORIGIN.checked_add(Range::new([1, 1]));
        assert_eq!(END, Some(Id([4, 5])));
    }
}
