//! Dropping what belongs to the user: never under a lock of the runtime, and never with a panic that reaches the runtime.

use std::any::Any;
use std::cell::RefCell;
use std::panic::AssertUnwindSafe;

thread_local! {
    /// User values whose drop waits until this thread has released its locks.
    static DEFERRED: RefCell<Option<Vec<Box<dyn Any>>>> = const { RefCell::new(None) };
}

/// While this exists, completing a node on this thread keeps user values for later: their `drop` is user code, which may call
/// the runtime and must not find it locked. Made before locks are taken, so that it ends after they are released.
pub struct DeferredDrops {
    is_outermost: bool,
}

impl DeferredDrops {
    /// Starts keeping user values.
    pub fn enter() -> Self {
        let is_outermost = DEFERRED.try_with(|list| {
            let mut list = list.borrow_mut();
            let is_outermost = list.is_none();
            list.get_or_insert_default();
            is_outermost
        });
        Self { is_outermost: is_outermost.unwrap_or(false) }
    }

    pub(crate) fn drop_or_keep(value: impl Any) {
        let mut value = Some(value);
        // Without the list (none is being kept, or the thread is ending) the value is dropped below, outside the borrow.
        let _ = DEFERRED.try_with(|list| {
            if let Some(list) = &mut *list.borrow_mut() {
                list.extend(value.take().map(|value| Box::new(value) as Box<dyn Any>));
            }
        });
        drop_user_value(value);
    }
}

/// Drops what belongs to the user. Its destructor may panic, and so may the destructor of the panic's payload: neither may keep
/// a node from ending.
fn drop_user_value(value: impl Any) {
    call_user(|| drop(value));
}

/// Calls code of the user whose panic is nobody's business but the panic hook's.
pub(super) fn call_user(f: impl FnOnce()) {
    if let Err(payload) = std::panic::catch_unwind(AssertUnwindSafe(f)) {
        discard(payload);
    }
}

/// Drops a panic's payload, also one whose destructor panics.
pub(super) fn discard(payload: Box<dyn Any + Send>) {
    if let Err(another) = std::panic::catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        std::mem::forget(another);
    }
}

impl Drop for DeferredDrops {
    fn drop(&mut self) {
        if self.is_outermost {
            let kept = DEFERRED.try_with(RefCell::take).ok().flatten();
            kept.into_iter().flatten().for_each(drop_user_value);
        }
    }
}
