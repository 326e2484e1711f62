//! Terminators of blocks, and selections between two values.

use rspirv::dr::{Instruction, Operand};
use rspirv::spirv::{Op, StorageClass, Word};

use super::function::FunctionTranslator;
use super::module_builder::Scalar;
use super::value::{Shape, Translated, container};
use crate::llvm::{Block, Opcode, Value};
use crate::refused::Refused;

impl<'c> FunctionTranslator<'_, '_, 'c> {
    pub(super) fn select(&mut self, instruction: Value<'c>) -> Result<Translated, Refused> {
        let condition = self.operand(instruction, 0)?;
        let (yes, no) = (self.operand(instruction, 1)?, self.operand(instruction, 2)?);
        let shape = Shape::of(instruction.value_type())?;
        let class = self.class(instruction);
        self.select_parts(&condition, (&yes, &no), &shape, class)
    }

    fn select_parts(
        &mut self,
        condition: &Translated,
        (yes, no): (&Translated, &Translated),
        shape: &Shape,
        class: StorageClass,
    ) -> Result<Translated, Refused> {
        Ok(match shape {
            Shape::Nothing => Translated::Nothing,
            Shape::Parts(shapes) => {
                let mut parts = Vec::new();
                for (index, shape) in shapes.iter().enumerate() {
                    // A condition for each element of a vector, or one for all.
                    let condition =
                        if let Translated::Parts(conditions) = condition { &conditions[index] } else { condition };
                    let values = (&yes.parts()[index], &no.parts()[index]);
                    parts.push(self.select_parts(condition, values, shape, class)?);
                }
                Translated::Parts(parts)
            }
            Shape::Wide(_) => {
                let condition = condition.scalar();
                let ((yes_low, yes_high), (no_low, no_high)) = (yes.wide(), no.wide());
                let word = Scalar::Int(64);
                let low = self.code.select(word, condition, yes_low, no_low);
                Translated::Wide(low, self.code.select(word, condition, yes_high, no_high))
            }
            Shape::Address => {
                let (yes, no) = (self.cast(yes.address(), class), self.cast(no.address(), class));
                Translated::Address(self.code.select(Scalar::Address(class), condition.scalar(), yes, no), class)
            }
            _ => {
                let scalar = shape.scalars()[0];
                Translated::Scalar(self.code.select(scalar, condition.scalar(), yes.scalar(), no.scalar()))
            }
        })
    }

    fn target(&self, block: Block<'c>) -> Word {
        self.labels[&block].0
    }

    pub(super) fn terminator(
        &mut self,
        block: Block<'c>,
        instruction: Value<'c>,
        opcode: Opcode,
    ) -> Result<(), Refused> {
        let successors = block.successors();
        match opcode {
            Opcode::RET if instruction.operands().is_empty() => self.code.effect(Op::Return, &[]),
            Opcode::RET => {
                let value = self.operand(instruction, 0)?;
                self.return_value(value)?;
            }
            Opcode::UNREACHABLE => self.code.effect(Op::Unreachable, &[]),
            Opcode::SWITCH => self.switch(instruction, &successors)?,
            _ => match successors[..] {
                [target] => self.code.branch(self.target(target)),
                [yes, no] if yes == no => self.code.branch(self.target(yes)),
                [yes, no] => {
                    let condition = self.scalar(instruction, 0)?;
                    self.code.branch_if(condition, self.target(yes), self.target(no));
                }
                _ => return Err(Refused::new("a branch to a computed place")),
            },
        }
        Ok(())
    }

    fn switch(&mut self, instruction: Value<'c>, successors: &[Block<'c>]) -> Result<(), Refused> {
        let selector = instruction.operand(0);
        let shape = Shape::of(selector.value_type())?;
        let value = self.value(selector)?;
        let targets: Vec<_> = successors.iter().map(|&block| self.target(block)).collect();
        let cases = (1..targets.len()).map(|index| {
            let case = instruction.case(index as u32).bits(self.context);
            Ok((case.ok_or_else(|| Refused::new("a case of a switch that is no number"))?, targets[index]))
        });
        let cases = cases.collect::<Result<Vec<_>, Refused>>()?;
        let Shape::Int(width) = shape else { return self.compare_in_turn(&value, &shape, &cases, targets[0]) };
        // Narrow selectors are not taken by all drivers.
        let width = container(width);
        let id = match width {
            8 | 16 => self.code.int(Op::UConvert, 32, &[value.scalar()]),
            _ => value.scalar(),
        };
        let mut operands = vec![Operand::IdRef(id), Operand::IdRef(targets[0])];
        for (case, target) in cases {
            operands.push(if width == 64 {
                Operand::LiteralBit64(case as u64)
            } else {
                Operand::LiteralBit32(case as u32)
            });
            operands.push(Operand::IdRef(target));
        }
        self.code.push(Instruction::new(Op::Switch, None, None, operands));
        Ok(())
    }

    /// Translates a switch over a value that `OpSwitch` does not accept, by comparisons.
    fn compare_in_turn(
        &mut self,
        value: &Translated,
        shape: &Shape,
        cases: &[(u128, Word)],
        default: Word,
    ) -> Result<(), Refused> {
        // The targets' phis know one block, so that the number of the target is found first, and the branch comes at the end.
        let mut chosen = self.code.integer(32, cases.len() as u64);
        for (index, &(case, _)) in cases.iter().enumerate().rev() {
            let case = self.bits(shape, case);
            let equal = self.equal(value, &case, shape)?;
            let index = self.code.integer(32, index as u64);
            chosen = self.code.select(Scalar::Int(32), equal, index, chosen);
        }
        let mut operands = vec![Operand::IdRef(chosen), Operand::IdRef(default)];
        for (index, &(_, target)) in cases.iter().enumerate() {
            operands.extend([Operand::LiteralBit32(index as u32), Operand::IdRef(target)]);
        }
        self.code.push(Instruction::new(Op::Switch, None, None, operands));
        Ok(())
    }
}
