//! Computes the next position of a loop of its position, where the loop carries both.
//!
//! Rust's `(first..last).step_by(n)` makes such loops. A turn begins with the position that the one before took for the next. Both are
//! `n` apart in each turn, so that one of them is enough.
//!
//! That saves a value in each turn, but the reason is a driver whose compiler crashes (the quirk `next-positions`).
//!
//! Invariant: no number changes. Touches integers of up to 64 bits in loops with one way in and one way back.

use crate::llvm::{Block, Builder, Module, Opcode, TypeKind, Value};

/// Replaces next positions in all functions of a module.
pub(super) fn compute(module: &Module<'_>) {
    for function in module.functions() {
        for next in function.instructions().into_iter().filter(|value| value.is(Opcode::PHI)) {
            let Some((position, step)) = position_of(next) else { continue };
            let mut after = next.next();
            while after.is(Opcode::PHI) {
                after = after.next();
            }
            let sum = Builder::before(module.context(), after).add(position, step);
            next.replace_all_uses_with(sum);
            next.erase();
        }
    }
}

/// The position that a phi is a constant step beyond in each turn, and the step.
fn position_of(next: Value<'_>) -> Option<(Value<'_>, Value<'_>)> {
    let TypeKind::Integer(width @ 1..=64) = next.value_type().kind() else { return None };
    let (first, step, back) = progression(next)?;
    let is_position = |phi: &Value<'_>| {
        let ways = phi.incoming();
        let comes = |block: Block<'_>| ways.iter().find(|way| way.1 == block).map(|way| way.0);
        let begins = ways.iter().find(|way| way.1 != back).map(|way| way.0);
        let is_apart = begins.is_some_and(|begins| is_apart(begins, first, step, u64::MAX >> (64 - width)));
        phi.block() == next.block() && ways.len() == 2 && comes(back) == Some(next) && is_apart
    };
    next.users()
        .into_iter()
        .filter(|user| user.is(Opcode::PHI) && *user != next)
        .find(is_position)
        .map(|phi| (phi, step))
}

/// What a phi begins with, the constant that each turn adds, and the block that the next turn comes from.
fn progression<'c>(phi: Value<'c>) -> Option<(Value<'c>, Value<'c>, Block<'c>)> {
    let ways: [_; 2] = phi.incoming().try_into().ok()?;
    let is_sum = |value: Value<'c>| addend(value).is_some() && value.operand(0) == phi;
    match ways.map(|(value, _)| is_sum(value)) {
        [false, true] => Some((ways[0].0, ways[1].0.operand(1), ways[1].1)),
        [true, false] => Some((ways[1].0, ways[0].0.operand(1), ways[0].1)),
        _ => None,
    }
}

/// Whether `to` is `step` more than `from`, which may be sums with a constant.
fn is_apart(from: Value<'_>, to: Value<'_>, step: Value<'_>, mask: u64) -> bool {
    let ((from, less), (to, more)) = (split(from), split(to));
    let distance = more.wrapping_sub(less) & mask;
    from == to && step.integer().is_some_and(|step| distance == step & mask)
}

/// A value as one of which nothing is known, if it is no constant, and a constant.
fn split(value: Value<'_>) -> (Option<Value<'_>>, u64) {
    if let Some(number) = value.integer() {
        return (None, number);
    }
    match addend(value) {
        Some(number) => (Some(value.operand(0)), number),
        None => (Some(value), 0),
    }
}

/// The constant that a sum adds to its first operand. LLVM writes some sums as disjunctions.
fn addend(value: Value<'_>) -> Option<u64> {
    let is_sum = value.is(Opcode::ADD) || value.is_disjoint_or();
    is_sum.then(|| value.operand(1).integer()).flatten()
}
