//! Removes properties of the host: processor attributes, sections, thread-local placement, unwinding. Marks every function convergent.
//!
//! Runs before any optimisation, and again on what is linked later. Marking all functions, not only the builtins, keeps LLVM from
//! duplicating or merging calls of functions that contain a barrier. LLVM removes the mark where no barrier is reached.

use crate::llvm::{Attribute, Block, Builder, Context, Linkage, Module, Opcode, Value, ValueKind};
use crate::origin;
use crate::passes::panic_names;

const HOST_ATTRIBUTES: [&str; 10] =
    ["noinline", "optnone", "minsize", "optsize", "uwtable", "nonlazybind", "ssp", "sspstrong", "sspreq", "nosync"];
const HOST_TEXT_ATTRIBUTES: [&str; 5] = ["target-cpu", "target-features", "tune-cpu", "probe-stack", "frame-pointer"];

/// Passes that turn invokes into calls, so that nothing unwinds. [`remove_personalities`] follows.
pub(crate) const LOWER_INVOKES: &str =
    "globaldce,function(lower-invoke,simplifycfg<no-sink-common-insts;no-hoist-common-insts>),globaldce";

/// The largest seldom-called function that is inlined, in instructions, so that its panics are in the kernel and find the launch there.
const LARGEST_INLINED_COLD: usize = 256;

/// The attribute index of a function's first parameter.
const FIRST_PARAMETER: u32 = 1;

/// Prepares all functions and globals, except the kernels themselves. `is_entry` selects the symbols that must stay visible.
pub(crate) fn strip(module: &Module<'_>, is_entry: &dyn Fn(&str) -> bool, is_kernel: &dyn Fn(&str) -> bool) {
    let context = module.context();
    let nounwind = Attribute::plain(context, "nounwind", 0);
    let convergent = Attribute::plain(context, "convergent", 0);
    module.clear_inline_assembly();
    for alias in module.aliases() {
        alias.replace_all_uses_with(alias.aliasee());
        alias.set_linkage(Linkage::INTERNAL);
    }
    for function in module.functions() {
        if function.name().starts_with("llvm.") || is_kernel(function.name()) {
            continue;
        }
        for attribute in HOST_ATTRIBUTES {
            function.remove_attribute(Attribute::FUNCTION, attribute);
        }
        for attribute in HOST_TEXT_ATTRIBUTES {
            function.remove_text_attribute(Attribute::FUNCTION, attribute);
        }
        function.add_attribute(Attribute::FUNCTION, nounwind);
        function.add_attribute(Attribute::FUNCTION, convergent);
        function.set_call_convention(0);
        if function.is_declaration() {
            continue;
        }
        function.clear_placement();
        if !is_entry(function.name()) {
            function.set_linkage(Linkage::INTERNAL);
        }
        let instructions = function.instructions();
        if panic_names::is_record(function.name()) || panic_names::is_print(function.name()) {
            // Its registers count for every kernel that calls it.
            make_small(context, function);
        } else if origin::formats(function.name()) && !function.has_attribute(Attribute::FUNCTION, "alwaysinline") {
            // Texts are for people, who read slowly. Unrolled, the digits of a single number fill a hundred kilobytes.
            make_small(context, function);
        } else if function.has_attribute(Attribute::FUNCTION, "cold") && instructions.len() <= LARGEST_INLINED_COLD {
            function.add_attribute(Attribute::FUNCTION, Attribute::plain(context, "alwaysinline", 0));
        }
        for instruction in instructions {
            let Some(callee) = instruction.callee() else { continue };
            instruction.set_site_call_convention(0);
            instruction.remove_site_attribute(Attribute::FUNCTION, "noinline");
            match callee.kind() {
                ValueKind::InlineAsm if is_black_box(instruction) => instruction.erase(),
                ValueKind::Function => {}
                _ => instruction.add_site_attribute(Attribute::FUNCTION, convergent),
            }
        }
    }
    for global in module.globals() {
        if global.initializer().is_some() && !global.name().starts_with("llvm.") {
            global.clear_placement();
            // LLVM assumes that no other module uses what is internal. Statics that change are used by the host and by other kernels, too.
            global.set_linkage(if global.is_constant_global() { Linkage::INTERNAL } else { Linkage::LINK_ONCE_ODR });
        }
    }
}

/// Marks functions that are seldom called, and small after simplification, for inlining by the following optimisation.
pub(crate) fn inline_cold(module: &Module<'_>) {
    let always = Attribute::plain(module.context(), "alwaysinline", 0);
    for function in module.functions() {
        let has = |attribute| function.has_attribute(Attribute::FUNCTION, attribute);
        if !function.is_declaration()
            && has("cold")
            && !has("noinline")
            && function.instructions().len() <= LARGEST_INLINED_COLD
        {
            function.add_attribute(Attribute::FUNCTION, always);
        }
    }
}

fn make_small<'c>(context: &'c Context, function: Value<'c>) {
    for attribute in ["noinline", "minsize", "optsize"] {
        function.add_attribute(Attribute::FUNCTION, Attribute::plain(context, attribute, 0));
    }
}

/// Whether a call is inline assembly without instructions.
fn is_black_box(call: Value<'_>) -> bool {
    let text = call.print();
    call.is(Opcode::CALL) && text.contains("call void asm sideeffect \"\"")
}

/// Marks all functions for inlining into the kernels, except recorders of panics and formatting functions, which end no work-item.
pub(crate) fn inline_everything<'c>(module: &Module<'c>, kernels: &[Value<'c>]) {
    let always = Attribute::plain(module.context(), "alwaysinline", 0);
    for function in module.functions() {
        let is_small = function.has_attribute(Attribute::FUNCTION, "noinline");
        let is_kept = function.is_declaration() || is_small || kernels.contains(&function);
        if !is_kept {
            function.add_attribute(Attribute::FUNCTION, always);
        }
    }
}

/// Removes the personality functions, which only unwinding needs.
pub(crate) fn remove_personalities(module: &Module<'_>) {
    for function in module.functions() {
        if !function.is_declaration() {
            function.remove_personality();
        }
    }
}

/// Leaves out checks that only debug builds make, and that are about unsafe code of the standard library. Their messages would make every
/// kernel several times as large. Bounds and overflow checks stay.
pub(crate) fn drop_library_checks(module: &Module<'_>) {
    for function in module.functions() {
        if !function.is_declaration() && is_library_check(function) {
            replace_body(module, function, |builder| builder.ret_void());
        }
    }
}

/// Whether a function is such a check of the library. A user's function with that name keeps its body. The library's checks return nothing.
fn is_library_check(function: Value<'_>) -> bool {
    origin::checks_a_precondition(function.name())
        && function
            .instructions()
            .into_iter()
            .filter(|last| last.is(Opcode::RET))
            .all(|last| last.operands().is_empty())
        && !function.has_attribute(FIRST_PARAMETER, "sret")
}

/// Replaces a function by one of the same name and type with another body.
pub(crate) fn replace_body<'c>(module: &Module<'c>, function: Value<'c>, body: impl FnOnce(&Builder<'c>)) {
    let name = function.name().to_owned();
    let replacement = module.declare(&format!("{name}.replaced"), function.held_type());
    function.replace_all_uses_with(replacement);
    function.delete_function();
    replacement.set_name(&name);
    replacement.set_linkage(Linkage::INTERNAL);
    let builder = Builder::at_end(module.context(), Block::append(module.context(), replacement));
    body(&builder);
}
