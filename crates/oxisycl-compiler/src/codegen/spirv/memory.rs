//! Loads, stores, local variables and the computation of addresses.
//!
//! An access is of a type's scalars one by one. Integers of odd sizes are accessed in pieces of 1, 2, 4 and 8 bytes, so that nothing
//! beside them is touched.

use oxisycl_image::SpecializedLoad;
use rspirv::spirv::{Op, StorageClass, Word};

use super::function::FunctionTranslator;
use super::function_builder::Access;
use super::module_builder::Scalar;
use super::value::{Shape, Translated, container};
use crate::llvm::{Type, TypeKind, Value, ValueKind};
use crate::passes::specialization::named_part;
use crate::refused::Refused;

/// An address with its storage class.
pub(super) type Place = (Word, StorageClass);

/// Whether a load or store is atomic.
pub(super) fn is_atomic(instruction: Value<'_>) -> bool {
    instruction.ordering() != 0
}

impl<'c> FunctionTranslator<'_, '_, 'c> {
    pub(super) fn alloca(&mut self, instruction: Value<'c>) -> Result<Translated, Refused> {
        let is_at_start = self.function.blocks()[0].instructions().contains(&instruction);
        let count = instruction.operand(0).integer().filter(|_| is_at_start);
        let count = count.ok_or_else(|| Refused::new("a local array whose size is known only when the kernel runs"))?;
        let held = instruction.allocated_type();
        let alignment = instruction.alignment().max(1);
        let address = self.code.variable(count * self.layout.size(held), alignment);
        Ok(Translated::Address(address, StorageClass::Function))
    }

    /// The properties of an instruction's memory access.
    pub(super) fn access(&self, instruction: Value<'c>, of: Type<'c>) -> Access {
        let alignment = match instruction.alignment() {
            0 => self.layout.alignment(of),
            alignment => alignment,
        };
        Access { alignment, is_volatile: instruction.is_volatile() }
    }

    pub(super) fn load(&mut self, instruction: Value<'c>) -> Result<Translated, Refused> {
        if is_atomic(instruction) {
            return self.atomic_load(instruction);
        }
        let of = instruction.value_type();
        let place = self.operand(instruction, 0)?.address();
        let class = self.class(instruction);
        let loaded = self.load_from(of, place, self.access(instruction, of), class)?;
        if let (Some((offset, size)), Translated::Scalar(result)) = (named_part(instruction.name()), &loaded) {
            self.code.writer.name(*result, &SpecializedLoad::name(offset, size));
        }
        Ok(loaded)
    }

    /// Loads a value. Addresses that are loaded are of `class`.
    pub(super) fn load_from(
        &mut self,
        of: Type<'c>,
        place: Place,
        access: Access,
        class: StorageClass,
    ) -> Result<Translated, Refused> {
        Ok(match Shape::of(of)? {
            Shape::Nothing => Translated::Nothing,
            Shape::Bool => {
                let byte = self.code.load(Scalar::Int(8), place, access);
                let (one, zero) = (self.code.integer(8, 1), self.code.integer(8, 0));
                let bit = self.code.int(Op::BitwiseAnd, 8, &[byte, one]);
                Translated::Scalar(self.code.test(Op::INotEqual, &[bit, zero]))
            }
            Shape::Int(width) => {
                let word = self.load_bytes(place, access, width.div_ceil(8), container(width));
                Translated::Scalar(self.cut(word, width))
            }
            Shape::Wide(width) => {
                let low = self.load_bytes(place, access, 8, 64);
                let next = self.at(place, 8);
                let high = self.load_bytes(next, access.at(8), width.div_ceil(8) - 8, 64);
                self.cut_wide((low, high), width)
            }
            Shape::Float(width) => Translated::Scalar(self.code.load(Scalar::Float(width), place, access)),
            Shape::Address => Translated::Address(self.code.load(Scalar::Address(class), place, access), class),
            Shape::Parts(_) => {
                let mut parts = Vec::new();
                for (offset, element) in self.elements(of)? {
                    let at = self.at(place, offset);
                    parts.push(self.load_from(element, at, access.at(offset), StorageClass::Generic)?);
                }
                Translated::Parts(parts)
            }
        })
    }

    pub(super) fn store(&mut self, instruction: Value<'c>) -> Result<(), Refused> {
        if is_atomic(instruction) {
            return self.atomic_store(instruction);
        }
        let of = instruction.operand(0).value_type();
        let value = self.operand(instruction, 0)?;
        let place = self.operand(instruction, 1)?.address();
        self.store_to(of, &value, place, self.access(instruction, of))
    }

    pub(super) fn store_to(
        &mut self,
        of: Type<'c>,
        value: &Translated,
        place: Place,
        access: Access,
    ) -> Result<(), Refused> {
        match Shape::of(of)? {
            Shape::Nothing => {}
            Shape::Bool => {
                let (one, zero) = (self.code.integer(8, 1), self.code.integer(8, 0));
                let byte = self.code.select(Scalar::Int(8), value.scalar(), one, zero);
                self.code.store(Scalar::Int(8), byte, place, access);
            }
            Shape::Int(width) => {
                self.store_bytes(value.scalar(), container(width), place, access, width.div_ceil(8));
            }
            Shape::Wide(width) => {
                let (low, high) = value.wide();
                self.store_bytes(low, 64, place, access, 8);
                let next = self.at(place, 8);
                self.store_bytes(high, 64, next, access.at(8), width.div_ceil(8) - 8);
            }
            Shape::Float(width) => self.code.store(Scalar::Float(width), value.scalar(), place, access),
            Shape::Address => {
                let address = self.generic(value.address());
                self.code.store(Scalar::Address(StorageClass::Generic), address, place, access);
            }
            Shape::Parts(_) => {
                for ((offset, element), part) in self.elements(of)?.into_iter().zip(value.parts()) {
                    let at = self.at(place, offset);
                    self.store_to(element, part, at, access.at(offset))?;
                }
            }
        }
        Ok(())
    }

    /// The elements of an array, struct or vector, with their offsets in memory.
    fn elements(&self, of: Type<'c>) -> Result<Vec<(u64, Type<'c>)>, Refused> {
        if of.kind() == TypeKind::Struct {
            let members = of.members().into_iter().enumerate();
            return Ok(members.map(|(index, member)| (self.layout.offset(of, index as u32), member)).collect());
        }
        let (element, count) = of.elements();
        if let (TypeKind::Vector, TypeKind::Integer(width)) = (of.kind(), element.kind())
            && width % 8 != 0
        {
            return Err(Refused::new(format!("a vector of integers of {width} bits in memory")));
        }
        let size = self.layout.size(element);
        Ok((0..count).map(|index| (index * size, element)).collect())
    }

    /// The address that is a constant distance further.
    pub(super) fn at(&mut self, (address, class): Place, offset: u64) -> Place {
        if offset == 0 {
            return (address, class);
        }
        let distance = self.code.integer(64, offset);
        (self.code.offset(address, class, distance, true), class)
    }

    /// The pieces with sizes of powers of two that make up `bytes` bytes: offset and size.
    fn pieces(bytes: u32) -> impl Iterator<Item = (u32, u32)> {
        let mut offset = 0;
        std::iter::from_fn(move || {
            let size = 1 << (bytes - offset).checked_ilog2()?.min(3);
            offset += size;
            Some((offset - size, size))
        })
    }

    /// Loads up to 8 bytes into an integer of `held` bits.
    fn load_bytes(&mut self, place: Place, access: Access, bytes: u32, held: u32) -> Word {
        let mut result = None;
        for (offset, size) in Self::pieces(bytes) {
            let at = self.at(place, u64::from(offset));
            let mut piece = self.code.load(Scalar::Int(8 * size), at, access.at(u64::from(offset)));
            if 8 * size != held {
                piece = self.code.int(Op::UConvert, held, &[piece]);
            }
            result = Some(match result {
                None => piece,
                Some(below) => {
                    let distance = self.code.integer(held, u64::from(8 * offset));
                    let above = self.code.int(Op::ShiftLeftLogical, held, &[piece, distance]);
                    self.code.int(Op::BitwiseOr, held, &[below, above])
                }
            });
        }
        result.expect("at least one byte")
    }

    /// Stores the lower bytes of an integer of `held` bits.
    fn store_bytes(&mut self, value: Word, held: u32, place: Place, access: Access, bytes: u32) {
        for (offset, size) in Self::pieces(bytes) {
            let mut piece = value;
            if offset > 0 {
                let distance = self.code.integer(held, u64::from(8 * offset));
                piece = self.code.int(Op::ShiftRightLogical, held, &[piece, distance]);
            }
            if 8 * size != held {
                piece = self.code.int(Op::UConvert, 8 * size, &[piece]);
            }
            let at = self.at(place, u64::from(offset));
            self.code.store(Scalar::Int(8 * size), piece, at, access.at(u64::from(offset)));
        }
    }

    /// `getelementptr`, as an instruction or as a constant.
    pub(super) fn address_computation(&mut self, value: Value<'c>) -> Result<Translated, Refused> {
        let Translated::Address(address, class) = self.operand(value, 0)? else {
            return Err(Refused::new("a vector of addresses"));
        };
        let mut constant = 0u64;
        // Indices with the sizes that they count.
        let mut variables: Vec<(Word, u64)> = Vec::new();
        let mut of = value.gep_type();
        for (position, index) in value.operands().into_iter().skip(1).enumerate() {
            let number = self.constant_index(index);
            let scale = if position == 0 {
                self.layout.size(of)
            } else if of.kind() == TypeKind::Struct {
                let member = number.ok_or_else(|| Refused::new("a member of a struct that is not constant"))?;
                constant = constant.wrapping_add(self.layout.offset(of, member as u32));
                of = of.members()[member as usize];
                continue;
            } else {
                of = of.elements().0;
                self.layout.size(of)
            };
            match number {
                Some(number) => constant = constant.wrapping_add(number.wrapping_mul(scale)),
                None => {
                    let shape = Shape::of(index.value_type())?;
                    if matches!(shape, Shape::Parts(_)) {
                        return Err(Refused::new("a vector of addresses"));
                    }
                    let index = self.value(index)?;
                    let is_wide = matches!(shape, Shape::Wide(_));
                    let opcode = if is_wide { crate::llvm::Opcode::TRUNC } else { crate::llvm::Opcode::SEXT };
                    let index = self.convert_int(opcode, &index, &shape, &Shape::Int(64)).scalar();
                    variables.push((index, scale));
                }
            }
        }
        if let [(index, size @ (2 | 4 | 8))] = variables[..] {
            let first = match constant {
                0 => address,
                _ => {
                    let constant = self.code.integer(64, constant);
                    self.code.offset(address, class, constant, false)
                }
            };
            let scalar = Scalar::Int(8 * size as u32);
            // Behind a negative constant it begins before the object.
            let in_bounds = value.is_in_bounds() && constant as i64 >= 0;
            let element = self.code.element((first, class), scalar, index, in_bounds);
            return Ok(Translated::Address(element, class));
        }
        let mut distance = (constant != 0).then(|| self.code.integer(64, constant));
        for (mut bytes, size) in variables {
            if size != 1 {
                let size = self.code.integer(64, size);
                bytes = self.code.int(Op::IMul, 64, &[bytes, size]);
            }
            distance = Some(match distance {
                None => bytes,
                Some(sum) => self.code.int(Op::IAdd, 64, &[sum, bytes]),
            });
        }
        let Some(distance) = distance else { return Ok(Translated::Address(address, class)) };
        Ok(Translated::Address(self.code.offset(address, class, distance, value.is_in_bounds()), class))
    }

    /// The value of a constant index, sign-extended.
    fn constant_index(&self, index: Value<'c>) -> Option<u64> {
        let TypeKind::Integer(width @ 1..=64) = index.value_type().kind() else { return None };
        match index.kind() {
            ValueKind::Integer => {
                let bits = index.integer()?;
                Some(((bits << (64 - width)) as i64 >> (64 - width)) as u64)
            }
            ValueKind::Null | ValueKind::Undefined => Some(0),
            _ => None,
        }
    }
}
