//! Integers of 65 to 128 bits, as two words. Divisions, and conversions from and to floats, were expanded by LLVM before.

use rspirv::spirv::{Op, Word};

use super::function::FunctionTranslator;
use super::function_builder::Std;
use super::integer::Predicate;
use super::module_builder::Scalar;
use super::value::Translated;
use crate::llvm::Opcode;
use crate::refused::Refused;

/// Low and high word.
type Pair = (Word, Word);

impl FunctionTranslator<'_, '_, '_> {
    fn word(&mut self, op: Op, a: Word, b: Word) -> Word {
        self.code.int(op, 64, &[a, b])
    }

    /// One if the condition holds.
    fn carry(&mut self, condition: Word) -> Word {
        let (one, zero) = (self.code.integer(64, 1), self.code.integer(64, 0));
        self.code.select(Scalar::Int(64), condition, one, zero)
    }

    pub(super) fn wide_arithmetic(
        &mut self,
        opcode: Opcode,
        a: Pair,
        b: Pair,
        width: u32,
    ) -> Result<Translated, Refused> {
        let (low, high) = match opcode {
            Opcode::ADD => {
                let low = self.word(Op::IAdd, a.0, b.0);
                let carry = self.code.test(Op::ULessThan, &[low, a.0]);
                let carry = self.carry(carry);
                let high = self.word(Op::IAdd, a.1, b.1);
                (low, self.word(Op::IAdd, high, carry))
            }
            Opcode::SUB => {
                let low = self.word(Op::ISub, a.0, b.0);
                let borrow = self.code.test(Op::ULessThan, &[a.0, b.0]);
                let borrow = self.carry(borrow);
                let high = self.word(Op::ISub, a.1, b.1);
                (low, self.word(Op::ISub, high, borrow))
            }
            Opcode::MUL => self.wide_product(a, b),
            Opcode::AND => (self.word(Op::BitwiseAnd, a.0, b.0), self.word(Op::BitwiseAnd, a.1, b.1)),
            Opcode::OR => (self.word(Op::BitwiseOr, a.0, b.0), self.word(Op::BitwiseOr, a.1, b.1)),
            Opcode::XOR => (self.word(Op::BitwiseXor, a.0, b.0), self.word(Op::BitwiseXor, a.1, b.1)),
            Opcode::SHL => self.wide_shift_left(a, b.0),
            Opcode::LSHR => self.wide_shift_right(a, b.0, Op::ShiftRightLogical),
            Opcode::ASHR => {
                let a = self.wide_sign_extended(a, width);
                self.wide_shift_right(a, b.0, Op::ShiftRightArithmetic)
            }
            _ => return Err(Refused::new(format!("a division of integers of {width} bits"))),
        };
        Ok(self.cut_wide((low, high), width))
    }

    fn wide_product(&mut self, a: Pair, b: Pair) -> Pair {
        let low = self.word(Op::IMul, a.0, b.0);
        let high = self.code.extended(Std::u_mul_hi, Scalar::Int(64), &[a.0, b.0]);
        let (first, second) = (self.word(Op::IMul, a.0, b.1), self.word(Op::IMul, a.1, b.0));
        let high = self.word(Op::IAdd, high, first);
        (low, self.word(Op::IAdd, high, second))
    }

    /// A shift distance modulo 64, its complement to 63, and whether the distance is 64 or more.
    fn distance(&mut self, distance: Word) -> (Word, Word, Word) {
        let (most, word, zero) = (self.code.integer(64, 63), self.code.integer(64, 64), self.code.integer(64, 0));
        let within = self.word(Op::BitwiseAnd, distance, most);
        let rest = self.word(Op::BitwiseXor, within, most);
        let beyond = self.word(Op::BitwiseAnd, distance, word);
        (within, rest, self.code.test(Op::INotEqual, &[beyond, zero]))
    }

    fn wide_shift_left(&mut self, a: Pair, distance: Word) -> Pair {
        let (within, rest, is_far) = self.distance(distance);
        let (one, zero) = (self.code.integer(64, 1), self.code.integer(64, 0));
        let low = self.word(Op::ShiftLeftLogical, a.0, within);
        let high = self.word(Op::ShiftLeftLogical, a.1, within);
        // In two steps: a shift by 64 is not defined.
        let carried = self.word(Op::ShiftRightLogical, a.0, one);
        let carried = self.word(Op::ShiftRightLogical, carried, rest);
        let high = self.word(Op::BitwiseOr, high, carried);
        let high = self.code.select(Scalar::Int(64), is_far, low, high);
        (self.code.select(Scalar::Int(64), is_far, zero, low), high)
    }

    pub(super) fn wide_shift_right(&mut self, a: Pair, distance: Word, op: Op) -> Pair {
        let (within, rest, is_far) = self.distance(distance);
        let (one, most) = (self.code.integer(64, 1), self.code.integer(64, 63));
        let high = self.word(op, a.1, within);
        let low = self.word(Op::ShiftRightLogical, a.0, within);
        let carried = self.word(Op::ShiftLeftLogical, a.1, one);
        let carried = self.word(Op::ShiftLeftLogical, carried, rest);
        let low = self.word(Op::BitwiseOr, low, carried);
        let above = if op == Op::ShiftRightLogical { self.code.integer(64, 0) } else { self.word(op, a.1, most) };
        let low = self.code.select(Scalar::Int(64), is_far, high, low);
        (low, self.code.select(Scalar::Int(64), is_far, above, high))
    }

    /// Sets the bits above the width to zero.
    pub(super) fn cut_wide(&mut self, (low, high): Pair, width: u32) -> Translated {
        if width == 128 {
            return Translated::Wide(low, high);
        }
        let mask = self.code.integer(64, (1 << (width - 64)) - 1);
        Translated::Wide(low, self.word(Op::BitwiseAnd, high, mask))
    }

    /// Sets the bits above the width to the sign.
    pub(super) fn wide_sign_extended(&mut self, (low, high): Pair, width: u32) -> Pair {
        if width == 128 {
            return (low, high);
        }
        let distance = self.code.integer(64, u64::from(128 - width));
        let shifted = self.word(Op::ShiftLeftLogical, high, distance);
        (low, self.word(Op::ShiftRightArithmetic, shifted, distance))
    }

    pub(super) fn compare_wide(&mut self, predicate: Predicate, a: Pair, b: Pair, width: u32) -> Word {
        use Predicate::*;
        let (op, low_op, a, b) = match predicate {
            Equal | NotEqual => {
                let low = self.code.test(Op::IEqual, &[a.0, b.0]);
                let high = self.code.test(Op::IEqual, &[a.1, b.1]);
                let equal = self.code.test(Op::LogicalAnd, &[low, high]);
                let is_negated = predicate == NotEqual;
                return if is_negated { self.code.test(Op::LogicalNot, &[equal]) } else { equal };
            }
            Less => (Op::ULessThan, Op::ULessThan, a, b),
            LessEqual => (Op::ULessThan, Op::ULessThanEqual, a, b),
            Greater => (Op::ULessThan, Op::ULessThan, b, a),
            GreaterEqual => (Op::ULessThan, Op::ULessThanEqual, b, a),
            SignedLess => (Op::SLessThan, Op::ULessThan, a, b),
            SignedLessEqual => (Op::SLessThan, Op::ULessThanEqual, a, b),
            SignedGreater => (Op::SLessThan, Op::ULessThan, b, a),
            SignedGreaterEqual => (Op::SLessThan, Op::ULessThanEqual, b, a),
        };
        let is_signed = op == Op::SLessThan;
        let a = if is_signed { self.wide_sign_extended(a, width) } else { a };
        let b = if is_signed { self.wide_sign_extended(b, width) } else { b };
        let high = self.code.test(op, &[a.1, b.1]);
        let same = self.code.test(Op::IEqual, &[a.1, b.1]);
        let low = self.code.test(low_op, &[a.0, b.0]);
        let low = self.code.test(Op::LogicalAnd, &[same, low]);
        self.code.test(Op::LogicalOr, &[high, low])
    }
}
