//! Checks that scalar operations decide for all lanes: bounds checks of indices that grow from lane to lane, and what LLVM joins them with.
//!
//! Where they say no, some lane may pass all the same, so lanes are looked at one by one then. These are functions of graph and shapes alone.

use super::cfg::Graph;
use super::shape::{Shape, Shapes};
use crate::llvm::predicate::{UNSIGNED_GREATER, UNSIGNED_LESS, UNSIGNED_NOT_GREATER, UNSIGNED_NOT_LESS};
use crate::llvm::{Opcode, TypeKind, Value};

/// Parts of a condition that are followed.
const DEPTH: usize = 4;

/// How scalar operations tell that a condition is as wanted for all lanes.
pub(super) enum Check<'c> {
    /// A condition that all lanes share has this value.
    Is(Value<'c>, bool),
    /// The index of the last lane is below the bound, and nothing wraps on the way to it.
    InBounds {
        index: Value<'c>,
        /// The distance of the index in two neighbouring lanes.
        step: u64,
        bound: Value<'c>,
    },
    Both(Box<Self>, Box<Self>),
}

/// The scalar form of a condition that is to be `wanted`, if there is one.
pub(super) fn check<'c>(shapes: &Shapes<'_, 'c>, condition: Value<'c>, wanted: bool) -> Option<Check<'c>> {
    part(shapes, condition, wanted, DEPTH)
}

/// The scalar form of the check that a branch with an edge to a trap is.
pub(super) fn of_branch<'c>(graph: &Graph<'c>, shapes: &Shapes<'_, 'c>, branch: Value<'c>) -> Option<Check<'c>> {
    let block = graph.index(branch.block());
    let [yes, no] = graph.successors(block)[..] else { return None };
    match (graph.returns(yes), graph.returns(no)) {
        (true, false) => check(shapes, branch.operand(0), true),
        (false, true) => check(shapes, branch.operand(0), false),
        _ => None,
    }
}

fn part<'c>(shapes: &Shapes<'_, 'c>, condition: Value<'c>, wanted: bool, depth: usize) -> Option<Check<'c>> {
    if shapes.is_uniform(condition) {
        return Some(Check::Is(condition, wanted));
    }
    if condition.is(Opcode::INTEGER_COMPARISON) {
        return in_bounds(shapes, condition, wanted);
    }
    let depth = depth.checked_sub(1)?;
    if let Some(other) = negated(condition) {
        return part(shapes, other, !wanted, depth);
    }
    let (left, right) = both(condition, wanted)?;
    let [left, right] = [left, right].map(|half| part(shapes, half, wanted, depth));
    Some(Check::Both(Box::new(left?), Box::new(right?)))
}

/// The condition that this one is the opposite of.
fn negated(condition: Value<'_>) -> Option<Value<'_>> {
    let is_opposite = condition.is(Opcode::XOR) && condition.operand(1).integer() == Some(1);
    is_opposite.then(|| condition.operand(0))
}

/// The two conditions that have to be `wanted` if one made of them is.
fn both(condition: Value<'_>, wanted: bool) -> Option<(Value<'_>, Value<'_>)> {
    match condition.opcode() {
        Some(Opcode::AND) if wanted => Some((condition.operand(0), condition.operand(1))),
        Some(Opcode::OR) if !wanted => Some((condition.operand(0), condition.operand(1))),
        Some(Opcode::SELECT) => {
            let [first, yes, no] = [0, 1, 2].map(|index| condition.operand(index));
            match wanted {
                true => (no.integer() == Some(0)).then_some((first, yes)),
                false => (yes.integer() == Some(1)).then_some((first, no)),
            }
        }
        _ => None,
    }
}

fn in_bounds<'c>(shapes: &Shapes<'_, 'c>, comparison: Value<'c>, wanted: bool) -> Option<Check<'c>> {
    let (left, right) = (comparison.operand(0), comparison.operand(1));
    let (index, bound) = match (comparison.predicate(), wanted) {
        (UNSIGNED_LESS, true) | (UNSIGNED_NOT_LESS, false) => (left, right),
        (UNSIGNED_GREATER, true) | (UNSIGNED_NOT_GREATER, false) => (right, left),
        _ => return None,
    };
    let (Shape::Affine(step @ 1..=0xffff), Shape::Uniform) = (shapes.shape(index), shapes.shape(bound)) else {
        return None;
    };
    let is_wide = matches!(index.value_type().kind(), TypeKind::Integer(32..=64));
    is_wide.then_some(Check::InBounds { index, step: step as u64, bound })
}

/// Whether a condition only decides branches that scalar operations decide.
pub(super) fn is_decided<'c>(graph: &Graph<'c>, shapes: &Shapes<'_, 'c>, condition: Value<'c>) -> bool {
    let is_part = |user: Value<'c>| {
        let joins = matches!(user.opcode(), Some(Opcode::AND | Opcode::OR | Opcode::XOR | Opcode::SELECT));
        joins && user.value_type() == condition.value_type() && is_decided(graph, shapes, user)
    };
    let is_boolean = condition.value_type().kind() == TypeKind::Integer(1);
    is_boolean
        && condition
            .users()
            .into_iter()
            .all(|user| if user.is(Opcode::BRANCH) { of_branch(graph, shapes, user).is_some() } else { is_part(user) })
}
