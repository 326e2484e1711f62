//! Relaxed atomic operations at any index from any work-item, and references for operations of other orders and scopes.

use oxisycl_types::Id;

use super::{AtomicElement, AtomicInteger, AtomicRef, AtomicValue, Relaxed, TakesOrder};
use crate::{Accessor, Atomic, InItem};

impl<T: AtomicValue, const D: usize> Accessor<'_, T, D, Atomic> {
    /// An element for operations of any order and scope. Its scope is the device.
    ///
    /// ```
    /// use oxisycl::atomic::{Acquire, Relaxed, Release};
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let (lock, count) = (Buffer::from_vec(vec![0u32])?, Buffer::from_vec(vec![0u32])?);
    /// Queue::default()?.submit(|cg| {
    ///     let (lock, count) = (cg.access(&lock, Atomic), cg.access(&count, Atomic));
    ///     cg.parallel_for(100, move |item| {
    ///         let (lock, count) = (lock.atomic_ref(item, 0), count.atomic_ref(item, 0));
    ///         // One attempt: work-items of a device may not wait for each other.
    ///         if lock.compare_exchange(0, 1, Acquire, Relaxed).is_ok() {
    ///             count.store(count.load(Relaxed) + 1, Relaxed);
    ///             lock.store(0, Release);
    ///         }
    ///     })
    /// })?;
    /// assert!((1..=100).contains(&count.to_vec()?[0]));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    /// If the index is outside the accessor's range.
    #[inline(always)]
    #[track_caller]
    pub fn atomic_ref<'k>(self, item: impl InItem<'k>, index: impl Into<Id<D>>) -> AtomicRef<'k, T> {
        let element = self.atomic_element(index);
        // SAFETY: the element is inside the accessor's range, whose memory outlives the kernel. An atomic accessor is the only way to it in
        // this command group.
        unsafe { AtomicRef::from_ptr(item, element) }
    }
}

macro_rules! operations {
    ($bound:path: $($(#[$doc:meta])* $name:ident($($argument:ident),*) with ($($order:ident),*) -> $result:ty;)*) => {
        impl<T: $bound, const D: usize> Accessor<'_, T, D, Atomic> { $(
            $(#[$doc])*
            ///
            /// # Panics
            /// If the index is outside the accessor's range.
            #[inline(always)]
            #[track_caller]
            pub fn $name<'k>(self, item: impl InItem<'k>, index: impl Into<Id<D>>, $($argument: T),*) -> $result {
                self.atomic_ref(item, index).$name($($argument,)* $($order),*)
            }
        )* }
    };
}

// The bound of both is one trait, and each is one function for all types. So a number without a type is an `i32` here, too.
operations! { TakesOrder<Relaxed>:
    /// Loads the element. A `u128` needs a device with the aspect `ExtOxisyclAtomic128`.
    load() with (Relaxed) -> T;
    /// Stores to the element. A `u128` needs a device with the aspect `ExtOxisyclAtomic128`.
    store(value) with (Relaxed) -> ();
}

operations! { AtomicElement:
    /// Stores to the element and returns its old value.
    exchange(value) with (Relaxed) -> T;
    /// Stores `new` if the element equals `current` (floats: has the same bits). `Ok` and `Err` hold the old value.
    compare_exchange(current, new) with (Relaxed, Relaxed) -> Result<T, T>;
    /// Stores `new` if the element equals `current`, as `compare_exchange` does, or fails without a reason. In a loop that is cheaper on some
    /// processors.
    compare_exchange_weak(current, new) with (Relaxed, Relaxed) -> Result<T, T>;
    /// Adds and returns the old value; integers wrap.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let total = Buffer::from_vec(vec![0])?;
    /// Queue::default()?.submit(|cg| {
    ///     let total = cg.access(&total, Atomic);
    ///     cg.parallel_for(10, move |item| {
    ///         total.fetch_add(item, 0, item.index() as u64);
    ///     })
    /// })?;
    /// assert_eq!(total.to_vec()?, [45]);
    /// # Ok(())
    /// # }
    /// ```
    fetch_add(value) with (Relaxed) -> T;
    /// Subtracts and returns the old value; integers wrap.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let total = Buffer::from_vec(vec![100])?;
    /// Queue::default()?.submit(|cg| {
    ///     let total = cg.access(&total, Atomic);
    ///     cg.parallel_for(10, move |item| {
    ///         total.fetch_sub(item, 0, item.index() as u64);
    ///     })
    /// })?;
    /// assert_eq!(total.to_vec()?, [55]);
    /// # Ok(())
    /// # }
    /// ```
    fetch_sub(value) with (Relaxed) -> T;
}

operations! { AtomicInteger:
    /// Keeps the bits that `value` has, too, and returns the old value.
    fetch_and(value) with (Relaxed) -> T;
    /// Adds the bits of `value`, and returns the old value.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let letters = Buffer::from_vec(b"abacus".to_vec())?;
    /// let present = Buffer::from_vec(vec![0u32])?;
    /// Queue::default()?.submit(|cg| {
    ///     let (letters, present) = (cg.access(&letters, Read), cg.access(&present, Atomic));
    ///     cg.parallel_for(6, move |item| {
    ///         present.fetch_or(item, 0, 1 << (letters.get(item) - b'a'));
    ///     })
    /// })?;
    /// assert_eq!(present.to_vec()?[0].count_ones(), 5);
    /// # Ok(())
    /// # }
    /// ```
    fetch_or(value) with (Relaxed) -> T;
    /// Inverts the bits of `value`, and returns the old value.
    fetch_xor(value) with (Relaxed) -> T;
}

impl<T: AtomicElement, const D: usize> Accessor<'_, T, D, Atomic> {
    /// Stores the smaller of the element and `value`, and returns the old value.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let total = Buffer::from_vec(vec![100u32])?;
    /// Queue::default()?.submit(|cg| {
    ///     let total = cg.access(&total, Atomic);
    ///     cg.parallel_for(10, move |item| {
    ///         total.fetch_min(item, 0, 7 + item.index() as u32);
    ///     })
    /// })?;
    /// assert_eq!(total.to_vec()?, [7]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    /// If the index is outside the accessor's range.
    #[inline(always)]
    #[track_caller]
    pub fn fetch_min<'k>(self, item: impl InItem<'k>, index: impl Into<Id<D>>, value: T) -> T {
        self.atomic_ref(item, index).fetch_min(value, Relaxed)
    }

    /// Stores the larger of the element and `value`, and returns the old value.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let total = Buffer::from_vec(vec![0u32])?;
    /// Queue::default()?.submit(|cg| {
    ///     let total = cg.access(&total, Atomic);
    ///     cg.parallel_for(10, move |item| {
    ///         total.fetch_max(item, 0, item.index() as u32);
    ///     })
    /// })?;
    /// assert_eq!(total.to_vec()?, [9]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    /// If the index is outside the accessor's range.
    #[inline(always)]
    #[track_caller]
    pub fn fetch_max<'k>(self, item: impl InItem<'k>, index: impl Into<Id<D>>, value: T) -> T {
        self.atomic_ref(item, index).fetch_max(value, Relaxed)
    }

    /// Stores `f` of the element, and returns the old value. `f` may be called several times.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let total = Buffer::from_vec(vec![1u32])?;
    /// Queue::default()?.submit(|cg| {
    ///     let total = cg.access(&total, Atomic);
    ///     cg.parallel_for(10, move |item| {
    ///         total.fetch_update(item, 0, |old| 2 * old);
    ///     })
    /// })?;
    /// assert_eq!(total.to_vec()?, [1024]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    /// If the index is outside the accessor's range.
    #[inline(always)]
    #[track_caller]
    pub fn fetch_update<'k>(self, item: impl InItem<'k>, index: impl Into<Id<D>>, f: impl FnMut(T) -> T) -> T {
        self.atomic_ref(item, index).fetch_update(Relaxed, f)
    }
}
