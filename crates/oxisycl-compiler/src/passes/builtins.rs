//! Replaces the functions of `oxisycl_device::builtin` by their lowerings, as the [table](crate::builtin_table) says.

use crate::builtin_table::{self, Bodies, Builtin, Effects, LAUNCH, Lowering, Scalar, Signature};
use crate::error::CompileError;
use crate::llvm::{Attribute, Context, Linkage, Module, Opcode, Type, Value};
use crate::origin;
use crate::passes::strip_host_abi::replace_body;
use crate::passes::{atomic_builtins, thread_coarsening};

/// The attribute index of a function's first parameter.
const FIRST_PARAMETER: u32 = 1;

/// Replaces the builtins for which a target has bodies, by linking these in.
pub(crate) fn replace(module: &Module<'_>, bodies: Bodies) -> Result<(), CompileError> {
    let context = module.context();
    let (mut used, mut atomics) = (Vec::new(), String::new());
    for function in module.functions() {
        let Some(name) = origin::builtin(function.name()) else { continue };
        let Some(builtin) = builtin_table::find(&name) else {
            return Err(CompileError::Target(format!("the target has no builtin {}{name}", builtin_table::PREFIX)));
        };
        let lowering = match builtin.lowering(bodies.family) {
            Lowering::HasReductions => Lowering::Answer(bodies.has_reductions.into()),
            lowering => lowering,
        };
        if let Lowering::Number(value) | Lowering::Answer(value) = lowering
            && number(context, builtin, value).value_type() != function.held_type().result()
        {
            return Err(of_another_type(&name));
        }
        match lowering {
            Lowering::OwnBody | Lowering::HasReductions => {}
            Lowering::ConstantLoads => {
                let loads = function.instructions().into_iter().filter(|instruction| instruction.is(Opcode::LOAD));
                loads.for_each(|load| load.mark(thread_coarsening::CONSTANT));
                // Not another way: LLVM also moves loads to callers, and forgets what they are marked with.
                function.add_attribute(Attribute::FUNCTION, Attribute::plain(context, "alwaysinline", 0));
            }
            Lowering::Number(value) => {
                let number = number(context, builtin, value);
                replace_body(module, function, |builder| builder.ret(number));
            }
            Lowering::Answer(value) => {
                let number = number(context, builtin, value);
                for call in function.users() {
                    if call.callee() == Some(function) {
                        call.replace_all_uses_with(number);
                        // An invoke ends its block, and stays: it calls a function that returns the number.
                        if call.is(Opcode::CALL) {
                            call.erase();
                        }
                    }
                }
                // For calls by address.
                replace_body(module, function, |builder| builder.ret(number));
            }
            Lowering::Later => {
                let declaration = module.declare(&builtin.symbol(), function.held_type());
                describe(context, declaration, builtin.effects);
                function.replace_all_uses_with(declaration);
                function.delete_function();
            }
            Lowering::Body | Lowering::Atomic => {
                let body = module.declare(&builtin.symbol(), function.held_type());
                function.replace_all_uses_with(body);
                function.delete_function();
                if lowering == Lowering::Atomic {
                    atomics += &atomic_builtins::body(builtin.name, &builtin.symbol()).unwrap_or_default();
                }
                used.push((builtin.symbol(), body.held_type()));
            }
        }
    }
    if used.is_empty() {
        return Ok(());
    }
    let bodies = Module::from_text(context, &format!("{}{atomics}", bodies.text), "builtins")?;
    for function in bodies.functions() {
        if !function.is_declaration() {
            function.set_linkage(Linkage::LINK_ONCE_ODR);
            function.add_attribute(Attribute::FUNCTION, Attribute::plain(context, "alwaysinline", 0));
        }
    }
    if let Some((name, _)) =
        used.iter().find(|(name, held)| bodies.function(name).is_some_and(|body| body.held_type() != *held))
    {
        return Err(of_another_type(name));
    }
    module.link(bodies)?;
    for (name, _) in used {
        let function = module.function(&name).filter(|function| !function.is_declaration());
        let function = function.ok_or_else(|| CompileError::Target(format!("the target has no builtin {name}")))?;
        function.set_linkage(Linkage::INTERNAL);
    }
    Ok(())
}

/// The error for a device library of another version of OxiSYCL.
fn of_another_type(name: &str) -> CompileError {
    CompileError::Target(format!("the target's builtin {name} has another type than the program's"))
}

/// A constant of a builtin's result type.
fn number<'c>(context: &'c Context, builtin: &Builtin, value: u64) -> Value<'c> {
    let bits = match builtin.signature {
        Signature::Plain(_, Some(Scalar::Bool)) => 1,
        Signature::Plain(_, Some(Scalar::U32)) => 32,
        _ => 64,
    };
    Type::int(context, bits).constant(value)
}

/// Adds attributes to a declaration, so that LLVM knows the effects of its calls.
fn describe<'c>(context: &'c Context, declaration: Value<'c>, effects: Effects) {
    // The numbers are those of `MemoryEffects`. Memory that no other code sees keeps a call where it is.
    const NO_MEMORY: u64 = 0;
    const INACCESSIBLE: u64 = 3 << 2;
    let memory = match effects {
        Effects::None => Some(NO_MEMORY),
        Effects::Marker => Some(INACCESSIBLE),
        Effects::Memory | Effects::Convergent | Effects::Ends => None,
    };
    let ends = (effects == Effects::Ends).then_some(0);
    let returns = ends.map_or(Some(0), |_| None);
    let convergent = matches!(effects, Effects::Ends | Effects::Convergent).then_some(0);
    let attributes = [
        ("nounwind", Some(0)),
        ("willreturn", returns),
        ("noreturn", ends),
        ("cold", ends),
        ("convergent", convergent),
        ("memory", memory),
    ];
    for (name, value) in attributes {
        if let Some(value) = value {
            declaration.add_attribute(Attribute::FUNCTION, Attribute::plain(context, name, value));
        }
    }
}

/// Adds a call that returns the launch's address, until [`lower_launch`] replaces it.
pub(crate) fn launch<'c>(module: &Module<'c>, builder: &crate::llvm::Builder<'c>) -> Value<'c> {
    let pointer = Type::pointer(module.context(), 0);
    builder.call(module.declare(LAUNCH, Type::function(pointer, &[])), &[])
}

/// Replaces calls for the launch's address by the kernel's own parameter. Runs after optimisation. Functions that were not inlined read the
/// address from `slot`, where the kernels that may reach them store it. Returns whether the slot is used.
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
