//! Arrays, structs and vectors in registers: lists of values, of which elements are taken and replaced.

use rspirv::spirv::Word;

use super::function::FunctionTranslator;
use super::value::{Shape, Translated};
use crate::llvm::{Opcode, Value, ValueKind};
use crate::refused::Refused;

impl<'c> FunctionTranslator<'_, '_, 'c> {
    /// `extractvalue` and `insertvalue`.
    pub(super) fn aggregate(&mut self, instruction: Value<'c>, opcode: Opcode) -> Result<Translated, Refused> {
        let mut value = self.operand(instruction, 0)?;
        let positions = instruction.positions();
        if opcode == Opcode::EXTRACT_VALUE {
            for position in positions {
                value = value.parts()[position as usize].clone();
            }
            return Ok(value);
        }
        let element = self.operand(instruction, 1)?;
        replace(&mut value, &positions, element);
        Ok(value)
    }

    /// `extractelement`, `insertelement` and `shufflevector`.
    pub(super) fn vector(&mut self, instruction: Value<'c>, opcode: Opcode) -> Result<Translated, Refused> {
        let value = self.operand(instruction, 0)?;
        match opcode {
            Opcode::EXTRACT_ELEMENT => {
                let shape = Shape::of(instruction.value_type())?;
                let index = instruction.operand(1);
                if let Some(index) = index.integer() {
                    let parts = value.parts();
                    // An index beyond the end gives any value.
                    return Ok(parts.get(index as usize).unwrap_or(&parts[0]).clone());
                }
                let mut result = value.parts()[0].clone();
                for (position, part) in value.parts().to_vec().iter().enumerate().skip(1) {
                    let is_it = self.is_index(index, position)?;
                    result = self.choose_part(is_it, part, &result, &shape)?;
                }
                Ok(result)
            }
            Opcode::INSERT_ELEMENT => {
                let element = self.operand(instruction, 1)?;
                let shape = Shape::of(instruction.operand(1).value_type())?;
                let index = instruction.operand(2);
                let mut parts = value.parts().to_vec();
                if index.kind() == ValueKind::Integer {
                    let position = index.integer().unwrap_or(u64::MAX) as usize;
                    if let Some(part) = parts.get_mut(position) {
                        *part = element;
                    }
                } else {
                    for (position, part) in parts.iter_mut().enumerate() {
                        let is_it = self.is_index(index, position)?;
                        *part = self.choose_part(is_it, &element, part, &shape)?;
                    }
                }
                Ok(Translated::Parts(parts))
            }
            _ => {
                let other = self.operand(instruction, 1)?;
                let all = [value.parts(), other.parts()].concat();
                let mask = instruction.shuffle_mask();
                Ok(Translated::Parts(mask.into_iter().map(|index| all[index.max(0) as usize].clone()).collect()))
            }
        }
    }

    fn is_index(&mut self, index: Value<'c>, position: usize) -> Result<Word, Refused> {
        let shape = Shape::of(index.value_type())?;
        let (index, position) = (self.value(index)?, self.bits(&shape, position as u128));
        self.equal(&index, &position, &shape)
    }

    fn choose_part(
        &mut self,
        condition: Word,
        yes: &Translated,
        no: &Translated,
        shape: &Shape,
    ) -> Result<Translated, Refused> {
        match shape {
            Shape::Address | Shape::Parts(_) | Shape::Nothing => {
                Err(Refused::new("an element of a vector of addresses, by an index that is not constant"))
            }
            shape => Ok(self.choose(condition, yes, no, shape)),
        }
    }
}

fn replace(value: &mut Translated, positions: &[u32], element: Translated) {
    match (positions, value) {
        ([], value) => *value = element,
        ([first, rest @ ..], Translated::Parts(parts)) => replace(&mut parts[*first as usize], rest, element),
        (_, other) => unreachable!("LLVM's verifier accepts positions in aggregates only, not in {other:?}"),
    }
}
