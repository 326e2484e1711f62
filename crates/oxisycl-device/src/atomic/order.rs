//! Orders of atomic operations, as types.

use core::sync::atomic::Ordering;

/// An order of read-modify-write operations and fences: one of the five. Implemented by this crate only.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an order of an atomic operation",
    note = "use Relaxed, Acquire, Release, AcqRel or SeqCst of `oxisycl::atomic`"
)]
pub trait Order: Copy + Sealed {
    /// The order in the standard library's words.
    const ORDER: Ordering;
}

/// An order of loads: [`Relaxed`], [`Acquire`] or [`SeqCst`].
#[diagnostic::on_unimplemented(
    message = "an atomic load cannot have the order `{Self}`",
    note = "use Relaxed, Acquire or SeqCst of `oxisycl::atomic`"
)]
pub trait LoadOrder: Order {}

/// An order of stores: [`Relaxed`], [`Release`] or [`SeqCst`].
#[diagnostic::on_unimplemented(
    message = "an atomic store cannot have the order `{Self}`",
    note = "use Relaxed, Release or SeqCst of `oxisycl::atomic`"
)]
pub trait StoreOrder: Order {}

/// Keeps other crates from adding orders.
pub trait Sealed {}

macro_rules! orders {
    ($($(#[$doc:meta])* $name:ident $($kind:ident)*;)*) => { $(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub struct $name;

        impl Sealed for $name {}
        impl Order for $name {
            const ORDER: Ordering = Ordering::$name;
        }
        $(impl $kind for $name {})*
    )* };
}

orders! {
    /// No order: only the operation itself is atomic.
    Relaxed LoadOrder StoreOrder;
    /// What follows sees what came before the [`Release`] operation whose value was loaded.
    Acquire LoadOrder;
    /// What came before is seen by a work-item that loads the stored value with [`Acquire`].
    Release StoreOrder;
    /// [`Acquire`] for the load and [`Release`] for the store of a read-modify-write operation.
    AcqRel;
    /// Also in one order of all such operations that all work-items agree on.
    SeqCst LoadOrder StoreOrder;
}

/// The compiler's number for an order.
#[inline(always)]
pub(super) const fn code(order: Ordering) -> u32 {
    match order {
        Ordering::Relaxed => 0,
        Ordering::Acquire => 1,
        Ordering::Release => 2,
        Ordering::AcqRel => 3,
        _ => 4,
    }
}
