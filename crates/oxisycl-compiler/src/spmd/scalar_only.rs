//! What keeps an item function scalar: items that run in turn may do it, and lanes of a vector may not.
//!
//! Three things are looked for. An item that waits for another one of its vector waits for ever. Memory of the thread serves one item at a time. A
//! panic abandons the other lanes without their destructors, so destructors must have nothing to do but to tell which item failed.

use rustc_hash::FxHashSet;

use super::borders::is_question;
use super::cfg::{BlockIdx, Graph, Reason, Refusal};
use super::shape::Shapes;
use super::singly::only_computes;
use crate::llvm::{Attribute, Opcode, TypeKind, Value, ValueKind};

/// Refuses a function whose items cannot share a vector.
pub(crate) fn scalar_only<'c>(graph: &Graph<'c>, shapes: &Shapes<'_, 'c>) -> Result<(), Refusal<'c>> {
    let in_cleanup = cleanup_blocks(graph);
    for block in graph.blocks() {
        for instruction in graph.block(block).instructions() {
            let refuse = |reason| Err(Refusal { reason, at: Some(instruction) });
            if instruction.operands().into_iter().any(|operand| has_variable(operand, &mut FxHashSet::default())) {
                return refuse(Reason::ThreadMemory);
            }
            if may_wait(instruction) {
                return refuse(Reason::Waits);
            }
            if graph.returns(block) && is_unknown_call(instruction) {
                return refuse(Reason::UnknownCall);
            }
            if in_cleanup.contains(&block) && !is_harmless_in_cleanup(instruction, shapes) {
                return refuse(Reason::Cleanup);
            }
        }
    }
    Ok(())
}

/// The blocks that a panic of an invoked function runs.
fn cleanup_blocks(graph: &Graph<'_>) -> FxHashSet<BlockIdx> {
    let is_pad = |block: &BlockIdx| {
        graph.block(*block).instructions().iter().any(|instruction| instruction.is(Opcode::LANDING_PAD))
    };
    let mut queue: Vec<BlockIdx> = graph.blocks().filter(is_pad).collect();
    let mut found = FxHashSet::default();
    while let Some(block) = queue.pop() {
        if found.insert(block) {
            queue.extend(graph.successors(block));
        }
    }
    found
}

/// Whether a constant leads to a variable of the program or of a thread, through other constants and what they hold.
fn has_variable<'c>(value: Value<'c>, seen: &mut FxHashSet<Value<'c>>) -> bool {
    match value.kind() {
        ValueKind::GlobalVariable if value.is_thread_local() || !value.is_constant_global() => true,
        ValueKind::GlobalVariable => {
            // What another library's constant holds is not known.
            seen.insert(value) && value.initializer().is_none_or(|initializer| has_variable(initializer, seen))
        }
        ValueKind::ConstantExpression | ValueKind::Aggregate => {
            seen.insert(value) && value.operands().into_iter().any(|operand| has_variable(operand, seen))
        }
        ValueKind::Alias => has_variable(value.aliasee(), seen),
        _ => false,
    }
}

/// Whether an instruction may be a part of a wait for another item.
fn may_wait(instruction: Value<'_>) -> bool {
    match instruction.opcode() {
        Some(Opcode::ATOMIC_CMP_XCHG) => true,
        Some(Opcode::LOAD | Opcode::ATOMIC_RMW) if instruction.is_atomic() => {
            acquires(instruction.ordering()) || decides(instruction)
        }
        Some(Opcode::FENCE) => acquires(instruction.ordering()),
        Some(Opcode::LOAD) if instruction.is_volatile() => decides(instruction),
        _ => false,
    }
}

/// Whether an order makes what other items did before visible. The numbers are those of `LLVMAtomicOrdering`.
fn acquires(ordering: i32) -> bool {
    const ACQUIRE: i32 = 4;
    const ACQUIRE_RELEASE: i32 = 6;
    const SEQUENTIALLY_CONSISTENT: i32 = 7;
    [ACQUIRE, ACQUIRE_RELEASE, SEQUENTIALLY_CONSISTENT].contains(&ordering)
}

/// Whether a branch may depend on a value, also by way of memory.
fn decides(source: Value<'_>) -> bool {
    let (mut seen, mut queue) = (FxHashSet::from_iter([source]), vec![source]);
    while let Some(value) = queue.pop() {
        for user in value.users() {
            let is_result = user.value_type().kind() != TypeKind::Void;
            match user.opcode() {
                Some(Opcode::STORE) if user.operand(0) != value => {}
                // Other items may see it, and what they do with that is their part.
                Some(Opcode::ATOMIC_RMW) => {}
                Some(Opcode::CALL) if is_result && !is_unknown_call(user) => {
                    queue.extend(seen.insert(user).then_some(user))
                }
                Some(Opcode::CALL | Opcode::INVOKE) => return true,
                _ if is_result => queue.extend(seen.insert(user).then_some(user)),
                // A branch, or a store of the value, which may be loaded again.
                _ => return true,
            }
        }
    }
    false
}

/// Whether an instruction calls what may wait, or use memory of its thread.
fn is_unknown_call(instruction: Value<'_>) -> bool {
    let Some(callee) = instruction.callee() else { return false };
    if callee.kind() != ValueKind::Function {
        return true;
    }
    let is_intrinsic = callee.name().starts_with("llvm.") && !callee.name().starts_with("llvm.threadlocal.");
    !is_intrinsic && !only_computes(instruction) && !is_question(instruction)
}

/// Whether the blocks that a panic runs may have the instruction, although other lanes do not get there.
fn is_harmless_in_cleanup<'c>(instruction: Value<'c>, shapes: &Shapes<'_, 'c>) -> bool {
    match instruction.opcode() {
        // Ends the process, or is no code.
        Some(Opcode::CALL | Opcode::INVOKE) => {
            let callee = instruction.callee().filter(|callee| callee.kind() == ValueKind::Function);
            callee.is_some_and(|callee| {
                let ends = callee.has_attribute(Attribute::FUNCTION, "noreturn");
                let is_marker = ["llvm.lifetime.", "llvm.assume", "llvm.dbg.", "llvm.experimental.noalias.scope.decl"];
                // Which item failed, in all dimensions.
                let is_store = ["llvm.memset.", "llvm.memcpy."].iter().any(|prefix| callee.name().starts_with(prefix));
                ends || is_marker.iter().any(|prefix| callee.name().starts_with(prefix))
                    || is_store && is_place_of_all(instruction.operand(0), shapes)
            })
        }
        // The note which item failed is at the same place for all.
        Some(Opcode::STORE) => is_place_of_all(instruction.operand(1), shapes),
        _ => !instruction.is_atomic(),
    }
}

/// Whether an address is a fixed distance behind one that all lanes have.
fn is_place_of_all<'c>(address: Value<'c>, shapes: &Shapes<'_, 'c>) -> bool {
    if shapes.is_uniform(address) {
        return true;
    }
    let is_fixed = |index: &Value<'c>| index.kind() == ValueKind::Integer;
    match address.opcode() {
        Some(Opcode::GET_ELEMENT_PTR) => {
            address.operands()[1..].iter().all(is_fixed) && is_place_of_all(address.operand(0), shapes)
        }
        Some(Opcode::LOAD) => is_place_of_all(address.operand(0), shapes),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
