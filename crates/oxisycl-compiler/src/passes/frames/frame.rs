//! The frame of a cycle of calls: its values, their offsets, and the code that accesses them.
//!
//! Every value that another block uses goes through memory: a frame if it is alive across a call of the cycle, otherwise a variable. Later passes
//! turn the variables into registers. Does not know how a cycle is entered, called or left.

use crate::llvm::{Block, Builder, Context, Layout, Module, Opcode, Type, TypeKind, Value};
use rustc_hash::{FxHashMap, FxHashSet};

/// The alignment of frames. Also the bytes at the beginning of each frame, which hold the number of the call that made it.
pub(super) const ALIGNMENT: u64 = 16;

/// An allocator of offsets in memory, with the bytes in use.
#[derive(Default)]
pub(super) struct Places {
    size: u64,
}

impl Places {
    fn add(&mut self, layout: Layout<'_>, held: Type<'_>, alignment: u64) -> u64 {
        let alignment = alignment.max(u64::from(layout.alignment(held))).max(1);
        let place = self.size.next_multiple_of(alignment);
        self.size = place + layout.size(held).max(1);
        place
    }

    /// The bytes in use, rounded up to the alignment.
    fn end(&self) -> u64 {
        self.size.next_multiple_of(ALIGNMENT)
    }

    /// Offsets for values in memory of their own, and the bytes of that memory.
    pub(super) fn of<'c>(layout: Layout<'_>, held: impl Iterator<Item = Type<'c>>) -> (Vec<u64>, u64) {
        let mut all = Self::default();
        let places = held.map(|held| all.add(layout, held, ALIGNMENT)).collect();
        (places, all.end().max(ALIGNMENT))
    }
}

/// The layout of each frame of a cycle.
pub(super) struct Frame<'c, 'm> {
    context: &'c Context,
    layout: Layout<'m>,
    /// The variables of the functions, with their offsets in a frame.
    variables: Vec<(Value<'c>, u64)>,
    places: Places,
    byte: Type<'c>,
    word: Type<'c>,
    pointer: Type<'c>,
}

impl<'c, 'm> Frame<'c, 'm> {
    /// A frame with the variables of these functions; `None` if one of the variables cannot be in a frame.
    pub(super) fn of(module: &'m Module<'c>, members: &[Value<'c>]) -> Option<Self> {
        let context = module.context();
        let pointer = Type::pointer(context, 0);
        let layout = Layout::of(module);
        let mut places = Places { size: ALIGNMENT };
        let mut variables = Vec::new();
        let instructions = members.iter().flat_map(|member| member.instructions());
        for variable in instructions.filter(|instruction| instruction.is(Opcode::ALLOCA)) {
            let count = variable.operand(0).integer()?;
            let alignment = u64::from(variable.alignment());
            if variable.value_type() != pointer || count != 1 || alignment > ALIGNMENT {
                return None;
            }
            variables.push((variable, places.add(layout, variable.allocated_type(), alignment)));
        }
        let (byte, word) = (Type::int(context, 8), Type::int(context, 64));
        Some(Self { context, layout, variables, places, byte, word, pointer })
    }

    /// The size of a frame in bytes.
    pub(super) fn size(&self) -> u64 {
        self.places.end()
    }

    /// Stores each value that another block uses, and loads it there. `resumed` are the blocks behind calls of the cycle. `frame_at` is the
    /// variable with the address of the current frame.
    pub(super) fn keep_values(
        &mut self,
        members: &[Value<'c>],
        resumed: &FxHashSet<Block<'c>>,
        frame_at: Value<'c>,
        variable: &dyn Fn(Type<'c>) -> Value<'c>,
    ) {
        let mut before: FxHashMap<Block<'c>, Vec<Block<'c>>> = FxHashMap::default();
        for block in members.iter().flat_map(|member| member.blocks()) {
            for next in block.successors() {
                before.entry(next).or_default().push(block);
            }
        }
        let values: Vec<_> = members.iter().flat_map(|member| member.instructions()).collect();
        for value in values {
            if value.value_type().kind() == TypeKind::Void || value.is(Opcode::ALLOCA) {
                continue;
            }
            let own = value.block();
            let mut users = value.users();
            users.retain(|user| user.block() != own);
            let mut seen = FxHashSet::default();
            users.retain(|user| seen.insert(*user));
            if users.is_empty() {
                continue;
            }
            let mut alive: FxHashSet<_> = users.iter().map(|user| user.block()).collect();
            let mut next: Vec<_> = alive.iter().copied().collect();
            while let Some(block) = next.pop() {
                for &earlier in before.get(&block).into_iter().flatten() {
                    if earlier != own && alive.insert(earlier) {
                        next.push(earlier);
                    }
                }
            }
            let held = value.value_type();
            let at_def = Builder::before(self.context, value.next());
            if alive.is_disjoint(resumed) {
                let place = variable(held);
                at_def.store(value, place);
                for user in users {
                    replace_operand(user, value, Builder::before(self.context, user).load(held, place));
                }
            } else {
                let offset = self.places.add(self.layout, held, 1);
                at_def.store(value, self.address(&at_def, frame_at, offset));
                for user in users {
                    let builder = Builder::before(self.context, user);
                    replace_operand(user, value, builder.load(held, self.address(&builder, frame_at, offset)));
                }
            }
        }
    }

    /// Replaces the variables of the functions by addresses in the current frame.
    pub(super) fn place_variables(&self, frame_at: Value<'c>) {
        for &(variable, offset) in &self.variables {
            for user in variable.users() {
                let is_lifetime = user.callee().is_some_and(|callee| callee.name().starts_with("llvm.lifetime."));
                if is_lifetime {
                    user.erase();
                } else if user.operands().contains(&variable) {
                    let builder = Builder::before(self.context, user);
                    replace_operand(user, variable, self.address(&builder, frame_at, offset));
                }
            }
            variable.erase();
        }
    }

    /// The address at an offset in the current frame.
    fn address(&self, builder: &Builder<'c>, frame_at: Value<'c>, offset: u64) -> Value<'c> {
        builder.offset(self.byte, builder.load(self.pointer, frame_at), self.word.constant(offset))
    }
}

/// Replaces a function's parameters by variables. Returns these with their types.
pub(super) fn take_parameters<'c>(
    context: &'c Context,
    member: Value<'c>,
    variable: &dyn Fn(Type<'c>) -> Value<'c>,
) -> Vec<(Type<'c>, Value<'c>)> {
    let first = member.blocks()[0].instructions()[0];
    let builder = Builder::before(context, first);
    let parameters = (0..member.parameter_count()).map(|index| member.parameter(index));
    let take = |parameter: Value<'c>| {
        let held = parameter.value_type();
        let place = variable(held);
        parameter.replace_all_uses_with(builder.load(held, place));
        (held, place)
    };
    parameters.map(take).collect()
}

/// Replaces a phi by a variable that each predecessor stores to.
pub(super) fn demote_phi<'c>(context: &'c Context, phi: Value<'c>, place: Value<'c>) {
    let mut seen = FxHashSet::default();
    for (value, block) in phi.incoming() {
        if seen.insert(block) {
            Builder::before(context, block.end()).store(value, place);
        }
    }
    let block = phi.block().instructions();
    let behind = block.into_iter().find(|instruction| !instruction.is(Opcode::PHI)).expect("blocks have an end");
    phi.replace_all_uses_with(Builder::before(context, behind).load(phi.value_type(), place));
    phi.erase();
}

fn replace_operand<'c>(user: Value<'c>, old: Value<'c>, new: Value<'c>) {
    for (index, operand) in (0..).zip(user.operands()) {
        if operand == old {
            user.set_operand(index, new);
        }
    }
}
