//! Numbers of 16 bits with the range of `f32`: bf16.
//!
//! OpenCL has none. Values are kept as their bits, and computed with in `f32`, from which each result is rounded. For sums, products,
//! quotients and square roots that gives the same as rounding once, since `f32` has more than twice the digits. What would not is refused.

use rspirv::spirv::{Op, Word};

use super::function::FunctionTranslator;
use super::module_builder::Scalar;
use super::value::{Shape, Translated};
use crate::llvm::{Opcode, Type, TypeKind, Value};
use crate::refused::Refused;

const SINGLE: Scalar = Scalar::Float(32);

/// Whether the type is bf16, or a vector of it.
pub(super) fn is_brain(of: Type<'_>) -> bool {
    match of.kind() {
        TypeKind::BFloat => true,
        TypeKind::Vector => of.elements().0.kind() == TypeKind::BFloat,
        _ => false,
    }
}

/// The shape with as many elements of another type.
fn like(shape: &Shape, element: Shape) -> Shape {
    match shape {
        Shape::Parts(parts) => Shape::Parts(vec![element; parts.len()]),
        _ => element,
    }
}

impl<'c> FunctionTranslator<'_, '_, 'c> {
    /// The values of bf16 as `f32`, and their shape.
    pub(super) fn widened(&mut self, value: &Translated, shape: &Shape) -> Result<(Translated, Shape), Refused> {
        let wide = like(shape, Shape::Float(32));
        let value = Translated::zip(&[value], &wide, &mut |values, _| {
            let sixteen = self.code.integer(32, 16);
            let bits = self.code.int(Op::UConvert, 32, &[values[0].scalar()]);
            let bits = self.code.int(Op::ShiftLeftLogical, 32, &[bits, sixteen]);
            Ok(Translated::Scalar(self.code.op(Op::Bitcast, SINGLE, &[bits])))
        })?;
        Ok((value, wide))
    }

    /// The numbers of bf16 that are nearest to those of `f32`; of two, the even one.
    pub(super) fn narrowed(&mut self, value: &Translated, shape: &Shape) -> Result<Translated, Refused> {
        Translated::zip(&[value], shape, &mut |values, _| Ok(Translated::Scalar(self.narrowed_one(values[0].scalar()))))
    }

    fn narrowed_one(&mut self, value: Word) -> Word {
        let [one, sixteen, half, quiet] = [1, 16, 0x7FFF, 0x40].map(|number| self.code.integer(32, number));
        let bits = self.code.int(Op::Bitcast, 32, &[value]);
        let high = self.code.int(Op::ShiftRightLogical, 32, &[bits, sixteen]);
        let odd = self.code.int(Op::BitwiseAnd, 32, &[high, one]);
        let up = self.code.int(Op::IAdd, 32, &[half, odd]);
        let rounded = self.code.int(Op::IAdd, 32, &[bits, up]);
        let rounded = self.code.int(Op::ShiftRightLogical, 32, &[rounded, sixteen]);
        // What is not a number stays so, also if what said it was in the lower bits.
        let no_number = self.code.int(Op::BitwiseOr, 32, &[high, quiet]);
        let is_number = self.code.test(Op::Ordered, &[value, value]);
        let result = self.code.select(Scalar::Int(32), is_number, rounded, no_number);
        self.code.int(Op::UConvert, 16, &[result])
    }

    /// `f64` as `f32`, rounded so that it can be rounded again: towards zero, with the last bit set if anything is lost.
    fn rounded_to_odd(&mut self, value: Word) -> Word {
        let double = Scalar::Float(64);
        let nearest = self.code.op(Op::FConvert, SINGLE, &[value]);
        let back = self.code.op(Op::FConvert, double, &[nearest]);
        let [magnitude, back_magnitude] =
            [value, back].map(|number| self.code.extended(super::function_builder::Std::fabs, double, &[number]));
        let is_larger = self.code.test(Op::FOrdGreaterThan, &[back_magnitude, magnitude]);
        let is_inexact = self.code.test(Op::FOrdNotEqual, &[value, back]);
        let [zero, one] = [0, 1].map(|number| self.code.integer(32, number));
        let down = self.code.select(Scalar::Int(32), is_larger, one, zero);
        let odd = self.code.select(Scalar::Int(32), is_inexact, one, zero);
        let bits = self.code.int(Op::Bitcast, 32, &[nearest]);
        let bits = self.code.int(Op::ISub, 32, &[bits, down]);
        let bits = self.code.int(Op::BitwiseOr, 32, &[bits, odd]);
        self.code.op(Op::Bitcast, SINGLE, &[bits])
    }

    /// Translates a conversion from or to bf16.
    pub(super) fn brain_conversion(&mut self, instruction: Value<'c>, opcode: Opcode) -> Result<Translated, Refused> {
        let (of, to) = (instruction.operand(0).value_type(), instruction.value_type());
        let value = self.operand(instruction, 0)?;
        let (from, to_shape) = (Shape::of(of)?, Shape::of(to)?);
        let class = self.class(instruction);
        if is_brain(of) {
            let (value, _) = self.widened(&value, &from)?;
            return Translated::zip(&[&value], &to_shape, &mut |values, to| match (opcode, to) {
                (Opcode::FP_EXT, Shape::Float(32)) => Ok(values[0].clone()),
                _ => self.convert(opcode, values[0], (&Shape::Float(32), to), class),
            });
        }
        // In what becomes an `f32` exactly, or may be rounded twice.
        Translated::zip(&[&value], &to_shape, &mut |values, _| {
            let element = match &from {
                Shape::Parts(parts) => &parts[0],
                from => from,
            };
            let single = match (opcode, element) {
                (Opcode::FP_TRUNC, Shape::Float(32)) => values[0].scalar(),
                (Opcode::FP_TRUNC, Shape::Float(64)) => self.rounded_to_odd(values[0].scalar()),
                (_, Shape::Bool | Shape::Int(..=24)) => {
                    self.convert(opcode, values[0], (element, &Shape::Float(32)), class)?.scalar()
                }
                (_, Shape::Int(..=53)) => {
                    let double = self.convert(opcode, values[0], (element, &Shape::Float(64)), class)?.scalar();
                    self.rounded_to_odd(double)
                }
                (_, other) => return Err(Refused::new(format!("a conversion of {other:?} to bf16"))),
            };
            Ok(Translated::Scalar(self.narrowed_one(single)))
        })
    }

    /// Translates an intrinsic with operands and a result of bf16. `None` if the result might be wrong.
    pub(super) fn brain_intrinsic(
        &mut self,
        name: &str,
        values: &[Translated],
        shape: &Shape,
    ) -> Result<Option<Translated>, Refused> {
        if ["fma", "fmuladd", "canonicalize"].contains(&name) {
            return Ok(None);
        }
        let wide = values.iter().map(|value| Ok(self.widened(value, shape)?.0)).collect::<Result<Vec<_>, Refused>>()?;
        let result = self.float_intrinsic(name, &wide, &like(shape, Shape::Float(32)))?;
        result.map(|result| self.narrowed(&result, shape)).transpose()
    }
}
