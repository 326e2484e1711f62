//! Integer arithmetic and comparisons, for every width up to 128 bits.
//!
//! Everything else about integers (`overflow`, `bits`) is written with the operations here, so that it holds for narrow, odd and wide
//! ones alike. Results are brought back to their width: what lies above it in the register is zero.

use rspirv::spirv::{Op, Word};

use super::function::FunctionTranslator;
use super::module_builder::Scalar;
use super::value::{Shape, Translated, container};
use crate::llvm::{Opcode, Value};
use crate::refused::Refused;

/// A comparison of integers. The numbers are those of `LLVMIntPredicate`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Predicate {
    Equal = 32,
    NotEqual = 33,
    Greater = 34,
    GreaterEqual = 35,
    Less = 36,
    LessEqual = 37,
    SignedGreater = 38,
    SignedGreaterEqual = 39,
    SignedLess = 40,
    SignedLessEqual = 41,
}

impl Predicate {
    fn of(number: i32) -> Self {
        use Predicate::*;
        const ALL: [Predicate; 10] = [
            Equal,
            NotEqual,
            Greater,
            GreaterEqual,
            Less,
            LessEqual,
            SignedGreater,
            SignedGreaterEqual,
            SignedLess,
            SignedLessEqual,
        ];
        ALL.into_iter().find(|predicate| *predicate as i32 == number).expect("LLVM has these predicates")
    }

    fn is_signed(self) -> bool {
        self as i32 >= Self::SignedGreater as i32
    }

    fn op(self) -> Op {
        match self {
            Self::Equal => Op::IEqual,
            Self::NotEqual => Op::INotEqual,
            Self::Greater => Op::UGreaterThan,
            Self::GreaterEqual => Op::UGreaterThanEqual,
            Self::Less => Op::ULessThan,
            Self::LessEqual => Op::ULessThanEqual,
            Self::SignedGreater => Op::SGreaterThan,
            Self::SignedGreaterEqual => Op::SGreaterThanEqual,
            Self::SignedLess => Op::SLessThan,
            Self::SignedLessEqual => Op::SLessThanEqual,
        }
    }
}

impl<'c> FunctionTranslator<'_, '_, 'c> {
    /// `add` to `xor` of LLVM.
    pub(super) fn integer_arithmetic(&mut self, instruction: Value<'c>, opcode: Opcode) -> Result<Translated, Refused> {
        let (a, b) = (self.operand(instruction, 0)?, self.operand(instruction, 1)?);
        let shape = Shape::of(instruction.value_type())?;
        // Drivers follow sums to tell neighbours in memory, and lose what LLVM knew of the bits.
        let opcode = if instruction.is_disjoint_or() { Opcode::ADD } else { opcode };
        self.arithmetic(opcode, &a, &b, &shape)
    }

    /// `add` to `xor` of LLVM on translated operands, element by element for vectors.
    pub(super) fn arithmetic(
        &mut self,
        opcode: Opcode,
        a: &Translated,
        b: &Translated,
        shape: &Shape,
    ) -> Result<Translated, Refused> {
        Translated::zip(&[a, b], shape, &mut |values, shape| match shape {
            Shape::Bool => {
                Ok(Translated::Scalar(self.boolean_arithmetic(opcode, values[0].scalar(), values[1].scalar())))
            }
            Shape::Wide(width) => self.wide_arithmetic(opcode, values[0].wide(), values[1].wide(), *width),
            Shape::Int(width) => {
                Ok(Translated::Scalar(self.narrow_arithmetic(opcode, values[0].scalar(), values[1].scalar(), *width)))
            }
            other => Err(Refused::new(format!("integer arithmetic on {other:?}"))),
        })
    }

    fn narrow_arithmetic(&mut self, opcode: Opcode, a: Word, b: Word, width: u32) -> Word {
        let held = container(width);
        let (op, signs, overflows) = match opcode {
            Opcode::ADD => (Op::IAdd, (false, false), true),
            Opcode::SUB => (Op::ISub, (false, false), true),
            Opcode::MUL => (Op::IMul, (false, false), true),
            Opcode::UDIV => (Op::UDiv, (false, false), false),
            Opcode::SDIV => (Op::SDiv, (true, true), true),
            Opcode::UREM => (Op::UMod, (false, false), false),
            Opcode::SREM => (Op::SRem, (true, true), true),
            Opcode::SHL => (Op::ShiftLeftLogical, (false, false), true),
            Opcode::LSHR => (Op::ShiftRightLogical, (false, false), false),
            Opcode::ASHR => (Op::ShiftRightArithmetic, (true, false), true),
            Opcode::AND => (Op::BitwiseAnd, (false, false), false),
            Opcode::OR => (Op::BitwiseOr, (false, false), false),
            _ => (Op::BitwiseXor, (false, false), false),
        };
        let a = if signs.0 { self.sign_extended(a, width) } else { a };
        let b = if signs.1 { self.sign_extended(b, width) } else { b };
        let result = self.code.int(op, held, &[a, b]);
        if overflows { self.cut(result, width) } else { result }
    }

    /// Arithmetic of one bit: overflow is dropped, and shifts by anything but zero are undefined.
    fn boolean_arithmetic(&mut self, opcode: Opcode, a: Word, b: Word) -> Word {
        match opcode {
            Opcode::ADD | Opcode::SUB | Opcode::XOR => self.code.test(Op::LogicalNotEqual, &[a, b]),
            Opcode::MUL | Opcode::AND => self.code.test(Op::LogicalAnd, &[a, b]),
            Opcode::OR => self.code.test(Op::LogicalOr, &[a, b]),
            Opcode::UREM | Opcode::SREM => self.code.boolean(false),
            _ => a,
        }
    }

    /// Sets the bits above the width to zero.
    pub(super) fn cut(&mut self, value: Word, width: u32) -> Word {
        let held = container(width);
        if held == width {
            return value;
        }
        let mask = self.code.integer(held, (1 << width) - 1);
        self.code.int(Op::BitwiseAnd, held, &[value, mask])
    }

    /// Sets the bits above the width to the sign.
    pub(super) fn sign_extended(&mut self, value: Word, width: u32) -> Word {
        let held = container(width);
        if held == width {
            return value;
        }
        let distance = self.code.integer(held, u64::from(held - width));
        let shifted = self.code.int(Op::ShiftLeftLogical, held, &[value, distance]);
        self.code.int(Op::ShiftRightArithmetic, held, &[shifted, distance])
    }

    /// `icmp` of LLVM.
    pub(super) fn compare_integers(&mut self, instruction: Value<'c>) -> Result<Translated, Refused> {
        let predicate = Predicate::of(instruction.predicate());
        let (a, b) = (self.operand(instruction, 0)?, self.operand(instruction, 1)?);
        let shape = Shape::of(instruction.operand(0).value_type())?;
        Translated::zip(&[&a, &b], &shape, &mut |values, shape| {
            Ok(Translated::Scalar(self.compare(predicate, values[0], values[1], shape)?))
        })
    }

    /// The result of a comparison of two integers or addresses.
    pub(super) fn compare(
        &mut self,
        predicate: Predicate,
        a: &Translated,
        b: &Translated,
        shape: &Shape,
    ) -> Result<Word, Refused> {
        Ok(match shape {
            Shape::Bool => self.compare_booleans(predicate, a.scalar(), b.scalar()),
            Shape::Int(width) => {
                let (mut a, mut b) = (a.scalar(), b.scalar());
                if predicate.is_signed() {
                    (a, b) = (self.sign_extended(a, *width), self.sign_extended(b, *width));
                }
                self.code.test(predicate.op(), &[a, b])
            }
            Shape::Wide(width) => self.compare_wide(predicate, a.wide(), b.wide(), *width),
            Shape::Address => {
                let (a, b) = (self.address_bits(a.address()), self.address_bits(b.address()));
                self.code.test(predicate.op(), &[a, b])
            }
            other => return Err(Refused::new(format!("a comparison of integers of {other:?}"))),
        })
    }

    pub(super) fn equal(&mut self, a: &Translated, b: &Translated, shape: &Shape) -> Result<Word, Refused> {
        self.compare(Predicate::Equal, a, b, shape)
    }

    /// Compares booleans as unsigned numbers 0 and 1, or as signed numbers 0 and -1.
    fn compare_booleans(&mut self, predicate: Predicate, a: Word, b: Word) -> Word {
        use Predicate::*;
        let mut not = |value| self.code.test(Op::LogicalNot, &[value]);
        let (op, a, b) = match predicate {
            Equal => (Op::LogicalEqual, a, b),
            NotEqual => (Op::LogicalNotEqual, a, b),
            Greater | SignedLess => (Op::LogicalAnd, a, not(b)),
            GreaterEqual | SignedLessEqual => (Op::LogicalOr, a, not(b)),
            Less | SignedGreater => (Op::LogicalAnd, not(a), b),
            LessEqual | SignedGreaterEqual => (Op::LogicalOr, not(a), b),
        };
        self.code.test(op, &[a, b])
    }

    /// The generic address as a number.
    pub(super) fn address_bits(&mut self, address: (Word, rspirv::spirv::StorageClass)) -> Word {
        let generic = self.generic(address);
        self.code.op(Op::ConvertPtrToU, Scalar::Int(64), &[generic])
    }

    /// Selects one of two integers.
    pub(super) fn choose(&mut self, condition: Word, yes: &Translated, no: &Translated, shape: &Shape) -> Translated {
        match (yes, no) {
            (Translated::Wide(yes_low, yes_high), Translated::Wide(no_low, no_high)) => {
                let low = self.code.select(Scalar::Int(64), condition, *yes_low, *no_low);
                Translated::Wide(low, self.code.select(Scalar::Int(64), condition, *yes_high, *no_high))
            }
            _ => {
                let scalar = shape.scalars()[0];
                Translated::Scalar(self.code.select(scalar, condition, yes.scalar(), no.scalar()))
            }
        }
    }
}
