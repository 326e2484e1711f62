//! What algorithms over groups and sub-groups give, computed plainly, and the values that they are tried with.
//!
//! Kernels over groups and kernels over nd-ranges have the same results. So a test of either only runs its kernels, and compares here.

use std::fmt::Debug;

use oxisycl::operator::{Identity, Operator, Sum};
use oxisycl::prelude::*;
use oxisycl::vector::{Float3, Float4, MArray, swizzle};

/// A type whose values algorithms combine.
pub(crate) trait Number: DeviceCopyable + bytemuck::AnyBitPattern + Debug + Default + PartialEq
where
    Sum: Identity<Self>,
{
    /// What comes before all values.
    const FIRST: Self;
    /// The value at a position.
    fn at(position: usize) -> Self;
    /// An operator of the user that commutes, and rounds or wraps.
    fn commuting(self, other: Self) -> Self;
    /// An operator of the user that does not commute.
    fn ordered(self, other: Self) -> Self;
    /// The bits, which tell one NaN or zero from another.
    fn bits(self) -> u64;
}

macro_rules! numbers {
    ($($t:ty)*) => { $(
        impl Number for $t {
            const FIRST: Self = 5;
            fn at(position: usize) -> Self {
                (position as $t).wrapping_mul(37).wrapping_add(11)
            }
            // The larger number, but for its last bit, which counts odd numbers.
            fn commuting(self, other: Self) -> Self {
                self.max(other) & !1 | (self ^ other) & 1
            }
            // The later value, unless it is even.
            fn ordered(self, other: Self) -> Self {
                if other & 1 == 1 { other } else { self }
            }
            fn bits(self) -> u64 {
                self as u64
            }
        }
    )* };
}

numbers! { u8 i8 u16 i16 u32 i32 u64 i64 }

macro_rules! floats {
    ($($t:ident $scale:expr;)*) => { $(
        impl Number for $t {
            const FIRST: Self = 0.3;
            fn at(position: usize) -> Self {
                (position as $t * 0.37 + 0.1) * if position.is_multiple_of(3) { $scale } else { 1.0 }
            }
            fn commuting(self, other: Self) -> Self {
                (self + other) * 0.5
            }
            fn ordered(self, other: Self) -> Self {
                self + other * 0.5
            }
            fn bits(self) -> u64 {
                self.to_bits().into()
            }
        }
    )* };
}

floats! {
    f32 -1.0e3;
    f64 -1.0e7;
}

/// Several numbers that algorithms combine as one value.
pub(crate) trait Several: DeviceCopyable + bytemuck::AnyBitPattern + Debug + PartialEq {
    /// The value at a position.
    fn at(position: usize) -> Self;
    /// An operator of the user that does not commute, and takes each element to another place.
    fn ordered(self, other: Self) -> Self;
}

impl Several for Float4 {
    fn at(position: usize) -> Self {
        Self::from_fn(|i| f32::at(4 * position + i))
    }
    fn ordered(self, other: Self) -> Self {
        self + swizzle!(other, wxyz) * 0.5
    }
}

/// Of 16 bytes, of which the last four are padding.
impl Several for Float3 {
    fn at(position: usize) -> Self {
        Self::from_fn(|i| f32::at(3 * position + i))
    }
    fn ordered(self, other: Self) -> Self {
        self + swizzle!(other, zxy) * 0.5
    }
}

impl Several for MArray<i32, 5> {
    fn at(position: usize) -> Self {
        Self::from_fn(|i| i32::at(5 * position + i))
    }
    fn ordered(self, other: Self) -> Self {
        Self::from_fn(|i| self[i].wrapping_mul(3).wrapping_add(other[(i + 1) % 5]))
    }
}

/// Holds what each work-item of groups of `size` has by four algorithms against the model. These are the value of the last work-item, the reduction, and the
/// inclusive scan. The fourth is the value of the third work-item behind it in its sub-group of 16.
#[track_caller]
pub(crate) fn check_several<T: Several>(values: &[T], size: usize, found: &[[T; 4]]) {
    assert_eq!(found.len(), values.len());
    for (group, (values, found)) in values.chunks(size).zip(found.chunks(size)).enumerate() {
        let scan = scan_of_group(values, T::ordered);
        for (own, found) in found.iter().enumerate() {
            let from = if own % 16 + 3 < 16 && own + 3 < size { own + 3 } else { own };
            let expected = [values[size - 1], scan[size - 1], scan[own], values[from]];
            assert_eq!(*found, expected, "work-item {own} of group {group} of {size}");
        }
    }
}

/// Names a test of each type of numbers, by a function that is generic over it.
macro_rules! of_each_number {
    ($check:ident: $(fn $name:ident: $t:ty;)*) => { $(
        fn $name(env: &Env) {
            $check::<$t>(env);
        }
    )* };
}
pub(crate) use of_each_number;

/// Calls a function that is generic over the type of numbers for each type.
macro_rules! for_each_number {
    ($check:ident($env:expr)) => {
        $crate::model::for_each_number! { $check($env): u8 i8 u16 i16 u32 i32 u64 i64 f32 f64 }
    };
    ($check:ident($env:expr): $($t:ty)*) => {{
        $($check::<$t>($env);)*
    }};
}
pub(crate) use for_each_number;

/// For each work-item of a sub-group the bits of those that have an equal value.
pub(crate) fn matches<T: PartialEq>(values: &[T]) -> Vec<u64> {
    let of =
        |value: &T| values.iter().enumerate().fold(0u64, |all, (lane, other)| all | u64::from(other == value) << lane);
    values.iter().map(of).collect()
}

/// The inclusive scan of a group in the order that the documentation promises.
pub(crate) fn scan_of_group<T: Copy>(values: &[T], combine: impl Fn(T, T) -> T) -> Vec<T> {
    let mut all: Vec<T> = Vec::new();
    for block in values.chunks(32) {
        let left = all.last().copied();
        let now = scan_of_sub_group(block, &combine);
        all.extend(now.into_iter().map(|value| left.map_or(value, |left| combine(left, value))));
    }
    all
}

/// The inclusive scan of a sub-group, which is one block however large it is.
pub(crate) fn scan_of_sub_group<T: Copy>(values: &[T], combine: impl Fn(T, T) -> T) -> Vec<T> {
    let mut now = values.to_vec();
    let mut step = 1;
    while step < now.len() {
        let old = now.clone();
        for i in step..now.len() {
            now[i] = combine(old[i - step], old[i]);
        }
        step *= 2;
    }
    now
}

/// An inclusive scan, of a group or of a sub-group.
pub(crate) type Scan<T> = fn(&[T], &dyn Fn(T, T) -> T) -> Vec<T>;

/// What the joint forms give for elements.
#[derive(Debug)]
pub(crate) struct Joint<T> {
    pub(crate) total: T,
    pub(crate) inclusive: Vec<T>,
    pub(crate) exclusive: Vec<T>,
}

/// What the joint forms give for `elements`, by a group of `n` work-items.
pub(crate) fn joint_of_group<T: Copy>(elements: &[T], n: usize, operator: impl Operator<T>, first: T) -> Joint<T> {
    joint(elements, n, operator, first, |values, combine| scan_of_group(values, combine))
}

/// What the joint forms give for `elements`, by a sub-group of `n` work-items.
pub(crate) fn joint_of_sub_group<T: Copy>(elements: &[T], n: usize, operator: impl Operator<T>, first: T) -> Joint<T> {
    joint(elements, n, operator, first, |values, combine| scan_of_sub_group(values, combine))
}

fn joint<T: Copy>(elements: &[T], n: usize, operator: impl Operator<T>, first: T, scan: Scan<T>) -> Joint<T> {
    let combine = |a, b| operator.combine(a, b);
    // The share of each work-item, of which the first one begins with `first`.
    let shares = (0..n.min(elements.len())).map(|id| {
        let share = elements.iter().skip(id).step_by(n).copied();
        let first = (id == 0).then_some(first);
        first.into_iter().chain(share).reduce(combine).unwrap()
    });
    let total = scan(&shares.collect::<Vec<_>>(), &combine).last().copied().unwrap_or(first);
    let (mut inclusive, mut exclusive): (Vec<T>, Vec<T>) = (Vec::new(), Vec::new());
    let mut before = first;
    for piece in elements.chunks(n) {
        let of_piece = scan(piece, &combine);
        let left = inclusive.last().copied();
        inclusive.extend(of_piece.iter().map(|&value| left.map_or(value, |left| combine(left, value))));
        exclusive.extend((0..piece.len()).map(|i| if i == 0 { before } else { combine(before, of_piece[i - 1]) }));
        before = combine(before, of_piece[piece.len() - 1]);
    }
    Joint { total, inclusive, exclusive }
}

/// An operation of sub-groups, with the values of its work-items.
#[derive(Clone, Copy)]
pub(crate) enum Operation {
    Reduce,
    InclusiveScan,
    /// With sums.
    ExclusiveScan,
    /// With a first value.
    ExclusiveScanFrom,
    /// Each work-item gets the value at this place, which follows from its own place, and from its position in the group.
    From(fn(usize, usize) -> usize),
}

impl Operation {
    /// What each work-item of a sub-group gets, of which the first one is at `start` in its group.
    pub(crate) fn results<T: Copy>(self, values: &[T], start: usize, own: &impl Operator<T>, first: T) -> Vec<T>
    where
        Sum: Identity<T>,
    {
        let all = scan_of_sub_group(values, |a, b| own.combine(a, b));
        let shifted = |first: T, after: &dyn Fn(T) -> T, all: &[T]| {
            core::iter::once(first).chain(all[..all.len() - 1].iter().map(|&value| after(value))).collect()
        };
        match self {
            Self::Reduce => vec![all[all.len() - 1]; all.len()],
            Self::InclusiveScan => all,
            Self::ExclusiveScan => {
                let sums = scan_of_sub_group(values, |a, b| Sum.combine(a, b));
                shifted(Sum.identity(), &|value| value, &sums)
            }
            Self::ExclusiveScanFrom => shifted(first, &|value| own.combine(first, value), &all),
            Self::From(place) => {
                let from = |(lane, &value)| values.get(place(lane, start + lane)).copied().unwrap_or(value);
                values.iter().enumerate().map(from).collect()
            }
        }
    }
}

/// Compares what the work-items of groups of `size` have found with the model, bit by bit. Each result is that of an operation over sub-groups of the
/// size that stands beside it.
#[track_caller]
pub(crate) fn check_operations<T: Number, O: Operator<T>, const N: usize>(
    operations: [(usize, Operation); N],
    (values, size): (&[T], usize),
    (own, first): (O, T),
    found: &[[T; N]],
) where
    Sum: Identity<T>,
{
    assert_eq!(found.len(), values.len());
    for (group, (values, found)) in values.chunks(size).zip(found.chunks(size)).enumerate() {
        for (i, (width, operation)) in operations.into_iter().enumerate() {
            let pieces = values.chunks(width).enumerate();
            let expected = pieces.flat_map(|(n, values)| operation.results(values, n * width, &own, first));
            for (item, (expected, found)) in expected.zip(found).enumerate() {
                assert_eq!(
                    found[i].bits(),
                    expected.bits(),
                    "operation {i} of sub-groups of {width}: group {group} of {size}, item {item}: {found:?}, {expected:?}"
                );
            }
        }
    }
}
