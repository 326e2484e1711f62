//! Constants, and the addresses of globals.
//!
//! What a constant needs beside itself is computed at the start of the function, so that it is there for all of it.

use rspirv::spirv::{Op, StorageClass};

use super::function::FunctionTranslator;
use super::function_builder::Access;
use super::module::Data;
use super::module_builder::Scalar;
use super::names::is_local_memory;
use super::value::{Shape, Translated, container};
use crate::llvm::{Opcode, Value, ValueKind};
use crate::refused::Refused;
use crate::symbols::plain_path;

/// The largest table of addresses that is copied into each work-item, in bytes.
const LARGEST_TABLE: u64 = 16 << 10;

impl<'c> FunctionTranslator<'_, '_, 'c> {
    /// A constant.
    pub(super) fn constant(&mut self, value: Value<'c>) -> Result<Translated, Refused> {
        if let Some(known) = self.constants.get(&value) {
            return Ok(known.clone());
        }
        let before = self.code.go_to_start(true);
        let translated = self.make_constant(value);
        self.code.go_to_start(before);
        let translated = translated?;
        self.constants.insert(value, translated.clone());
        Ok(translated)
    }

    fn make_constant(&mut self, value: Value<'c>) -> Result<Translated, Refused> {
        let shape = Shape::of(value.value_type())?;
        match value.kind() {
            ValueKind::Undefined | ValueKind::Null => Ok(self.zero(&shape)),
            ValueKind::Integer | ValueKind::Float => {
                let bits = value.bits(self.context).ok_or_else(|| unknown(value))?;
                // A constant of a vector type may stand for all its elements.
                match &shape {
                    Shape::Parts(shapes) => Ok(Translated::Parts(shapes.iter().map(|s| self.bits(s, bits)).collect())),
                    shape => Ok(self.bits(shape, bits)),
                }
            }
            ValueKind::Aggregate | ValueKind::DataArray => {
                let Shape::Parts(shapes) = shape else { return Err(unknown(value)) };
                let elements = (0..shapes.len() as u32).map(|index| {
                    let element = value.element(index).ok_or_else(|| unknown(value))?;
                    self.constant(element)
                });
                Ok(Translated::Parts(elements.collect::<Result<_, _>>()?))
            }
            ValueKind::GlobalVariable => self.global(value),
            ValueKind::Function => Err(Refused::new(format!(
                "the address of a function, `{}`: devices of this kind have neither function pointers nor trait objects",
                plain_path(value.name())
            ))),
            ValueKind::ConstantExpression => self.expression(value),
            _ => Err(unknown(value)),
        }
    }

    /// Zero, false, or the null address.
    pub(super) fn zero(&mut self, shape: &Shape) -> Translated {
        match shape {
            Shape::Address => {
                let class = StorageClass::Generic;
                Translated::Address(self.code.writer.null(Scalar::Address(class)), class)
            }
            Shape::Parts(parts) => Translated::Parts(parts.iter().map(|part| self.zero(part)).collect()),
            shape => self.bits(shape, 0),
        }
    }

    /// A number by its bits.
    pub(super) fn bits(&mut self, shape: &Shape, bits: u128) -> Translated {
        match shape {
            Shape::Bool => Translated::Scalar(self.code.boolean(bits & 1 != 0)),
            Shape::Int(width) => Translated::Scalar(self.code.integer(container(*width), bits as u64)),
            Shape::Wide(_) => {
                let low = self.code.integer(64, bits as u64);
                Translated::Wide(low, self.code.integer(64, (bits >> 64) as u64))
            }
            Shape::Float(width) => Translated::Scalar(self.code.writer.float(*width, bits as u64)),
            Shape::Nothing | Shape::Address | Shape::Parts(_) => Translated::Nothing,
        }
    }

    /// The address of a global.
    fn global(&mut self, global: Value<'c>) -> Result<Translated, Refused> {
        if is_local_memory(global) {
            let address = self.implicit.local_memory.ok_or_else(|| Refused::new("local memory in a constant"))?;
            return Ok(Translated::Address(address, StorageClass::Workgroup));
        }
        let data = self.globals.data(self.code.writer, self.layout, self.context, global)?;
        match data {
            Data::Variable(id, class) => {
                let address = self.code.op(Op::Bitcast, Scalar::Address(class), &[id]);
                Ok(Translated::Address(address, class))
            }
            Data::Table { bytes, size, alignment, addresses } => {
                if size > LARGEST_TABLE {
                    return Err(Refused::new(format!(
                        "a constant table of addresses, `{}`, has {size} bytes, the limit is {LARGEST_TABLE}",
                        global.name()
                    )));
                }
                let class = StorageClass::Function;
                let table = self.code.variable(size, alignment);
                // A table may hold its own address.
                self.constants.insert(global, Translated::Address(table, class));
                if let Some(bytes) = bytes {
                    let size = self.code.integer(64, size);
                    let from = self.code.op(Op::Bitcast, Scalar::Address(StorageClass::CrossWorkgroup), &[bytes]);
                    self.code.copy(table, from, size, alignment);
                }
                for (offset, address) in addresses {
                    let target = self.constant(address)?.address();
                    let target = self.generic(target);
                    let at = self.code.integer(64, offset);
                    let at = self.code.offset(table, class, at, true);
                    let access = Access { alignment, is_volatile: false }.at(offset);
                    self.code.store(Scalar::Address(StorageClass::Generic), target, (at, class), access);
                }
                Ok(Translated::Address(table, class))
            }
        }
    }

    fn expression(&mut self, value: Value<'c>) -> Result<Translated, Refused> {
        match value.expression() {
            Some(Opcode::GET_ELEMENT_PTR) => self.address_computation(value),
            Some(opcode) if opcode.is_cast() => self.conversion(value, opcode),
            Some(opcode) if opcode.is_integer_arithmetic() => self.integer_arithmetic(value, opcode),
            _ => Err(unknown(value)),
        }
    }
}

fn unknown(value: Value<'_>) -> Refused {
    Refused::new(format!("a constant that is not translated: {}", value.print()))
}
