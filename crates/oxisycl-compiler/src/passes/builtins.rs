//! Puts bodies into the functions of `oxisycl_device::builtin`.

use crate::error::CompileError;
use crate::llvm::{Attribute, Linkage, Module, Opcode, Type, Value};
use crate::origin;
use crate::passes::strip_host_abi::replace_body;
use crate::passes::{float_atomics, float_policy, thread_coarsening};

/// The beginning of the names of builtins whose own body is as good, but slower.
const NATIVE: &str = "native_";
/// Builtins whose own body holds for targets with a stack of calls.
const ABOUT_CALLS: [&str; 2] = ["has_call_stack", "formatting_was_cut_off"];
/// What is in the text of a target that can run two work-items at each position of the grid.
const SECOND_POSITION: &str = "@oxisycl.second_position_x(";
/// What is in its place until the launch's address is known: see [`lower_launch`].
pub(crate) const LAUNCH: &str = "oxisycl.launch";

/// The place of a function's first parameter among its attributes.
const FIRST_PARAMETER: u32 = 1;

/// Replaces the builtins that a target gives bodies to, by linking them in. `text` is LLVM assembly with one function
/// `oxisycl.<name>` per builtin.
pub(crate) fn replace(module: &Module<'_>, text: &str) -> Result<(), CompileError> {
    let context = module.context();
    let mut used = Vec::new();
    for function in module.functions() {
        let Some(name) = origin::builtin(function.name()) else { continue };
        let name = name.as_str();
        match name {
            "is_device_code" => {
                // At once, so that what only native code needs is never linked. The body is for calls by address.
                for call in function.users() {
                    if call.callee() == Some(function) {
                        call.replace_all_uses_with(Type::int(context, 1).constant(1));
                        call.erase();
                    }
                }
                replace_body(module, function, |builder| builder.ret(Type::int(context, 1).constant(1)));
            }
            // Decided later for each kernel, if the target can do it.
            "is_paired" if text.contains(SECOND_POSITION) => {
                let is_paired = module.declare(thread_coarsening::IS_PAIRED, function.held_type());
                for (name, value) in [("nounwind", 0), ("willreturn", 0), ("memory", 0)] {
                    is_paired.add_attribute(Attribute::FUNCTION, Attribute::plain(context, name, value));
                }
                function.replace_all_uses_with(is_paired);
                function.delete_function();
            }
            "is_paired" => {}
            "second_position_x" if !text.contains(SECOND_POSITION) => {
                replace_body(module, function, |builder| builder.ret(Type::int(context, 64).constant(0)));
            }
            "next_item" | "only_item" => {
                let marker = module.declare(&format!("oxisycl.{name}"), function.held_type());
                float_policy::describe_marker(context, marker);
                function.replace_all_uses_with(marker);
                function.delete_function();
            }
            "load_constant" => {
                let loads = function.instructions().into_iter().filter(|instruction| instruction.is(Opcode::LOAD));
                loads.for_each(|load| load.mark(thread_coarsening::CONSTANT));
                // Not another way: LLVM also moves loads to callers, and forgets what they are marked with.
                function.add_attribute(Attribute::FUNCTION, Attribute::plain(context, "alwaysinline", 0));
            }
            // It becomes a panic.
            "not_on_the_host" => {}
            "launch" => {
                let launch = module.declare(LAUNCH, function.held_type());
                // The same in every call of one work-item, and without effects: calls may be merged and moved.
                launch.add_attribute(Attribute::FUNCTION, Attribute::plain(context, "nounwind", 0));
                launch.add_attribute(Attribute::FUNCTION, Attribute::plain(context, "willreturn", 0));
                function.replace_all_uses_with(launch);
                function.delete_function();
            }
            // Once the kernel's policy is known.
            _ if float_atomics::is_one(name) => {
                let body = module.declare(&format!("oxisycl.{name}"), function.held_type());
                for attribute in ["nounwind", "willreturn"] {
                    body.add_attribute(Attribute::FUNCTION, Attribute::plain(context, attribute, 0));
                }
                function.replace_all_uses_with(body);
                function.delete_function();
            }
            // Those that a target need not have.
            name if (name.starts_with(NATIVE) || ABOUT_CALLS.contains(&name))
                && !text.contains(&format!("@oxisycl.{name}(")) => {}
            _ if float_policy::is_marker(name) => {
                let marker = module.declare(&format!("oxisycl.{name}"), function.held_type());
                float_policy::describe_marker(context, marker);
                function.replace_all_uses_with(marker);
                function.delete_function();
            }
            name => {
                let name = format!("oxisycl.{name}");
                let body = module.declare(&name, function.held_type());
                function.replace_all_uses_with(body);
                function.delete_function();
                used.push(name);
            }
        }
    }
    if used.is_empty() {
        return Ok(());
    }
    let bodies = Module::from_text(context, text, "builtins")?;
    for function in bodies.functions() {
        if !function.is_declaration() {
            function.set_linkage(Linkage::LINK_ONCE_ODR);
            function.add_attribute(Attribute::FUNCTION, Attribute::plain(context, "alwaysinline", 0));
        }
    }
    module.link(bodies)?;
    for name in used {
        let function = module.function(&name).filter(|function| !function.is_declaration());
        let function = function.ok_or_else(|| CompileError::Target(format!("the target has no builtin {name}")))?;
        function.set_linkage(Linkage::INTERNAL);
    }
    Ok(())
}

/// Asks for the launch; [`lower_launch`] answers.
pub(crate) fn launch<'c>(module: &Module<'c>, builder: &crate::llvm::Builder<'c>) -> Value<'c> {
    let pointer = Type::pointer(module.context(), 0);
    builder.call(module.declare(LAUNCH, Type::function(pointer, &[])), &[])
}

/// After optimisation: replaces calls for the launch by the kernel's own parameter. Functions that were not inlined read its address
/// from `slot`, where the kernels that may reach them put it. Returns whether the slot is used.
pub(crate) fn lower_launch<'c>(module: &Module<'c>, kernels: &[Value<'c>], slot: impl FnOnce() -> Value<'c>) -> bool {
    let Some(launch) = module.function(LAUNCH) else { return false };
    let context = module.context();
    let pointer = Type::pointer(context, 0);
    let (inside, outside): (Vec<_>, Vec<_>) = launch
        .users()
        .into_iter()
        .filter(|user| user.callee() == Some(launch))
        .partition(|call| kernels.contains(&call.function()));
    // A parameter may be in an address space of its own.
    let generic = |kernel: Value<'c>, place: Value<'c>| {
        let parameter = kernel.parameter(0);
        let builder = crate::llvm::Builder::before(context, place);
        if parameter.value_type() == pointer { parameter } else { builder.cast_address(parameter, pointer) }
    };
    for &kernel in kernels {
        // What optimisation found out about the parameter while it did not know that it is the launch.
        for name in ["readnone", "captures"] {
            kernel.remove_attribute(FIRST_PARAMETER, name);
        }
    }
    for call in inside {
        call.replace_all_uses_with(generic(call.function(), call));
        call.erase();
    }
    let is_used = !outside.is_empty();
    if is_used {
        let slot = slot();
        for call in outside {
            let builder = crate::llvm::Builder::before(context, call);
            call.replace_all_uses_with(builder.load(pointer, slot));
            call.erase();
        }
        for &kernel in kernels {
            let first = kernel.blocks()[0].instructions()[0];
            let builder = crate::llvm::Builder::before(context, first);
            builder.store(generic(kernel, first), slot);
        }
    }
    launch.delete_function();
    is_used
}
