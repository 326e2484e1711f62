//! Function objects: what group algorithms and reductions combine values by (SYCL 2020 section 4.17.2).
//!
//! | SYCL 2020 | here |
//! |---|---|
//! | `plus` | [`Sum`] |
//! | `multiplies` | [`Product`] |
//! | `minimum`, `maximum` | [`Min`], [`Max`] |
//! | `bit_and`, `bit_or`, `bit_xor` | [`BitAnd`], [`BitOr`], [`BitXor`] |
//! | `logical_and`, `logical_or` | [`And`], [`Or`] |
//! | `known_identity` | [`Identity`] |
//!
//! A closure of two values is an operator without an identity.

/// Combines two values into one.
///
/// The order of operands is that of the values. An operator has to be associative; it need not be commutative. With one that is only nearly
/// associative, such as a sum of floats, the result depends on how values are grouped, which each algorithm documents.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not combine two values of `{T}`",
    note = "use an operator of `oxisycl::operator`, or a closure `|a, b| ..` that captures only what is `Copy`"
)]
pub trait Operator<T>: Copy + Send + Sync {
    /// The value of `first` and `second` together.
    fn combine(&self, first: T, second: T) -> T;

    /// What processors may do instead, for operators of this module.
    #[doc(hidden)]
    const AT_ONCE: Option<AtOnce> = None;
}

/// An operation on integers of 32 bits that some processors do for all lanes of a sub-group at once. The order of operands does not matter to it.
#[doc(hidden)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum AtOnce {
    Add,
    MinUnsigned,
    MaxUnsigned,
    MinSigned,
    MaxSigned,
    And,
    Or,
    Xor,
}

impl AtOnce {
    /// The operation, if `T` is an integer of 32 bits.
    const fn of<T>(self) -> Option<Self> {
        if size_of::<T>() == 4 { Some(self) } else { None }
    }

    /// The bits that change no others.
    pub(crate) const fn identity(self) -> u32 {
        match self {
            Self::Add | Self::MaxUnsigned | Self::Or | Self::Xor => 0,
            Self::MinUnsigned | Self::And => u32::MAX,
            Self::MinSigned => i32::MAX as u32,
            Self::MaxSigned => i32::MIN as u32,
        }
    }
}

/// An operator that has a value which changes no other. By [`And`] and [`Or`] it changes none of 0 and 1, and makes 1 of other numbers. By [`Min`] and
/// [`Max`] it is an infinity, which changes no number, and takes the place of what is none.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no known identity for values of `{T}`",
    note = "the operators of `oxisycl::operator` have one for numbers; pass the first value for any other"
)]
pub trait Identity<T>: Operator<T> {
    /// The value that changes no other.
    fn identity(&self) -> T;
}

impl<T, F: Fn(T, T) -> T + Copy + Send + Sync> Operator<T> for F {
    #[inline(always)]
    fn combine(&self, first: T, second: T) -> T {
        self(first, second)
    }
}

/// The sum. Sums of integers wrap around.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Sum;

/// The product. Products of integers wrap around.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Product;

/// The smaller value. Of two floats one of which is no number it is the other one, and -0 is smaller than 0.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Min;

/// The larger value. Of two floats one of which is no number it is the other one, and 0 is larger than -0.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Max;

/// The bits that both have.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct BitAnd;

/// The bits that one of both has.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct BitOr;

/// The bits that differ.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct BitXor;

/// Whether both hold: of numbers, 1 if neither is 0, and else 0.
///
/// A number that an algorithm combines with no other stays what it is, such as the only one of a group. `bool` has fewer values than bit
/// patterns, so algorithms and reductions take numbers instead, or votes such as [`Group::all`](crate::group::Group::all).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct And;

/// Whether one of both holds: of numbers, 0 if both are 0, and else 1. What [`And`] says of numbers and `bool` holds here, too.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Or;

// Messages leave the operators out: which there are depends on the crate's features, and there are too many to be read.
macro_rules! operator {
    ($operator:ident for $t:ty: |$first:ident, $second:ident| $value:expr, $identity:expr $(, $at_once:expr)?) => {
        #[diagnostic::do_not_recommend]
        impl Operator<$t> for $operator {
            $(const AT_ONCE: Option<AtOnce> = $at_once.of::<$t>();)?

            #[inline(always)]
            fn combine(&self, $first: $t, $second: $t) -> $t {
                $value
            }
        }

        #[diagnostic::do_not_recommend]
        impl Identity<$t> for $operator {
            #[inline(always)]
            fn identity(&self) -> $t {
                let identity: fn() -> $t = $identity;
                identity()
            }
        }
    };
}

const fn least(is_unsigned: bool) -> AtOnce {
    if is_unsigned { AtOnce::MinUnsigned } else { AtOnce::MinSigned }
}

const fn largest(is_unsigned: bool) -> AtOnce {
    if is_unsigned { AtOnce::MaxUnsigned } else { AtOnce::MaxSigned }
}

macro_rules! integers {
    ($($t:ty)*) => { $(
        operator! { Sum for $t: |a, b| a.wrapping_add(b), || 0, AtOnce::Add }
        operator! { Product for $t: |a, b| a.wrapping_mul(b), || 1 }
        operator! { Min for $t: |a, b| if b < a { b } else { a }, || <$t>::MAX, least(<$t>::MIN == 0) }
        operator! { Max for $t: |a, b| if a < b { b } else { a }, || <$t>::MIN, largest(<$t>::MIN == 0) }
        operator! { BitAnd for $t: |a, b| a & b, || !0, AtOnce::And }
        operator! { BitOr for $t: |a, b| a | b, || 0, AtOnce::Or }
        operator! { BitXor for $t: |a, b| a ^ b, || 0, AtOnce::Xor }
        operator! { And for $t: |a, b| <$t>::from(a != 0 && b != 0), || 1 }
        operator! { Or for $t: |a, b| <$t>::from(a != 0 || b != 0), || 0 }
    )* };
}

integers! { u8 i8 u16 i16 u32 i32 u64 i64 u128 i128 usize isize }

macro_rules! floats {
    ($($t:ty: $negative_zero:expr, $one:expr;)*) => { $(
        operator! { Sum for $t: |a, b| a + b, || $negative_zero }
        operator! { Product for $t: |a, b| a * b, || $one }
        operator! {
            Min for $t: |a, b| {
                let is_second = b < a || a.is_nan() || (a == b && b.is_sign_negative());
                if is_second { b } else { a }
            }, || <$t>::INFINITY
        }
        operator! {
            Max for $t: |a, b| {
                let is_second = a < b || a.is_nan() || (a == b && b.is_sign_positive());
                if is_second { b } else { a }
            }, || <$t>::NEG_INFINITY
        }
    )* };
}

floats! { f32: -0.0, 1.0; f64: -0.0, 1.0; }

#[cfg(feature = "half")]
floats! {
    half::f16: half::f16::NEG_ZERO, half::f16::ONE;
    half::bf16: half::bf16::NEG_ZERO, half::bf16::ONE;
}

operator! { And for bool: |a, b| a & b, || true }
operator! { Or for bool: |a, b| a | b, || false }
operator! { BitAnd for bool: |a, b| a & b, || true }
operator! { BitOr for bool: |a, b| a | b, || false }
operator! { BitXor for bool: |a, b| a ^ b, || false }

#[cfg(test)]
mod tests {
    use super::*;

    const BITS: [u32; 8] = [0, 1, 2, 0x7fff_ffff, 0x8000_0000, 0x8000_0001, u32::MAX, 0x1234_5678];

    /// What a processor gives of two lanes.
    fn at_once(operation: AtOnce, a: u32, b: u32) -> u32 {
        match operation {
            AtOnce::Add => a.wrapping_add(b),
            AtOnce::MinUnsigned => a.min(b),
            AtOnce::MaxUnsigned => a.max(b),
            AtOnce::MinSigned => (a as i32).min(b as i32) as u32,
            AtOnce::MaxSigned => (a as i32).max(b as i32) as u32,
            AtOnce::And => a & b,
            AtOnce::Or => a | b,
            AtOnce::Xor => a ^ b,
        }
    }

    fn agrees<O: Identity<u32> + Identity<i32>>(operator: O) {
        let unsigned = <O as Operator<u32>>::AT_ONCE.unwrap();
        let signed = <O as Operator<i32>>::AT_ONCE.unwrap();
        let own: u32 = operator.identity();
        let signed_own: i32 = operator.identity();
        assert_eq!((unsigned.identity(), signed.identity()), (own, signed_own as u32));
        for (a, b) in BITS.into_iter().flat_map(|a| BITS.map(|b| (a, b))) {
            let (in_unsigned, in_signed) = (operator.combine(a, b), operator.combine(a as i32, b as i32) as u32);
            assert_eq!((at_once(unsigned, a, b), at_once(signed, a, b)), (in_unsigned, in_signed), "{a} {b}");
        }
    }

    #[test]
    fn what_processors_do_at_once_is_what_operators_do() {
        agrees(Sum);
        agrees(Min);
        agrees(Max);
        agrees(BitAnd);
        agrees(BitOr);
        agrees(BitXor);
    }

    #[test]
    fn other_operators_and_types_have_none() {
        fn of<T, O: Operator<T>>(_: O) -> Option<AtOnce> {
            O::AT_ONCE
        }
        assert_eq!([of::<u32, _>(Product), of::<u32, _>(And), of::<u32, _>(Or), of::<f32, _>(Sum)], [None; 4]);
        assert_eq!([of::<u64, _>(Sum), of::<i16, _>(Min), of::<u8, _>(BitOr), of::<bool, _>(BitAnd)], [None; 4]);
        assert_eq!(of(|a: u32, b: u32| a + b), None);
    }
}
