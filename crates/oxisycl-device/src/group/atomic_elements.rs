//! A phase in which the elements of a tile are atomic.

use core::fmt;
use core::marker::PhantomData;

use super::memory::Elements;
use super::phase::PhaseArguments;
use crate::atomic::{AtomicElement, AtomicInteger, AtomicRef, AtomicValue, Relaxed, TakesOrder};
use crate::item::NotSend;

/// Lends all elements to all work-items, for atomic operations.
pub struct Atomically<'a, M>(pub &'a mut M);

/// The elements of a tile in a phase in which they are atomic.
///
/// Its own operations are relaxed, atomic among the work-items of the group, and ordered with other phases.
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

impl<'p, T: AtomicValue> AtomicElements<'p, T> {
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

    /// An element for operations of any order. Its scope is the group.
    ///
    /// ```
    /// use oxisycl::atomic::{Acquire, Relaxed, Release};
    /// use oxisycl::group::{Atomically, Fixed1, Local, Shares};
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let missed = Buffer::from_vec(vec![0u32])?;
    /// Queue::default()?.submit(|cg| {
    ///     let missed = cg.access(&missed, Atomic);
    ///     cg.parallel_for_work_group(4, Fixed1::<64>, Local::<u32, 2>::new(), move |mut group, mut words| {
    ///         group.for_each(Shares(&mut words), move |_, share| share.for_each(|(_, word)| *word = 0));
    ///         group.for_each(Atomically(&mut words), move |item, words| {
    ///             let (number, flag) = (words.atomic_ref(0), words.atomic_ref(1));
    ///             if item.local_linear_id() == 0 {
    ///                 number.store(42, Relaxed);
    ///                 flag.store(1, Release);
    ///             } else if flag.load(Acquire) == 1 && number.load(Relaxed) != 42 {
    ///                 missed.fetch_add(item, 0, 1);
    ///             }
    ///         });
    ///     })
    /// })?;
    /// assert_eq!(missed.to_vec()?, [0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    /// If there is no element of that index.
    #[inline(always)]
    #[track_caller]
    pub fn atomic_ref(self, index: usize) -> AtomicRef<'p, T> {
        assert!(index < self.len, "index {index} of local memory of {} elements", self.len);
        // SAFETY: in bounds, and lent to atomic operations of the group's work-items alone for the phase, during which `'p` ends.
        unsafe { AtomicRef::local(self.first.wrapping_add(index)) }
    }
}

macro_rules! operations {
    ($bound:path: $($(#[$doc:meta])* $name:ident($($argument:ident),*) with ($($order:ident),*) -> $result:ty;)*) => {
        impl<T: $bound> AtomicElements<'_, T> { $(
            $(#[$doc])*
            ///
            /// # Panics
            /// If there is no element of that index.
            #[inline(always)]
            #[track_caller]
            pub fn $name(self, index: usize, $($argument: T),*) -> $result {
                self.atomic_ref(index).$name($($argument,)* $($order),*)
            }
        )* }
    };
}

operations! { TakesOrder<Relaxed>:
    /// Loads an element. A `u128` needs a device with the aspect `ExtOxisyclAtomic128`.
    load() with (Relaxed) -> T;
    /// Stores to an element. A `u128` needs a device with the aspect `ExtOxisyclAtomic128`.
    store(value) with (Relaxed) -> ();
}

operations! { AtomicElement:
    /// Stores and returns the old value.
    exchange(value) with (Relaxed) -> T;
    /// Stores `new` if the element equals `current` (floats: has the same bits). `Ok` and `Err` hold the old value.
    ///
    /// # Errors
    /// The element's value, if it is another one.
    compare_exchange(current, new) with (Relaxed, Relaxed) -> Result<T, T>;
    /// Stores `new` if the element equals `current`, as `compare_exchange` does, or fails without a reason. In a loop that is cheaper on some
    /// processors.
    ///
    /// # Errors
    /// The element's value, if nothing was stored.
    compare_exchange_weak(current, new) with (Relaxed, Relaxed) -> Result<T, T>;
    /// Adds and returns the old value; integers wrap.
    fetch_add(value) with (Relaxed) -> T;
    /// Subtracts and returns the old value; integers wrap.
    fetch_sub(value) with (Relaxed) -> T;
    /// Stores the smaller of the element and `value`, and returns the old value.
    fetch_min(value) with (Relaxed) -> T;
    /// Stores the larger of the element and `value`, and returns the old value.
    fetch_max(value) with (Relaxed) -> T;
}

operations! { AtomicInteger:
    /// Keeps the bits that `value` has, too, and returns the old value.
    fetch_and(value) with (Relaxed) -> T;
    /// Adds the bits of `value`, and returns the old value.
    fetch_or(value) with (Relaxed) -> T;
    /// Inverts the bits of `value`, and returns the old value.
    fetch_xor(value) with (Relaxed) -> T;
}

impl<T: AtomicElement> AtomicElements<'_, T> {
    /// Stores `f` of an element, and returns the old value. `f` may be called several times.
    ///
    /// # Panics
    /// If there is no element of that index.
    #[inline(always)]
    #[track_caller]
    pub fn fetch_update(self, index: usize, f: impl FnMut(T) -> T) -> T {
        self.atomic_ref(index).fetch_update(Relaxed, f)
    }
}

// SAFETY: the elements are accessed atomically only.
unsafe impl<M: Elements<Element: AtomicValue>> PhaseArguments for Atomically<'_, M> {
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
