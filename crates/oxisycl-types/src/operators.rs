//! The arithmetic of [`Id`] and [`Range`] (SYCL 2020 sections 4.9.1.1 and 4.9.1.3).
//!
//! Every operator works element by element, between two values of one type or between a value and a `usize`. The
//! `usize` stands for the same number in every dimension. Elements follow Rust's integer rules: overflow, division by
//! zero and shifts by the width of `usize` panic or wrap exactly as they do for `usize`. SYCL's comparisons and logical
//! operators give zeros and ones per element. Here they are the methods named `.._each`, because `==` and `<` on Rust
//! values give one `bool`. Unary plus, minus and the increments have no form in Rust.

use core::ops::{
    Add, AddAssign, BitAnd, BitAndAssign, BitOr, BitOrAssign, BitXor, BitXorAssign, Div, DivAssign, Mul, MulAssign,
    Rem, RemAssign, Shl, ShlAssign, Shr, ShrAssign, Sub, SubAssign,
};

use crate::{Id, Range};

/// Applies `operation` to the elements of `left` and `right`, dimension by dimension.
#[inline(always)]
fn zip<const D: usize>(left: [usize; D], right: [usize; D], operation: impl Fn(usize, usize) -> usize) -> [usize; D] {
    let mut result = left;
    let mut d = 0;
    while d < D {
        result[d] = operation(left[d], right[d]);
        d += 1;
    }
    result
}

/// One operator and its compound assignment, for one type.
macro_rules! operator {
    ($kind:ident, $binary:ident::$method:ident, $assign:ident::$assign_method:ident) => {
        impl<const D: usize> $binary for $kind<D> {
            type Output = Self;
            #[inline(always)]
            fn $method(self, right: Self) -> Self {
                Self(zip(self.0, right.0, usize::$method))
            }
        }

        impl<const D: usize> $binary<usize> for $kind<D> {
            type Output = Self;
            #[inline(always)]
            fn $method(self, right: usize) -> Self {
                Self(zip(self.0, [right; D], usize::$method))
            }
        }

        impl<const D: usize> $binary<$kind<D>> for usize {
            type Output = $kind<D>;
            #[inline(always)]
            fn $method(self, right: $kind<D>) -> $kind<D> {
                $kind(zip([self; D], right.0, usize::$method))
            }
        }

        impl<const D: usize> $assign for $kind<D> {
            #[inline(always)]
            fn $assign_method(&mut self, right: Self) {
                self.0 = zip(self.0, right.0, usize::$method);
            }
        }

        impl<const D: usize> $assign<usize> for $kind<D> {
            #[inline(always)]
            fn $assign_method(&mut self, right: usize) {
                self.0 = zip(self.0, [right; D], usize::$method);
            }
        }
    };
}

/// Comparisons and logic that give a one or a zero per element.
macro_rules! each {
    ($kind:ident, $($(#[$doc:meta])* $method:ident = |$left:ident, $right:ident| $condition:expr;)*) => {
        impl<const D: usize> $kind<D> {
            $(
                $(#[$doc])*
                #[inline(always)]
                #[must_use]
                pub fn $method(self, right: Self) -> Self {
                    Self(zip(self.0, right.0, |$left, $right| usize::from($condition)))
                }
            )*

            /// One in every dimension where the element is zero, zero elsewhere (SYCL's `!`).
            #[inline(always)]
            #[must_use]
            pub fn not_each(self) -> Self {
                self.eq_each(Self([0; D]))
            }
        }
    };
}

macro_rules! operators {
    ($($kind:ident),*) => { $(
        operator!($kind, Add::add, AddAssign::add_assign);
        operator!($kind, Sub::sub, SubAssign::sub_assign);
        operator!($kind, Mul::mul, MulAssign::mul_assign);
        operator!($kind, Div::div, DivAssign::div_assign);
        operator!($kind, Rem::rem, RemAssign::rem_assign);
        operator!($kind, Shl::shl, ShlAssign::shl_assign);
        operator!($kind, Shr::shr, ShrAssign::shr_assign);
        operator!($kind, BitAnd::bitand, BitAndAssign::bitand_assign);
        operator!($kind, BitOr::bitor, BitOrAssign::bitor_assign);
        operator!($kind, BitXor::bitxor, BitXorAssign::bitxor_assign);
        each! { $kind,
            /// One in every dimension where the elements are equal, zero elsewhere.
            eq_each = |left, right| left == right;
            /// One in every dimension where the elements differ, zero elsewhere.
            ne_each = |left, right| left != right;
            /// One in every dimension where this element is smaller, zero elsewhere.
            lt_each = |left, right| left < right;
            /// One in every dimension where this element is smaller or equal, zero elsewhere.
            le_each = |left, right| left <= right;
            /// One in every dimension where this element is greater, zero elsewhere.
            gt_each = |left, right| left > right;
            /// One in every dimension where this element is greater or equal, zero elsewhere.
            ge_each = |left, right| left >= right;
            /// One in every dimension where neither element is zero, zero elsewhere (SYCL's `&&`).
            and_each = |left, right| left != 0 && right != 0;
            /// One in every dimension where an element is not zero, zero elsewhere (SYCL's `||`).
            or_each = |left, right| left != 0 || right != 0;
        }
    )* };
}

operators!(Id, Range);

#[cfg(test)]
mod tests {
    use super::*;

    /// Holds all three forms of an operator and both compound forms against the plain integer operator.
    macro_rules! check {
        ($kind:ident, $left:expr, $right:expr, $($op:tt $assign:tt),*) => { $( {
            let (left, right) = ($left, $right);
            let expected = $kind(core::array::from_fn(|d| left[d] $op right[d]));
            assert_eq!($kind(left) $op $kind(right), expected);
            let mut compound = $kind(left);
            compound $assign $kind(right);
            assert_eq!(compound, expected);

            let scalar = right[0];
            let expected = $kind(core::array::from_fn(|d| left[d] $op scalar));
            assert_eq!($kind(left) $op scalar, expected);
            let mut compound = $kind(left);
            compound $assign scalar;
            assert_eq!(compound, expected);

            let scalar = left[0];
            let expected = $kind(core::array::from_fn(|d| scalar $op right[d]));
            assert_eq!(scalar $op $kind(right), expected);
        } )* };
    }

    macro_rules! check_all {
        ($($kind:ident $left:expr, $right:expr;)*) => { $(
            check!($kind, $left, $right,
                + +=, - -=, * *=, / /=, % %=, << <<=, >> >>=, & &=, | |=, ^ ^=);
        )* };
    }

    #[test]
    fn every_operator_is_elementwise_in_one_two_and_three_dimensions() {
        check_all! {
            Id [13], [5];
            Id [99, 64], [7, 3];
            Id [100, 77, 51], [10, 9, 8];
            Range [13], [5];
            Range [99, 64], [7, 3];
            Range [100, 77, 51], [10, 9, 8];
        }
    }

    #[test]
    fn integer_literals_need_no_suffix_on_either_side() {
        assert_eq!(2 * Id([3, 4]) + 1, Id([7, 9]));
        assert_eq!((Range([8, 16]) - 1) / 2, Range([3, 7]));
    }

    #[test]
    fn comparisons_give_ones_and_zeros() {
        let (left, right) = (Id([1, 5, 9]), Id([5, 5, 5]));
        assert_eq!(left.eq_each(right), Id([0, 1, 0]));
        assert_eq!(left.ne_each(right), Id([1, 0, 1]));
        assert_eq!(left.lt_each(right), Id([1, 0, 0]));
        assert_eq!(left.le_each(right), Id([1, 1, 0]));
        assert_eq!(left.gt_each(right), Id([0, 0, 1]));
        assert_eq!(left.ge_each(right), Id([0, 1, 1]));
        assert_eq!(Range([3]).lt_each(Range([4])), Range([1]));
    }

    #[test]
    fn logic_treats_any_other_value_than_zero_as_true() {
        let (left, right) = (Range([0, 0, 7]), Range([0, 3, 2]));
        assert_eq!(left.and_each(right), Range([0, 0, 1]));
        assert_eq!(left.or_each(right), Range([0, 1, 1]));
        assert_eq!(left.not_each(), Range([1, 1, 0]));
        assert_eq!(Id([0, 4]).not_each(), Id([1, 0]));
    }

    #[test]
    #[should_panic(expected = "divide by zero")]
    fn division_by_a_zero_element_panics() {
        let _ = Id([1, 2]) / Id([1, 0]);
    }

    #[test]
    #[cfg(debug_assertions)]
    #[should_panic(expected = "overflow")]
    fn overflow_panics_where_the_integers_check_it() {
        let _ = Id([0]) - 1;
    }

    #[test]
    #[cfg(not(debug_assertions))]
    fn overflow_wraps_where_the_integers_do_not_check_it() {
        assert_eq!(Id([0]) - 1, Id([usize::MAX]));
    }
}
