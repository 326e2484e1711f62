//! Operators and comparisons.

use std::format;
use std::num::Wrapping;
use std::panic::catch_unwind;
use std::string::String;

use super::super::{Float4, Int2, Int4, MArray, Vector};
use super::{Boundaries, assert_same};

/// Each operator on rows whose elements it accepts; `defined` says which elements these are.
macro_rules! check {
    ($type:ident, $n:literal, $operator:tt, $assign:tt, $defined:expr) => {
        let defined: fn($type, $type) -> bool = $defined;
        let mut n_checked = 0;
        for (mut x, mut y) in $type::rows::<$n>() {
            for (x, y) in x.iter_mut().zip(&mut y) {
                if !defined(*x, *y) {
                    (*x, *y) = (6 as $type, 2 as $type);
                }
            }
            let expected: [$type; $n] = std::array::from_fn(|i| x[i] $operator y[i]);
            let (a, b) = (Vector::from(x), Vector::from(y));
            assert_same(a $operator b, expected);
            let mut c = a;
            c $assign b;
            assert_same(c, expected);
            assert_same(MArray::from(x) $operator MArray::from(y), expected);
            let mut c = MArray::from(x);
            c $assign MArray::from(y);
            assert_same(c, expected);

            // Scalars on both sides.
            let s = y[0];
            if x.iter().all(|x| defined(*x, s)) {
                let expected = x.map(|x| x $operator s);
                assert_same(a $operator s, expected);
                assert_same(MArray::from(x) $operator s, expected);
                let (mut c, mut d) = (a, MArray::from(x));
                c $assign s;
                d $assign s;
                assert_same(c, expected);
                assert_same(d, expected);
                n_checked += 1;
            }
            if y.iter().all(|y| defined(s, *y)) {
                let expected = y.map(|y| s $operator y);
                assert_same(s $operator b, expected);
                assert_same(s $operator MArray::from(y), expected);
                n_checked += 1;
            }
        }
        assert!(n_checked > 0, "{} {}", stringify!($type), stringify!($operator));
    };
}

macro_rules! integers {
    ($($type:ident)*) => { $(
        check!($type, 4, +, +=, |x, y| x.checked_add(y).is_some());
        check!($type, 3, -, -=, |x, y| x.checked_sub(y).is_some());
        check!($type, 8, *, *=, |x, y| x.checked_mul(y).is_some());
        check!($type, 2, /, /=, |x, y| x.checked_div(y).is_some());
        check!($type, 4, %, %=, |x, y| x.checked_rem(y).is_some());
        check!($type, 16, &, &=, |_, _| true);
        check!($type, 1, |, |=, |_, _| true);
        check!($type, 4, ^, ^=, |_, _| true);
        check!($type, 8, <<, <<=, |_, y| (0..8).contains(&y));
        check!($type, 4, >>, >>=, |_, y| (0..8).contains(&y));
        for (x, _) in $type::rows::<8>() {
            assert_same(!Vector::from(x), x.map(|x| !x));
            assert_same(!MArray::from(x), x.map(|x| !x));
        }
    )* };
}

macro_rules! floats {
    ($($type:ident)*) => { $(
        check!($type, 4, +, +=, |_, _| true);
        check!($type, 3, -, -=, |_, _| true);
        check!($type, 8, *, *=, |_, _| true);
        check!($type, 16, /, /=, |_, _| true);
        check!($type, 2, %, %=, |_, _| true);
        for (x, _) in $type::rows::<3>() {
            assert_same(-Vector::from(x), x.map(|x| -x));
            assert_same(-MArray::from(x), x.map(|x| -x));
        }
    )* };
}

#[test]
fn operators_do_what_those_of_the_elements_do() {
    integers! { i8 u8 i16 u16 i32 u32 i64 u64 }
    floats! { f32 f64 }
    assert_eq!(-Int2::new(3, -4), Int2::new(-3, 4));
}

macro_rules! comparisons {
    ($($type:ident $mask:ident;)*) => { $(
        for (x, y) in $type::rows::<4>() {
            let (a, b) = (Vector::from(x), Vector::from(y));
            let (c, d) = (MArray::from(x), MArray::from(y));
            let each = |f: fn(&$type, &$type) -> bool| -> [bool; 4] { std::array::from_fn(|i| f(&x[i], &y[i])) };
            let mask = |f| each(f).map(|truth| if truth { -1 } else { 0 as $mask });
            assert_same(a.eq_mask(b), mask($type::eq));
            assert_same(a.ne_mask(b), mask($type::ne));
            assert_same(a.lt_mask(b), mask($type::lt));
            assert_same(a.le_mask(b), mask($type::le));
            assert_same(a.gt_mask(b), mask($type::gt));
            assert_same(a.ge_mask(b), mask($type::ge));
            assert_same(c.eq_mask(d), each($type::eq));
            assert_same(c.ne_mask(d), each($type::ne));
            assert_same(c.lt_mask(d), each($type::lt));
            assert_same(c.le_mask(d), each($type::le));
            assert_same(c.gt_mask(d), each($type::gt));
            assert_same(c.ge_mask(d), each($type::ge));
            assert_eq!((a == b, c == d), (x == y, x == y));
        }
    )* };
}

#[test]
fn comparisons_give_masks_of_the_elements_size() {
    comparisons! { i8 i8; u8 i8; i16 i16; u16 i16; i32 i32; u32 i32; i64 i64; u64 i64; f32 i32; f64 i64; }
    let nan = Float4::splat(f32::NAN);
    assert!(nan != nan);
    assert_eq!(nan.ne_mask(nan), Int4::splat(-1));
}

/// The message of the panic of `f`.
fn panic_of(f: impl Fn() + std::panic::UnwindSafe) -> String {
    let message = catch_unwind(f).err().map(|payload| {
        let text = payload.downcast_ref::<&str>().map(|text| String::from(*text));
        text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_default()
    });
    message.unwrap_or_else(|| String::from("no panic"))
}

#[test]
fn what_panics_for_an_element_panics_for_the_vector() {
    let one = std::hint::black_box(1);
    let zero = std::hint::black_box(0);
    assert_eq!(panic_of(move || _ = Int2::new(4, 4) / Int2::new(one, zero)), "attempt to divide by zero");
    assert_eq!(
        panic_of(move || _ = MArray::from([4, 4]) % zero),
        "attempt to calculate the remainder with a divisor of zero"
    );
    // As for the elements: with a check in debug builds, which tests are.
    if cfg!(debug_assertions) {
        assert_eq!(panic_of(move || _ = Int2::splat(i32::MAX) + one), "attempt to add with overflow");
        assert_eq!(panic_of(move || _ = one << Int2::splat(32 * one)), "attempt to shift left with overflow");
        assert_eq!(panic_of(move || _ = -Int2::splat(i32::MIN * one)), "attempt to negate with overflow");
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Meters(f32);

impl std::ops::Add for Meters {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

#[test]
fn arrays_compute_with_elements_of_any_type() {
    let lengths = MArray::from([Meters(1.0), Meters(2.5)]);
    assert_eq!(lengths + lengths + Meters(0.5), MArray::from([Meters(2.5), Meters(5.5)]));
    let wrapping = MArray::<Wrapping<u8>, 3>::splat(Wrapping(200));
    assert_eq!(wrapping + wrapping, MArray::splat(Wrapping(144)));
    let flags = MArray::from([true, true, false, false]);
    let others = MArray::from([true, false, true, false]);
    assert_eq!((flags & others).to_array(), [true, false, false, false]);
    assert_eq!((flags | others).to_array(), [true, true, true, false]);
    assert_eq!((flags ^ !others).to_array(), [true, false, false, true]);
    assert_eq!(format!("{lengths:?}"), "MArray([Meters(1.0), Meters(2.5)])");
}

#[test]
fn values_may_be_constants() {
    const UNIT: Float4 = Float4::new(1.0, 0.0, 0.0, 1.0);
    const SCALE: MArray<f32, 3> = MArray::splat(2.0);
    assert_eq!((UNIT.w(), SCALE[2]), (1.0, 2.0));
}
