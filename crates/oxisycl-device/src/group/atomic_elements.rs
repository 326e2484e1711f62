//! A phase in which the elements of a tile are atomic.

use core::fmt;
use core::marker::PhantomData;

use super::memory::Elements;
use super::phase::PhaseArguments;
use crate::item::NotSend;
use crate::{AtomicElement, builtin};

/// Lends all elements to all work-items, for atomic operations.
pub struct Atomically<'a, M>(pub &'a mut M);

/// The elements of a tile in a phase in which they are atomic.
///
/// The operations are relaxed, atomic among the work-items of the group, and ordered with other phases.
pub struct AtomicElements<'p, T> {
    first: *mut T,
    len: usize,
    lifetime: PhantomData<(&'p mut [T], NotSend)>,
}

impl<T> Clone for AtomicElements<'_, T> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for AtomicElements<'_, T> {}

impl<T: AtomicElement> AtomicElements<'_, T> {
    /// The elements from `first` on, which are accessed atomically only for `'p`.
    #[inline(always)]
    pub(super) fn new(first: *mut T, len: usize) -> Self {
        Self { first, len, lifetime: PhantomData }
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

    #[inline(always)]
    #[track_caller]
    fn at(self, index: usize) -> *mut T {
        assert!(index < self.len, "index {index} of local memory of {} elements", self.len);
        self.first.wrapping_add(index)
    }

    /// Changes an element where one thread runs the whole group, as on the host: plain operations are atomic among its work-items.
    ///
    /// # Safety
    /// The element is in bounds, and this is native code.
    #[inline(always)]
    unsafe fn change(element: *mut T, f: impl FnOnce(T) -> T) -> T {
        // SAFETY: valid by contract, and neither sent to another thread nor written during the call: `f` is this module's.
        unsafe {
            let old = element.read();
            element.write(f(old));
            old
        }
    }
}

macro_rules! operations {
    ($($(#[$doc:meta])* $name:ident($value:ident) $device:path, |$old:ident| $new:expr;)*) => {
        impl<T: AtomicElement> AtomicElements<'_, T> { $(
            $(#[$doc])*
            ///
            /// # Panics
            /// If there is no element of that index.
            #[inline(always)]
            #[track_caller]
            pub fn $name(self, index: usize, $value: T) -> T {
                let element = self.at(index);
                // SAFETY: in bounds, and accessed by the operations of this type only as long as it exists.
                unsafe {
                    if builtin::is_device_code() {
                        $device(element, $value)
                    } else {
                        Self::change(element, |$old| $new)
                    }
                }
            }
        )* }
    };
}

operations! {
    /// Adds and returns the old value; integers wrap.
    fetch_add(value) T::fetch_add, |old| old.sum(value);
    /// Subtracts and returns the old value; integers wrap.
    fetch_sub(value) T::fetch_sub, |old| old.difference(value);
    /// Stores and returns the old value.
    exchange(value) T::exchange, |_old| value;
    /// Stores the smaller of the element and `value`, and returns the old value.
    fetch_min(value) T::fetch_min, |old| if value < old { value } else { old };
    /// Stores the larger of the element and `value`, and returns the old value.
    fetch_max(value) T::fetch_max, |old| if value > old { value } else { old };
}

impl<T: AtomicElement> AtomicElements<'_, T> {
    /// Loads an element.
    ///
    /// # Panics
    /// If there is no element of that index.
    #[inline(always)]
    #[track_caller]
    pub fn load(self, index: usize) -> T {
        let element = self.at(index);
        // SAFETY: as in the other operations.
        unsafe { if builtin::is_device_code() { T::load(element) } else { element.read() } }
    }

    /// Stores to an element.
    ///
    /// # Panics
    /// If there is no element of that index.
    #[inline(always)]
    #[track_caller]
    pub fn store(self, index: usize, value: T) {
        let element = self.at(index);
        // SAFETY: as in the other operations.
        unsafe { if builtin::is_device_code() { T::store(element, value) } else { element.write(value) } }
    }

    /// Stores `new` if the element equals `current` (floats: has the same bits). `Ok` and `Err` hold the old value.
    ///
    /// # Errors
    /// The element's value, if it is another one.
    ///
    /// # Panics
    /// If there is no element of that index.
    #[inline(always)]
    #[track_caller]
    pub fn compare_exchange(self, index: usize, current: T, new: T) -> Result<T, T> {
        // SAFETY: as in the other operations.
        unsafe { T::compare_exchange(self.at(index), current, new) }
    }

    /// Stores `f` of an element, and returns the old value. `f` may be called several times.
    ///
    /// # Panics
    /// If there is no element of that index.
    #[inline(always)]
    #[track_caller]
    pub fn fetch_update(self, index: usize, f: impl FnMut(T) -> T) -> T {
        // SAFETY: as in the other operations.
        unsafe { T::fetch_update(self.at(index), f) }
    }
}

// SAFETY: the elements are accessed atomically only.
unsafe impl<M: Elements<Element: AtomicElement>> PhaseArguments for Atomically<'_, M> {
    type Lent<'p> = AtomicElements<'p, M::Element>;
    type Raw = (*mut M::Element, usize);

    #[inline(always)]
    fn begin(self, _items: usize) -> Self::Raw {
        (self.0.first(), self.0.len())
    }

    #[inline(always)]
    unsafe fn item<'p>((first, len): Self::Raw, _id: usize, _items: usize) -> AtomicElements<'p, M::Element> {
        AtomicElements::new(first, len)
    }
}

impl<T> fmt::Debug for AtomicElements<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AtomicElements").field("len", &self.len).finish()
    }
}
