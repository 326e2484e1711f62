//! The function of a region: what one work-item does between barriers.
//!
//! Its first parameter is the address of the group's [`Frame`], and the second one is the work-item's number in its row.

use rustc_hash::{FxHashMap, FxHashSet};

use super::code::{Code, Exit, is_instruction};
use super::keeping::{Keeping, Way};
use crate::error::CompileError;
use crate::llvm::{self, Block, Builder, Context, Module, Opcode, Places, Type, Value};
use crate::passes::native_code;
use crate::spmd::item_loops::{ItemLoop, steps_of};

/// Metadata by which accesses of one call of a function do not overlap.
const ALIASES: [&str; 2] = ["noalias", "alias.scope"];

/// What a group's function leaves for its regions: numbers and addresses of eight bytes.
#[derive(Clone, Copy)]
pub(super) struct Frame<'c> {
    pub(super) context: &'c Context,
    n_arrays: usize,
    n_same: usize,
}

impl<'c> Frame<'c> {
    pub(super) const CAPTURES: usize = 0;
    pub(super) const PLANE: usize = 1;
    pub(super) const ROW: usize = 2;
    /// The row-major number of the row's first work-item.
    pub(super) const FIRST: usize = 3;
    /// Which region is next, where a region leaves that open.
    pub(super) const NEXT: usize = 4;
    const ARRAYS: usize = 5;

    pub(super) fn of(context: &'c Context, keeping: &Keeping<'c>) -> Self {
        Self { context, n_arrays: keeping.arrays.len(), n_same: keeping.same.len() }
    }

    /// How many places there are.
    pub(super) fn places(self) -> usize {
        Self::ARRAYS + self.n_arrays + 2 * self.n_same
    }

    pub(super) fn array(self, number: usize) -> usize {
        Self::ARRAYS + number
    }

    /// The place of a value that is the same for all work-items: where the region reads it, or where it leaves it.
    pub(super) fn same(self, number: usize, is_left: bool) -> usize {
        Self::ARRAYS + self.n_arrays + 2 * number + usize::from(is_left)
    }

    /// The address of a place.
    pub(super) fn address(self, builder: &Builder<'c>, frame: Value<'c>, place: usize) -> Value<'c> {
        let number = Type::int(self.context, 64);
        builder.offset(number, frame, number.constant(place as u64))
    }
}

/// The number of a region, as a region leaves it in [`Frame::NEXT`].
pub(super) fn number_of(exit: Exit) -> u64 {
    match exit {
        Exit::Barrier(barrier) => barrier as u64 + 1,
        Exit::End => 0,
    }
}

/// Makes the function of a region, and declares that of its loop.
pub(super) fn make<'c>(
    module: &Module<'c>,
    code: &Code<'c>,
    keeping: &Keeping<'c>,
    region: usize,
    number: usize,
) -> Result<ItemLoop, CompileError> {
    let context = module.context();
    let (pointer, index, nothing) = (Type::pointer(context, 0), Type::int(context, 64), Type::void(context));
    let of = Type::function(nothing, &[pointer, index]);
    let declare = |name: &str| {
        let function = module.declare(name, of);
        native_code::compile_like(context, function, code.body);
        function
    };
    let function = declare(&format!("oxisycl.region.{region}"));
    let steps = declare(&steps_of(number));
    if let Some(personality) = code.body.personality() {
        function.set_personality(personality);
    }
    llvm::describe(module, function, code.body);
    let entry = Block::append(context, function);
    let pieces = code.region(region);
    let blocks: FxHashMap<usize, Block<'c>> =
        pieces.iter().map(|piece| (*piece, Block::append(context, function))).collect();
    let begin = Builder::at_end(context, entry);
    begin.branch(blocks[&code.begin(region)]);
    let before = Builder::before(context, entry.end());
    let defined = pieces.iter().flat_map(|piece| &code.pieces[*piece].instructions).copied().collect();
    let mut region = Region {
        code,
        keeping,
        frame: Frame::of(context, keeping),
        function,
        places: Places::in_copy(function),
        before,
        blocks,
        defined,
        copies: FxHashMap::default(),
        first: FxHashMap::default(),
        repeated: FxHashMap::default(),
        changing: FxHashMap::default(),
        has_several_exits: code.exits(region).len() > 1,
        linear: None,
        number: region,
    };
    region.begin();
    for &piece in &pieces {
        region.copy(piece);
    }
    for &piece in &pieces {
        region.connect(piece);
    }
    Ok(ItemLoop { body: function.name().to_owned(), steps: steps.name().to_owned() })
}

struct Region<'c, 'r> {
    code: &'r Code<'c>,
    keeping: &'r Keeping<'c>,
    frame: Frame<'c>,
    function: Value<'c>,
    places: Places,
    /// Adds to the first block, before all copies.
    before: Builder<'c>,
    /// The copies of pieces.
    blocks: FxHashMap<usize, Block<'c>>,
    /// What the region computes.
    defined: FxHashSet<Value<'c>>,
    /// The copies of instructions, and what stands for parameters.
    copies: FxHashMap<Value<'c>, Value<'c>>,
    /// What values are when the region begins.
    first: FxHashMap<Value<'c>, Value<'c>>,
    /// What is computed again when the region begins.
    repeated: FxHashMap<Value<'c>, Value<'c>>,
    /// The variables of values that are alive when the region begins and that it computes anew.
    changing: FxHashMap<Value<'c>, Value<'c>>,
    has_several_exits: bool,
    /// The row-major number of the work-item in its group.
    linear: Option<Value<'c>>,
    number: usize,
}

impl<'c> Region<'c, '_> {
    fn context(&self) -> &'c Context {
        self.frame.context
    }

    /// Reads parameters, and what is alive.
    fn begin(&mut self) {
        let (pointer, number) = (Type::pointer(self.context(), 0), Type::int(self.context(), 64));
        let parameters = [(pointer, Frame::CAPTURES), (number, Frame::PLANE), (number, Frame::ROW)];
        for (index, (of, place)) in parameters.into_iter().enumerate() {
            let value = self.read(of, place);
            self.copies.insert(self.code.body.parameter(index as u32), value);
        }
        self.copies.insert(self.code.body.parameter(3), self.function.parameter(1));
        for value in self.keeping.alive_at(self.code, self.number) {
            let first = self.first_of(value);
            if self.defined.contains(&value) && !self.is_in_frame(value) {
                let variable = self.before.variable(value.value_type());
                self.before.store(first, variable);
                self.changing.insert(value, variable);
            }
        }
    }

    /// Reads a place of the frame.
    fn read(&self, of: Type<'c>, place: usize) -> Value<'c> {
        let address = self.frame.address(&self.before, self.function.parameter(0), place);
        self.load(of, address)
    }

    /// Loads a value as [`leave`](Self::leave) stores it.
    fn load(&self, of: Type<'c>, address: Value<'c>) -> Value<'c> {
        let bit = Type::int(self.context(), 1);
        if of == bit {
            self.before.narrow(self.before.load(Type::int(self.context(), 8), address), bit)
        } else {
            self.before.load(of, address)
        }
    }

    /// Stores a value. A condition takes a byte, since several of them in a vector would be bits.
    fn leave(&self, builder: &Builder<'c>, value: Value<'c>, address: Value<'c>) {
        let bit = Type::int(self.context(), 1);
        let value = if value.value_type() == bit { builder.widen(value, Type::int(self.context(), 8)) } else { value };
        builder.store(value, address);
    }

    /// The address of the work-item's element in an array.
    fn element(&mut self, number: usize) -> Value<'c> {
        let linear = self.linear.unwrap_or_else(|| {
            let first = self.read(Type::int(self.context(), 64), Frame::FIRST);
            self.before.add(first, self.function.parameter(1))
        });
        self.linear = Some(linear);
        let array = self.read(Type::pointer(self.context(), 0), self.frame.array(number));
        let of = Type::int(self.context(), 8).array(self.keeping.arrays[number].stride);
        self.before.offset(of, array, linear)
    }

    /// What a value is when the region begins.
    fn first_of(&mut self, value: Value<'c>) -> Value<'c> {
        if let Some(first) = self.first.get(&value) {
            return *first;
        }
        let of = value.value_type();
        let first = match self.keeping.way(value) {
            Some(Way::Same(number)) => self.read(of, self.frame.same(number, false)),
            Some(Way::Each(number)) => {
                let address = self.element(number);
                self.load(of, address)
            }
            Some(Way::Variable(number)) => self.element(number),
            Some(Way::Array(number)) => self.read(of, self.frame.array(number)),
            Some(Way::Again) | None => return self.repeat(value),
        };
        self.first.insert(value, first);
        first
    }

    /// Computes a value again, at the region's begin. What it is made of may have a way of its own, which is not ready where it is not alive.
    fn repeat(&mut self, value: Value<'c>) -> Value<'c> {
        if let Some(repeated) = self.repeated.get(&value) {
            return *repeated;
        }
        let copy = value.copy();
        for (index, operand) in (0..).zip(value.operands()) {
            let operand = match self.keeping.way(operand) {
                Some(Way::Same(_) | Way::Variable(_) | Way::Array(_)) => self.first_of(operand),
                _ if is_instruction(&operand) => self.repeat(operand),
                _ => self.copies.get(&operand).copied().unwrap_or(operand),
            };
            copy.set_operand(index, operand);
        }
        self.before.insert(copy);
        self.places.set(copy, value);
        self.repeated.insert(value, copy);
        copy
    }

    /// Copies the instructions of a piece, with their operands as they are.
    fn copy(&mut self, piece: usize) {
        let builder = Builder::at_end(self.context(), self.blocks[&piece]);
        let code = self.code;
        let mut phis = Vec::new();
        for &instruction in &code.pieces[piece].instructions {
            if instruction.is(Opcode::PHI) {
                let phi = builder.phi(instruction.value_type(), &[]);
                self.copies.insert(instruction, phi);
                phis.push(instruction);
                continue;
            }
            // Phis stand together.
            phis.drain(..).for_each(|phi| self.note(&builder, phi));
            if self.is_dropped(instruction) {
                continue;
            }
            let copy = instruction.copy();
            // What is said of one work-item's pointers does not hold beside another one's, which the group's function has, too.
            ALIASES.iter().for_each(|kind| copy.unmark(kind));
            if instruction.is(Opcode::ALLOCA) { &self.before } else { &builder }.insert(copy);
            self.places.set(copy, instruction);
            self.copies.insert(instruction, copy);
            self.note(&builder, instruction);
        }
        phis.drain(..).for_each(|phi| self.note(&builder, phi));
        if let Some(exit) = self.code.exit(piece) {
            self.leave_by(&builder, exit);
        }
    }

    /// Whether an instruction has no copy: the return, and what is said of variables that the frame has.
    fn is_dropped(&self, instruction: Value<'c>) -> bool {
        let is_lifetime = || {
            instruction.is(Opcode::CALL)
                && instruction.callee().is_some_and(|callee| callee.name().starts_with("llvm.lifetime."))
                && instruction.arguments().into_iter().any(|variable| self.is_in_frame(variable))
        };
        instruction.is(Opcode::RET) || self.is_in_frame(instruction) || is_lifetime()
    }

    /// Whether a value is the address of memory that the group's function has.
    fn is_in_frame(&self, value: Value<'c>) -> bool {
        matches!(self.keeping.way(value), Some(Way::Variable(_) | Way::Array(_)))
    }

    /// Keeps what a value is from here on, if the region reads an older one, too.
    fn note(&self, builder: &Builder<'c>, instruction: Value<'c>) {
        if let Some(variable) = self.changing.get(&instruction) {
            builder.store(self.copies[&instruction], *variable);
        }
    }

    /// Leaves what is alive behind an exit, and ends the function.
    fn leave_by(&mut self, builder: &Builder<'c>, exit: Exit) {
        if let Exit::Barrier(barrier) = exit {
            for value in self.keeping.alive_at(self.code, barrier + 1) {
                if !self.defined.contains(&value) {
                    continue;
                }
                let address = match self.keeping.way(value) {
                    Some(Way::Same(number)) => {
                        let place = self.frame.same(number, true);
                        self.frame.address(builder, self.function.parameter(0), place)
                    }
                    Some(Way::Each(number)) => self.element(number),
                    _ => continue,
                };
                let now = match self.changing.get(&value) {
                    Some(variable) => builder.load(value.value_type(), *variable),
                    // It may have its copy only later.
                    None => value,
                };
                self.leave(builder, now, address);
            }
        }
        if self.has_several_exits {
            let number = Type::int(self.context(), 64);
            let address = self.frame.address(builder, self.function.parameter(0), Frame::NEXT);
            builder.store(number.constant(number_of(exit)), address);
        }
        builder.ret_void();
    }

    /// Has the copies of a piece use copies.
    fn connect(&mut self, piece: usize) {
        let block = self.blocks[&piece];
        let code = self.code;
        let of_piece = &code.pieces[piece];
        for copy in block.instructions() {
            if copy.is(Opcode::PHI) {
                continue;
            }
            let builder = Builder::before(self.context(), copy);
            for (index, operand) in (0..).zip(copy.operands()) {
                if !operand.is_block() {
                    copy.set_operand(index, self.now(&builder, operand));
                }
            }
        }
        if self.code.exit(piece).is_none() {
            for (index, successor) in (0..).zip(of_piece.block.successors()) {
                let successor = self.blocks[&self.code.of_block(successor)];
                block.end().set_successor(index, successor);
            }
        }
        for phi in of_piece.instructions.iter().take_while(|phi| phi.is(Opcode::PHI)) {
            for (value, from) in phi.incoming() {
                // The last piece of the block, if the region comes from there.
                let last = (self.code.of_block(from)..).find(|piece| self.code.pieces[*piece].barrier.is_none());
                let Some(from) = last.and_then(|last| self.blocks.get(&last)).copied() else { continue };
                let builder = Builder::before(self.context(), from.end());
                let value = self.now(&builder, value);
                self.copies[phi].add_incoming(&[(value, from)]);
            }
        }
    }

    /// What stands for an operand where the builder adds.
    fn now(&mut self, builder: &Builder<'c>, operand: Value<'c>) -> Value<'c> {
        if operand.is_constant() {
            return operand;
        }
        if let Some(variable) = self.changing.get(&operand) {
            return builder.load(operand.value_type(), *variable);
        }
        if let Some(copy) = self.copies.get(&operand) {
            return *copy;
        }
        // What the frame has: alive at the begin, or a variable.
        if self.keeping.way(operand).is_some() { self.first_of(operand) } else { operand }
    }
}
