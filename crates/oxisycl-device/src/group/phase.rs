//! What a phase lends each of its work-items.
//!
//! A phase borrows tiles and private values for its duration. Work-items of the phase get parts that are disjoint, or shared and not
//! written, or atomic. So none of them can race with another, in whatever order they run.

use core::fmt;
use core::marker::PhantomData;
use core::ops::{Index, IndexMut};

use super::memory::{Elements, PrivateValues, Tile, TileSlice};
use crate::{DeviceCopyable, builtin};

/// What [`Group::for_each`](super::Group::for_each) may borrow, and a tuple of up to six of them:
///
/// | argument | each work-item gets |
/// |---|---|
/// | `&mut tile` | `&mut T`, the element of its local linear id |
/// | `&tile` | `&[T; N]`, all elements |
/// | `&mut values`, `&values` of private values | `&mut P`, `&P`, its own value |
/// | `Shares(&mut tile)` | [`Share`], the elements `id`, `id + n`, `id + 2 n`, .. with their indices |
/// | `Columns(&mut tile)` | [`Column`], the same elements by position |
/// | `Rows(&mut tile, n)` | `&mut [T]`, the elements from `n * id` on, `n` of them |
/// | `Atomically(&mut tile)` | [`AtomicElements`](super::AtomicElements), all elements for atomic operations |
///
/// Here `id` is the work-item's local linear id, and `n` in the third column the number of work-items, if the argument has none. For a slice of
/// local memory `&slice` gives `&[T]`. Implemented by this crate only.
///
/// # Safety
/// `begin` holds the borrow for `'p`. What `item` gives to two work-items of a phase is disjoint, or shared and not written, or atomic.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not what a phase can lend to work-items",
    note = "lend `&mut tile`, `&tile`, `&mut private`, `&private`, `Shares(&mut tile)`, `Columns(&mut tile)`, `Rows(&mut tile, n)`, \
            `Atomically(&mut tile)`, `()` or a tuple of up to six of them"
)]
pub unsafe trait PhaseArguments {
    /// What a work-item gets.
    type Lent<'p>;
    /// What it is made from.
    #[doc(hidden)]
    type Raw: Copy;

    /// The most work-items that it can be lent to one element or value at a time, if its type says so.
    #[doc(hidden)]
    const MOST: Option<usize> = None;

    /// Called once for each phase, with the number of work-items.
    ///
    /// # Panics
    /// If there is not enough for so many work-items.
    #[doc(hidden)]
    #[track_caller]
    fn begin(self, items: usize) -> Self::Raw;

    /// # Safety
    /// `raw` is what `begin` returned for as many items, and `id` is below their number. Each `id` gets its part once in a phase, and `'p`
    /// ends with the phase.
    #[doc(hidden)]
    unsafe fn item<'p>(raw: Self::Raw, id: usize, items: usize) -> Self::Lent<'p>;

    /// Calls `f` with a work-item's parts.
    ///
    /// # Safety
    /// See [`item`](Self::item).
    #[doc(hidden)]
    #[inline(always)]
    unsafe fn call<'p>(raw: Self::Raw, id: usize, items: usize, f: impl FnOnce(Self::Lent<'p>)) {
        // SAFETY: by the contract of this function.
        f(unsafe { Self::item(raw, id, items) })
    }
}

#[cold]
#[inline(never)]
#[track_caller]
fn too_few(elements: usize, items: usize) -> ! {
    panic!("local memory of {elements} elements is lent to {items} work-items, one element to each")
}

#[cold]
#[inline(never)]
#[track_caller]
fn too_few_values(values: usize, items: usize) -> ! {
    panic!("private values of a group of {values} work-items are lent to a phase of {items}")
}

#[cold]
#[inline(never)]
#[track_caller]
fn too_few_for_rows(elements: usize, items: usize, row: usize) -> ! {
    panic!("local memory of {elements} elements is lent to {items} work-items, rows of {row} elements to each")
}

macro_rules! tiles {
    ($([$($generics:tt)*] $tile:ty, $most:expr, $all:ty, |$this:ident| $whole:expr;)*) => { $(
        // SAFETY: each work-item gets the element of its own id.
        unsafe impl<T: DeviceCopyable, $($generics)*> PhaseArguments for &mut $tile {
            type Lent<'p> = &'p mut T;
            type Raw = *mut T;
            const MOST: Option<usize> = $most;

            #[inline(always)]
            #[track_caller]
            fn begin(self, items: usize) -> *mut T {
                if items > self.len() {
                    too_few(self.len(), items)
                }
                self.first()
            }

            #[inline(always)]
            unsafe fn item<'p>(first: *mut T, id: usize, _items: usize) -> &'p mut T {
                // SAFETY: `id < items <= len`, and no other work-item has it.
                unsafe { &mut *first.add(id) }
            }
        }

        // SAFETY: all work-items share the elements, and the borrow is shared.
        unsafe impl<T: DeviceCopyable, $($generics)*> PhaseArguments for &$tile {
            type Lent<'p> = &'p $all;
            type Raw = *const $all;

            #[inline(always)]
            fn begin(self, _items: usize) -> Self::Raw {
                let $this = self;
                $whole
            }

            #[inline(always)]
            unsafe fn item<'p>(all: Self::Raw, _id: usize, _items: usize) -> Self::Lent<'p> {
                // SAFETY: the elements are valid, and nothing writes them while they are borrowed.
                unsafe { &*all }
            }
        }
    )* };
}

tiles! {
    [const N: usize] Tile<'_, T, N>, Some(N), [T; N], |tile| tile.first().cast_const().cast();
    [] TileSlice<'_, T>, None, [T], |slice| core::ptr::slice_from_raw_parts(slice.first(), slice.len());
}

// SAFETY: each work-item gets its own value.
unsafe impl<P: DeviceCopyable> PhaseArguments for &mut PrivateValues<'_, P> {
    type Lent<'p> = &'p mut P;
    type Raw = *mut P;

    #[inline(always)]
    #[track_caller]
    fn begin(self, items: usize) -> *mut P {
        if items > self.len() {
            too_few_values(self.len(), items)
        }
        self.first_mut()
    }

    #[inline(always)]
    unsafe fn item<'p>(first: *mut P, id: usize, _items: usize) -> &'p mut P {
        // SAFETY: there are as many values as work-items; on a device it is the work-item's variable.
        unsafe { if builtin::is_device_code() { &mut *first } else { &mut *first.add(id) } }
    }
}

// SAFETY: each work-item gets its own value.
unsafe impl<P: DeviceCopyable> PhaseArguments for &PrivateValues<'_, P> {
    type Lent<'p> = &'p P;
    type Raw = *const P;

    #[inline(always)]
    #[track_caller]
    fn begin(self, items: usize) -> *const P {
        if items > self.len() {
            too_few_values(self.len(), items)
        }
        self.first()
    }

    #[inline(always)]
    unsafe fn item<'p>(first: *const P, id: usize, _items: usize) -> &'p P {
        // SAFETY: as above.
        unsafe { if builtin::is_device_code() { &*first } else { &*first.add(id) } }
    }
}

/// Lends each work-item the elements `id`, `id + n`, `id + 2 n` and so on of a tile of any length. `id` is its local linear id and `n` the
/// number of work-items. Neighbouring work-items have neighbouring elements, as memory likes it best on devices.
pub struct Shares<'a, M>(pub &'a mut M);

/// Lends the elements that [`Shares`] lends, by their position in the work-item's share.
pub struct Columns<'a, M>(pub &'a mut M);

/// Lends each work-item a row of elements, as long as the second field says.
pub struct Rows<'a, M>(pub &'a mut M, pub usize);

/// A work-item's elements of [`Shares`]: an iterator over their indices in the tile and the elements.
pub struct Share<'p, T> {
    first: *mut T,
    len: usize,
    next: usize,
    step: usize,
    lifetime: PhantomData<&'p mut [T]>,
}

impl<'p, T> Iterator for Share<'p, T> {
    type Item = (usize, &'p mut T);

    #[inline(always)]
    fn next(&mut self) -> Option<(usize, &'p mut T)> {
        let index = self.next;
        if index >= self.len {
            return None;
        }
        // No overflow to zero: `step` is not zero, and a group has fewer items than there are addresses left after any memory.
        self.next = index.saturating_add(self.step);
        // SAFETY: inside the tile, and an element of this work-item alone, which is given away once.
        Some((index, unsafe { &mut *self.first.add(index) }))
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.len.saturating_sub(self.next).div_ceil(self.step);
        (left, Some(left))
    }
}

impl<T> ExactSizeIterator for Share<'_, T> {}
impl<T> core::iter::FusedIterator for Share<'_, T> {}

/// A work-item's elements of [`Columns`].
pub struct Column<'p, T> {
    first: *mut T,
    len: usize,
    step: usize,
    lifetime: PhantomData<&'p mut [T]>,
}

impl<T> Column<'_, T> {
    /// How many elements there are.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The address of an element.
    #[inline(always)]
    #[track_caller]
    fn at(&self, position: usize) -> *mut T {
        assert!(position < self.len, "position {position} of a column of {} elements", self.len);
        // The product is the index of an element of the tile.
        self.first.wrapping_add(position * self.step)
    }
}

impl<T> Index<usize> for Column<'_, T> {
    type Output = T;
    #[inline(always)]
    #[track_caller]
    fn index(&self, position: usize) -> &T {
        // SAFETY: an element of this work-item alone.
        unsafe { &*self.at(position) }
    }
}

impl<T> IndexMut<usize> for Column<'_, T> {
    #[inline(always)]
    #[track_caller]
    fn index_mut(&mut self, position: usize) -> &mut T {
        // SAFETY: an element of this work-item alone.
        unsafe { &mut *self.at(position) }
    }
}

// SAFETY: shares are disjoint.
unsafe impl<M: Elements> PhaseArguments for Shares<'_, M> {
    type Lent<'p> = Share<'p, M::Element>;
    type Raw = (*mut M::Element, usize);

    #[inline(always)]
    fn begin(self, _items: usize) -> Self::Raw {
        (self.0.first(), self.0.len())
    }

    #[inline(always)]
    unsafe fn item<'p>((first, len): Self::Raw, id: usize, items: usize) -> Share<'p, M::Element> {
        Share { first, len, next: id, step: items, lifetime: PhantomData }
    }
}

// SAFETY: columns are disjoint.
unsafe impl<M: Elements> PhaseArguments for Columns<'_, M> {
    type Lent<'p> = Column<'p, M::Element>;
    type Raw = (*mut M::Element, usize);

    #[inline(always)]
    fn begin(self, _items: usize) -> Self::Raw {
        (self.0.first(), self.0.len())
    }

    #[inline(always)]
    unsafe fn item<'p>((first, len): Self::Raw, id: usize, items: usize) -> Column<'p, M::Element> {
        let n = len.saturating_sub(id).div_ceil(items);
        Column { first: first.wrapping_add(id), len: n, step: items, lifetime: PhantomData }
    }
}

// SAFETY: rows are disjoint.
unsafe impl<M: Elements> PhaseArguments for Rows<'_, M> {
    type Lent<'p> = &'p mut [M::Element];
    type Raw = (*mut M::Element, usize);

    #[inline(always)]
    #[track_caller]
    fn begin(self, items: usize) -> Self::Raw {
        let Rows(memory, row) = self;
        if items.checked_mul(row).is_none_or(|n| n > memory.len()) {
            too_few_for_rows(memory.len(), items, row)
        }
        (memory.first(), row)
    }

    #[inline(always)]
    unsafe fn item<'p>((first, row): Self::Raw, id: usize, _items: usize) -> &'p mut [M::Element] {
        // SAFETY: `begin` has checked that the rows of all work-items lie inside; no other work-item has this one.
        unsafe { core::slice::from_raw_parts_mut(first.add(id * row), row) }
    }
}

// SAFETY: it lends nothing.
unsafe impl PhaseArguments for () {
    type Lent<'p> = ();
    type Raw = ();

    #[inline(always)]
    fn begin(self, _items: usize) {}

    #[inline(always)]
    unsafe fn item<'p>(_raw: (), _id: usize, _items: usize) -> Self::Lent<'p> {}
}

/// Calls `f` with parts that came as parameters of their own, of which compilers know that references do not overlap. `track_caller` keeps rustc's own
/// inlining away, which comes before LLVM and forgets what parameters promise.
macro_rules! by_parameters {
    ($($function:ident($($part:ident: $name:ident),*))*) => { $(
        #[track_caller]
        #[inline]
        #[allow(clippy::too_many_arguments)]
        fn $function<$($name),*>($($part: $name,)* f: impl FnOnce(($($name,)*))) {
            f(($($part,)*))
        }
    )* };
}

by_parameters! {
    call_1(a: A)
    call_2(a: A, b: B)
    call_3(a: A, b: B, c: C)
    call_4(a: A, b: B, c: C, d: E)
    call_5(a: A, b: B, c: C, d: E, e: G)
    call_6(a: A, b: B, c: C, d: E, e: G, f_: H)
}

/// The smaller of two numbers, of which each may be missing.
const fn smaller(a: Option<usize>, b: Option<usize>) -> Option<usize> {
    match (a, b) {
        (Some(a), Some(b)) => Some(if a < b { a } else { b }),
        (Some(one), None) | (None, Some(one)) => Some(one),
        (None, None) => None,
    }
}

macro_rules! tuples {
    ($($function:ident($($name:ident $index:tt),*))*) => { $(
        // SAFETY: each part is, and they borrow different things.
        unsafe impl<$($name: PhaseArguments),*> PhaseArguments for ($($name,)*) {
            type Lent<'p> = ($($name::Lent<'p>,)*);
            type Raw = ($($name::Raw,)*);
            const MOST: Option<usize> = {
                let mut most = None;
                $(most = smaller(most, $name::MOST);)*
                most
            };

            #[inline(always)]
            #[track_caller]
            fn begin(self, items: usize) -> Self::Raw {
                ($(self.$index.begin(items),)*)
            }

            #[inline(always)]
            unsafe fn item<'p>(raw: Self::Raw, id: usize, items: usize) -> Self::Lent<'p> {
                // SAFETY: by the contract of this function.
                unsafe { ($($name::item(raw.$index, id, items),)*) }
            }

            #[inline(always)]
            unsafe fn call<'p>(raw: Self::Raw, id: usize, items: usize, f: impl FnOnce(Self::Lent<'p>)) {
                // SAFETY: by the contract of this function.
                $function($(unsafe { $name::item(raw.$index, id, items) },)* f)
            }
        }
    )* };
}

tuples! {
    call_1(A 0)
    call_2(A 0, B 1)
    call_3(A 0, B 1, C 2)
    call_4(A 0, B 1, C 2, E 3)
    call_5(A 0, B 1, C 2, E 3, G 4)
    call_6(A 0, B 1, C 2, E 3, G 4, H 5)
}

impl<T> fmt::Debug for Share<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Share").field("next", &self.next).field("step", &self.step).field("len", &self.len).finish()
    }
}

impl<T> fmt::Debug for Column<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Column").field("len", &self.len).field("step", &self.step).finish()
    }
}
