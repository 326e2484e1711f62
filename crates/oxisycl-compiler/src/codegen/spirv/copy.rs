//! Copying and filling of memory.
//!
//! Small amounts of known size are loaded and stored at once. Larger copies are one instruction; everything else is a loop over bytes,
//! or over as large words as the alignment allows.

use rspirv::dr::{Instruction, Operand};
use rspirv::spirv::{MemoryAccess, Op, Word};

use super::function::FunctionTranslator;
use super::function_builder::{Access, Code};
use super::memory::Place;
use super::module_builder::Scalar;
use super::value::Shape;
use crate::llvm::Value;
use crate::refused::Refused;

/// The most bytes that are copied through registers.
const LARGEST_AT_ONCE: u64 = 128;

impl Code<'_> {
    /// Copies bytes that do not overlap.
    pub(super) fn copy(&mut self, to: Word, from: Word, size: Word, alignment: u32) {
        let ids = [to, from, size].map(Operand::IdRef);
        let access = [Operand::MemoryAccess(MemoryAccess::ALIGNED), Operand::LiteralBit32(alignment)];
        let operands = ids.into_iter().chain(access).collect();
        self.push(Instruction::new(Op::CopyMemorySized, None, None, operands));
    }

    /// A loop whose body gets the index of the iteration.
    pub(super) fn repeat(&mut self, rounds: Word, body: impl FnOnce(&mut Self, Word)) {
        let [head, inside, end] = std::array::from_fn(|_| self.id());
        let before = self.label();
        let (zero, one) = (self.integer(64, 0), self.integer(64, 1));
        self.branch(head);
        self.begin(head);
        let round = self.phi(Scalar::Int(64));
        let goes_on = self.test(Op::ULessThan, &[round, rounds]);
        self.branch_if(goes_on, inside, end);
        self.begin(inside);
        body(self, round);
        let next = self.int(Op::IAdd, 64, &[round, one]);
        self.set_phi(round, &[(zero, before), (next, self.label())]);
        self.branch(head);
        self.begin(end);
    }
}

impl<'c> FunctionTranslator<'_, '_, 'c> {
    /// `memcpy` and `memmove`.
    pub(super) fn copy_memory(&mut self, call: Value<'c>, may_overlap: bool) -> Result<(), Refused> {
        let arguments = call.arguments();
        let (to, from) = (self.value(arguments[0])?.address(), self.value(arguments[1])?.address());
        let alignment = |index| call.site_number_attribute(index, "align").unwrap_or(1) as u32;
        let (to_access, from_access) = (plain(alignment(1)), plain(alignment(2)));
        match arguments[2].integer() {
            Some(0) => {}
            Some(size) if size <= LARGEST_AT_ONCE => self.copy_at_once(to, from, size, to_access, from_access),
            _ => {
                let size = self.value(arguments[2])?;
                let shape = Shape::of(arguments[2].value_type())?;
                let size = self.resize(&size, &shape, &Shape::Int(64)).scalar();
                if may_overlap {
                    self.move_bytes(to, from, size);
                } else if arguments[2].integer().is_some() {
                    self.code.copy(to.0, from.0, size, to_access.alignment.min(from_access.alignment));
                } else {
                    self.code.repeat(size, |code, index| copy_byte(code, to, from, index));
                }
            }
        }
        Ok(())
    }

    fn copy_at_once(&mut self, to: Place, from: Place, size: u64, to_access: Access, from_access: Access) {
        let largest = u64::from(to_access.alignment.min(from_access.alignment).min(8));
        let mut loaded = Vec::new();
        let mut offset = 0;
        while offset < size {
            let word = largest.min(1 << (size - offset).ilog2());
            let place = self.at(from, offset);
            let scalar = Scalar::Int(8 * word as u32);
            loaded.push((offset, scalar, self.code.load(scalar, place, from_access.at(offset))));
            offset += word;
        }
        for (offset, scalar, value) in loaded {
            let place = self.at(to, offset);
            self.code.store(scalar, value, place, to_access.at(offset));
        }
    }

    /// Copies bytes one by one, from the end if the target begins inside the source.
    fn move_bytes(&mut self, to: Place, from: Place, size: Word) {
        let (to_bits, from_bits) = (self.address_bits(to), self.address_bits(from));
        let distance = self.code.int(Op::ISub, 64, &[to_bits, from_bits]);
        let is_backward = self.code.test(Op::ULessThan, &[distance, size]);
        let [backward, forward, end] = std::array::from_fn(|_| self.code.id());
        self.code.branch_if(is_backward, backward, forward);
        self.code.begin(backward);
        let one = self.code.integer(64, 1);
        let last = self.code.int(Op::ISub, 64, &[size, one]);
        self.code.repeat(size, |code, round| {
            let index = code.int(Op::ISub, 64, &[last, round]);
            copy_byte(code, to, from, index);
        });
        self.code.branch(end);
        self.code.begin(forward);
        self.code.repeat(size, |code, index| copy_byte(code, to, from, index));
        self.code.branch(end);
        self.code.begin(end);
    }

    /// `memset`.
    pub(super) fn set_memory(&mut self, call: Value<'c>) -> Result<(), Refused> {
        let arguments = call.arguments();
        let to = self.value(arguments[0])?.address();
        let byte = self.value(arguments[1])?.scalar();
        let alignment = call.site_number_attribute(1, "align").unwrap_or(1) as u32;
        let Some(size) = arguments[2].integer() else {
            let size = self.value(arguments[2])?;
            let shape = Shape::of(arguments[2].value_type())?;
            let size = self.resize(&size, &shape, &Shape::Int(64)).scalar();
            self.code.repeat(size, |code, index| {
                let (address, class) = to;
                let at = code.offset(address, class, index, true);
                code.store(Scalar::Int(8), byte, (at, class), plain(1));
            });
            return Ok(());
        };
        let word = alignment.min(8);
        let rounds = size / u64::from(word);
        let value = self.repeated(byte, word);
        let scalar = Scalar::Int(8 * word);
        if rounds * u64::from(word) <= LARGEST_AT_ONCE {
            for round in 0..rounds {
                let place = self.at(to, round * u64::from(word));
                self.code.store(scalar, value, place, plain(word));
            }
        } else {
            let (rounds, scale) = (self.code.integer(64, rounds), self.code.integer(64, u64::from(word)));
            self.code.repeat(rounds, |code, round| {
                let (address, class) = to;
                let offset = code.int(Op::IMul, 64, &[round, scale]);
                let at = code.offset(address, class, offset, true);
                code.store(scalar, value, (at, class), plain(word));
            });
        }
        for offset in rounds * u64::from(word)..size {
            let place = self.at(to, offset);
            self.code.store(Scalar::Int(8), byte, place, plain(1));
        }
        Ok(())
    }

    /// The byte repeated in every byte of a word.
    fn repeated(&mut self, byte: Word, size: u32) -> Word {
        if size == 1 {
            return byte;
        }
        let width = 8 * size;
        let wide = self.code.int(Op::UConvert, width, &[byte]);
        let ones = self.code.integer(width, 0x0101_0101_0101_0101);
        self.code.int(Op::IMul, width, &[wide, ones])
    }
}

fn copy_byte(code: &mut Code<'_>, (to, to_class): Place, (from, from_class): Place, index: Word) {
    let from = code.offset(from, from_class, index, true);
    let byte = code.load(Scalar::Int(8), (from, from_class), plain(1));
    let to = code.offset(to, to_class, index, true);
    code.store(Scalar::Int(8), byte, (to, to_class), plain(1));
}

fn plain(alignment: u32) -> Access {
    Access { alignment, is_volatile: false }
}
