//! The function that is being made: its values, slots and masks.
//!
//! A value of the body becomes one scalar if all lanes agree on it or its lanes are a constant distance apart, else a vector. What another
//! block uses goes through a slot, a local variable; LLVM's `sroa` makes values of slots again. So nothing here has to keep dominance.
//!
//! Invariant: masks are never poison. A condition, which may be poison in a lane that is not active, becomes part of a mask by
//! `select mask, condition, false` alone.

use std::cell::Cell;

use rustc_hash::FxHashMap;

use super::cfg::{Graph, LoopIdx, Node};
use super::fields::Groups;
use super::shape::{Shape, Shapes};
use crate::llvm::{Block, Builder, Context, Module, Opcode, Places, Type, TypeKind, Value};

/// The lanes that run a piece of code.
#[derive(Clone, Copy)]
pub(super) enum Mask<'c> {
    All,
    /// The lanes that a `<W x i1>` has.
    Some(Value<'c>),
}

/// The rules that tests leave out, to see that the lack is found. Without any of them, loops still end. Without most of them, addresses stay in bounds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Rule {
    /// Lanes that are not active store nothing to consecutive elements.
    StoreMasks,
    /// Lanes that are not active store nothing to elements that are not consecutive.
    ScatterMasks,
    /// Of a store to one address, the value of the last active lane stays.
    LastLane,
    /// What has no vector form is made for active lanes alone.
    OneByOne,
    /// A check fails for active lanes alone.
    Checks,
    /// What the last lane has decides a scalar check, too.
    LastLanes,
    /// A number that wraps between the first and the last lane passes no scalar check.
    Wraps,
    /// Outside of loops, a branch has the active lanes of either side alone.
    Branches,
    /// Outside of loops, a phi gets the value of the lanes that take an edge.
    Blends,
    /// In loops, it does, too. This is not left out of phis that count iterations.
    InnerBlends,
    /// Behind a loop, a phi gets the value of the lanes that leave at that moment. In loops around it, counters are an exception, too.
    ExitBlends,
    /// Phis of structs get the value of the lanes that take an edge.
    PairBlends,
    /// As the four above, for the blend of that number in its function.
    OneBlend(u32),
    /// The lanes of a node are those of all edges into it.
    Joins,
    /// Lanes that have left a divergent loop do not run its next iteration.
    LeftLanes,
    /// A block with memory accesses is passed over if no lane runs it.
    EmptyBlocks,
    /// The copy of a block without masks runs if all lanes do.
    WholeCopies,
    /// The lane that goes on alone is one that failed.
    FailedLanes,
    /// Lanes that are not active load no consecutive elements, which can end the process.
    LoadMasks,
    /// Lanes that are not active load no other elements, which can end the process.
    GatherMasks,
    /// Nothing is loaded behind the last field of the last lane's structure, which can end the process.
    LastStructure,
    /// A field is not loaded before or stored behind an access that may be at its place.
    FieldOrder,
    /// No byte is stored between fields.
    WholeStructures,
    /// Lanes that are not active divide by 1, where another division can end the process.
    Divisors,
}

impl Rule {
    /// Rules whose lack is seen in memory, or by which item fails.
    #[cfg(test)]
    pub(super) const HARMLESS: [Self; 19] = [
        Self::LastLanes,
        Self::Wraps,
        Self::StoreMasks,
        Self::ScatterMasks,
        Self::LastLane,
        Self::OneByOne,
        Self::Checks,
        Self::Branches,
        Self::Blends,
        Self::InnerBlends,
        Self::ExitBlends,
        Self::PairBlends,
        Self::Joins,
        Self::LeftLanes,
        Self::EmptyBlocks,
        Self::WholeCopies,
        Self::FailedLanes,
        Self::FieldOrder,
        Self::WholeStructures,
    ];
}

/// The state of a body's vectorisation.
pub(super) struct Emitter<'c, 'a> {
    pub(super) module: &'a Module<'c>,
    pub(super) context: &'c Context,
    pub(super) graph: &'a Graph<'c>,
    pub(super) shapes: &'a Shapes<'a, 'c>,
    pub(super) groups: &'a Groups<'c>,
    /// The function for single work-items.
    pub(super) body: Value<'c>,
    /// The function for `lanes` of them.
    pub(super) copy: Value<'c>,
    pub(super) lanes: u32,
    pub(super) builder: Builder<'c>,
    pub(super) places: Places,
    /// The block of the local variables, which nothing else is in.
    variables: Block<'c>,
    /// The slots of values that other blocks use.
    slots: FxHashMap<Value<'c>, Value<'c>>,
    /// The slots that edges write for phis.
    phis: FxHashMap<Value<'c>, Value<'c>>,
    /// Whether nodes that are entered by scalar branches run.
    pub(super) flags: FxHashMap<Node, Value<'c>>,
    /// The lanes that run masked nodes.
    pub(super) masks: FxHashMap<Node, Value<'c>>,
    /// For each loop that is being made: the lanes that go on, if lanes leave one by one, and the block behind it.
    pub(super) loops: FxHashMap<LoopIdx, (Option<Value<'c>>, Block<'c>)>,
    /// Values of the block that is being made.
    pub(super) local: FxHashMap<Value<'c>, Value<'c>>,
    /// Loaded fields of the block that is being made.
    pub(super) fields: FxHashMap<Value<'c>, Value<'c>>,
    /// Variables of single work-items that only the code of traps uses.
    pub(super) of_traps: FxHashMap<Value<'c>, Value<'c>>,
    /// How many phis were blended so far.
    n_blends: Cell<u32>,
    /// The rule that a test leaves out.
    without: Option<Rule>,
}

impl<'c, 'a> Emitter<'c, 'a> {
    pub(super) fn new(
        module: &'a Module<'c>,
        (graph, shapes, groups): (&'a Graph<'c>, &'a Shapes<'a, 'c>, &'a Groups<'c>),
        (body, copy): (Value<'c>, Value<'c>),
        lanes: u32,
        without: Option<Rule>,
    ) -> Self {
        let context = module.context();
        let variables = Block::append(context, copy);
        Self {
            module,
            context,
            graph,
            shapes,
            groups,
            body,
            copy,
            lanes,
            builder: Builder::at_end(context, variables),
            places: Places::in_copy(copy),
            variables,
            slots: FxHashMap::default(),
            phis: FxHashMap::default(),
            flags: FxHashMap::default(),
            masks: FxHashMap::default(),
            loops: FxHashMap::default(),
            local: FxHashMap::default(),
            fields: FxHashMap::default(),
            of_traps: FxHashMap::default(),
            n_blends: Cell::new(0),
            without,
        }
    }

    pub(super) fn has(&self, rule: Rule) -> bool {
        self.without != Some(rule)
    }

    /// Counts one more blend. Whether it is made.
    pub(super) fn has_next_blend(&self) -> bool {
        let number = self.n_blends.get();
        self.n_blends.set(number + 1);
        self.has(Rule::OneBlend(number))
    }

    /// Ends the block of the local variables.
    pub(super) fn finish(self, first: Block<'c>) {
        self.builder.move_to(self.variables);
        self.builder.branch(first);
    }

    pub(super) fn shape(&self, value: Value<'c>) -> Shape {
        self.shapes.shape(value)
    }

    // Types and constants.

    pub(super) fn int(&self, bits: u32) -> Type<'c> {
        Type::int(self.context, bits)
    }

    /// The vector of a scalar type, or the struct of such vectors for a struct.
    pub(super) fn widened(&self, of: Type<'c>) -> Type<'c> {
        if of.kind() == TypeKind::Struct {
            let members: Vec<_> = of.members().into_iter().map(|member| self.widened(member)).collect();
            return Type::structure(self.context, &members);
        }
        of.vector(self.lanes)
    }

    /// The type that a value of the body has here.
    fn type_here(&self, value: Value<'c>) -> Type<'c> {
        if self.shape(value) == Shape::Varying { self.widened(value.value_type()) } else { value.value_type() }
    }

    pub(super) fn mask_type(&self) -> Type<'c> {
        self.int(1).vector(self.lanes)
    }

    /// The constant `0, step, 2 * step, ..`.
    pub(super) fn ramp(&self, of: Type<'c>, step: i64) -> Value<'c> {
        let bits = match of.kind() {
            TypeKind::Integer(width @ ..64) => (1 << width) - 1,
            _ => u64::MAX,
        };
        let of_lane = |lane: i64| of.constant(lane.wrapping_mul(step) as u64 & bits);
        Value::vector(&(0..i64::from(self.lanes)).map(of_lane).collect::<Vec<_>>())
    }

    // Blocks and variables.

    pub(super) fn new_block(&self) -> Block<'c> {
        Block::append(self.context, self.copy)
    }

    /// A new variable of the function.
    pub(super) fn variable(&self, of: Type<'c>) -> Value<'c> {
        let here = self.builder.block();
        self.builder.move_to(self.variables);
        let variable = self.builder.variable(of);
        self.builder.move_to(here);
        variable
    }

    // Values.

    /// A value of the body as it is kept: a vector, or the scalar of lane 0.
    pub(super) fn raw(&mut self, value: Value<'c>) -> Value<'c> {
        if value.is_constant() {
            return value;
        }
        if let Some(position) = self.body.parameters().iter().position(|parameter| *parameter == value) {
            return self.copy.parameter(position as u32);
        }
        if let Some(known) = self.local.get(&value) {
            return *known;
        }
        let of = self.type_here(value);
        let slot = *self.slots.entry(value).or_insert_with(|| {
            // Made before its definition: nothing has run that defines it, so no lane reads it.
            let here = self.builder.block();
            self.builder.move_to(self.variables);
            let slot = self.builder.variable(of);
            self.builder.move_to(here);
            slot
        });
        let loaded = self.builder.load(of, slot);
        self.local.insert(value, loaded);
        loaded
    }

    pub(super) fn splat(&self, value: Value<'c>) -> Value<'c> {
        self.builder.splat(value, self.lanes, self.int(32))
    }

    /// A value of the body as a vector.
    pub(super) fn vector(&mut self, value: Value<'c>) -> Value<'c> {
        let raw = self.raw(value);
        match self.shape(value) {
            Shape::Varying => raw,
            Shape::Affine(step) => {
                let of = value.value_type();
                if let TypeKind::Pointer(_) = of.kind() {
                    return self.builder.address(self.int(8), raw, &[self.ramp(self.int(64), step)]);
                }
                let ramp = self.ramp(of, step);
                self.builder.add(self.splat(raw), ramp)
            }
            _ if value.value_type().kind() == TypeKind::Struct => {
                let of = value.value_type();
                let members = 0..of.members().len() as u32;
                members.fold(self.widened(of).poison(), |whole, index| {
                    let member = self.splat(self.builder.extract_member(raw, index));
                    self.builder.insert_member(whole, member, index)
                })
            }
            _ => self.splat(raw),
        }
    }

    /// A value of the body as it is in one lane.
    pub(super) fn lane(&mut self, value: Value<'c>, lane: Value<'c>) -> Value<'c> {
        match self.shape(value) {
            Shape::Varying if value.value_type().kind() == TypeKind::Struct => {
                let raw = self.raw(value);
                let of = value.value_type();
                let members = 0..of.members().len() as u32;
                members.fold(of.poison(), |whole, index| {
                    let member = self.builder.extract_lane(self.builder.extract_member(raw, index), lane);
                    self.builder.insert_member(whole, member, index)
                })
            }
            Shape::Varying | Shape::Affine(_) => {
                let vector = self.vector(value);
                self.builder.extract_lane(vector, lane)
            }
            _ => self.raw(value),
        }
    }

    /// Says what an instruction of the body is here.
    pub(super) fn define(&mut self, instruction: Value<'c>, value: Value<'c>) {
        self.local.insert(instruction, value);
        let block = instruction.block();
        let is_far = |user: &Value<'c>| user.block() != block || user.is(Opcode::PHI);
        if instruction.users().iter().any(is_far) {
            let of = self.type_here(instruction);
            let slot = match self.slots.get(&instruction) {
                Some(slot) => *slot,
                None => self.variable(of),
            };
            self.slots.insert(instruction, slot);
            self.builder.store(value, slot);
        }
    }

    /// The slot that edges write for a phi.
    pub(super) fn phi_slot(&mut self, phi: Value<'c>) -> Value<'c> {
        let of = self.type_here(phi);
        match self.phis.get(&phi) {
            Some(slot) => *slot,
            None => {
                let slot = self.variable(of);
                self.phis.insert(phi, slot);
                slot
            }
        }
    }

    /// The value that a phi has, by the edge that was taken.
    pub(super) fn define_phi(&mut self, phi: Value<'c>) {
        let slot = self.phi_slot(phi);
        let value = self.builder.load(self.type_here(phi), slot);
        self.define(phi, value);
    }

    // Masks.

    pub(super) fn mask(&self, mask: Mask<'c>) -> Value<'c> {
        match mask {
            Mask::All => self.mask_type().all_ones(),
            Mask::Some(mask) => mask,
        }
    }

    /// A mask as an integer, lane 0 in its lowest bit.
    pub(super) fn bits(&self, mask: Value<'c>) -> Value<'c> {
        self.builder.cast(Opcode::BITCAST, mask, self.int(self.lanes))
    }

    pub(super) fn any(&self, mask: Value<'c>) -> Value<'c> {
        self.builder.is_unequal(self.bits(mask), self.int(self.lanes).null())
    }

    pub(super) fn all(&self, mask: Value<'c>) -> Value<'c> {
        self.builder.is_equal(self.bits(mask), self.int(self.lanes).all_ones())
    }

    /// The active lanes in which a condition holds.
    pub(super) fn narrowed(&self, mask: Mask<'c>, condition: Value<'c>) -> Value<'c> {
        // Also where all are active: a mask is an argument of branches, and must not be poison for another reason than the body's own.
        self.builder.select(self.mask(mask), condition, self.mask_type().null())
    }

    /// The number of the first lane of a mask that has one.
    pub(super) fn first(&self, mask: Value<'c>) -> Value<'c> {
        self.zeros("llvm.cttz", self.bits(mask))
    }

    /// The number of the last lane of a mask that has one.
    pub(super) fn last(&self, mask: Value<'c>) -> Value<'c> {
        let of = self.int(self.lanes);
        let zeros = self.zeros("llvm.ctlz", self.bits(mask));
        self.builder.subtract(of.constant(u64::from(self.lanes) - 1), zeros)
    }

    /// Counts the zeros at an end of a mask that has a lane.
    ///
    /// LLVM moves the access of such an element in front of the branch that asks for a lane. There it reads from the stack, and believes that a number of
    /// zeros is in bounds, though without a lane it is poison. Frozen numbers are not believed to be in bounds.
    pub(super) fn zeros(&self, intrinsic: &str, bits: Value<'c>) -> Value<'c> {
        let count = self.module.intrinsic(intrinsic, &[self.int(self.lanes)]);
        self.builder.freeze(self.builder.call(count, &[bits, self.int(1).constant(1)]))
    }
}
