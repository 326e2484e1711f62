//! Atomic operations with orders and scopes, and fences (SYCL 2020 section 4.15).
//!
//! Atomic memory comes from an [`Atomic`](crate::Atomic) accessor, from local memory that a phase lends
//! [`Atomically`](crate::group::Atomically), or from a USM pointer. Each gives an [`AtomicRef`] to an element. Accessors and lent
//! memory also have the relaxed operations themselves.
//!
//! An order is a value of a type of its own, so that an order that an operation cannot have does not compile. A [`Scope`] says which work-items
//! an operation is ordered with.
//!
//! ```
//! use oxisycl::atomic::{Acquire, Relaxed, Release};
//! use oxisycl::prelude::*;
//!
//! # fn main() -> oxisycl::Result {
//! // One work-item publishes a number. Another one that sees the flag sees the number, too.
//! let (words, missed) = (Buffer::from_vec(vec![0u32, 0])?, Buffer::from_vec(vec![0u32])?);
//! Queue::default()?.submit(|cg| {
//!     let (words, missed) = (cg.access(&words, Atomic), cg.access(&missed, Atomic));
//!     cg.parallel_for(1000, move |item| {
//!         let (number, flag) = (words.atomic_ref(item, 0), words.atomic_ref(item, 1));
//!         if item.index() == 0 {
//!             number.store(42, Relaxed);
//!             flag.store(1, Release);
//!         } else if flag.load(Acquire) == 1 && number.load(Relaxed) != 42 {
//!             missed.fetch_add(item, 0, 1);
//!         }
//!     })
//! })?;
//! assert_eq!((words.to_vec()?, missed.to_vec()?), (vec![42, 1], vec![0]));
//! # Ok(())
//! # }
//! ```
//!
//! Does not know how a target expresses an order or a scope: the compiler does, by the builtins that are called here.

mod accessor;
mod element;
mod order;
mod reference;
mod wide;

pub use element::{AtomicElement, AtomicInteger, AtomicValue, TakesOrder};
pub use order::{AcqRel, Acquire, LoadOrder, Order, Relaxed, Release, SeqCst, StoreOrder};
pub use reference::AtomicRef;

use crate::builtin::{self, is_device_code};

/// Which work-items an atomic operation or a fence is ordered with, narrow to wide (SYCL 2020 `memory_scope`).
///
/// Operations on the same element are atomic with respect to each other only if the scope of each includes the other's work-item. So a narrower scope
/// than that of the memory is asked for by an `unsafe` function. A scope is a permission, and a device may order more: all have
/// instructions for the group, and none for the sub-group. Native code orders all threads of the process, whatever the scope.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Scope {
    /// The work-items of the sub-group.
    SubGroup,
    /// The work-items of the group.
    WorkGroup,
    /// All work-items of the device.
    Device,
    /// All devices that use the memory, and the host. Needed only for USM allocations: commands order what is done to a buffer.
    System,
}

impl Scope {
    /// The compiler's number.
    #[inline(always)]
    const fn code(self) -> u32 {
        match self {
            Self::SubGroup | Self::WorkGroup => 0,
            Self::Device => 1,
            Self::System => 2,
        }
    }
}

/// Orders the atomic operations of a work-item before the fence and those after it, as seen by the work-items of the scope (SYCL 2020
/// `atomic_fence`). With the order [`Relaxed`] it does nothing.
///
/// ```
/// use oxisycl::atomic::{Acquire, Relaxed, Release, Scope, atomic_fence};
/// use oxisycl::prelude::*;
///
/// # fn main() -> oxisycl::Result {
/// let (words, missed) = (Buffer::from_vec(vec![0u32, 0])?, Buffer::from_vec(vec![0u32])?);
/// Queue::default()?.submit(|cg| {
///     let (words, missed) = (cg.access(&words, Atomic), cg.access(&missed, Atomic));
///     cg.parallel_for(1000, move |item| {
///         if item.index() == 0 {
///             words.store(item, 0, 42);
///             atomic_fence(Release, Scope::Device);
///             words.store(item, 1, 1);
///         } else if words.load(item, 1) == 1 {
///             atomic_fence(Acquire, Scope::Device);
///             if words.load(item, 0) != 42 {
///                 missed.fetch_add(item, 0, 1);
///             }
///         }
///     })
/// })?;
/// assert_eq!(missed.to_vec()?, [0]);
/// # Ok(())
/// # }
/// ```
#[inline(always)]
pub fn atomic_fence<O: Order>(_order: O, scope: Scope) {
    if is_device_code() {
        // SAFETY: this is no native code.
        unsafe { builtin::atomic_fence(order::code(O::ORDER), scope.code()) }
    } else if O::ORDER != core::sync::atomic::Ordering::Relaxed {
        core::sync::atomic::fence(O::ORDER);
    }
}
