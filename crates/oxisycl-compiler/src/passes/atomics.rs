//! Orders and scopes of atomic operations: what LLVM's NVPTX target drops, and what is narrowed.
//!
//! LLVM 22 emits every native `atomicrmw` for NVPTX as relaxed, at the scope of the device. The order is kept by fences around a relaxed
//! operation, as the PTX memory model defines them; loads, stores, fences and `cmpxchg` are right as they are. Operations of
//! `core::sync::atomic` have the scope of the whole system in Rust; they are narrowed to the device (documented in the book).

use crate::llvm::{Builder, Module, Opcode, Value};

// The numbers of `LLVMAtomicOrdering`.
const MONOTONIC: i32 = 2;
const ACQUIRE: i32 = 4;
const RELEASE: i32 = 5;
const ACQUIRE_RELEASE: i32 = 6;
const SEQUENTIALLY_CONSISTENT: i32 = 7;

/// Gives atomic operations of the whole system the scope of the device, by the target's name for it. Removes fences for one thread.
pub(crate) fn narrow_to_device(module: &Module<'_>, device: &str) {
    let context = module.context();
    let (device, system) = (context.sync_scope(device), context.sync_scope(""));
    let one_thread = context.sync_scope("singlethread");
    for instruction in module.functions().into_iter().flat_map(Value::instructions) {
        if instruction.is(Opcode::FENCE) && instruction.sync_scope() == one_thread {
            instruction.erase();
        } else if instruction.is_atomic() && instruction.sync_scope() == system {
            instruction.set_sync_scope(device);
        }
    }
}

/// Splits ordered read-modify-write operations into fences and relaxed operations, and removes fences for one thread.
pub(crate) fn legalize_for_nvptx(module: &Module<'_>) {
    let context = module.context();
    let device = context.sync_scope("device");
    let one_thread = context.sync_scope("singlethread");
    let system = context.sync_scope("");
    for function in module.functions() {
        for instruction in function.instructions() {
            if instruction.is(Opcode::FENCE) && instruction.sync_scope() == one_thread {
                instruction.erase();
            } else if instruction.is(Opcode::ATOMIC_RMW) {
                let scope = match instruction.sync_scope() {
                    scope if scope == system => device,
                    scope => scope,
                };
                let order = instruction.ordering();
                let before = match order {
                    RELEASE | ACQUIRE_RELEASE => Some(RELEASE),
                    SEQUENTIALLY_CONSISTENT => Some(SEQUENTIALLY_CONSISTENT),
                    _ => None,
                };
                if let Some(fence) = before {
                    Builder::before(context, instruction).fence(fence, scope);
                }
                if matches!(order, ACQUIRE | ACQUIRE_RELEASE | SEQUENTIALLY_CONSISTENT) {
                    // An atomic operation never ends its block.
                    Builder::before(context, instruction.next()).fence(ACQUIRE, scope);
                }
                instruction.set_ordering(MONOTONIC);
            }
        }
    }
}

#[cfg(test)]
mod tests;
