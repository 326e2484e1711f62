//! Addresses as a base, multiples of variable numbers, and a constant, so that the distance of two of them is seen.

use crate::llvm::{Layout, Opcode, TypeKind, Value};

/// Parts of an index that are followed.
const DEPTH: u32 = 6;

/// An address. All sums are modulo 2^64, as those of addresses are.
pub(super) struct Place<'c> {
    base: Value<'c>,
    /// Different numbers, each with its factor, which is not 0.
    terms: Vec<(Value<'c>, i64)>,
    constant: i64,
}

impl<'c> Place<'c> {
    pub(super) fn of(layout: Layout<'_>, address: Value<'c>) -> Self {
        let mut place = Self { base: address, terms: Vec::new(), constant: 0 };
        while place.base.is(Opcode::GET_ELEMENT_PTR) {
            let gep = place.base;
            place.base = gep.operand(0);
            place.add_indices(layout, gep);
        }
        place
    }

    fn add_indices(&mut self, layout: Layout<'_>, gep: Value<'c>) {
        let mut inside = gep.gep_type();
        for (position, &index) in gep.operands()[1..].iter().enumerate() {
            if position > 0 {
                if inside.kind() == TypeKind::Struct {
                    let member = index.integer().expect("the index of a member is a constant");
                    self.constant = self.constant.wrapping_add(layout.offset(inside, member as u32) as i64);
                    inside = inside.members()[member as usize];
                    continue;
                }
                inside = inside.elements().0;
            }
            self.add(index, layout.size(inside) as i64, DEPTH);
        }
    }

    /// Adds a multiple of a number.
    fn add(&mut self, number: Value<'c>, factor: i64, depth: u32) {
        if let Some(constant) = signed(number) {
            self.constant = self.constant.wrapping_add(constant.wrapping_mul(factor));
            return;
        }
        // The parts of a narrower number are extended one by one, and may wrap before.
        if depth > 0 && number.value_type().kind() == TypeKind::Integer(64) {
            let opcode = number.opcode().filter(|_| number.operands().len() == 2);
            let operand = |index| number.operand(index);
            match opcode {
                Some(Opcode::OR) if !number.is_disjoint_or() => {}
                Some(Opcode::ADD | Opcode::OR | Opcode::SUB) => {
                    let sign = if opcode == Some(Opcode::SUB) { -1 } else { 1 };
                    self.add(operand(0), factor, depth - 1);
                    return self.add(operand(1), factor.wrapping_mul(sign), depth - 1);
                }
                Some(Opcode::MUL) if let Some(times) = signed(operand(1)) => {
                    return self.add(operand(0), factor.wrapping_mul(times), depth - 1);
                }
                Some(Opcode::SHL) if let Some(bits @ 0..64) = signed(operand(1)) => {
                    return self.add(operand(0), factor.wrapping_mul(1 << bits), depth - 1);
                }
                _ => {}
            }
        }
        match self.terms.iter_mut().find(|(known, _)| *known == number) {
            Some((_, known)) => *known = known.wrapping_add(factor),
            None => self.terms.push((number, factor)),
        }
        self.terms.retain(|(_, factor)| *factor != 0);
    }

    /// How far behind this place another one is, in each lane alike.
    pub(super) fn distance(&self, other: &Self) -> Option<i64> {
        let has_all = other.terms.iter().all(|term| self.terms.contains(term));
        let is_alike = self.base == other.base && self.terms.len() == other.terms.len() && has_all;
        is_alike.then(|| other.constant.wrapping_sub(self.constant))
    }
}

/// The number that a constant integer is, with its sign.
fn signed(value: Value<'_>) -> Option<i64> {
    let TypeKind::Integer(width @ 1..=64) = value.value_type().kind() else { return None };
    value.integer().map(|bits| bits.cast_signed() << (64 - width) >> (64 - width))
}
