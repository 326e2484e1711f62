//! Dropping what belongs to the user: never under a lock of the runtime, and never with a panic that reaches the runtime.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::panic::AssertUnwindSafe;

thread_local! {
    /// Whether this thread defers the drops of user values, and whether [`KEPT`] has any.
    static STATE: Cell<(bool, bool)> = const { Cell::new((false, false)) };
    /// User values whose drop waits until this thread has released its locks.
    static KEPT: RefCell<Vec<Box<dyn Any>>> = const { RefCell::new(Vec::new()) };
}

/// While this exists, completing a node on this thread keeps user values for later. Their `drop` is user code, which
/// may call the runtime and must not find it locked. Made before locks are taken, so that it ends after they are
/// released.
pub struct DeferredDrops {
    is_outermost: bool,
}

impl DeferredDrops {
    /// Starts deferring the drops of user values on this thread.
    #[inline]
    pub fn enter() -> Self {
        // One look at the thread's value, which costs as much as what is done here.
        STATE.with(|state| {
            let (is_keeping, has_kept) = state.get();
            state.set((true, has_kept));
            Self { is_outermost: !is_keeping }
        })
    }

    pub(crate) fn drop_or_keep(value: impl Any) {
        let mut value = Some(value);
        // Where nothing is being kept, or the thread is ending, the value is dropped below, outside the borrow.
        if STATE.get().0 {
            let _ = KEPT.try_with(|list| {
                list.borrow_mut().extend(value.take().map(|value| Box::new(value) as Box<dyn Any>));
                STATE.set((true, true));
            });
        }
        drop_user_value(value);
    }
}

/// Drops a user value. Its destructor may panic, and so may the destructor of the panic's payload: neither may keep a node from ending.
fn drop_user_value(value: impl Any) {
    call_user(|| drop(value));
}

/// Calls user code and catches its panic, which only the panic hook reports.
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
    #[inline]
    fn drop(&mut self) {
        if self.is_outermost {
            let (_, has_kept) = STATE.with(|state| state.replace((false, false)));
            if has_kept {
                drop_kept();
            }
        }
    }
}

#[cold]
fn drop_kept() {
    // Taken out first: a destructor may submit, and so keep and drop values itself.
    let kept = KEPT.try_with(RefCell::take).unwrap_or_default();
    kept.into_iter().for_each(drop_user_value);
}
