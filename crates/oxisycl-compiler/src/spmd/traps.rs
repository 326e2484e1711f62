//! Trap edges: branches into code that never returns, such as that of a panic.
//!
//! If lanes take one, the first of them goes on alone, for good. The code behind the edge is copied as scalar code, with the values of that lane.
//! The other lanes are abandoned, as work-items of a device are. `examine` and `scalar_only` refuse bodies that would have something to drop then.

use rustc_hash::FxHashMap;

use super::cfg::BlockIdx;
use super::checks::{self, Check};
use super::emitter::{Emitter, Mask, Rule};
use super::shape::Shape;
use super::widen::is_note;
use crate::llvm::{Block, Opcode, Value};

impl<'c> Emitter<'c, '_> {
    /// Makes a branch of which one edge goes to code that never returns: where the condition is `on`.
    pub(super) fn trap_edge(
        &mut self,
        block: BlockIdx,
        condition: Value<'c>,
        (trap, good): (BlockIdx, BlockIdx),
        on: bool,
        mask: Mask<'c>,
    ) {
        let (failed, passed) = (self.new_block(), self.new_block());
        let local;
        let lanes = if self.shape(condition) == Shape::Uniform {
            let condition = self.raw(condition);
            local = self.local.clone();
            let (yes, no) = if on { (failed, passed) } else { (passed, failed) };
            self.builder.branch_if(condition, yes, no);
            self.mask(mask)
        } else {
            if let Some(check) = checks::check(self.shapes, condition, !on) {
                self.pass_if_all_do(&check, passed);
            }
            // What is loaded from here on is not there on the way around.
            local = self.local.clone();
            let condition = self.vector(condition);
            let checked = if self.has(Rule::Checks) { mask } else { Mask::All };
            let lanes = self.narrowed(checked, if on { condition } else { self.builder.not(condition) });
            self.builder.branch_if(self.any(lanes), failed, passed);
            lanes
        };
        self.builder.move_to(failed);
        let lanes = if self.has(Rule::FailedLanes) { lanes } else { self.mask(mask) };
        self.trap(block, trap, lanes);
        self.local = local;
        self.builder.move_to(passed);
        self.go_on(block, good, mask);
    }

    /// A scalar check for all lanes. Lanes that are not active count here, too. So where it fails, the lanes are looked at one by one.
    fn pass_if_all_do(&mut self, check: &Check<'c>, passed: Block<'c>) {
        let pass = self.all_do(check);
        let single = self.new_block();
        self.builder.branch_if(pass, passed, single);
        self.builder.move_to(single);
    }

    /// Copies the code behind a trap edge for the first of some lanes, at the builder's place.
    fn trap(&mut self, from: BlockIdx, trap: BlockIdx, lanes: Value<'c>) {
        let lane = self.first(lanes);
        let reached = self.reached(trap);
        let blocks: FxHashMap<BlockIdx, Block<'c>> = reached.iter().map(|block| (*block, self.new_block())).collect();
        let mut values = FxHashMap::default();
        for block in &reached {
            for instruction in self.kept(*block) {
                let inputs = if instruction.is(Opcode::PHI) {
                    let of = instruction.incoming().into_iter();
                    let is_input = |edge: &Block<'c>| {
                        let edge = self.graph.index(*edge);
                        blocks.contains_key(&edge) || edge == from && *block == trap
                    };
                    of.filter(|(_, edge)| is_input(edge)).map(|(value, _)| value).collect()
                } else {
                    instruction.operands()
                };
                for input in inputs {
                    let is_own = input.opcode().is_some() && blocks.contains_key(&self.graph.index(input.block()));
                    if !input.is_block() && !input.is_constant() && !is_own && !values.contains_key(&input) {
                        let of_lane = self.of_lane(input, lane);
                        values.insert(input, of_lane);
                    }
                }
            }
        }
        let entrance = self.builder.block();
        self.builder.branch(blocks[&trap]);
        let mut phis = Vec::new();
        for block in &reached {
            self.builder.move_to(blocks[block]);
            for instruction in self.kept(*block) {
                self.places.enter(&self.builder, instruction);
                let copy = if instruction.is(Opcode::PHI) {
                    let phi = self.builder.phi(instruction.value_type(), &[]);
                    phis.push((instruction, phi, *block));
                    phi
                } else {
                    let copy = instruction.copy();
                    self.builder.insert(copy);
                    self.places.set(copy, instruction);
                    copy
                };
                values.insert(instruction, copy);
            }
        }
        for block in &reached {
            for instruction in self.kept(*block) {
                let copy = values[&instruction];
                if instruction.is(Opcode::PHI) {
                    continue;
                }
                for (index, operand) in instruction.operands().into_iter().enumerate() {
                    if let Some(value) = values.get(&operand) {
                        copy.set_operand(index as u32, *value);
                    }
                }
            }
            let end = self.graph.block(*block).end();
            for (index, successor) in self.graph.block(*block).successors().into_iter().enumerate() {
                values[&end].set_successor(index as u32, blocks[&self.graph.index(successor)]);
            }
        }
        for (original, phi, block) in phis {
            for (value, edge) in original.incoming() {
                let edge = self.graph.index(edge);
                let value = values.get(&value).copied().unwrap_or(value);
                if let Some(copied) = blocks.get(&edge) {
                    phi.add_incoming(&[(value, *copied)]);
                } else if edge == from && block == trap {
                    phi.add_incoming(&[(value, entrance)]);
                }
            }
        }
    }

    /// The instructions of a block that are worth a copy.
    fn kept(&self, block: BlockIdx) -> Vec<Value<'c>> {
        let mut instructions = self.graph.block(block).instructions();
        instructions.retain(|instruction| !is_note(*instruction));
        instructions
    }

    /// The value that the code of a trap uses. A variable that nothing else uses needs no copy for each lane.
    fn of_lane(&mut self, value: Value<'c>, lane: Value<'c>) -> Value<'c> {
        if !self.is_variable_of_traps(value) {
            return self.lane(value, lane);
        }
        if let Some(variable) = self.of_traps.get(&value) {
            return *variable;
        }
        let variable = self.variable(value.allocated_type());
        variable.set_alignment(value.alignment());
        self.of_traps.insert(value, variable);
        variable
    }

    /// Whether a value is a variable that only the code of traps uses.
    pub(super) fn is_variable_of_traps(&self, value: Value<'c>) -> bool {
        is_of_traps(value, &|block| self.graph.returns(self.graph.index(block)))
    }

    /// The blocks that are reached from a block, which is first.
    fn reached(&self, first: BlockIdx) -> Vec<BlockIdx> {
        let mut reached = vec![first];
        let mut next = 0;
        while let Some(block) = reached.get(next).copied() {
            next += 1;
            for successor in self.graph.successors(block) {
                if !reached.contains(successor) {
                    reached.push(*successor);
                }
            }
        }
        reached
    }
}

/// Whether a value is a variable all of whose users are in blocks that do not return, or only say where it lives.
pub(super) fn is_of_traps<'c>(value: Value<'c>, returns: &dyn Fn(Block<'c>) -> bool) -> bool {
    value.is(Opcode::ALLOCA) && value.users().iter().all(|user| is_note(*user) || !returns(user.block()))
}
