//! Prepares code that is linked into the program a second time, for a level of the host's processors.
//!
//! Functions and unnamed constants are copies, which no other code sees. Statics are not copied, since each exists once in a program: they stay
//! names, of whose content LLVM knows nothing. Else it would read what they point to, and compare their addresses with each other.
//! [`exports`](crate::analyses::exports) refuses kernels that still refer to one after optimisation.

use oxisycl_image::HostLevel;

use crate::llvm::{Attribute, Context, Layout, Linkage, Module, Opcode, Type, TypeKind, Value};
use crate::origin;
use crate::spmd::widen::elementwise;

/// The processors that all levels have more features than.
const LOWER: [&str; 2] = ["x86-64", "x86-64-v2"];
/// The value of `uwtable` for tables that are right at every instruction, as rustc asks for them.
const AT_EVERY_INSTRUCTION: u64 = 2;
/// The attribute of an entry that rustc has compiled for a processor which may have features that the level lacks.
const PROCESSOR: &str = "oxisycl-processor";

/// Bytes of a vector of the oldest processors.
const OLDEST_VECTOR: u64 = 16;
/// Operations that the oldest processors have no instruction for, as intrinsics' names without `llvm.` and types.
const OF_LEVELS: [&str; 9] = ["fma", "fmuladd", "floor", "ceil", "trunc", "rint", "nearbyint", "roundeven", "ctpop"];

/// Sets the level on all functions, and makes all but the entries local. Features that rustc has set on single functions stay, in addition.
pub(crate) fn set_level(module: &Module<'_>, level: HostLevel, is_entry: &dyn Fn(&str) -> bool) {
    let context = module.context();
    let is_below = |processor: &str| {
        let mut levels = HostLevel::ALL.into_iter().take_while(|below| *below <= level).map(HostLevel::name);
        processor.is_empty() || LOWER.contains(&processor) || levels.any(|name| name == processor)
    };
    module.clear_inline_assembly();
    // Lists of what must be kept, or run at the start. The program's own object has them.
    for name in ["llvm.used", "llvm.compiler.used", "llvm.global_ctors", "llvm.global_dtors"] {
        if let Some(list) = module.global(name) {
            list.delete_global();
        }
    }
    for alias in module.aliases() {
        alias.replace_all_uses_with(alias.aliasee());
        alias.set_linkage(Linkage::INTERNAL);
    }
    for function in module.functions().into_iter().filter(|function| !function.name().starts_with("llvm.")) {
        let is_entry = is_entry(function.name());
        let processor = function.text_attribute(Attribute::FUNCTION, "target-cpu").unwrap_or_default();
        if is_entry && !is_below(&processor) {
            function.add_attribute(Attribute::FUNCTION, Attribute::text(context, PROCESSOR, &processor));
        }
        function.remove_text_attribute(Attribute::FUNCTION, "tune-cpu");
        function.add_attribute(Attribute::FUNCTION, Attribute::text(context, "target-cpu", level.name()));
        if function.is_declaration() {
            continue;
        }
        function.clear_placement();
        function.set_linkage(if is_entry { Linkage::EXTERNAL } else { Linkage::INTERNAL });
    }
    for global in module.globals() {
        if global.initializer().is_some() && !global.name().starts_with("llvm.") {
            global.clear_placement();
            if is_copied(global) {
                global.set_linkage(Linkage::INTERNAL);
            } else {
                global.make_variable();
                global.set_linkage(Linkage::EXTERNAL);
            }
        }
    }
}

/// Has a new function compiled like another one: for its processor, with its kind of frames, and with tables for unwinding.
pub(crate) fn compile_like<'c>(context: &'c Context, function: Value<'c>, model: Value<'c>) {
    function.add_attribute(Attribute::FUNCTION, Attribute::plain(context, "uwtable", AT_EVERY_INSTRUCTION));
    for name in ["target-cpu", "target-features", "probe-stack", "frame-pointer"] {
        if let Some(value) = model.text_attribute(Attribute::FUNCTION, name) {
            function.add_attribute(Attribute::FUNCTION, Attribute::text(context, name, &value));
        }
    }
}

/// Has LLVM make vectors of 128 bits, as it does for the oldest processors. What waits for memory is slower with wider ones.
pub(crate) fn prefer_narrow_vectors(module: &Module<'_>) {
    let narrow = Attribute::text(module.context(), "prefer-vector-width", "128");
    for function in module.functions().into_iter().filter(|function| !function.is_declaration()) {
        function.add_attribute(Attribute::FUNCTION, narrow);
    }
}

/// Says that the code is not a device's, so that what devices run is not linked.
pub(crate) fn answer(module: &Module<'_>) {
    let no = Type::int(module.context(), 1).constant(0);
    for function in module.functions() {
        if origin::builtin(function.name()).as_deref() != Some("is_device_code") {
            continue;
        }
        for call in function.calls() {
            call.replace_all_uses_with(no);
            if call.is(Opcode::CALL) {
                call.erase();
            }
        }
    }
}

/// Makes statics local, so that LLVM deletes those that optimised code does not use. No other pass may see them so: the program changes them.
pub(crate) fn drop_statics(module: &Module<'_>) {
    let own = module.globals().into_iter().filter(|global| global.initializer().is_some() && !is_copied(*global));
    own.for_each(|global| global.set_linkage(Linkage::INTERNAL));
}

/// Deletes statics that nothing uses, and says whether there were any. What they refer to may be unused then.
pub(crate) fn drop_unused_statics(module: &Module<'_>) -> bool {
    let is_unused = |global: &Value<'_>| global.initializer().is_some() && !is_copied(*global) && !global.is_used();
    let unused: Vec<_> = module.globals().into_iter().filter(is_unused).collect();
    unused.iter().for_each(|global| global.delete_global());
    !unused.is_empty()
}

/// Whether code has what the level's processors have and the oldest ones lack: wider vectors than theirs, or instructions of other kinds.
pub(crate) fn uses_level(module: &Module<'_>) -> bool {
    let is_wide = |of: Type<'_>| of.kind() == TypeKind::Vector && Layout::of(module).size(of) > OLDEST_VECTOR;
    let is_half = |value: Value<'_>| value.value_type().kind() == TypeKind::Half;
    let uses = |instruction: Value<'_>| match instruction.opcode() {
        Some(Opcode::FP_EXT) if is_half(instruction.operand(0)) => true,
        Some(Opcode::FP_TRUNC) if is_half(instruction) => true,
        Some(Opcode::CALL) if elementwise(instruction).is_some_and(|name| OF_LEVELS.contains(&name)) => true,
        _ => is_wide(instruction.value_type()),
    };
    module.functions().into_iter().flat_map(Value::instructions).any(uses)
}

/// Calls functions by the names that link-time optimisation keeps, where there are such. The last change, since passes know functions by their
/// own names.
pub(crate) fn call_kept(module: &Module<'_>) {
    for function in module.functions().into_iter().filter(|function| function.is_declaration()) {
        if let Some(name) = origin::kept(function.name()) {
            function.set_name(name);
            // Each library of a process has its own.
            function.hide();
        }
    }
}

/// Whether a global is a constant without a name in the program, such as a literal.
fn is_copied(global: Value<'_>) -> bool {
    global.is_constant_global() && global.is_unnamed() && !global.is_thread_local()
}

/// The processor that the program's own code of an entry is for, if it may have features that the level lacks.
pub(crate) fn other_processor(module: &Module<'_>, entry: &str) -> Option<String> {
    module.function(entry)?.text_attribute(Attribute::FUNCTION, PROCESSOR)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::passes::tests::{context, module};

    #[test]
    fn code_uses_a_level_by_wide_vectors_and_by_instructions_that_the_oldest_processors_lack() {
        let context = context();
        let uses = |code: &str| {
            let text = format!(
                "declare float @llvm.floor.f32(float)
                declare float @llvm.sqrt.f32(float)
                define void @f(ptr %p) {{
                %x = load float, ptr %p
                {code}
                ret void }}"
            );
            uses_level(&module(&context, &text))
        };
        assert!(!uses("%v = load <4 x float>, ptr %p") && uses("%v = load <8 x float>, ptr %p"));
        assert!(uses("%y = call float @llvm.floor.f32(float %x)") && !uses("%y = call float @llvm.sqrt.f32(float %x)"));
        assert!(uses("%y = fptrunc float %x to half") && !uses("%y = fpext float %x to double"));
    }
}
