//! Atomic operations and fences, with their orders and scopes.
//!
//! SPIR-V of OpenCL has them for integers of 32 and 64 bits. Narrower ones, floats, and operations that it has not are loops that
//! compare and exchange the word. Memory of the work-item itself is accessed plainly: no other work-item sees it, and devices have no atomic
//! operations there. As on NVIDIA GPUs, the scope of `core::sync::atomic`, the whole system, is narrowed to the device.
//! Not all drivers have them for generic addresses (the quirk `generic-atomics`), so that there is one operation for each memory: `memories`.

use rspirv::spirv::{Capability, Op, Scope, StorageClass, Word};

use super::function::FunctionTranslator;
use super::function_builder::Access;
use super::memory::Place;
use super::module_builder::Scalar;
use super::value::{Shape, Translated, container};
use crate::llvm::{Opcode, Value};
use crate::passes::atomic_builtins::{SYSTEM, WORK_GROUP};
use crate::refused::Refused;

// The numbers of `LLVMAtomicOrdering`.
const ACQUIRE: i32 = 4;
const RELEASE: i32 = 5;
const ACQUIRE_RELEASE: i32 = 6;
const SEQUENTIALLY_CONSISTENT: i32 = 7;

/// The number of `LLVMAtomicRMWBinOpFAdd`.
pub(super) const FLOAT_ADD: i32 = 11;
/// The types that one instruction adds atomically, with the capability for it.
pub(super) const FLOAT_SUMS: [(Shape, Capability); 2] =
    [(Shape::Float(32), Capability::AtomicFloat32AddEXT), (Shape::Float(64), Capability::AtomicFloat64AddEXT)];

/// The memory of an atomic operation.
#[derive(Clone, Copy)]
struct Cell {
    /// The address of the word that is exchanged.
    place: Place,
    /// Bits of the word: 32 or 64.
    word: u32,
    /// The shift of the value from the word's lowest bit; `None` if the value is the word.
    shift: Option<Word>,
    /// Bits of the value.
    width: u32,
    scope: Word,
    /// The memory semantics of success, and of failure or of a load.
    semantics: (Word, Word),
}

impl<'c> FunctionTranslator<'_, '_, 'c> {
    /// The memory semantics of an ordering. Both kinds of memory are ordered, since it is unknown here which one an address is of.
    fn semantics(&mut self, ordering: i32) -> Word {
        const MEMORY: u64 = 0x300;
        let bits = match ordering {
            ACQUIRE => 0x2 | MEMORY,
            RELEASE => 0x4 | MEMORY,
            ACQUIRE_RELEASE => 0x8 | MEMORY,
            SEQUENTIALLY_CONSISTENT => 0x10 | MEMORY,
            _ => 0,
        };
        self.code.integer(32, bits)
    }

    fn scope(&mut self, instruction: Value<'c>) -> Word {
        let number = instruction.sync_scope();
        let is = |name: &str| self.context.sync_scope(name) == number;
        let scope = if is("singlethread") {
            Scope::Invocation
        } else if is(WORK_GROUP) {
            Scope::Workgroup
        } else if is(SYSTEM) {
            Scope::CrossDevice
        } else {
            Scope::Device
        };
        self.code.integer(32, scope as u64)
    }

    pub(super) fn fence(&mut self, instruction: Value<'c>) {
        if instruction.sync_scope() != self.context.sync_scope("singlethread") {
            let (scope, semantics) = (self.scope(instruction), self.semantics(instruction.ordering()));
            self.code.effect(Op::MemoryBarrier, &[scope, semantics]);
        }
    }

    /// The cell for a value with that shape.
    fn cell(
        &mut self,
        instruction: Value<'c>,
        place: Place,
        shape: &Shape,
        orders: (i32, i32),
    ) -> Result<Cell, Refused> {
        let width = match shape {
            Shape::Bool => 8,
            Shape::Int(width) | Shape::Float(width) => container(*width),
            Shape::Address => 64,
            other => return Err(Refused::new(format!("an atomic operation on {other:?}"))),
        };
        let word = width.max(32);
        if word == 64 && place.1 != StorageClass::Function {
            self.code.writer.require(Capability::Int64Atomics);
        }
        let scope = self.scope(instruction);
        let semantics = (self.semantics(orders.0), self.semantics(orders.1));
        let mut cell = Cell { place, word, shift: None, width, scope, semantics };
        if width < 32 && place.1 != StorageClass::Function {
            let bits = self.address_bits(place);
            let (three, eight) = (self.code.integer(64, 3), self.code.integer(32, 8));
            let byte = self.code.int(Op::BitwiseAnd, 64, &[bits, three]);
            let back = self.code.int(Op::SNegate, 64, &[byte]);
            cell.place.0 = self.code.offset(place.0, place.1, back, false);
            let byte = self.code.int(Op::UConvert, 32, &[byte]);
            cell.shift = Some(self.code.int(Op::IMul, 32, &[byte, eight]));
        }
        Ok(cell)
    }

    /// The pointer that the word's operations take.
    fn pointer(&mut self, cell: Cell) -> Word {
        self.code.pointer(cell.place.0, cell.place.1, Scalar::Int(cell.word))
    }

    /// The value's bits in a word.
    fn field(&mut self, cell: Cell, word: Word) -> Word {
        let Some(shift) = cell.shift else { return word };
        let moved = self.code.int(Op::ShiftRightLogical, 32, &[word, shift]);
        self.code.int(Op::UConvert, cell.width, &[moved])
    }

    /// The word with other bits for the value.
    fn with_field(&mut self, cell: Cell, word: Word, field: Word) -> Word {
        let Some(shift) = cell.shift else { return field };
        let ones = self.code.integer(32, (1 << cell.width) - 1);
        let mask = self.code.int(Op::ShiftLeftLogical, 32, &[ones, shift]);
        let mask = self.code.int(Op::Not, 32, &[mask]);
        let rest = self.code.int(Op::BitwiseAnd, 32, &[word, mask]);
        let field = self.code.int(Op::UConvert, 32, &[field]);
        let field = self.code.int(Op::ShiftLeftLogical, 32, &[field, shift]);
        self.code.int(Op::BitwiseOr, 32, &[rest, field])
    }

    /// The bits of a value, as an integer of the cell's width.
    fn field_of(&mut self, value: &Translated, shape: &Shape) -> Word {
        match shape {
            Shape::Bool => self.convert_int(Opcode::ZEXT, value, shape, &Shape::Int(8)).scalar(),
            Shape::Float(width) => self.code.int(Op::Bitcast, *width, &[value.scalar()]),
            Shape::Address => self.address_bits(value.address()),
            _ => value.scalar(),
        }
    }

    fn value_of(&mut self, field: Word, shape: &Shape) -> Translated {
        match shape {
            Shape::Bool => {
                let (one, zero) = (self.code.integer(8, 1), self.code.integer(8, 0));
                let bit = self.code.int(Op::BitwiseAnd, 8, &[field, one]);
                Translated::Scalar(self.code.test(Op::INotEqual, &[bit, zero]))
            }
            Shape::Float(width) => Translated::Scalar(self.code.op(Op::Bitcast, Scalar::Float(*width), &[field])),
            Shape::Address => {
                let class = StorageClass::Generic;
                Translated::Address(self.code.op(Op::ConvertUToPtr, Scalar::Address(class), &[field]), class)
            }
            Shape::Int(width) => Translated::Scalar(self.cut(field, *width)),
            _ => Translated::Scalar(field),
        }
    }

    pub(super) fn atomic_load(&mut self, instruction: Value<'c>) -> Result<Translated, Refused> {
        let of = instruction.value_type();
        let place = self.operand(instruction, 0)?.address();
        let shape = Shape::of(of)?;
        self.in_each_memory(place, &shape, |translator, place| {
            if place.1 == StorageClass::Function {
                let access = translator.access(instruction, of);
                return translator.load_from(of, place, access, StorageClass::Generic);
            }
            let order = instruction.ordering();
            let cell = translator.cell(instruction, place, &shape, (order, order))?;
            let pointer = translator.pointer(cell);
            let word = translator.code.int(Op::AtomicLoad, cell.word, &[pointer, cell.scope, cell.semantics.0]);
            let field = translator.field(cell, word);
            Ok(translator.value_of(field, &shape))
        })
    }

    pub(super) fn atomic_store(&mut self, instruction: Value<'c>) -> Result<(), Refused> {
        let of = instruction.operand(0).value_type();
        let value = self.operand(instruction, 0)?;
        let place = self.operand(instruction, 1)?.address();
        let shape = Shape::of(of)?;
        self.in_each_memory(place, &Shape::Nothing, |translator, place| {
            if place.1 == StorageClass::Function {
                let access = translator.access(instruction, of);
                translator.store_to(of, &value, place, access)?;
                return Ok(Translated::Nothing);
            }
            let cell = translator.cell(instruction, place, &shape, (instruction.ordering(), 0))?;
            let field = translator.field_of(&value, &shape);
            if cell.shift.is_some() {
                translator.update(cell, |_, _| Ok(field))?;
            } else {
                let pointer = translator.pointer(cell);
                translator.code.effect(Op::AtomicStore, &[pointer, cell.scope, cell.semantics.0, field]);
            }
            Ok(Translated::Nothing)
        })?;
        Ok(())
    }

    /// Replaces the value by one computed from it, and returns the previous one.
    fn update(
        &mut self,
        cell: Cell,
        compute: impl FnOnce(&mut Self, Word) -> Result<Word, Refused>,
    ) -> Result<Word, Refused> {
        let pointer = self.pointer(cell);
        let (relaxed, word) = (self.code.integer(32, 0), Scalar::Int(cell.word));
        let first = self.code.op(Op::AtomicLoad, word, &[pointer, cell.scope, relaxed]);
        let [head, end] = std::array::from_fn(|_| self.code.id());
        let before = self.code.label();
        self.code.branch(head);
        self.code.begin(head);
        let expected = self.code.phi(word);
        let old = self.field(cell, expected);
        let new = compute(self, old)?;
        let new = self.with_field(cell, expected, new);
        let operands = [pointer, cell.scope, cell.semantics.0, relaxed, new, expected];
        let seen = self.code.op(Op::AtomicCompareExchange, word, &operands);
        let is_done = self.code.test(Op::IEqual, &[seen, expected]);
        self.code.set_phi(expected, &[(first, before), (seen, self.code.label())]);
        self.code.branch_if(is_done, end, head);
        self.code.begin(end);
        Ok(old)
    }

    pub(super) fn read_modify_write(&mut self, instruction: Value<'c>) -> Result<Translated, Refused> {
        let place = self.operand(instruction, 0)?.address();
        let value = self.operand(instruction, 1)?;
        let shape = Shape::of(instruction.operand(1).value_type())?;
        self.in_each_memory(place, &shape, |translator, place| {
            translator.read_modify_write_at(instruction, place, &value, &shape)
        })
    }

    fn read_modify_write_at(
        &mut self,
        instruction: Value<'c>,
        place: Place,
        value: &Translated,
        shape: &Shape,
    ) -> Result<Translated, Refused> {
        let of = instruction.operand(1).value_type();
        let operation = instruction.atomic_operation();
        if place.1 == StorageClass::Function {
            let access = Access { alignment: self.layout.alignment(of), is_volatile: false };
            let old = self.load_from(of, place, access, StorageClass::Generic)?;
            let new = self.updated(operation, &old, value, shape)?;
            self.store_to(of, &new, place, access)?;
            return Ok(old);
        }
        let cell = self.cell(instruction, place, shape, (instruction.ordering(), 0))?;
        let native = match operation {
            0 => Some(Op::AtomicExchange),
            1 => Some(Op::AtomicIAdd),
            2 => Some(Op::AtomicISub),
            3 => Some(Op::AtomicAnd),
            5 => Some(Op::AtomicOr),
            6 => Some(Op::AtomicXor),
            7 => Some(Op::AtomicSMax),
            8 => Some(Op::AtomicSMin),
            9 => Some(Op::AtomicUMax),
            10 => Some(Op::AtomicUMin),
            _ => None,
        };
        if operation == FLOAT_ADD
            && self.code.writer.extensions().float_atomics
            && let Some((_, capability)) = FLOAT_SUMS.iter().find(|(of, _)| of == shape)
        {
            self.code.writer.require(*capability);
            self.code.writer.extend("SPV_EXT_shader_atomic_float_add");
            let float = Scalar::Float(cell.word);
            let pointer = self.code.pointer(cell.place.0, cell.place.1, float);
            let operands = [pointer, cell.scope, cell.semantics.0, value.scalar()];
            return Ok(Translated::Scalar(self.code.op(Op::AtomicFAddEXT, float, &operands)));
        }
        let is_word = cell.shift.is_none() && (operation == 0 || *shape == Shape::Int(cell.word));
        let old = if let Some(op) = native.filter(|_| is_word) {
            let (pointer, field) = (self.pointer(cell), self.field_of(value, shape));
            self.code.int(op, cell.word, &[pointer, cell.scope, cell.semantics.0, field])
        } else {
            self.update(cell, |translator, old| {
                let old = translator.value_of(old, shape);
                let new = translator.updated(operation, &old, value, shape)?;
                Ok(translator.field_of(&new, shape))
            })?
        };
        Ok(self.value_of(old, shape))
    }

    /// The new value of an operation. The numbers are those of `LLVMAtomicRMWBinOp`.
    fn updated(
        &mut self,
        operation: i32,
        old: &Translated,
        value: &Translated,
        shape: &Shape,
    ) -> Result<Translated, Refused> {
        let float = |translator: &mut Self, op: Op| {
            let Shape::Float(width) = shape else { return Err(Refused::new("an atomic operation on bf16")) };
            let id = translator.code.op(op, Scalar::Float(*width), &[old.scalar(), value.scalar()]);
            Ok(Translated::Scalar(id))
        };
        match operation {
            0 => Ok(value.clone()),
            1 => self.arithmetic(Opcode::ADD, old, value, shape),
            2 => self.arithmetic(Opcode::SUB, old, value, shape),
            3 => self.arithmetic(Opcode::AND, old, value, shape),
            4 => {
                let both = self.arithmetic(Opcode::AND, old, value, shape)?;
                let ones = self.bits(shape, u128::MAX >> (128 - shape_width(shape)));
                self.arithmetic(Opcode::XOR, &both, &ones, shape)
            }
            5 => self.arithmetic(Opcode::OR, old, value, shape),
            6 => self.arithmetic(Opcode::XOR, old, value, shape),
            7 => self.extremum("smax", old, value, shape),
            8 => self.extremum("smin", old, value, shape),
            9 => self.extremum("umax", old, value, shape),
            10 => self.extremum("umin", old, value, shape),
            FLOAT_ADD => float(self, Op::FAdd),
            12 => float(self, Op::FSub),
            13 | 14 | 19 | 20 => {
                let name = match operation {
                    13 => "maxnum",
                    14 => "minnum",
                    19 => "maximum",
                    _ => "minimum",
                };
                let result = self.float_intrinsic(name, &[old.clone(), value.clone()], shape)?;
                Ok(result.expect("these intrinsics are known"))
            }
            other => Err(Refused::new(format!("an atomic operation that is not translated, number {other}"))),
        }
    }

    /// `cmpxchg`: the old value, and whether it was the expected one.
    pub(super) fn compare_exchange(&mut self, instruction: Value<'c>) -> Result<Translated, Refused> {
        let place = self.operand(instruction, 0)?.address();
        let (expected, new) = (self.operand(instruction, 1)?, self.operand(instruction, 2)?);
        let result = Shape::of(instruction.value_type())?;
        self.in_each_memory(place, &result, |translator, place| {
            translator.compare_exchange_at(instruction, place, (&expected, &new))
        })
    }

    fn compare_exchange_at(
        &mut self,
        instruction: Value<'c>,
        place: Place,
        (expected, new): (&Translated, &Translated),
    ) -> Result<Translated, Refused> {
        let of = instruction.operand(1).value_type();
        let shape = Shape::of(of)?;
        if place.1 == StorageClass::Function {
            let access = Access { alignment: self.layout.alignment(of), is_volatile: false };
            let old = self.load_from(of, place, access, StorageClass::Generic)?;
            let equal = self.equal(&old, expected, &shape)?;
            let stored = match shape {
                Shape::Address => {
                    let (new, old) = (self.generic(new.address()), self.generic(old.address()));
                    let class = StorageClass::Generic;
                    Translated::Address(self.code.select(Scalar::Address(class), equal, new, old), class)
                }
                _ => self.choose(equal, new, &old, &shape),
            };
            self.store_to(of, &stored, place, access)?;
            return Ok(Translated::Parts(vec![old, Translated::Scalar(equal)]));
        }
        let (success, failure) = instruction.exchange_orderings();
        // The first order must not be weaker than the second one.
        let success = match (success, failure) {
            (_, SEQUENTIALLY_CONSISTENT) => SEQUENTIALLY_CONSISTENT,
            (RELEASE, ACQUIRE) => ACQUIRE_RELEASE,
            (success, failure) => success.max(failure),
        };
        let cell = self.cell(instruction, place, &shape, (success, failure))?;
        let (expected, new) = (self.field_of(expected, &shape), self.field_of(new, &shape));
        let (old, equal) = if cell.shift.is_some() {
            self.exchange_part(cell, expected, new)
        } else {
            let pointer = self.pointer(cell);
            let operands = [pointer, cell.scope, cell.semantics.0, cell.semantics.1, new, expected];
            let old = self.code.int(Op::AtomicCompareExchange, cell.word, &operands);
            (old, self.code.test(Op::IEqual, &[old, expected]))
        };
        let old = self.value_of(old, &shape);
        Ok(Translated::Parts(vec![old, Translated::Scalar(equal)]))
    }

    /// Compares and exchanges a part of a word. Tries again as long as only the rest of the word changes.
    fn exchange_part(&mut self, cell: Cell, expected: Word, new: Word) -> (Word, Word) {
        let pointer = self.pointer(cell);
        let word = Scalar::Int(32);
        let first = self.code.op(Op::AtomicLoad, word, &[pointer, cell.scope, cell.semantics.1]);
        let [head, attempt, end] = std::array::from_fn(|_| self.code.id());
        let before = self.code.label();
        self.code.branch(head);
        self.code.begin(head);
        let current = self.code.phi(word);
        let field = self.field(cell, current);
        let is_expected = self.code.test(Op::IEqual, &[field, expected]);
        self.code.branch_if(is_expected, attempt, end);
        self.code.begin(attempt);
        let replaced = self.with_field(cell, current, new);
        let operands = [pointer, cell.scope, cell.semantics.0, cell.semantics.1, replaced, current];
        let seen = self.code.op(Op::AtomicCompareExchange, word, &operands);
        let is_done = self.code.test(Op::IEqual, &[seen, current]);
        self.code.set_phi(current, &[(first, before), (seen, attempt)]);
        self.code.branch_if(is_done, end, head);
        self.code.begin(end);
        (field, is_expected)
    }
}

fn shape_width(shape: &Shape) -> u32 {
    match shape {
        Shape::Bool => 1,
        Shape::Int(width) | Shape::Wide(width) | Shape::Float(width) => *width,
        _ => 64,
    }
}
