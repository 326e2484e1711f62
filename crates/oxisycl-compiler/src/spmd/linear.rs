//! Control flow: regions in topological order, with scalar branches where all lanes agree, and masks elsewhere.
//!
//! A region is the body or a loop; its nodes are blocks and inner loops. A node that all active lanes of the region pass is made as it is.
//! One that is entered by branches on which they agree stands behind a flag. Others are put in line under a mask of their own.
//! Lanes that leave a loop write the phis behind it at that moment, so that values of later rounds do not reach them.

use super::cfg::{BlockIdx, LoopIdx, Node, Region};
use super::emitter::{Emitter, Mask, Rule};
use super::plan::{Guard, guard, run, wants_copy};
use super::shape::{Shape, Status};
use crate::llvm::{Block, Opcode, TypeKind, Value};

/// How the names of values begin that tests count the iterations of loops by.
const COUNTER: &str = "count";

impl<'c> Emitter<'c, '_> {
    /// Makes the nodes of a region for the lanes of `mask`.
    pub(super) fn region(&mut self, region: Region, mask: Mask<'c>) {
        let nodes = self.graph.nodes(region);
        for node in nodes {
            match self.shapes.status(*node) {
                Status::Full => {}
                Status::Guard => {
                    let flag = self.flag_of(*node);
                    self.builder.store(self.int(1).null(), flag);
                }
                Status::Masked => {
                    let slot = self.mask_of(*node);
                    self.builder.store(self.mask_type().null(), slot);
                }
            }
        }
        self.line(region, nodes, mask);
    }

    /// Makes nodes that follow each other in a region.
    fn line(&mut self, region: Region, nodes: &[Node], mask: Mask<'c>) {
        let mut rest = nodes;
        while let &[node, ..] = rest {
            let run = run(self.graph, self.shapes, region, rest);
            let (these, others) = rest.split_at(run.max(1));
            if run > 1 && self.has(Rule::EmptyBlocks) {
                // One branch passes over all of them.
                let runs = if self.shapes.status(node) == Status::Guard {
                    let flag = self.flag_of(node);
                    self.builder.load(self.int(1), flag)
                } else {
                    let slot = self.mask_of(node);
                    let lanes = self.builder.load(self.mask_type(), slot);
                    self.any(lanes)
                };
                let (here, behind) = (self.new_block(), self.new_block());
                self.builder.branch_if(runs, here, behind);
                self.builder.move_to(here);
                self.one_node(node, mask);
                self.line(region, &these[1..], mask);
                self.builder.branch(behind);
                self.builder.move_to(behind);
            } else {
                these.iter().for_each(|node| self.one_node(*node, mask));
            }
            rest = others;
        }
    }

    fn one_node(&mut self, node: Node, mask: Mask<'c>) {
        let next = self.new_block();
        match self.shapes.status(node) {
            Status::Full => self.node(node, mask),
            Status::Guard => {
                let flag = self.flag_of(node);
                let runs = self.builder.load(self.int(1), flag);
                let here = self.new_block();
                self.builder.branch_if(runs, here, next);
                self.builder.move_to(here);
                self.node(node, mask);
            }
            Status::Masked => self.masked_node(node, next),
        }
        self.builder.branch(next);
        self.builder.move_to(next);
    }

    fn masked_node(&mut self, node: Node, next: Block<'c>) {
        let slot = self.mask_of(node);
        let mask = self.builder.load(self.mask_type(), slot);
        let is_guarded = match guard(self.graph, self.shapes, node) {
            Guard::None => false,
            Guard::Useful => true,
            Guard::Needed => self.has(Rule::EmptyBlocks),
        };
        if is_guarded {
            let here = self.new_block();
            self.builder.branch_if(self.any(mask), here, next);
            self.builder.move_to(here);
        }
        if wants_copy(self.graph, self.shapes, node) {
            let (whole, part) = (self.new_block(), self.new_block());
            let runs_all = if self.has(Rule::WholeCopies) { self.all(mask) } else { self.any(mask) };
            self.builder.branch_if(runs_all, whole, part);
            self.builder.move_to(whole);
            self.node(node, Mask::All);
            self.builder.branch(next);
            self.builder.move_to(part);
        }
        self.node(node, Mask::Some(mask));
    }

    fn node(&mut self, node: Node, mask: Mask<'c>) {
        self.local.clear();
        match node {
            Node::Block(block) => self.block(block, mask),
            Node::Loop(index) => self.one_loop(index, mask),
        }
        self.local.clear();
    }

    fn one_loop(&mut self, index: LoopIdx, mask: Mask<'c>) {
        let (head, end) = (self.new_block(), self.new_block());
        if self.shapes.is_divergent(index) {
            let (live, going_on) = (self.variable(self.mask_type()), self.variable(self.mask_type()));
            self.loops.insert(index, (Some(going_on), end));
            self.builder.store(self.mask(mask), live);
            self.builder.branch(head);
            self.builder.move_to(head);
            let lanes = self.builder.load(self.mask_type(), live);
            self.builder.store(self.mask_type().null(), going_on);
            self.region(Some(index), Mask::Some(lanes));
            let lanes = self.builder.load(self.mask_type(), going_on);
            if self.has(Rule::LeftLanes) {
                self.builder.store(lanes, live);
            }
            self.builder.branch_if(self.any(lanes), head, end);
        } else {
            self.loops.insert(index, (None, end));
            self.builder.branch(head);
            self.builder.move_to(head);
            self.region(Some(index), mask);
            self.builder.branch(head);
        }
        self.builder.move_to(end);
    }

    fn block(&mut self, block: BlockIdx, mask: Mask<'c>) {
        let instructions = self.graph.block(block).instructions();
        for instruction in &instructions {
            self.places.enter(&self.builder, *instruction);
            match instruction.opcode() {
                Some(Opcode::PHI) => self.define_phi(*instruction),
                Some(Opcode::BRANCH | Opcode::RET) => {}
                _ if let Some(group) = self.group(*instruction, mask) => self.field(*instruction, group),
                _ => self.instruction(*instruction, mask),
            }
        }
        let end = self.graph.block(block).end();
        if end.is(Opcode::RET) {
            return;
        }
        let successors = self.graph.successors(block).to_vec();
        match successors[..] {
            [only] => self.go_on(block, only, mask),
            [yes, no] => self.fork(block, end.operand(0), (yes, no), mask),
            _ => unreachable!("such blocks are refused"),
        }
    }

    /// Makes a branch with two successors.
    fn fork(&mut self, block: BlockIdx, condition: Value<'c>, (yes, no): (BlockIdx, BlockIdx), mask: Mask<'c>) {
        match (self.graph.returns(yes), self.graph.returns(no)) {
            (false, _) => return self.trap_edge(block, condition, (yes, no), true, mask),
            (_, false) => return self.trap_edge(block, condition, (no, yes), false, mask),
            _ => {}
        }
        if self.shape(condition) == Shape::Uniform {
            let condition = self.raw(condition);
            let (then, other, join) = (self.new_block(), self.new_block(), self.new_block());
            self.builder.branch_if(condition, then, other);
            let local = self.local.clone();
            for (here, to) in [(then, yes), (other, no)] {
                self.builder.move_to(here);
                self.local.clone_from(&local);
                self.edge(block, to, mask);
                if !self.leave(block, to) {
                    self.builder.branch(join);
                }
            }
            self.local = local;
            self.builder.move_to(join);
        } else {
            let condition = self.vector(condition);
            let inverse = self.builder.not(condition);
            let (mut taken, mut other) = (self.narrowed(mask, condition), self.narrowed(mask, inverse));
            if self.graph.innermost(block).is_none() && !self.has(Rule::Branches) {
                (taken, other) = (self.mask(mask), self.mask(mask));
            }
            self.edge(block, yes, Mask::Some(taken));
            self.edge(block, no, Mask::Some(other));
        }
    }

    /// Makes the only edge on which the lanes of `mask` go on.
    pub(super) fn go_on(&mut self, from: BlockIdx, to: BlockIdx, mask: Mask<'c>) {
        self.edge(from, to, mask);
        if self.leave(from, to) {
            // What the region adds here is not reached.
            self.builder.move_to(self.new_block());
        }
    }

    /// Makes an edge that the lanes of `mask` take: writes the phis of its end, and says that it was taken.
    fn edge(&mut self, from: BlockIdx, to: BlockIdx, mask: Mask<'c>) {
        let header_of = self.graph.headed(to);
        let mut values = Vec::new();
        for phi in self.graph.block(to).instructions().into_iter().take_while(|phi| phi.is(Opcode::PHI)) {
            let value = self.incoming(phi, from);
            let value = if self.shape(phi) == Shape::Varying { self.vector(value) } else { self.raw(value) };
            values.push((phi, value));
        }
        for (phi, mut value) in values {
            let slot = self.phi_slot(phi);
            if let Mask::Some(mask) = mask
                && header_of.is_none()
                && self.shape(phi) == Shape::Varying
            {
                let old = self.builder.load(value.value_type(), slot);
                if self.blends(phi, (from, to)) {
                    value = self.blend(mask, value, old);
                }
            }
            self.builder.store(value, slot);
        }
        if let Some(index) = header_of.filter(|index| self.graph.contains(Some(*index), from)) {
            debug_assert!(from == self.graph.latch(index), "a loop has one latch");
            if let Some(going_on) = self.loops[&index].0 {
                self.builder.store(self.mask(mask), going_on);
            }
            return;
        }
        let node = header_of.map_or(Node::Block(to), Node::Loop);
        match self.shapes.status(node) {
            Status::Full => {}
            Status::Guard => {
                let flag = self.flag_of(node);
                self.builder.store(self.int(1).all_ones(), flag);
            }
            Status::Masked => {
                let slot = self.mask_of(node);
                let old = self.builder.load(self.mask_type(), slot);
                let lanes = self.mask(mask);
                let lanes = if self.has(Rule::Joins) { self.builder.binary(Opcode::OR, old, lanes) } else { lanes };
                self.builder.store(lanes, slot);
            }
        }
    }

    /// The value of a phi that comes from a block.
    pub(super) fn incoming(&self, phi: Value<'c>, from: BlockIdx) -> Value<'c> {
        let from = self.graph.block(from);
        let found = phi.incoming().into_iter().find(|(_, block)| *block == from);
        found.expect("a phi has a value for each predecessor").0
    }

    /// Whether a phi keeps the values of lanes that do not take an edge. So it is, unless a test leaves that out.
    fn blends(&self, phi: Value<'c>, (from, to): (BlockIdx, BlockIdx)) -> bool {
        let (left, entered) = (self.graph.innermost(from), self.graph.innermost(to));
        let rule = match entered {
            _ if phi.value_type().kind() == TypeKind::Struct => Rule::PairBlends,
            _ if left != entered => Rule::ExitBlends,
            None => Rule::Blends,
            Some(_) => Rule::InnerBlends,
        };
        // A loop may go on for ever without that of its counter.
        entered.is_some() && phi.name().starts_with(COUNTER) || self.has_next_blend() && self.has(rule)
    }

    /// Selects by lanes; structs by their members.
    fn blend(&self, mask: Value<'c>, yes: Value<'c>, no: Value<'c>) -> Value<'c> {
        let of = yes.value_type();
        if of.kind() != TypeKind::Struct {
            return self.builder.select(mask, yes, no);
        }
        (0..of.members().len() as u32).fold(of.poison(), |whole, index| {
            let [yes, no] = [yes, no].map(|value| self.builder.extract_member(value, index));
            self.builder.insert_member(whole, self.builder.select(mask, yes, no), index)
        })
    }

    /// Leaves the loops that an edge ends on which all lanes agree. False if it ends none: then the region goes on.
    fn leave(&mut self, from: BlockIdx, to: BlockIdx) -> bool {
        let mut target = None;
        let mut inner = self.graph.innermost(from);
        while let Some(index) = inner {
            // From a loop that lanes leave one by one, the others have not come out yet.
            if self.graph.contains(Some(index), to) || self.shapes.is_divergent(index) {
                break;
            }
            target = Some(self.loops[&index].1);
            inner = self.graph.parent(index);
        }
        let Some(target) = target else { return false };
        self.builder.branch(target);
        true
    }

    fn flag_of(&mut self, node: Node) -> Value<'c> {
        if let Some(flag) = self.flags.get(&node) {
            return *flag;
        }
        let flag = self.variable(self.int(1));
        self.flags.insert(node, flag);
        flag
    }

    fn mask_of(&mut self, node: Node) -> Value<'c> {
        if let Some(slot) = self.masks.get(&node) {
            return *slot;
        }
        let slot = self.variable(self.mask_type());
        self.masks.insert(node, slot);
        slot
    }
}
