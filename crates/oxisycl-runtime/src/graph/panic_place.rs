//! Where host tasks panic: the only thing that the payload of a panic does not tell.
//!
//! A hook is put in front of the panic hook that is there at the first host task; that one is still called. A user who sets a
//! hook later replaces it; failures then have no place. Panics elsewhere are left alone, also those of kernels that a host task
//! runs while it waits.

use std::cell::RefCell;
use std::sync::Once;

use oxisycl_backend::panic_hook;

use super::blocking::in_kernel;

thread_local! {
    /// The source location of the thread's latest panic within a host task. The outer `Option` is `None` while no host task runs on this
    /// thread.
    static PLACE: RefCell<Option<Option<String>>> = const { RefCell::new(None) };
}

/// Installs the hook once, by [`panic_hook::put_in_front`].
pub(super) fn watch() {
    static INSTALLED: Once = Once::new();
    panic_hook::put_in_front(&INSTALLED, |info| {
        if let Some(location) = info.location()
            && !in_kernel()
        {
            // Nothing to do on a thread that is ending, or while the place itself is being changed.
            let _ = PLACE.try_with(|place| {
                if let Ok(mut place) = place.try_borrow_mut()
                    && let Some(place) = &mut *place
                {
                    *place = Some(location.to_string());
                }
            });
        }
    });
}

/// Calls `f`, which catches panics. Returns its result and the source location of the latest panic meanwhile.
pub(super) fn of<R>(f: impl FnOnce() -> R) -> (R, Option<String>) {
    PLACE.set(Some(None));
    let result = f();
    (result, PLACE.take().flatten())
}
