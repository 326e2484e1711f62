//! Splits at borders: what all lanes run together between a branch and the place where its sides meet is copied, without masks.
//!
//! The kernels of pictures and fields look whether an item is at a border. In nearly all vectors no item is. So the branch has another one in front of it, on the
//! *question* whether all items of the vector go the usual way. If they do, they go through a copy of that way, on which they all are. Else they go as before,
//! under masks.
//!
//! The question is the call of a function that no code has. Scalar operations answer it for all lanes ([`checks`]). For an item alone the answer is no, so
//! that the copy is dropped there ([`forget`]).

use rustc_hash::{FxHashMap, FxHashSet};

use super::cfg::{BlockIdx, Graph, Node, Region};
use super::checks::{self, Check};
use super::emitter::Emitter;
use super::plan::{Guard, guard};
use super::shape::{Shape, Shapes, Status};
use crate::error::CompileError;
use crate::llvm::predicate::is_less;
use crate::llvm::{Block, Builder, Context, Module, Opcode, PassTuning, Type, TypeKind, Value};

/// The function that is called for the question.
const ALL: &str = "oxisycl.all_items";
/// The most instructions of a copy.
const LARGEST: usize = 400;
/// The most blocks of a body with its copies.
const MOST_BLOCKS: usize = 200;
/// Positions up to that one are at the begin of a row.
const BEGIN: u64 = 64;
/// The most rounds: borders may be inside of each other.
pub(super) const ROUNDS: usize = 4;

/// A branch at a border.
struct Border {
    block: BlockIdx,
    /// The usual way.
    way: BlockIdx,
    /// Whether the condition holds for those that go it.
    holds: bool,
    /// The blocks of the usual way.
    copied: Vec<BlockIdx>,
    /// The block where the ways meet.
    join: BlockIdx,
}

/// Whether an instruction is the question whether a condition holds for all items of a vector.
pub(super) fn is_question(call: Value<'_>) -> bool {
    call.is(Opcode::CALL) && call.callee().is_some_and(|callee| callee.name() == ALL)
}

/// Splits a body at its borders. Whether there are any: then its form is to be prepared again.
pub(super) fn split<'c>(module: &Module<'c>, graph: &Graph<'c>, shapes: &Shapes<'_, 'c>) -> bool {
    let mut taken = FxHashSet::default();
    let mut n_blocks = graph.blocks().count();
    let mut borders = Vec::new();
    for &block in graph.order() {
        let Some(border) = border(graph, shapes, block) else { continue };
        // Code of panics is shared by many, and each copy gets its own.
        let of_border = || border.copied.iter().chain([&border.block]).filter(|block| graph.returns(**block));
        n_blocks += border.copied.len() + 1;
        if n_blocks > MOST_BLOCKS || of_border().any(|block| taken.contains(block)) {
            continue;
        }
        taken.extend(of_border().copied());
        borders.push(border);
    }
    borders.iter().for_each(|border| split_at(module, graph, shapes, border));
    !borders.is_empty()
}

/// Answers all questions of a body with no, and drops the copies. No value of them is used afterwards.
pub(super) fn forget(module: &Module<'_>, body: Value<'_>) -> Result<(), CompileError> {
    let Some(all) = module.function(ALL) else { return Ok(()) };
    let questions: Vec<_> = all.calls().into_iter().filter(|call| call.function() == body).collect();
    if questions.is_empty() {
        return Ok(());
    }
    for question in questions {
        let block = question.block();
        let (branch, ways) = (block.end(), block.successors());
        debug_assert!(branch.operand(0) == question, "a question is asked by a branch");
        // Where the usual way has no code of its own, it leads to the join at once.
        phis(ways[0]).into_iter().for_each(|phi| no_longer_from(module.context(), phi, block));
        Builder::before(module.context(), branch).branch(ways[1]);
        branch.erase();
        question.erase();
    }
    Module::run_on(body, "unreachableblockelim", None, &PassTuning::NATIVE)
}

/// The border that a block ends with.
fn border<'c>(graph: &Graph<'c>, shapes: &Shapes<'_, 'c>, block: BlockIdx) -> Option<Border> {
    let end = graph.block(block).end();
    let [yes, no] = graph.successors(block)[..] else { return None };
    let lives = graph.returns(yes) && graph.returns(no);
    if !lives || !end.is(Opcode::BRANCH) || shapes.status(Node::Block(block)) == Status::Masked {
        return None;
    }
    if is_other_way(graph, block) {
        return None;
    }
    let condition = end.operand(0);
    if shapes.shape(condition) != Shape::Varying {
        return None;
    }
    let holds = usual_way(shapes, condition)?;
    let way = if holds { yes } else { no };
    let (between, join) = until_join(graph, block)?;
    let is_worth_it = between.iter().any(|node| guard(graph, shapes, *node) != Guard::None);
    let copied = reached(graph, way, join);
    let n_instructions: usize = copied.iter().map(|block| graph.block(*block).instructions().len()).sum();
    let fits = n_instructions <= LARGEST;
    (is_worth_it && fits).then_some(Border { block, way, holds, copied, join })
}

/// Whether a block is where items go on of which not all go the usual way, as a question said.
pub(super) fn is_other_way(graph: &Graph<'_>, block: BlockIdx) -> bool {
    graph.predecessors(block).iter().any(|from| {
        let end = graph.block(*from).end();
        end.operands().len() > 1
            && is_question(end.operand(0))
            && graph.block(*from).successors()[1] == graph.block(block)
    })
}

/// Which value of a condition nearly all items of a row have, if a check of positions tells.
pub(super) fn usual_way<'c>(shapes: &Shapes<'_, 'c>, condition: Value<'c>) -> Option<bool> {
    let is_usual =
        |wanted: &bool| checks::check(shapes, condition, *wanted).is_some_and(|check| passes(&check) == Some(true));
    [true, false].into_iter().find(is_usual)
}

/// Whether nearly all items of a row pass a check. They are behind a small position, before one that is not small, or not at a certain one.
/// `None` where nothing tells, as behind a position that is not known.
fn passes(check: &Check<'_>) -> Option<bool> {
    match check {
        Check::Is(..) => None,
        Check::Differs { .. } => Some(true),
        Check::Both(left, right) => match (passes(left), passes(right)) {
            (Some(false), _) | (_, Some(false)) => Some(false),
            (left, right) => left.or(right),
        },
        Check::Compares { predicate, bound, .. } => match bound.signed() {
            Some(bound) => Some(is_less(*predicate) != (bound.unsigned_abs() <= BEGIN)),
            None => is_less(*predicate).then_some(true),
        },
    }
}

/// The nodes of a block's region on the ways from its end to the block where all of them meet.
fn until_join(graph: &Graph<'_>, block: BlockIdx) -> Option<(Vec<Node>, BlockIdx)> {
    let region = graph.innermost(block);
    let nodes = graph.nodes(region);
    let begin = nodes.iter().position(|node| *node == Node::Block(block))?;
    let mut open = next(graph, region, Node::Block(block))?;
    let mut between = Vec::new();
    for node in &nodes[begin + 1..] {
        if !open.remove(node) {
            continue;
        }
        if let (Node::Block(join), true) = (*node, open.is_empty()) {
            return Some((between, join));
        }
        open.extend(next(graph, region, *node)?);
        between.push(*node);
    }
    None
}

/// The nodes of a region behind a node, unless an edge leaves the region or begins its next round.
fn next(graph: &Graph<'_>, region: Region, node: Node) -> Option<FxHashSet<Node>> {
    let mut found = FxHashSet::default();
    for &from in graph.node_blocks(&node) {
        for to in graph.live_successors(from) {
            if !graph.contains(region, to) || region.is_some_and(|of| graph.header(of) == to) {
                return None;
            }
            let behind = graph.node_of(to, region);
            if behind != node {
                found.insert(behind);
            }
        }
    }
    Some(found)
}

/// The blocks that are reached from a block before the join, also those that do not return.
fn reached(graph: &Graph<'_>, way: BlockIdx, join: BlockIdx) -> Vec<BlockIdx> {
    let mut found = if way == join { Vec::new() } else { vec![way] };
    let mut at = 0;
    while let Some(block) = found.get(at).copied() {
        at += 1;
        for &next in graph.successors(block) {
            if next != join && !found.contains(&next) {
                found.push(next);
            }
        }
    }
    found
}

fn split_at<'c>(module: &Module<'c>, graph: &Graph<'c>, shapes: &Shapes<'_, 'c>, border: &Border) {
    let context = module.context();
    let flag = Type::int(context, 1);
    let all = module.declare(ALL, Type::function(flag, &[flag]));
    let (block, branch) = (graph.block(border.block), graph.block(border.block).end());
    let function = graph.function();
    let copies: FxHashMap<Block<'c>, Block<'c>> =
        border.copied.iter().map(|block| (graph.block(*block), Block::append(context, function))).collect();
    let rest = Block::append(context, function);
    let builder = Builder::before(context, branch);
    let condition = branch.operand(0);
    let question = builder.call(all, &[if border.holds { condition } else { builder.not(condition) }]);
    let of_rest = Builder::at_end(context, rest);
    branch.set_operand(0, computed_again(&of_rest, shapes, condition));
    of_rest.take(branch);
    let way = graph.block(border.way);
    builder.move_to(block);
    builder.branch_if(question, copies.get(&way).copied().unwrap_or(way), rest);
    for successor in rest.successors() {
        for phi in phis(successor) {
            come_from(context, phi, block, rest);
        }
    }
    let mut values = FxHashMap::default();
    let (mut new, mut new_phis) = (Vec::new(), Vec::new());
    for original in border.copied.iter().map(|block| graph.block(*block)) {
        builder.move_to(copies[&original]);
        for instruction in original.instructions() {
            let copy = if instruction.is(Opcode::PHI) {
                let phi = builder.phi(instruction.value_type(), &[]);
                phi.set_name(instruction.name());
                new_phis.push((instruction, phi));
                phi
            } else {
                let copy = instruction.copy();
                builder.insert(copy);
                new.push((instruction, copy));
                copy
            };
            copy.place_as(instruction);
            values.insert(instruction, copy);
        }
    }
    for (instruction, copy) in new {
        for (index, operand) in instruction.operands().into_iter().enumerate() {
            if let Some(value) = values.get(&operand) {
                copy.set_operand(index as u32, *value);
            }
        }
        if instruction == instruction.block().end() {
            for (index, successor) in instruction.block().successors().into_iter().enumerate() {
                if let Some(copied) = copies.get(&successor) {
                    copy.set_successor(index as u32, *copied);
                }
            }
        }
    }
    let value_here = |value: Value<'c>| values.get(&value).copied().unwrap_or(value);
    for (original, phi) in new_phis {
        for (value, from) in original.incoming() {
            if let Some(from) = copies.get(&from) {
                phi.add_incoming(&[(value_here(value), *from)]);
            } else if from == rest && original.block() == way {
                phi.add_incoming(&[(value, block)]);
            }
        }
    }
    for phi in phis(graph.block(border.join)) {
        for (value, from) in phi.incoming() {
            if let Some(from) = copies.get(&from) {
                phi.add_incoming(&[(value_here(value), *from)]);
            } else if from == rest && border.copied.is_empty() {
                phi.add_incoming(&[(value, block)]);
            }
        }
    }
}

/// A condition that differs between lanes, computed at the builder's place. Where scalar operations answer the question, nothing else needs it before.
/// Conditions that have a question have few parts that differ.
fn computed_again<'c>(builder: &Builder<'c>, shapes: &Shapes<'_, 'c>, condition: Value<'c>) -> Value<'c> {
    let is_part = matches!(
        condition.opcode(),
        Some(Opcode::INTEGER_COMPARISON | Opcode::AND | Opcode::OR | Opcode::XOR | Opcode::SELECT)
    );
    let is_boolean = condition.value_type().kind() == TypeKind::Integer(1);
    if !is_part || !is_boolean || shapes.shape(condition) != Shape::Varying {
        return condition;
    }
    let again = |operand| computed_again(builder, shapes, operand);
    let operands: Vec<_> = condition.operands().into_iter().map(again).collect();
    let copy = condition.copy();
    builder.insert(copy);
    copy.place_as(condition);
    operands.into_iter().enumerate().for_each(|(index, operand)| copy.set_operand(index as u32, operand));
    copy
}

fn phis(block: Block<'_>) -> Vec<Value<'_>> {
    block.instructions().into_iter().take_while(|phi| phi.is(Opcode::PHI)).collect()
}

/// Makes a phi without the edge from a block.
fn no_longer_from<'c>(context: &'c Context, phi: Value<'c>, block: Block<'c>) {
    let incoming: Vec<_> = phi.incoming().into_iter().filter(|(_, from)| *from != block).collect();
    replace(context, phi, &incoming);
}

/// Makes a phi of which one edge comes from another block than before.
fn come_from<'c>(context: &'c Context, phi: Value<'c>, before: Block<'c>, now: Block<'c>) {
    let incoming = phi.incoming().into_iter().map(|(value, from)| (value, if from == before { now } else { from }));
    replace(context, phi, &incoming.collect::<Vec<_>>());
}

fn replace<'c>(context: &'c Context, phi: Value<'c>, incoming: &[(Value<'c>, Block<'c>)]) {
    let other = Builder::before(context, phi).phi(phi.value_type(), incoming);
    other.place_as(phi);
    other.set_name(phi.name());
    phi.replace_all_uses_with(other);
    phi.erase();
}

impl<'c> Emitter<'c, '_> {
    /// Answers a question.
    pub(super) fn answer(&mut self, question: Value<'c>) {
        let answer = match checks::check(self.shapes, question.operand(0), true) {
            Some(check) => self.all_do(&check),
            // Nothing is known of it any more, and the other way is right for all lanes.
            None => self.int(1).null(),
        };
        self.define(question, answer);
    }
}
