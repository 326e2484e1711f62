//! Integers of 3, 5, 6 and 7 bytes, which LLVM makes of small arrays such as the colours of a pixel.
//!
//! In registers, a lane has the next larger element that processors know. In memory, the elements of consecutive lanes have no bytes between them, so
//! that bytes are moved on the way. LLVM itself would access such vectors element by element.

use super::emitter::{Emitter, Mask};
use crate::llvm::{Opcode, Type, TypeKind, Value};

/// The bytes of a register that elements are moved in.
const GROUP: u32 = 32;

/// The bytes of an integer that has whole bytes, but not as many as an element of a vector: in memory, and in registers.
pub(super) fn packed_bytes(of: Type<'_>) -> Option<(u32, u32)> {
    match of.kind() {
        TypeKind::Integer(bits @ (24 | 40 | 48 | 56)) => Some((bits / 8, (bits / 8).next_power_of_two())),
        _ => None,
    }
}

impl<'c> Emitter<'c, '_> {
    /// Makes a load of such integers.
    pub(super) fn packed_load(&mut self, load: Value<'c>, mask: Mask<'c>, (bytes, in_register): (u32, u32)) {
        let (address, of) = (load.operand(0), load.value_type());
        let Mask::All = mask else { return self.singly(load, mask) };
        if !self.is_consecutive(address, of) {
            return self.singly(load, mask);
        }
        let address = self.raw(address);
        let whole = self.unpacked((address, load.alignment()), (bytes, in_register));
        let value = self.builder.cast(Opcode::TRUNC, whole, self.widened(of));
        self.define(load, value);
    }

    /// Loads consecutive elements of so many bytes, as the next larger ones.
    pub(super) fn unpacked(
        &self,
        (address, alignment): (Value<'c>, u32),
        (bytes, in_register): (u32, u32),
    ) -> Value<'c> {
        let together = (GROUP / in_register).min(self.lanes);
        let mut groups = Vec::new();
        for first in (0..self.lanes).step_by(together as usize) {
            let begin = self.builder.address(self.int(8), address, &[self.int(64).constant(u64::from(first * bytes))]);
            let packed = self.builder.load(self.int(8).vector(together * bytes), begin);
            packed.set_alignment(if first == 0 { alignment } else { 1 });
            // Of bytes of several fields, one that is poison would be all of the integer.
            let packed = self.builder.freeze(packed);
            let zero = together * bytes;
            let of_byte = |at: u32| {
                let (lane, byte) = (at / in_register, at % in_register);
                if byte < bytes { lane * bytes + byte } else { zero }
            };
            let wanted: Vec<u32> = (0..together * in_register).map(of_byte).collect();
            groups.push(self.shuffle(packed, packed.value_type().null(), &wanted));
        }
        while groups.len() > 1 {
            let join = |pair: &[Value<'c>]| {
                let both = 2 * pair[0].value_type().elements().1 as u32;
                self.shuffle(pair[0], pair[1], &(0..both).collect::<Vec<_>>())
            };
            groups = groups.chunks_exact(2).map(join).collect();
        }
        self.builder.cast(Opcode::BITCAST, groups[0], self.int(8 * in_register).vector(self.lanes))
    }

    /// Makes a store of such integers to places that differ.
    pub(super) fn packed_store(&mut self, store: Value<'c>, mask: Mask<'c>, (bytes, in_register): (u32, u32)) {
        let (value, address) = (store.operand(0), store.operand(1));
        let Mask::All = mask else { return self.singly(store, mask) };
        if !self.is_consecutive(address, value.value_type()) {
            return self.singly(store, mask);
        }
        let values = self.vector(value);
        let whole = self.builder.cast(Opcode::ZEXT, values, self.int(8 * in_register).vector(self.lanes));
        let address = self.raw(address);
        self.pack(whole, (address, store.alignment()), (bytes, in_register));
    }

    /// Stores the low bytes of elements without gaps.
    pub(super) fn pack(
        &self,
        whole: Value<'c>,
        (address, alignment): (Value<'c>, u32),
        (bytes, in_register): (u32, u32),
    ) {
        let all = self.builder.cast(Opcode::BITCAST, whole, self.int(8).vector(self.lanes * in_register));
        let wanted: Vec<u32> = (0..self.lanes * bytes).map(|at| at / bytes * in_register + at % bytes).collect();
        let packed = self.shuffle(all, all.value_type().poison(), &wanted);
        self.builder.store(packed, address).set_alignment(alignment);
    }

    /// The bytes of two vectors that have these numbers.
    fn shuffle(&self, first: Value<'c>, second: Value<'c>, wanted: &[u32]) -> Value<'c> {
        let of = self.int(32);
        let wanted: Vec<_> = wanted.iter().map(|number| of.constant(u64::from(*number))).collect();
        self.builder.shuffle(first, second, Value::vector(&wanted))
    }
}
