//! Local memory of kernels over an nd-range.

use core::fmt;
use core::marker::PhantomData;

use crate::DeviceCopyable;
use crate::advice::AnyBits;
use crate::atomic::AtomicValue;
use crate::group::AtomicElements;
use crate::group::memory::{Elements, GroupArguments, Local, LocalSlice};
use crate::item::{Brand, NotSend};
use crate::slices::slice;

/// Memory that a launch over an nd-range gives each group: [`Local`], [`LocalSlice`], `()`, and tuples of up to six of them. Implemented by this
/// crate only.
///
/// # Safety
/// The handles that `accessors` makes may exist once for each work-item.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not local memory of a kernel over an nd-range",
    note = "use `Local`, `LocalSlice`, `()` or a tuple of up to six of them; a work-item's own values are variables of the kernel"
)]
pub unsafe trait NdArguments: GroupArguments {
    /// What each work-item gets.
    type Accessors<'wi>;

    /// Makes them of the handles of one work-item.
    #[doc(hidden)]
    fn accessors<'wi>(bound: Self::Bound<'wi>) -> Self::Accessors<'wi>;
}

/// An array in the local memory of the group (SYCL 2020 section 4.7.6.11), which all of its work-items access.
///
/// Its elements have unspecified values when a group begins. That no two work-items access an element at the same time, one of them to write, is what its
/// methods ask for: barriers order accesses.
pub struct LocalAccessor<'wi, T> {
    first: *mut T,
    len: usize,
    brand: Brand<'wi>,
    not_send: NotSend,
}

impl<T> Clone for LocalAccessor<'_, T> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for LocalAccessor<'_, T> {}

impl<'wi, T: DeviceCopyable> LocalAccessor<'wi, T> {
    fn of<M: Elements<Element = T>>(memory: M) -> Self {
        Self { first: memory.first(), len: memory.len(), brand: PhantomData, not_send: PhantomData }
    }

    /// How many elements there are.
    #[inline(always)]
    pub fn len(self) -> usize {
        self.len
    }

    /// Whether there are none.
    #[inline(always)]
    pub fn is_empty(self) -> bool {
        self.len == 0
    }

    /// The address of the first element.
    #[inline(always)]
    pub fn as_ptr(self) -> *mut T {
        self.first
    }

    #[inline(always)]
    #[track_caller]
    fn at(self, index: usize) -> *mut T {
        if index >= self.len {
            out_of_local_memory(index, self.len);
        }
        self.first.wrapping_add(index)
    }

    /// An element.
    ///
    /// # Panics
    /// If there is no element of that index.
    ///
    /// # Safety
    /// No other work-item writes it since the last barrier, or until the next one.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn get(self, index: usize) -> T {
        // SAFETY: an element; the rest is the contract of this function.
        unsafe { self.at(index).read() }
    }

    /// Writes an element.
    ///
    /// # Panics
    /// If there is no element of that index.
    ///
    /// # Safety
    /// No other work-item accesses it since the last barrier, or until the next one.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn set(self, index: usize, value: T) {
        // SAFETY: an element; the rest is the contract of this function.
        unsafe { self.at(index).write(value) }
    }

    /// All elements.
    ///
    /// # Safety
    /// No work-item writes any of them since the last barrier, or as long as the slice exists.
    #[inline(always)]
    pub unsafe fn as_slice<'s>(self) -> &'s [T]
    where
        'wi: 's,
    {
        // SAFETY: the elements are the group's, and exist as long as its work-items; the rest is the contract of this function.
        unsafe { slice(self.first, self.len) }
    }

    /// All elements, for atomic operations.
    ///
    /// # Safety
    /// All accesses of work-items are atomic, since the last barrier and as long as a copy of the result exists.
    #[inline(always)]
    pub unsafe fn atomically(self) -> AtomicElements<'wi, T>
    where
        T: AtomicValue,
    {
        AtomicElements::new(self.first, self.len)
    }
}

/// Takes numbers: a work-item whose variables a message refers to would keep them in memory before each check.
#[cold]
#[inline(never)]
#[track_caller]
fn out_of_local_memory(index: usize, len: usize) -> ! {
    panic!("index {index} of local memory of {len} elements")
}

impl<T> fmt::Debug for LocalAccessor<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalAccessor").field("len", &self.len).finish()
    }
}

// SAFETY: an accessor is a pointer, by which access is unsafe.
unsafe impl<T: DeviceCopyable + AnyBits, const N: usize> NdArguments for Local<T, N> {
    type Accessors<'wi> = LocalAccessor<'wi, T>;

    #[inline(always)]
    fn accessors<'wi>(bound: Self::Bound<'wi>) -> LocalAccessor<'wi, T> {
        LocalAccessor::of(bound)
    }
}

// SAFETY: as above.
unsafe impl<T: DeviceCopyable + AnyBits> NdArguments for LocalSlice<T> {
    type Accessors<'wi> = LocalAccessor<'wi, T>;

    #[inline(always)]
    fn accessors<'wi>(bound: Self::Bound<'wi>) -> LocalAccessor<'wi, T> {
        LocalAccessor::of(bound)
    }
}

// SAFETY: nothing.
unsafe impl NdArguments for () {
    type Accessors<'wi> = ();

    #[inline(always)]
    fn accessors<'wi>((): ()) -> Self::Accessors<'wi> {}
}

macro_rules! tuples {
    ($(($($name:ident $index:tt),*))*) => { $(
        // SAFETY: as each part.
        unsafe impl<$($name: NdArguments),*> NdArguments for ($($name,)*) {
            type Accessors<'wi> = ($($name::Accessors<'wi>,)*);

            #[inline(always)]
            fn accessors<'wi>(bound: Self::Bound<'wi>) -> Self::Accessors<'wi> {
                ($($name::accessors(bound.$index),)*)
            }
        }
    )* };
}

tuples! {
    (A 0)
    (A 0, B 1)
    (A 0, B 1, C 2)
    (A 0, B 1, C 2, E 3)
    (A 0, B 1, C 2, E 3, G 4)
    (A 0, B 1, C 2, E 3, G 4, H 5)
}
