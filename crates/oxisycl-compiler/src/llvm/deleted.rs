//! Detection of dangling handles: builds with debug assertions panic when a handle is used whose value this crate deleted.
//!
//! Handles are copied pointers. LLVM reuses memory, so a pointer that LLVM returns is alive whatever was deleted there before. The values that
//! LLVM's own passes delete are not known here.

use super::sys;

#[cfg(debug_assertions)]
mod noted {
    use std::cell::RefCell;

    use rustc_hash::FxHashSet;

    thread_local! {
        pub(super) static DELETED: RefCell<FxHashSet<usize>> = RefCell::default();
    }
}

/// Records that a value is deleted.
pub(super) fn note(_raw: *mut sys::Value) {
    #[cfg(debug_assertions)]
    noted::DELETED.with_borrow_mut(|deleted| deleted.insert(_raw.addr()));
}

/// Records that LLVM has returned a value, which is alive then.
pub(super) fn forget(_raw: *mut sys::Value) {
    #[cfg(debug_assertions)]
    noted::DELETED.with_borrow_mut(|deleted| deleted.remove(&_raw.addr()));
}

/// Panics if the value was deleted.
pub(super) fn refuse(_raw: *mut sys::Value) {
    #[cfg(debug_assertions)]
    noted::DELETED.with_borrow(|deleted| {
        assert!(!deleted.contains(&_raw.addr()), "a value of LLVM is used after it was deleted")
    });
}

#[cfg(all(test, debug_assertions))]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use crate::llvm::Module;
    use crate::passes::tests::context;

    #[test]
    fn a_handle_of_what_was_deleted_is_refused() {
        let context = context();
        let text = "define void @f(i32 %x) { %a = add i32 %x, 1 %b = add i32 %x, 2 ret void }";
        let module = Module::from_text(&context, text, "deleted").expect("a test is well-formed");
        let function = module.function("f").expect("it is there");
        let (parameter, instructions) = (function.parameter(0), function.instructions());
        let is_refused = |use_it: &dyn Fn()| catch_unwind(AssertUnwindSafe(use_it)).is_err();
        instructions[0].erase();
        assert!(is_refused(&|| _ = instructions[0].print()));
        assert!(!is_refused(&|| _ = instructions[1].print()));
        function.delete_function();
        for value in [function, parameter, instructions[1]] {
            assert!(is_refused(&|| _ = value.kind()));
        }
    }
}
