//! Conversions of [`Id`] and [`Range`] to and from integers, arrays and tuples, and comparisons with them.
//!
//! Each conversion keeps every element and its dimension; none of them reorders, drops or adds one. Conversions into the
//! two types from arrays, tuples and `usize` stand beside the types.

use crate::{Id, Range};

macro_rules! conversions {
    ($($kind:ident),*) => { $(
        impl<const D: usize> From<$kind<D>> for [usize; D] {
            #[inline(always)]
            fn from(value: $kind<D>) -> Self {
                value.0
            }
        }

        impl From<$kind<1>> for usize {
            #[inline(always)]
            fn from(value: $kind<1>) -> Self {
                value.0[0]
            }
        }

        impl From<$kind<2>> for (usize, usize) {
            #[inline(always)]
            fn from(value: $kind<2>) -> Self {
                (value.0[0], value.0[1])
            }
        }

        impl From<$kind<3>> for (usize, usize, usize) {
            #[inline(always)]
            fn from(value: $kind<3>) -> Self {
                (value.0[0], value.0[1], value.0[2])
            }
        }

        impl<const D: usize> PartialEq<[usize; D]> for $kind<D> {
            #[inline(always)]
            fn eq(&self, other: &[usize; D]) -> bool {
                self.0 == *other
            }
        }

        impl PartialEq<usize> for $kind<1> {
            #[inline(always)]
            fn eq(&self, other: &usize) -> bool {
                self.0[0] == *other
            }
        }
    )* };
}

conversions!(Id, Range);

/// The position one past the last one of a range, in every dimension.
impl<const D: usize> From<Range<D>> for Id<D> {
    #[inline(always)]
    fn from(range: Range<D>) -> Self {
        Self(range.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_dimensional_values_are_integers() {
        assert_eq!(usize::from(Id::from(7)), 7);
        assert_eq!(usize::from(Range::from(9)), 9);
        assert_eq!(Id::from(7), 7);
        assert_eq!(Range::from(9), 9);
        let values = [10, 20, 30];
        assert_eq!(values[usize::from(Id([2]))], 30);
    }

    #[test]
    fn arrays_and_tuples_round_trip() {
        assert_eq!(<[usize; 1]>::from(Range::from([4])), [4]);
        assert_eq!(<[usize; 3]>::from(Id::from((4, 5, 6))), [4, 5, 6]);
        assert_eq!(<(usize, usize)>::from(Range::from([4, 5])), (4, 5));
        assert_eq!(<(usize, usize, usize)>::from(Id::from([4, 5, 6])), (4, 5, 6));
    }

    #[test]
    fn values_compare_with_arrays() {
        assert_eq!(Id([1, 2]), [1, 2]);
        assert_ne!(Id([1, 2]), [2, 1]);
        assert_eq!(Range([1, 2, 3]), [1, 2, 3]);
    }

    #[test]
    fn the_end_of_a_range_is_an_id() {
        assert_eq!(Id::from(Range([2, 3])), Id([2, 3]));
    }
}
