use core::fmt;
use core::ops::{Index, IndexMut};

use crate::Id;

/// The extent of a 1-, 2- or 3-dimensional index space (SYCL 2020 section 4.9.1.1).
///
/// The right-most dimension varies fastest. Converts from `usize`, arrays and tuples: `8`, `[4, 8]`, `(4, 8)`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Range<const D: usize>(pub [usize; D]);

impl<const D: usize> Range<D> {
    /// A range with the given extent per dimension.
    ///
    /// ```
    /// use oxisycl_types::Range;
    ///
    /// assert_eq!(Range::new([4, 8]), Range::from((4, 8)));
    /// assert_eq!(Range::new([4, 8]), Range::from([4, 8]));
    /// ```
    pub const fn new(extents: [usize; D]) -> Self {
        const { assert!(D >= 1 && D <= 3, "a range has 1, 2 or 3 dimensions") };
        Self(extents)
    }

    /// The range with the same extent in every dimension.
    ///
    /// ```
    /// use oxisycl_types::Range;
    ///
    /// assert_eq!(Range::<3>::splat(8), Range::new([8, 8, 8]));
    /// ```
    pub const fn splat(extent: usize) -> Self {
        Self::new([extent; D])
    }

    /// The product of all extents; wraps on overflow, which [`checked_size`](Self::checked_size) reports.
    ///
    /// ```
    /// use oxisycl_types::Range;
    ///
    /// assert_eq!(Range::new([4, 8]).size(), 32);
    /// ```
    #[inline(always)]
    pub const fn size(&self) -> usize {
        let mut size = 1usize;
        let mut d = 0;
        while d < D {
            size = size.wrapping_mul(self.0[d]);
            d += 1;
        }
        size
    }

    /// The product of all extents, or `None` if it does not fit in `usize`. Zero if any extent is zero.
    pub const fn checked_size(&self) -> Option<usize> {
        let mut d = 0;
        while d < D {
            if self.0[d] == 0 {
                return Some(0);
            }
            d += 1;
        }
        let mut size = 1usize;
        let mut d = 0;
        while d < D {
            match size.checked_mul(self.0[d]) {
                Some(product) => size = product,
                None => return None,
            }
            d += 1;
        }
        Some(size)
    }

    /// The extent of dimension `d`.
    ///
    /// # Panics
    /// If `d >= D`.
    pub const fn get(&self, d: usize) -> usize {
        self.0[d]
    }

    /// Whether `id` lies inside.
    ///
    /// ```
    /// use oxisycl_types::{Id, Range};
    ///
    /// let range = Range::new([4, 8]);
    /// assert!(range.contains(&Id::new([3, 7])) && !range.contains(&Id::new([4, 0])));
    /// ```
    #[inline(always)]
    pub const fn contains(&self, id: &Id<D>) -> bool {
        let mut d = 0;
        while d < D {
            if id.0[d] >= self.0[d] {
                return false;
            }
            d += 1;
        }
        true
    }

    /// The row-major position of `id` (SYCL 2020 section 3.11.1). `id` need not lie inside.
    ///
    /// ```
    /// use oxisycl_types::{Id, Range};
    ///
    /// assert_eq!(Range::new([4, 8]).linear(&Id::new([2, 3])), 2 * 8 + 3);
    /// ```
    #[inline(always)]
    pub const fn linear(&self, id: &Id<D>) -> usize {
        let mut position = 0usize;
        let mut d = 0;
        while d < D {
            position = position.wrapping_mul(self.0[d]).wrapping_add(id.0[d]);
            d += 1;
        }
        position
    }

    /// The extents embedded in three dimensions, right-aligned: `[n]` becomes `[1, 1, n]`.
    #[inline(always)]
    pub const fn embed(&self) -> [usize; 3] {
        const { assert!(D >= 1 && D <= 3, "a range has 1, 2 or 3 dimensions") };
        let mut extents = [1; 3];
        let mut d = 0;
        while d < D {
            extents[3 - D + d] = self.0[d];
            d += 1;
        }
        extents
    }
}

/// The empty range: zero in every dimension.
impl<const D: usize> Default for Range<D> {
    fn default() -> Self {
        Self([0; D])
    }
}

impl<const D: usize> fmt::Debug for Range<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0).finish()
    }
}

impl<const D: usize> Index<usize> for Range<D> {
    type Output = usize;
    fn index(&self, d: usize) -> &usize {
        &self.0[d]
    }
}

impl<const D: usize> IndexMut<usize> for Range<D> {
    fn index_mut(&mut self, d: usize) -> &mut usize {
        &mut self.0[d]
    }
}

impl<const D: usize> From<[usize; D]> for Range<D> {
    #[inline(always)]
    fn from(extents: [usize; D]) -> Self {
        Self::new(extents)
    }
}

impl From<usize> for Range<1> {
    #[inline(always)]
    fn from(extent: usize) -> Self {
        Self([extent])
    }
}

impl From<(usize, usize)> for Range<2> {
    fn from(extents: (usize, usize)) -> Self {
        Self([extents.0, extents.1])
    }
}

impl From<(usize, usize, usize)> for Range<3> {
    fn from(extents: (usize, usize, usize)) -> Self {
        Self([extents.0, extents.1, extents.2])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HALF: usize = 1 << (usize::BITS / 2);

    #[test]
    fn size_is_the_product_of_the_extents() {
        assert_eq!(Range([5]).size(), 5);
        assert_eq!(Range([5, 6]).size(), 30);
        assert_eq!(Range([5, 6, 7]).size(), 210);
        assert_eq!(Range([5, 6, 7]).checked_size(), Some(210));
    }

    #[test]
    fn checked_size_reports_what_size_wraps() {
        assert_eq!(Range([usize::MAX]).checked_size(), Some(usize::MAX));
        assert_eq!(Range([HALF, HALF - 1]).checked_size(), Some(HALF * (HALF - 1)));
        assert_eq!(Range([HALF, HALF]).checked_size(), None);
        assert_eq!(Range([HALF, HALF]).size(), 0);
        assert_eq!(Range([2, usize::MAX, 1]).checked_size(), None);
        assert_eq!(Range([usize::MAX; 3]).checked_size(), None);
    }

    #[test]
    fn a_zero_extent_makes_the_size_zero_whatever_the_others_are() {
        assert_eq!(Range([0]).checked_size(), Some(0));
        assert_eq!(Range([usize::MAX, 0]).checked_size(), Some(0));
        assert_eq!(Range([usize::MAX, usize::MAX, 0]).checked_size(), Some(0));
        assert_eq!(Range([0, usize::MAX, usize::MAX]).size(), 0);
        assert!(!Range([4, 0]).contains(&Id([0, 0])));
        assert_eq!(Range::<3>::default().checked_size(), Some(0));
    }

    #[test]
    fn linear_is_row_major() {
        assert_eq!(Range([9]).linear(&Id([4])), 4);
        assert_eq!(Range([3, 9]).linear(&Id([2, 4])), 22);
        assert_eq!(Range([2, 3, 9]).linear(&Id([1, 2, 4])), 49);
        let range = Range([2, 3, 4]);
        let mut expected = 0;
        for i in 0..2 {
            for j in 0..3 {
                for k in 0..4 {
                    assert_eq!(range.linear(&Id([i, j, k])), expected);
                    expected += 1;
                }
            }
        }
    }

    #[test]
    fn contains_ends_before_the_extent() {
        assert!(Range([3, 4]).contains(&Id([2, 3])));
        assert!(!Range([3, 4]).contains(&Id([3, 0])));
        assert!(!Range([3, 4]).contains(&Id([0, 4])));
    }

    #[test]
    fn extents_are_embedded_right_aligned_after_ones() {
        assert_eq!(Range([7]).embed(), [1, 1, 7]);
        assert_eq!(Range([6, 7]).embed(), [1, 6, 7]);
        assert_eq!(Range([5, 6, 7]).embed(), [5, 6, 7]);
        assert_eq!(Range([0, 7]).embed(), [1, 0, 7]);
    }

    #[test]
    fn embedding_keeps_the_linear_position() {
        let (range, id) = (Range([6, 7]), Id([5, 3]));
        assert_eq!(Range(range.embed()).linear(&Id(id.embed())), range.linear(&id));
    }

    #[test]
    fn every_shorthand_gives_the_same_range() {
        assert_eq!(Range::from(8), Range::new([8]));
        assert_eq!(Range::from((4, 8)), Range::from([4, 8]));
        assert_eq!(Range::from((2, 4, 8)), Range::from([2, 4, 8]));
        assert_eq!(Range::<2>::splat(8), Range([8, 8]));
    }
}
