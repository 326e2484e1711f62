//! Two work-items for each position of a kernel's grid, where that makes the kernel faster.
//!
//! A kernel that does little more than move memory waits for its loads most of the time. A processor can keep only so many threads waiting.
//! With two work-items a thread has twice as much on its way: on an H200 a copy took 505 us instead of 558 us. The entry of a
//! one-dimensional kernel has code for both forms (`oxisycl_device::builtin::is_paired`), and this stage decides between them. It tells of
//! the optimised form with one work-item whether the kernel [gains](gains), and of the form with two whether that is [as good](is_sound).
//!
//! Invariant: of the two work-items only the first can panic, so the position in a panic record is right. No work-item ends without having
//! run because another one panicked after it had begun.

use crate::llvm::{Block, Builder, Module, Opcode, Type, Value};
use crate::passes::bounds_check_merging::may_come_earlier;
use crate::passes::cold_blocks::endings;
use rustc_hash::FxHashSet;

/// The builtin that tells whether each position runs two work-items, until [`decide`].
const IS_PAIRED: &str = "oxisycl.is_paired";
/// The builtin between the two work-items, and behind one that is alone at the end of a launch, until [`separate`].
const NEXT_ITEM: &str = "oxisycl.next_item";
const ONLY_ITEM: &str = "oxisycl.only_item";
/// The metadata of loads from constant memory.
pub(crate) const CONSTANT: &str = "invariant.load";

/// The most instructions, before optimisation, of a program that is compiled twice to find the better form.
const LARGEST_PROGRAM: usize = 4000;
/// The most instructions of a kernel that gains, without panics. A kernel that computes more hides its loads behind that.
const LARGEST_KERNEL: usize = 64;

/// Whether a program may be worth compiling twice.
pub(crate) fn may_gain(module: &Module<'_>) -> bool {
    let size = || module.functions().into_iter().map(|function| function.instructions().len()).sum::<usize>();
    module.function(IS_PAIRED).is_some() && size() <= LARGEST_PROGRAM
}

/// Chooses one of the forms.
pub(crate) fn decide(module: &Module<'_>, is_paired: bool) {
    let Some(function) = module.function(IS_PAIRED) else { return };
    for call in function.users() {
        call.replace_all_uses_with(Type::int(module.context(), 1).constant(u64::from(is_paired)));
        call.erase();
    }
    function.delete_function();
}

/// Whether a kernel does little more than load elements that nothing writes, and store others. It has no loop, no call except those that
/// end the work-item, and uses no other memory.
pub(crate) fn gains(kernel: Value<'_>) -> bool {
    let parameters: Vec<_> = (0..kernel.parameter_count()).map(|index| kernel.parameter(index)).collect();
    let blocks = kernel.blocks();
    let endings = endings(&blocks);
    let body: Vec<_> = blocks.into_iter().filter(|block| !endings.contains(block)).collect();
    let instructions: Vec<_> = body.iter().flat_map(|block| block.instructions()).collect();
    let is_plain = |instruction: &Value<'_>| match instruction.opcode() {
        Some(Opcode::LOAD) => is_constant_load(*instruction) || may_come_earlier(*instruction, &parameters),
        Some(Opcode::STORE) => is_plain_store(*instruction),
        Some(Opcode::RET | Opcode::BRANCH | Opcode::PHI | Opcode::UNREACHABLE) => true,
        Some(Opcode::FADD | Opcode::FSUB | Opcode::FMUL | Opcode::FDIV | Opcode::FNEG) => true,
        Some(Opcode::CALL) => {
            let asks_for_launch = |callee: Value<'_>| callee.name() == crate::builtin_table::LAUNCH;
            instruction.callee().is_some_and(asks_for_launch) || may_come_earlier(*instruction, &parameters)
        }
        _ => may_come_earlier(*instruction, &parameters),
    };
    instructions.len() <= LARGEST_KERNEL
        && instructions.iter().all(is_plain)
        && instructions.iter().any(|instruction| is_constant_load(*instruction))
        && instructions.iter().any(|instruction| instruction.is(Opcode::STORE))
        && has_no_loop(&body)
}

/// Whether the second work-item of a position cannot panic, since the first one has made the same checks.
pub(crate) fn is_sound(module: &Module<'_>, kernel: Value<'_>) -> bool {
    let Some(marker) = module.function(NEXT_ITEM) else { return false };
    let endings = endings(&kernel.blocks());
    let pairs: Vec<_> = marker.users().into_iter().map(Value::block).collect();
    !pairs.is_empty() && reached(&pairs).is_disjoint(&endings)
}

/// The blocks `from`, and those that may run after them.
fn reached<'c>(from: &[Block<'c>]) -> FxHashSet<Block<'c>> {
    let mut reached = FxHashSet::default();
    let mut queue = from.to_vec();
    while let Some(block) = queue.pop() {
        if reached.insert(block) {
            queue.extend(block.successors());
        }
    }
    reached
}

/// Removes the separation between two work-items, so that the loads of the second one come before the stores of the first. Code for single
/// work-items, of which a launch has few, comes last.
pub(crate) fn separate(module: &Module<'_>) {
    if let Some(marker) = module.function(NEXT_ITEM) {
        for call in marker.users() {
            let pair = call.block();
            call.erase();
            move_stores_back(module, pair);
            let function = pair.end().function();
            let blocks = function.blocks();
            let after = reached(&[pair]);
            let is_alone = |block: &Block<'_>| !after.contains(block) && !reached(&[*block]).contains(&pair);
            let mut last = blocks[blocks.len() - 1];
            for block in blocks.into_iter().filter(is_alone).filter(|block| *block != last).collect::<Vec<_>>() {
                block.move_after(last);
                last = block;
            }
        }
        marker.delete_function();
    }
    if let Some(marker) = module.function(ONLY_ITEM) {
        marker.users().into_iter().for_each(Value::erase);
        marker.delete_function();
    }
}

/// Moves the stores of a block to its end if nothing in the block could observe that. This holds if all loads are from read-only memory or
/// from parameters.
fn move_stores_back(module: &Module<'_>, block: Block<'_>) {
    let function = block.end().function();
    let parameters: Vec<_> = (0..function.parameter_count()).map(|index| function.parameter(index)).collect();
    let instructions = block.instructions();
    let (end, before) = instructions.split_last().expect("a block has an end");
    let (stores, others): (Vec<Value<'_>>, Vec<Value<'_>>) =
        before.iter().partition(|instruction| instruction.is(Opcode::STORE));
    let sees_no_store = |instruction: Value<'_>| match instruction.opcode() {
        Some(Opcode::LOAD) => is_constant_load(instruction) || may_come_earlier(instruction, &parameters),
        Some(Opcode::CALL) => may_come_earlier(instruction, &parameters),
        _ => !instruction.is_atomic(),
    };
    if stores.iter().all(|store| is_plain_store(*store)) && others.into_iter().all(sees_no_store) {
        for store in stores {
            Builder::before(module.context(), *end).take(store);
        }
    }
}

fn is_constant_load(instruction: Value<'_>) -> bool {
    instruction.is(Opcode::LOAD) && instruction.has_metadata(CONSTANT)
}

fn is_plain_store(instruction: Value<'_>) -> bool {
    instruction.is(Opcode::STORE) && !instruction.is_atomic() && !instruction.is_volatile()
}

/// Whether the blocks have a topological order.
fn has_no_loop(blocks: &[Block<'_>]) -> bool {
    let mut left: Vec<_> = blocks.to_vec();
    while !left.is_empty() {
        let targets: FxHashSet<_> = left.iter().flat_map(|block| block.successors()).collect();
        let n_before = left.len();
        left.retain(|block| targets.contains(block));
        if left.len() == n_before {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests;
