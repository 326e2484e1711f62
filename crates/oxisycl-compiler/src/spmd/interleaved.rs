//! Groups of fields (`fields`): wide accesses of whole structures, and shuffles.

use super::emitter::{Emitter, Mask, Rule};
use super::fields::shuffles::{self, Loads, Machine};
use super::fields::{Field, Group};
use crate::llvm::{Opcode, Type, TypeKind, Value};

/// The bytes of a pixel of three, in memory and in registers.
const THREE: (u32, u32) = (3, 4);

impl<'c, 'a> Emitter<'c, 'a> {
    /// The group of an access that the lanes of a mask make together.
    pub(super) fn group(&self, access: Value<'c>, mask: Mask<'c>) -> Option<&'a Group<'c>> {
        let Mask::All = mask else { return None };
        self.groups.get(access)
    }

    /// Makes an access of a group: all of it at the leader's place.
    pub(super) fn field(&mut self, access: Value<'c>, group: &Group<'c>) {
        let is_leader = group.leader().access == access;
        if group.is_store {
            if is_leader {
                self.store_fields(group);
            }
            return;
        }
        if is_leader {
            self.load_fields(group);
        }
        let value = self.fields[&access];
        self.define(access, value);
    }

    fn load_fields(&mut self, group: &Group<'c>) {
        let mut memory = self.memory(group);
        let values: Vec<_> = if group.is_of_three() {
            let whole = self.unpacked((memory.begin, memory.alignment), THREE);
            group.fields.iter().map(|field| self.part(whole, field)).collect()
        } else {
            let (mut structures, size) = (group.structures(self.lanes), group.stride);
            if !self.has(Rule::LastStructure) {
                structures.total = structures.lanes * size;
            }
            let mut machine = Made { emitter: self, memory: &mut memory };
            let mut loads = Loads::new(&mut machine, structures);
            if group.is_small() {
                let whole = loads.field(0, size);
                let whole = self.cast(whole, self.int(8 * size as u32));
                group.fields.iter().map(|field| self.part(whole, field)).collect()
            } else {
                let values: Vec<_> = group.fields.iter().map(|field| loads.field(field.offset, field.size)).collect();
                values.into_iter().zip(&group.fields).map(|(value, field)| self.cast(value, field.of)).collect()
            }
        };
        self.fields.extend(group.fields.iter().map(|field| field.access).zip(values));
    }

    fn store_fields(&mut self, group: &Group<'c>) {
        let (unit, any) = (group.unit(), &group.fields[0]);
        // All of them are there, unless a test leaves that out.
        let mut values = vec![self.widened(any.of).null(); (group.stride / unit) as usize];
        for field in &group.fields {
            let value = self.vector(field.access.operand(0));
            values[(field.offset / unit) as usize] = if group.mixes() { self.builder.freeze(value) } else { value };
        }
        let mut memory = self.memory(group);
        if group.is_small() || group.is_of_three() {
            let of = self.int(8 * group.stride.next_power_of_two() as u32);
            let mut whole = of.vector(self.lanes).null();
            for (field, value) in (0..).zip(values) {
                let wide = self.builder.cast(Opcode::ZEXT, value, of.vector(self.lanes));
                let moved = self.builder.binary(Opcode::SHL, wide, self.splat(of.constant(8 * unit * field)));
                whole = self.builder.binary(Opcode::OR, whole, moved);
            }
            return match group.is_of_three() {
                true => self.pack(whole, (memory.begin, memory.alignment), THREE),
                false => self.builder.store(whole, memory.begin).set_alignment(memory.alignment),
            };
        }
        let structures = group.structures(self.lanes);
        shuffles::store(&mut Made { emitter: self, memory: &mut memory }, structures, &values);
    }

    /// Where lane 0's structure is, at the place of the leader.
    fn memory(&mut self, group: &Group<'c>) -> Memory<'c> {
        let leader = group.leader();
        let address = self.raw(leader.access.operand(u32::from(group.is_store)));
        let alignment = alignment(leader.access.alignment().into(), leader.offset);
        let before = self.int(64).constant(leader.offset.wrapping_neg());
        let begin = match leader.offset {
            0 => address,
            _ => self.builder.address(self.int(8), address, &[before]),
        };
        Memory { begin, alignment, unit: group.unit(), mixes: group.mixes() }
    }

    /// A field of structures that are integers.
    fn part(&self, whole: Value<'c>, field: &Field<'c>) -> Value<'c> {
        let of = whole.value_type().elements().0;
        let moved = match field.offset {
            0 => whole,
            offset => self.builder.binary(Opcode::LSHR, whole, self.splat(of.constant(8 * offset))),
        };
        self.builder.cast(Opcode::TRUNC, moved, self.widened(field.of))
    }

    /// Takes the bits of a vector as those of another element.
    fn cast(&self, vector: Value<'c>, element: Type<'c>) -> Value<'c> {
        self.builder.cast(Opcode::BITCAST, vector, element.vector(self.lanes))
    }
}

/// Where the structures of a group begin.
struct Memory<'c> {
    begin: Value<'c>,
    alignment: u32,
    /// The bytes of the smallest field.
    unit: u64,
    /// Whether bytes are frozen that are loaded.
    mixes: bool,
}

/// Makes the code of a group.
struct Made<'e, 'c, 'a> {
    emitter: &'e Emitter<'c, 'a>,
    memory: &'e mut Memory<'c>,
}

impl<'c> Made<'_, 'c, '_> {
    fn address(&self, at: u64) -> (Value<'c>, u32) {
        let (emitter, Memory { begin, alignment: of_begin, .. }) = (self.emitter, &*self.memory);
        let address = match at {
            0 => *begin,
            _ => emitter.builder.address(emitter.int(8), *begin, &[emitter.int(64).constant(at)]),
        };
        (address, alignment(u64::from(*of_begin), at))
    }

    /// A vector with elements of so many bytes.
    fn of_units(&self, vector: Value<'c>, unit: u64) -> Value<'c> {
        let (element, count) = vector.value_type().elements();
        let bits = match element.kind() {
            TypeKind::Integer(width) => u64::from(width),
            TypeKind::Float => 32,
            _ => 64,
        };
        let of = self.emitter.int(8 * unit as u32).vector((count * bits / 8 / unit) as u32);
        if vector.value_type() == of { vector } else { self.emitter.builder.cast(Opcode::BITCAST, vector, of) }
    }
}

impl<'c> Machine for Made<'_, 'c, '_> {
    type Vector = Value<'c>;

    fn load(&mut self, at: u64, bytes: u64) -> Value<'c> {
        let (address, alignment) = self.address(at);
        let unit = self.memory.unit;
        let of = self.emitter.int(8 * unit as u32).vector((bytes / unit) as u32);
        let value = self.emitter.builder.load(of, address);
        value.set_alignment(alignment);
        if self.memory.mixes { self.emitter.builder.freeze(value) } else { value }
    }

    fn store(&mut self, vector: Value<'c>, at: u64) {
        let (address, alignment) = self.address(at);
        self.emitter.builder.store(vector, address).set_alignment(alignment);
    }

    fn shuffle(&mut self, unit: u64, first: Value<'c>, second: Option<Value<'c>>, wanted: &[Option<u64>]) -> Value<'c> {
        let first = self.of_units(first, unit);
        let second = second.map_or(first.value_type().poison(), |second| self.of_units(second, unit));
        let of = self.emitter.int(32);
        let wanted: Vec<_> =
            wanted.iter().map(|number| number.map_or(of.poison(), |number| of.constant(number))).collect();
        self.emitter.builder.shuffle(first, second, Value::vector(&wanted))
    }
}

/// The alignment of what is so many bytes from a place of that alignment, in front of it or behind.
fn alignment(of: u64, distance: u64) -> u32 {
    let both = of | distance;
    (1 << both.trailing_zeros().min(12)) as u32
}
