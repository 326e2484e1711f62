//! Orders and scopes of atomic operations that LLVM's NVPTX target drops.
//!
//! LLVM 22 emits every native `atomicrmw` for NVPTX as relaxed, at the scope of the device. The order is kept by fences around a relaxed
//! operation, as the PTX memory model defines them; loads, stores, fences and `cmpxchg` are right as they are. Operations of
//! `core::sync::atomic` have the scope of the whole system in Rust; they are narrowed to the device (documented in the book).

use crate::llvm::{Builder, Module, Opcode};

// The numbers of `LLVMAtomicOrdering`.
const MONOTONIC: i32 = 2;
const ACQUIRE: i32 = 4;
const RELEASE: i32 = 5;
const ACQUIRE_RELEASE: i32 = 6;
const SEQUENTIALLY_CONSISTENT: i32 = 7;

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
