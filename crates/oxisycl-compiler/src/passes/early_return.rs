//! Ends a work-item by returning from its kernel.
//!
//! AMD GPUs have an instruction that ends a wave, and none that ends one of its work-items. So what may panic is inlined into the kernel,
//! and a return stands in the place of the panic's end. A panic that stays in a function of its own cannot end its work-item: the
//! target does not run such a kernel.

use std::collections::BTreeSet;

use crate::llvm::{Attribute, Builder, Module, Opcode, Type, Value};
use crate::passes::panic_names;
use crate::refused::Refused;
use crate::symbols::plain_path;

/// The placeholder for the end of a work-item until [`lower`].
const END: &str = "oxisycl.end_work_item";

/// Makes all functions inlined that can reach a panic by calls.
pub(crate) fn inline_panics(module: &Module<'_>) {
    let context = module.context();
    let mut reached: BTreeSet<String> = BTreeSet::new();
    let functions = module.functions();
    let mut queue: Vec<_> = functions.into_iter().filter(|function| panic_names::is_hooked(function.name())).collect();
    while let Some(callee) = queue.pop() {
        for call in callee.users().into_iter().filter(|user| user.callee() == Some(callee)) {
            let caller = call.function();
            let is_ours = caller.has_attribute(Attribute::FUNCTION, "noinline");
            if !is_ours && reached.insert(caller.name().to_owned()) {
                caller.add_attribute(Attribute::FUNCTION, Attribute::plain(context, "alwaysinline", 0));
                queue.push(caller);
            }
        }
    }
}

/// Adds a placeholder for the end of the work-item; code behind it is unreachable.
pub(crate) fn mark<'c>(module: &Module<'c>, builder: &Builder<'c>) {
    let context = module.context();
    let end = module.declare(END, Type::function(Type::void(context), &[]));
    for attribute in ["noreturn", "nounwind", "convergent"] {
        end.add_attribute(Attribute::FUNCTION, Attribute::plain(context, attribute, 0));
    }
    builder.call(end, &[]);
}

/// A function other than the kernel that contains the end of a work-item. `None` if there is none.
pub(crate) fn outside<'c>(module: &Module<'c>, kernel: Value<'c>) -> Option<Value<'c>> {
    module.function(END)?.users().into_iter().map(Value::function).find(|function| *function != kernel)
}

/// The reason why a kernel with such a function cannot run.
pub(crate) fn refusal(function: Value<'_>) -> Refused {
    let path = plain_path(function.name());
    let reason = format!("a panic in `{path}`, which is not inlined: on this target it could not end its work-item");
    Refused { reason, function: Some(function.name().to_owned()) }
}

/// Replaces the placeholders by returns. All of them are in kernels, since [`outside`] has found none elsewhere.
pub(crate) fn lower(module: &Module<'_>) {
    let Some(end) = module.function(END) else { return };
    for call in end.users() {
        let after = call.next();
        if after.is(Opcode::UNREACHABLE) {
            Builder::before(module.context(), after).ret_void();
            after.erase();
            call.erase();
        }
    }
    if !end.is_used() {
        end.delete_function();
    }
}

#[cfg(test)]
mod tests {

    use super::*;
    use crate::llvm::{self, Context};
    use crate::toolchain::Toolchain;

    #[test]
    fn a_kernel_returns_where_it_ends_and_a_function_of_its_own_cannot_end_it() {
        let toolchain = Toolchain::of_the_tests();
        llvm::load(toolchain.llvm_library()).expect("LLVM loads");
        let context = Context::new();
        let text = "
            declare void @oxisycl.end_work_item() noreturn
            define void @_ZN3app6helper17h0123456789abcdefE() { call void @oxisycl.end_work_item() unreachable }
            define void @calls() { call void @_ZN3app6helper17h0123456789abcdefE() ret void }
            define void @ends() { call void @oxisycl.end_work_item() unreachable }";
        let module = Module::from_text(&context, text, "test").expect("a test is well-formed");
        let function = |name: &str| module.function(name).expect("it is there");
        let other = outside(&module, function("ends")).expect("the other function");
        let reason = refusal(other).reason;
        assert!(reason.starts_with("a panic in `app::helper`, which is not inlined"), "{reason}");
        function("calls").delete_function();
        function("_ZN3app6helper17h0123456789abcdefE").delete_function();
        assert!(outside(&module, function("ends")).is_none());
        lower(&module);
        module.verify("the test").expect("a valid module");
        let [only] = function("ends").instructions()[..] else { panic!("{module}") };
        assert!(only.is(Opcode::RET) && module.function(END).is_none(), "{module}");
    }
}
