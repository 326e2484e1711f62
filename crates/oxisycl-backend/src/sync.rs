//! The synchronisation primitives of the protocols that are model checked: `std`'s and `parking_lot`'s, or `loom`'s under `cfg(loom)`.

#[cfg(not(loom))]
pub(crate) use native::*;

#[cfg(loom)]
pub(crate) use model::*;

/// The primitives that programs run with.
#[cfg(not(loom))]
mod native {
    pub(crate) use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
    pub(crate) use std::thread::{Thread, park, park_timeout};

    pub(crate) use parking_lot::Mutex as Lock;

    /// Sequentially consistent accesses before and after it are enough.
    #[inline(always)]
    pub(crate) fn barrier() {}
}

/// The primitives that the model checker explores.
#[cfg(loom)]
mod model {
    use std::time::Duration;

    pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
    use loom::sync::{Mutex, MutexGuard};
    pub(crate) use loom::thread::{Thread, park};

    /// A lock without poisoning.
    #[derive(Debug, Default)]
    pub(crate) struct Lock<T>(Mutex<T>);

    impl<T> Lock<T> {
        pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
            self.0.lock().expect("no thread of a model panics while it holds the lock")
        }
    }

    /// The model has no time: the limit is over at once.
    pub(crate) fn park_timeout(_time: Duration) {
        loom::thread::yield_now();
    }

    /// The model checker takes sequentially consistent accesses for acquiring and releasing ones, but knows such fences.
    pub(crate) fn barrier() {
        loom::sync::atomic::fence(Ordering::SeqCst);
    }
}
