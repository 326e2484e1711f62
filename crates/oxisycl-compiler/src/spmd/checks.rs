//! Checks that scalar operations decide for all lanes: comparisons of numbers that grow or fall from lane to lane, and what LLVM joins them with.
//!
//! Where they say no, some lane may pass all the same, so lanes are looked at one by one then. What a check is follows from graph and shapes alone.

use super::borders::is_question;
use super::cfg::Graph;
use super::emitter::{Emitter, Rule};
use super::shape::{Shape, Shapes};
use crate::llvm::predicate::{self, EQUAL, SIGNED_NOT_GREATER, UNEQUAL, UNSIGNED_GREATER, UNSIGNED_NOT_GREATER};
use crate::llvm::{Opcode, TypeKind, Value};

/// Parts of a condition that are followed.
const DEPTH: usize = 4;

/// How scalar operations tell that a condition is as wanted for all lanes.
pub(super) enum Check<'c> {
    /// A condition that all lanes share has this value.
    Is(Value<'c>, bool),
    /// The indices of the first and of the last lane compare so with the bound, and nothing wraps between them.
    Compares {
        index: Index<'c>,
        predicate: i32,
        bound: Value<'c>,
    },
    /// No lane has this number as its index.
    Differs {
        index: Index<'c>,
        other: Value<'c>,
    },
    Both(Box<Self>, Box<Self>),
}

/// A number that is a constant distance apart in neighbouring lanes.
#[derive(Clone, Copy)]
pub(super) struct Index<'c> {
    pub(super) value: Value<'c>,
    pub(super) step: i64,
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
        return comparison(shapes, condition, wanted);
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

fn comparison<'c>(shapes: &Shapes<'_, 'c>, comparison: Value<'c>, wanted: bool) -> Option<Check<'c>> {
    let (left, right) = (comparison.operand(0), comparison.operand(1));
    let predicate = comparison.predicate();
    let predicate = if wanted { predicate } else { predicate::negated(predicate) };
    let (value, bound, predicate) = match (shapes.shape(left), shapes.shape(right)) {
        (_, Shape::Uniform) => (left, right, predicate),
        (Shape::Uniform, _) => (right, left, predicate::swapped(predicate)),
        _ => return None,
    };
    let Shape::Affine(step @ -0xffff..=0xffff) = shapes.shape(value) else { return None };
    let is_wide = matches!(value.value_type().kind(), TypeKind::Integer(32..=64));
    let index = Index { value, step };
    match predicate {
        _ if !is_wide => None,
        EQUAL => None,
        UNEQUAL => Some(Check::Differs { index, other: bound }),
        _ => Some(Check::Compares { index, predicate, bound }),
    }
}

/// Whether a condition only decides branches that scalar operations decide.
pub(super) fn is_decided<'c>(graph: &Graph<'c>, shapes: &Shapes<'_, 'c>, condition: Value<'c>) -> bool {
    let is_part = |user: Value<'c>| {
        let joins = matches!(user.opcode(), Some(Opcode::AND | Opcode::OR | Opcode::XOR | Opcode::SELECT));
        joins && user.value_type() == condition.value_type() && is_decided(graph, shapes, user)
    };
    let is_boolean = condition.value_type().kind() == TypeKind::Integer(1);
    is_boolean
        && condition.users().into_iter().all(|user| match user.opcode() {
            Some(Opcode::BRANCH) => of_branch(graph, shapes, user).is_some(),
            _ => is_question(user) || is_part(user),
        })
}

impl<'c> Emitter<'c, '_> {
    /// Whether a check holds for all lanes. Those that are not active count, too, so it may hold for the others where this says no.
    pub(super) fn all_do(&mut self, check: &Check<'c>) -> Value<'c> {
        match check {
            Check::Is(condition, wanted) => {
                let condition = self.raw(*condition);
                if *wanted { condition } else { self.builder.not(condition) }
            }
            Check::Compares { index, predicate, bound } => {
                let (least, greatest) = self.ends(*index);
                let bound = self.raw(*bound);
                let end = if predicate::is_less(*predicate) { greatest } else { least };
                let compares = self.builder.compare(*predicate, end, bound);
                let no_wrap = if predicate::is_signed(*predicate) { SIGNED_NOT_GREATER } else { UNSIGNED_NOT_GREATER };
                let is_between = self.builder.compare(no_wrap, least, greatest);
                if self.has(Rule::Wraps) { self.builder.binary(Opcode::AND, compares, is_between) } else { compares }
            }
            Check::Differs { index, other } => {
                // How far the first lane's index would have to go, modulo the size of the type.
                let (first, other) = (self.raw(index.value), self.raw(*other));
                let ahead = match index.step {
                    ..0 => self.builder.subtract(first, other),
                    _ => self.builder.subtract(other, first),
                };
                self.builder.compare(UNSIGNED_GREATER, ahead, self.distance(*index))
            }
            // The second one may be poison where the first one says no.
            Check::Both(left, right) => {
                let (left, right) = (self.all_do(left), self.all_do(right));
                self.builder.select(left, right, left.value_type().constant(0))
            }
        }
    }

    /// The least and the greatest index of all lanes, if nothing wraps between them.
    fn ends(&mut self, index: Index<'c>) -> (Value<'c>, Value<'c>) {
        let (first, distance) = (self.raw(index.value), self.distance(index));
        match index.step {
            ..0 => (self.builder.subtract(first, distance), first),
            _ => (first, self.builder.add(first, distance)),
        }
    }

    /// The distance of the indices of the first and the last lane.
    fn distance(&self, Index { value, step }: Index<'c>) -> Value<'c> {
        let lanes = if self.has(Rule::LastLanes) { self.lanes } else { 1 };
        value.value_type().constant(step.unsigned_abs() * u64::from(lanes - 1))
    }
}
