//! Folds comparisons whose outcome an earlier branch has decided.
//!
//! `for x in list` tests twice whether there is another element. `next` tests the length and returns an `Option`, and the loop tests the
//! option: for references, a comparison with null. On a CPU LLVM's jump threading joins the two tests. It is off where threads diverge,
//! because it lets them bypass the place at which they meet again. This stage does the part of it that is safe there:
//!
//! ```text
//! if c { value = x } else { value = null }        if c { value = x } else { value = null }
//! if value == null { .. }                   =>    if (c ? x == null : true) { .. }
//! ```
//!
//! Control flow stays as it is: only a value is computed in another way. Where `x` is known not to be null, LLVM then finds that both
//! branches have the same condition, and joins them. That is sound in this form and only in this form. Each arm is a chain of blocks that
//! nothing else leads to. So exactly the threads that took an arm go on together after it, before and after the change.

use crate::llvm::{Block, Builder, Module, Opcode, Value};
use rustc_hash::FxHashMap;

/// The most blocks of an arm that are followed upwards.
const LONGEST_ARM: usize = 32;

/// Rewrites such comparisons as selections by the branch's condition. Returns whether there was one.
pub(crate) fn follow_branches(module: &Module<'_>) -> bool {
    let mut changed = false;
    for function in module.functions() {
        let mut predecessors: FxHashMap<Block<'_>, Vec<Block<'_>>> = FxHashMap::default();
        for block in function.blocks() {
            for successor in block.successors() {
                predecessors.entry(successor).or_default().push(block);
            }
        }
        for comparison in function.instructions() {
            changed |= comparison.is(Opcode::INTEGER_COMPARISON) && follow_branch(module, comparison, &predecessors);
        }
    }
    changed
}

fn follow_branch<'c>(
    module: &Module<'c>,
    comparison: Value<'c>,
    predecessors: &FxHashMap<Block<'c>, Vec<Block<'c>>>,
) -> bool {
    let (phi, constant) = (comparison.operand(0), comparison.operand(1));
    // A phi without other users is folded by LLVM itself.
    if !phi.is(Opcode::PHI) || phi.users().len() < 2 || !(constant.is_null() || constant.integer().is_some()) {
        return false;
    }
    let join = phi.block();
    let &[(first, from_first), (second, from_second)] = phi.incoming().as_slice() else { return false };
    // One of the two decides the comparison at once.
    let is_constant = |value: Value<'_>| value.is_null() || value.integer().is_some();
    if is_constant(first) == is_constant(second) {
        return false;
    }
    let origins = arm(from_first, join, predecessors).zip(arm(from_second, join, predecessors));
    if origins.is_none_or(|((one, at_one), (other, at_other))| one != other || at_one == at_other) {
        return false;
    }
    let outcomes = [(first, from_first), (second, from_second)].map(|(value, block)| {
        let builder = Builder::before(module.context(), block.end());
        (builder.compare(comparison.predicate(), value, constant), block)
    });
    let outcome = Builder::before(module.context(), phi).phi(comparison.value_type(), &outcomes);
    comparison.replace_all_uses_with(outcome);
    comparison.erase();
    true
}

/// The block whose branch leads to `join` only through `block`, and the index of that successor.
fn arm<'c>(
    mut block: Block<'c>,
    join: Block<'c>,
    predecessors: &FxHashMap<Block<'c>, Vec<Block<'c>>>,
) -> Option<(Block<'c>, usize)> {
    let mut next = join;
    for _ in 0..LONGEST_ARM {
        match block.successors().as_slice() {
            [_] => {}
            &[yes, no] if yes != no && block.end().is(Opcode::BRANCH) => return Some((block, usize::from(next == no))),
            _ => return None,
        }
        let &[only] = predecessors.get(&block)?.as_slice() else { return None };
        (next, block) = (block, only);
    }
    None
}

#[cfg(test)]
mod tests;
