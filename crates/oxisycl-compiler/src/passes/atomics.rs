//! Orders and scopes of atomic operations: orders that LLVM's NVPTX target drops, and scopes that are narrowed.
//!
//! LLVM 22 emits every native `atomicrmw` for NVPTX as relaxed, at the scope of the device. The order is kept by fences around a relaxed
//! operation, as the PTX memory model defines them. The device's scope includes that of the group; operations of the whole system are inline
//! assembly. Loads, stores, fences and `cmpxchg` are right as they are.
//!
//! Operations of `core::sync::atomic` have the scope of the whole system in Rust; they are narrowed to the device (documented in the book). Those of
//! `oxisycl::atomic` have scopes with names of their own, which become the target's.

use std::collections::BTreeMap;

use crate::builtin_table::{PREFIX, WIDE_LOAD, WIDE_STORE};
use crate::error::CompileError;
use crate::llvm::pass_lists::INLINE_BODIES;
use crate::llvm::{Attribute, Builder, Linkage, Module, Opcode, PassTuning, Type, TypeKind, Value, ValueKind};
use crate::passes::atomic_builtins::{DEVICE, SYSTEM, WORK_GROUP};

// The numbers of `LLVMAtomicOrdering`.
const MONOTONIC: i32 = 2;
const ACQUIRE: i32 = 4;
const RELEASE: i32 = 5;
const ACQUIRE_RELEASE: i32 = 6;
const SEQUENTIALLY_CONSISTENT: i32 = 7;

/// Renames the scopes of atomic operations to AMD's names. Removes fences for one thread.
pub(crate) fn legalize_for_amdgcn(module: &Module<'_>) {
    const AGENT: &str = "agent";
    rename_scopes(module, &[("", AGENT), (DEVICE, AGENT), (SYSTEM, "")]);
}

/// Splits ordered read-modify-write operations into fences and relaxed operations, and renames scopes to PTX's names. Removes fences for
/// one thread.
pub(crate) fn legalize_for_nvptx(module: &Module<'_>) -> Result<(), CompileError> {
    let context = module.context();
    let [system, core, device] = [SYSTEM, "", "device"].map(|name| context.sync_scope(name));
    let mut of_the_system = Vec::new();
    for change in module.functions().into_iter().flat_map(Value::instructions) {
        if !change.is(Opcode::ATOMIC_RMW) {
            continue;
        }
        if change.sync_scope() == system {
            of_the_system.push(change);
        } else if change.sync_scope() == core {
            change.set_sync_scope(device);
        }
        let (order, scope) = (change.ordering(), change.sync_scope());
        let before = match order {
            RELEASE | ACQUIRE_RELEASE => Some(RELEASE),
            SEQUENTIALLY_CONSISTENT => Some(SEQUENTIALLY_CONSISTENT),
            _ => None,
        };
        if let Some(fence) = before {
            Builder::before(context, change).fence(fence, scope);
        }
        if matches!(order, ACQUIRE | ACQUIRE_RELEASE | SEQUENTIALLY_CONSISTENT) {
            // An atomic operation never ends its block.
            Builder::before(context, change.next()).fence(ACQUIRE, scope);
        }
        change.set_ordering(MONOTONIC);
    }
    rename_scopes(module, &[(WORK_GROUP, "block"), (DEVICE, "device"), (SYSTEM, "")]);
    assemble_wide(module)?;
    if of_the_system.is_empty() { Ok(()) } else { assemble(module, of_the_system) }
}

/// Renames scopes, all at once. Removes fences for one thread.
fn rename_scopes(module: &Module<'_>, names: &[(&str, &str)]) {
    let context = module.context();
    let one_thread = context.sync_scope("singlethread");
    let names: BTreeMap<u32, u32> =
        names.iter().map(|(from, to)| (context.sync_scope(from), context.sync_scope(to))).collect();
    for instruction in module.functions().into_iter().flat_map(Value::instructions) {
        if !instruction.is_atomic() {
            continue;
        }
        let scope = instruction.sync_scope();
        if instruction.is(Opcode::FENCE) && scope == one_thread {
            instruction.erase();
        } else if let Some(scope) = names.get(&scope) {
            instruction.set_sync_scope(*scope);
        }
    }
}

/// Replaces relaxed read-modify-write operations by PTX instructions with the scope of the whole system.
fn assemble(module: &Module<'_>, changes: Vec<Value<'_>>) -> Result<(), CompileError> {
    let context = module.context();
    for change in changes {
        let (name, text) = function_for(change).ok_or_else(|| {
            CompileError::Target(format!("an atomic operation without an instruction: {}", change.print()))
        })?;
        if module.function(&name).is_none() {
            module.link(Module::from_text(context, &text, "atomics")?)?;
        }
        let Some(function) = module.function(&name) else { continue };
        function.set_linkage(Linkage::INTERNAL);
        function.add_attribute(Attribute::FUNCTION, Attribute::plain(context, "alwaysinline", 0));
        let builder = Builder::before(context, change);
        let place = change.operand(0);
        let place = match place.value_type().kind() {
            TypeKind::Pointer(0) => place,
            _ => builder.cast_address(place, Type::pointer(context, 0)),
        };
        let call = builder.call(function, &[place, change.operand(1)]);
        change.replace_all_uses_with(call);
        change.erase();
    }
    module.run(INLINE_BODIES, None, &PassTuning::DEVICE)
}

/// The function for one PTX instruction, by name and in LLVM assembly.
fn function_for(change: Value<'_>) -> Option<(String, String)> {
    let (of, register, bits) = match change.operand(1).value_type().kind() {
        TypeKind::Integer(32) => ("i32", "r", 32),
        TypeKind::Integer(64) => ("i64", "l", 64),
        TypeKind::Float => ("float", "f", 32),
        TypeKind::Double => ("double", "d", 64),
        _ => return None,
    };
    // By the numbers of `LLVMAtomicRMWBinOp`.
    let operation = match change.atomic_operation() {
        0 => format!("exch.b{bits}"),
        1 => format!("add.u{bits}"),
        3 => format!("and.b{bits}"),
        5 => format!("or.b{bits}"),
        6 => format!("xor.b{bits}"),
        7 => format!("max.s{bits}"),
        8 => format!("min.s{bits}"),
        9 => format!("max.u{bits}"),
        10 => format!("min.u{bits}"),
        11 => format!("add.f{bits}"),
        _ => return None,
    };
    let name = format!("oxisycl.system.{operation}");
    let text = format!(
        "define {of} @{name}(ptr %p, {of} %v) {{\n  %old = call {of} asm sideeffect \"atom.relaxed.sys.{operation} $0, [$1], $2;\", \
         \"={register},l,{register},~{{memory}}\"(ptr %p, {of} %v)\n  ret {of} %old\n}}\n"
    );
    Some((name, text))
}

/// Replaces atomic operations on 128 bits by PTX instructions. An access to two values of 64 bits would be no single one, by the memory
/// model.
fn assemble_wide(module: &Module<'_>) -> Result<(), CompileError> {
    let context = module.context();
    let operations: Vec<_> = [WIDE_LOAD, WIDE_STORE]
        .into_iter()
        .filter_map(|name| module.function(&format!("{PREFIX}{name}")))
        .filter(|function| function.is_used())
        .collect();
    for operation in &operations {
        for call in operation.calls() {
            let arguments = call.arguments();
            // The group, or the device, which includes it.
            let scope = if arguments.last().and_then(|scope| scope.integer()) == Some(0) { "cta" } else { "gpu" };
            let (name, text) = wide_function(operation.name(), scope);
            if module.function(&name).is_none() {
                module.link(Module::from_text(context, &text, "atomics")?)?;
            }
            let Some(function) = module.function(&name) else { continue };
            function.set_linkage(Linkage::INTERNAL);
            function.add_attribute(Attribute::FUNCTION, Attribute::plain(context, "alwaysinline", 0));
            let result = Builder::before(context, call).call(function, &arguments);
            call.replace_all_uses_with(result);
            call.erase();
        }
    }
    if operations.is_empty() { Ok(()) } else { module.run(INLINE_BODIES, None, &PassTuning::DEVICE) }
}

/// The function for a PTX instruction on 128 bits, by name and in LLVM assembly.
fn wide_function(builtin: &str, scope: &str) -> (String, String) {
    let name = format!("{builtin}.{scope}");
    let text = if builtin.ends_with(WIDE_LOAD) {
        format!(
            "define i128 @{name}(ptr %p, i32 %scope) {{
               %halves = call {{ i64, i64 }} asm sideeffect \"{{ .reg .b128 %wide; ld.relaxed.{scope}.b128 %wide, [$2]; mov.b128 {{$0, $1}}, %wide; }}\", \"=l,=l,l,~{{memory}}\"(ptr %p)
               %low.half = extractvalue {{ i64, i64 }} %halves, 0
               %high.half = extractvalue {{ i64, i64 }} %halves, 1
               %low = zext i64 %low.half to i128
               %high = zext i64 %high.half to i128
               %shifted = shl nuw i128 %high, 64
               %value = or disjoint i128 %shifted, %low
               ret i128 %value
             }}"
        )
    } else {
        format!(
            "define void @{name}(ptr %p, i128 %value, i32 %scope) {{
               %low = trunc i128 %value to i64
               %shifted = lshr i128 %value, 64
               %high = trunc nuw i128 %shifted to i64
               call void asm sideeffect \"{{ .reg .b128 %wide; mov.b128 %wide, {{$1, $2}}; st.relaxed.{scope}.b128 [$0], %wide; }}\", \"l,l,l,~{{memory}}\"(ptr %p, i64 %low, i64 %high)
               ret void
             }}"
        )
    };
    (name, text)
}

/// Whether code for NVIDIA's GPUs has atomic operations on 128 bits.
pub(crate) fn has_wide_operations(module: &Module<'_>) -> bool {
    let is_wide = |operand: &Value<'_>| operand.kind() == ValueKind::InlineAsm && operand.print().contains(".b128");
    let calls = module.functions().into_iter().flat_map(Value::instructions).filter(|of| of.is(Opcode::CALL));
    calls.into_iter().any(|call| call.operands().last().is_some_and(is_wide))
}

#[cfg(test)]
mod tests;
