//! Kernels call recorders of panics through functions that only pass their parameters on: the remedy of the quirk `panic-calls`.
//!
//! A driver for CPUs weighs a kernel's code before it executes several work-items as one vector. It cannot execute a recorder as a vector,
//! because of its loop, local arrays and atomics. It counts a call of one as if every work-item made the call on its own. Kernels that copy
//! or add elements were executed one work-item at a time, for calls that hardly any work-item ever makes. A function that only passes its
//! parameters on can be executed for a vector, and then the kernel is.

use crate::llvm::{Attribute, Block, Builder, Linkage, Module};
use crate::passes::panic_names;

/// The suffix of the names of such functions.
const PASSES_ON: &str = ".passes_on";

/// Adds such a function for each recorder of the module, and redirects the calls.
pub(crate) fn call_through_others(module: &Module<'_>) {
    let context = module.context();
    for recorder in module.functions() {
        if recorder.is_declaration() || !panic_names::is_record(recorder.name()) {
            continue;
        }
        let calls: Vec<_> = recorder.users().into_iter().filter(|user| user.callee() == Some(recorder)).collect();
        let other = module.declare(&format!("{}{PASSES_ON}", recorder.name()), recorder.held_type());
        other.set_linkage(Linkage::INTERNAL);
        other.add_attribute(Attribute::FUNCTION, Attribute::plain(context, "noinline", 0));
        let builder = Builder::at_end(context, Block::append(context, other));
        builder.call(recorder, &other.parameters());
        builder.ret_void();
        calls.into_iter().for_each(|call| call.set_callee(other));
    }
}
