//! A reference to an element for atomic operations of any order and scope.

use core::fmt;
use core::marker::PhantomData;

use super::{AtomicElement, AtomicInteger, AtomicValue, LoadOrder, Order, Relaxed, Scope, StoreOrder, TakesOrder};
use crate::InItem;
use crate::builtin::{in_turn, is_device_code};
use crate::item::NotSend;

/// An element for atomic operations, in the hands of one work-item (SYCL 2020 `atomic_ref`).
///
/// Made by [`Accessor::atomic_ref`](crate::Accessor::atomic_ref), by
/// [`AtomicElements::atomic_ref`](crate::group::AtomicElements::atomic_ref), by `UsmPointer::atomic_ref`, or from an address. It stays in
/// the call of the kernel, or in the phase, that it was made in, and with its work-item.
///
/// The [scope](Scope) is a property of the reference: the device, and the group in local memory. A wider one is there for the asking; a narrower one is a
/// promise. Each operation names its order.
///
/// ```
/// use oxisycl::atomic::{AcqRel, Scope};
/// use oxisycl::prelude::*;
///
/// # fn main() -> oxisycl::Result {
/// let tickets = Buffer::from_vec(vec![0u32])?;
/// let numbers = Buffer::<u32, 1>::uninit(8)?;
/// Queue::default()?.submit(|cg| {
///     let (tickets, numbers) = (cg.access(&tickets, Atomic), cg.access(&numbers, Write));
///     cg.parallel_for(8, move |item| {
///         let next = tickets.atomic_ref(item, 0).with_scope(Scope::Device);
///         numbers.set(item, next.fetch_add(1, AcqRel));
///     })
/// })?;
/// let mut numbers = numbers.to_vec()?;
/// numbers.sort();
/// assert_eq!(numbers, [0, 1, 2, 3, 4, 5, 6, 7]);
/// # Ok(())
/// # }
/// ```
pub struct AtomicRef<'k, T> {
    pointer: *mut T,
    scope: Scope,
    /// Whether only the work-items of one group can reach the element. In native code one thread runs them all.
    is_local: bool,
    lifetime: PhantomData<(&'k T, NotSend)>,
}

impl<T> Clone for AtomicRef<'_, T> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for AtomicRef<'_, T> {}

impl<'k, T: AtomicValue> AtomicRef<'k, T> {
    /// The alignment of an element in bytes (SYCL 2020 `required_alignment`), which [`from_ptr`](Self::from_ptr) asks of an address: its size.
    pub const REQUIRED_ALIGNMENT: usize = size_of::<T>();

    /// Whether operations need no lock on any processor or device (SYCL 2020 `is_always_lock_free`). Only for `u128` some processors need one.
    ///
    /// ```
    /// use oxisycl::atomic::AtomicRef;
    ///
    /// assert!(AtomicRef::<f64>::IS_ALWAYS_LOCK_FREE && !AtomicRef::<u128>::IS_ALWAYS_LOCK_FREE);
    /// assert_eq!((AtomicRef::<f64>::REQUIRED_ALIGNMENT, AtomicRef::<u128>::REQUIRED_ALIGNMENT), (8, 16));
    /// ```
    pub const IS_ALWAYS_LOCK_FREE: bool = T::IS_ALWAYS_LOCK_FREE;

    /// A reference to what an address leads to, with the scope of the device.
    ///
    /// # Safety
    /// The address is valid and aligned to the size of `T` for as long as the kernel runs. Until then, the value there is accessed by
    /// atomic operations only.
    #[inline(always)]
    pub unsafe fn from_ptr(_item: impl InItem<'k>, pointer: *mut T) -> Self {
        Self { pointer, scope: Scope::Device, is_local: false, lifetime: PhantomData }
    }

    /// A reference to an element of local memory.
    ///
    /// # Safety
    /// As for [`from_ptr`](Self::from_ptr), during `'k`. Only work-items of one group reach the element.
    #[inline(always)]
    pub(crate) unsafe fn local(pointer: *mut T) -> Self {
        Self { pointer, scope: Scope::WorkGroup, is_local: true, lifetime: PhantomData }
    }

    /// A reference to this element with a narrower scope, of which some devices order less. A wider one is not taken.
    ///
    /// ```
    /// use oxisycl::atomic::{Relaxed, Scope};
    /// use oxisycl::group::Fixed1;
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let totals = Buffer::from_vec(vec![0u32; 4])?;
    /// Queue::default()?.submit(|cg| {
    ///     let totals = cg.access(&totals, Atomic);
    ///     cg.parallel_for_work_group(4, Fixed1::<16>, (), move |mut group, ()| {
    ///         let own = group.id();
    ///         group.for_each((), move |item, ()| {
    ///             // SAFETY: each group has an element of its own.
    ///             let total = unsafe { totals.atomic_ref(item, own).with_narrow_scope(Scope::WorkGroup) };
    ///             total.fetch_add(1, Relaxed);
    ///         });
    ///     })
    /// })?;
    /// assert_eq!(totals.to_vec()?, [16; 4]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Safety
    /// As long as an operation of the result may run, all accesses of the element are those of work-items in the scope.
    #[inline(always)]
    #[must_use]
    pub unsafe fn with_narrow_scope(self, scope: Scope) -> Self {
        Self { scope: scope.min(self.scope), ..self }
    }

    /// The scope of the operations.
    #[inline(always)]
    pub fn scope(self) -> Scope {
        self.scope
    }

    /// Whether operations on this element need no lock where this runs (SYCL 2020 `is_lock_free`).
    #[inline(always)]
    pub fn is_lock_free(self) -> bool {
        // Native code needs none in local memory, which one thread has.
        (self.is_local && !is_device_code()) || T::is_lock_free()
    }

    /// Whether plain operations are atomic: one thread runs all work-items that can reach the element.
    #[inline(always)]
    fn is_plain(self) -> bool {
        let is_plain = self.is_local && !is_device_code();
        if is_plain {
            in_turn();
        }
        is_plain
    }

    /// Loads the element.
    ///
    /// ```
    /// use oxisycl::atomic::Acquire;
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let (number, copies) = (Buffer::from_vec(vec![7u32])?, Buffer::from_vec(vec![0u32; 4])?);
    /// Queue::default()?.submit(|cg| {
    ///     let (number, copies) = (cg.access(&number, Atomic), cg.access(&copies, Write));
    ///     cg.parallel_for(4, move |item| copies.set(item, number.atomic_ref(item, 0).load(Acquire)))
    /// })?;
    /// assert_eq!(copies.to_vec()?, [7; 4]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// All bits of a `u128` come from the same store. It needs a device with the aspect `ExtOxisyclAtomic128`.
    ///
    /// ```
    /// use oxisycl::atomic::Relaxed;
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// // A sum, and in the upper half whether it is there.
    /// let state = Buffer::from_vec(vec![0u128])?;
    /// let wrong = Buffer::from_vec(vec![0u32])?;
    /// Queue::default()?.submit(|cg| {
    ///     let (state, wrong) = (cg.access(&state, Atomic), cg.access(&wrong, Atomic));
    ///     cg.parallel_for(1000, move |item| {
    ///         let state = state.atomic_ref(item, 0);
    ///         if item.index() == 0 {
    ///             state.store(1 << 64 | 4950, Relaxed);
    ///         } else {
    ///             let seen = state.load(Relaxed);
    ///             if seen >> 64 == 1 && seen as u64 != 4950 {
    ///                 wrong.fetch_add(item, 0, 1);
    ///             }
    ///         }
    ///     })
    /// })?;
    /// assert_eq!(wrong.to_vec()?, [0]);
    /// # Ok(())
    /// # }
    /// ```
    #[inline(always)]
    pub fn load<O: LoadOrder>(self, _order: O) -> T
    where
        T: TakesOrder<O>,
    {
        // SAFETY: valid as the maker of the reference said, and only accessed atomically, or by one thread alone.
        unsafe { if self.is_plain() { self.pointer.read() } else { T::load(self.pointer, O::ORDER, self.scope) } }
    }

    /// Stores to the element.
    ///
    /// ```
    /// use oxisycl::atomic::Release;
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let flag = Buffer::from_vec(vec![0u32])?;
    /// Queue::default()?.submit(|cg| {
    ///     let flag = cg.access(&flag, Atomic);
    ///     cg.parallel_for(4, move |item| flag.atomic_ref(item, 0).store(1, Release))
    /// })?;
    /// assert_eq!(flag.to_vec()?, [1]);
    /// # Ok(())
    /// # }
    /// ```
    #[inline(always)]
    pub fn store<O: StoreOrder>(self, value: T, _order: O)
    where
        T: TakesOrder<O>,
    {
        // SAFETY: as in `load`.
        unsafe {
            if self.is_plain() {
                self.pointer.write(value);
            } else {
                T::store(self.pointer, value, O::ORDER, self.scope);
            }
        }
    }
}

impl<T: AtomicElement> AtomicRef<'_, T> {
    /// A reference to this element with a scope that is at least as wide as its own. In local memory a scope wider than the group is that of the
    /// group.
    ///
    /// ```
    /// use oxisycl::atomic::{Relaxed, Scope};
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let total = Buffer::from_vec(vec![0u32])?;
    /// Queue::default()?.submit(|cg| {
    ///     let total = cg.access(&total, Atomic);
    ///     cg.parallel_for(10, move |item| {
    ///         let total = total.atomic_ref(item, 0).with_scope(Scope::System);
    ///         assert_eq!(total.scope(), Scope::System);
    ///         total.fetch_add(1, Relaxed);
    ///     })
    /// })?;
    /// assert_eq!(total.to_vec()?, [10]);
    /// # Ok(())
    /// # }
    /// ```
    #[inline(always)]
    #[must_use]
    pub fn with_scope(self, scope: Scope) -> Self {
        let scope = if self.is_local || scope < self.scope { self.scope } else { scope };
        Self { scope, ..self }
    }

    /// Changes the element by plain operations.
    ///
    /// # Safety
    /// [`is_plain`](Self::is_plain), and `f` accesses no elements.
    #[inline(always)]
    unsafe fn change(self, f: impl FnOnce(T) -> T) -> T {
        // SAFETY: valid as the maker of the reference said, and not accessed by another thread, nor by `f`.
        unsafe {
            let old = self.pointer.read();
            self.pointer.write(f(old));
            old
        }
    }

    /// Stores `new` if the element equals `current` (floats: has the same bits). `Ok` and `Err` hold the old value. The second order is that
    /// of a load that found another value.
    ///
    /// ```
    /// use oxisycl::atomic::{AcqRel, Relaxed};
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let winner = Buffer::from_vec(vec![u32::MAX])?;
    /// Queue::default()?.submit(|cg| {
    ///     let winner = cg.access(&winner, Atomic);
    ///     cg.parallel_for(4, move |item| {
    ///         let _ = winner.atomic_ref(item, 0).compare_exchange(u32::MAX, item.index() as u32, AcqRel, Relaxed);
    ///     })
    /// })?;
    /// assert!(winner.to_vec()?[0] < 4);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The element's value, if it is another one.
    #[inline(always)]
    pub fn compare_exchange<O: Order, F: LoadOrder>(
        self,
        current: T,
        new: T,
        _success: O,
        _failure: F,
    ) -> Result<T, T> {
        // SAFETY: as in `load`.
        unsafe { T::compare_exchange(self.pointer, current, new, (O::ORDER, F::ORDER), self.scope) }
    }

    /// Stores `new` if the element equals `current`, as `compare_exchange` does, or fails without a reason. In a loop that is cheaper on some
    /// processors.
    ///
    /// ```
    /// use oxisycl::atomic::Relaxed;
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let product = Buffer::from_vec(vec![1u32])?;
    /// Queue::default()?.submit(|cg| {
    ///     let product = cg.access(&product, Atomic);
    ///     cg.parallel_for(4, move |item| {
    ///         let product = product.atomic_ref(item, 0);
    ///         let mut seen = product.load(Relaxed);
    ///         while let Err(now) = product.compare_exchange_weak(seen, seen * 2, Relaxed, Relaxed) {
    ///             seen = now;
    ///         }
    ///     })
    /// })?;
    /// assert_eq!(product.to_vec()?, [16]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The element's value, if nothing was stored.
    #[inline(always)]
    pub fn compare_exchange_weak<O: Order, F: LoadOrder>(
        self,
        current: T,
        new: T,
        _success: O,
        _failure: F,
    ) -> Result<T, T> {
        // SAFETY: as in `load`.
        unsafe { T::compare_exchange_weak(self.pointer, current, new, (O::ORDER, F::ORDER), self.scope) }
    }

    /// Stores `f` of the element, and returns the old value. `f` may be called several times.
    ///
    /// ```
    /// use oxisycl::atomic::SeqCst;
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let power = Buffer::from_vec(vec![1u32])?;
    /// Queue::default()?.submit(|cg| {
    ///     let power = cg.access(&power, Atomic);
    ///     cg.parallel_for(10, move |item| {
    ///         power.atomic_ref(item, 0).fetch_update(SeqCst, |old| 2 * old);
    ///     })
    /// })?;
    /// assert_eq!(power.to_vec()?, [1024]);
    /// # Ok(())
    /// # }
    /// ```
    #[inline(always)]
    pub fn fetch_update<O: Order>(self, _order: O, f: impl FnMut(T) -> T) -> T {
        // SAFETY: as in `load`; also what `f` does to the element is atomic.
        unsafe { T::fetch_update(self.pointer, O::ORDER, self.scope, f) }
    }
}

macro_rules! changes {
    ($bound:ident: $($(#[$doc:meta])* $name:ident |$old:ident, $value:ident| $new:expr;)*) => {
        impl<T: $bound> AtomicRef<'_, T> { $(
            $(#[$doc])*
            #[inline(always)]
            pub fn $name<O: Order>(self, $value: T, _order: O) -> T {
                // SAFETY: as in `load`.
                unsafe {
                    if self.is_plain() {
                        self.change(|$old| $new)
                    } else {
                        T::$name(self.pointer, $value, O::ORDER, self.scope)
                    }
                }
            }
        )* }
    };
}

changes! { AtomicElement:
    /// Stores to the element and returns its old value.
    exchange |_old, value| value;
    /// Adds and returns the old value; integers wrap.
    fetch_add |old, value| old.sum(value);
    /// Subtracts and returns the old value; integers wrap.
    fetch_sub |old, value| old.difference(value);
    /// Stores the smaller of the element and `value`, and returns the old value. What is not a number is neither stored nor replaced.
    fetch_min |old, value| if value < old { value } else { old };
    /// Stores the larger of the element and `value`, and returns the old value. What is not a number is neither stored nor replaced.
    fetch_max |old, value| if value > old { value } else { old };
}

changes! { AtomicInteger:
    /// Keeps the bits that `value` has, too, and returns the old value.
    ///
    /// ```
    /// use oxisycl::atomic::Relaxed;
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let (left, found, odd) = (Buffer::from_vec(vec![15u32])?, Buffer::from_vec(vec![0u32])?, Buffer::from_vec(vec![0u32])?);
    /// Queue::default()?.submit(|cg| {
    ///     let [left, found, odd] = [&left, &found, &odd].map(|bits| cg.access(bits, Atomic));
    ///     cg.parallel_for(3, move |item| {
    ///         let bit = 1 << item.index();
    ///         left.atomic_ref(item, 0).fetch_and(!bit, Relaxed);
    ///         found.atomic_ref(item, 0).fetch_or(bit, Relaxed);
    ///         odd.atomic_ref(item, 0).fetch_xor(1, Relaxed);
    ///     })
    /// })?;
    /// assert_eq!((left.to_vec()?[0], found.to_vec()?[0], odd.to_vec()?[0]), (8, 7, 1));
    /// # Ok(())
    /// # }
    /// ```
    fetch_and |old, value| old.and(value);
    /// Adds the bits of `value`, and returns the old value.
    fetch_or |old, value| old.or(value);
    /// Inverts the bits of `value`, and returns the old value.
    fetch_xor |old, value| old.xor(value);
}

impl<T: AtomicElement + fmt::Debug> fmt::Debug for AtomicRef<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AtomicRef").field("value", &self.load(Relaxed)).field("scope", &self.scope).finish()
    }
}
