//! Panics on devices.
//!
//! [`hook`] takes the bodies of Rust's panic functions away, before anything is linked that only they need. [`lower`], after
//! optimisation, turns each call into a record of the place and of the values in the message ([`oxisycl_types::PanicRecord`]), which the
//! host formats, and ends the work-item.

use crate::llvm::{Attribute, Builder, Module, Value};
use crate::symbols::plain_path;

const PREFIX: &str = "oxisycl.panic.";

/// Functions that begin a panic or end the program, by path. None of them returns.
fn is_panic(path: &str) -> bool {
    const MODULES: [&str; 3] = ["core::panicking::", "std::rt::begin_panic", "std::panicking::"];
    const FUNCTIONS: [&str; 12] = [
        "core::option::unwrap_failed",
        "core::option::expect_failed",
        "core::result::unwrap_failed",
        "core::cell::panic_already_borrowed",
        "core::cell::panic_already_mutably_borrowed",
        "core::str::slice_error_fail",
        "core::intrinsics::abort",
        "std::process::abort",
        "alloc::alloc::handle_alloc_error",
        "alloc::raw_vec::handle_error",
        "alloc::raw_vec::capacity_overflow",
        "oxisycl_device::builtin::not_on_the_host",
    ];
    MODULES.iter().any(|module| path.starts_with(module))
        || FUNCTIONS.contains(&path)
        || (path.starts_with("core::slice::") && path.ends_with("_fail"))
}

/// Replaces panic functions by declarations that [`lower`] finds.
pub(crate) fn hook(module: &Module<'_>) {
    let context = module.context();
    for function in module.functions() {
        let path = plain_path(function.name());
        // Generic ones, such as the failure of `assert_eq`, call one that is not.
        if !is_panic(&path) || !function.has_attribute(Attribute::FUNCTION, "noreturn") {
            continue;
        }
        let declaration = module.declare(&format!("{PREFIX}{path}.{}", function.name()), function.held_type());
        for attribute in ["noreturn", "cold", "nounwind", "convergent"] {
            declaration.add_attribute(Attribute::FUNCTION, Attribute::plain(context, attribute, 0));
        }
        function.replace_all_uses_with(declaration);
        function.delete_function();
    }
}

/// Replaces the calls of hooked functions by `end`.
pub(crate) fn lower<'c>(module: &Module<'c>, end: &dyn Fn(&Builder<'c>, Value<'c>)) {
    for function in module.functions() {
        if !function.name().starts_with(PREFIX) {
            continue;
        }
        for call in function.users() {
            if call.callee() != Some(function) {
                continue;
            }
            // What follows is unreachable.
            let builder = Builder::before(module.context(), call);
            end(&builder, call);
            call.erase();
        }
    }
}
