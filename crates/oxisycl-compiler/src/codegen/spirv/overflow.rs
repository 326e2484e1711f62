//! Integer intrinsics that are lowered to arithmetic and comparisons. These are overflow, saturation, minimum and maximum, distance from
//! zero, three-way comparison, and funnel shifts.

use rspirv::spirv::{Op, Word};

use super::function::FunctionTranslator;
use super::function_builder::Std;
use super::integer::Predicate;
use super::module_builder::Scalar;
use super::value::{Shape, Translated};
use crate::llvm::Opcode;
use crate::refused::Refused;

/// The width of an integer shape.
fn width_of(shape: &Shape) -> u32 {
    match shape {
        Shape::Bool => 1,
        Shape::Int(width) | Shape::Wide(width) => *width,
        other => unreachable!("LLVM's integer intrinsics are of integers, not of {other:?}"),
    }
}

/// A number with all bits below the width set.
fn ones(width: u32) -> u128 {
    u128::MAX >> (128 - width)
}

impl FunctionTranslator<'_, '_, '_> {
    /// One of `uadd`, `usub`, `umul`, `sadd`, `ssub`, `smul`: the wrapped result, and whether it overflowed.
    pub(super) fn overflowing(
        &mut self,
        name: &str,
        a: &Translated,
        b: &Translated,
        shape: &Shape,
    ) -> Result<(Translated, Word), Refused> {
        let opcode = match &name[1..] {
            "add" => Opcode::ADD,
            "sub" => Opcode::SUB,
            _ => return self.overflowing_product(name == "smul", a, b, shape),
        };
        let result = self.arithmetic(opcode, a, b, shape)?;
        let overflow = match name {
            "uadd" => self.compare(Predicate::Less, &result, a, shape)?,
            "usub" => self.compare(Predicate::Less, a, b, shape)?,
            _ => {
                // The sign of the result differs from what the signs of both operands ask for.
                let first = self.arithmetic(Opcode::XOR, a, &result, shape)?;
                let other = if name == "sadd" { &result } else { a };
                let second = self.arithmetic(Opcode::XOR, b, other, shape)?;
                let both = self.arithmetic(Opcode::AND, &first, &second, shape)?;
                let zero = self.bits(shape, 0);
                self.compare(Predicate::SignedLess, &both, &zero, shape)?
            }
        };
        Ok((result, overflow))
    }

    fn overflowing_product(
        &mut self,
        is_signed: bool,
        a: &Translated,
        b: &Translated,
        shape: &Shape,
    ) -> Result<(Translated, Word), Refused> {
        let result = self.arithmetic(Opcode::MUL, a, b, shape)?;
        let overflow = match shape {
            Shape::Wide(_) if is_signed => return self.overflowing_wide_signed(a, b, shape),
            Shape::Wide(width) => self.wide_product_overflows(a, b, &result, *width),
            // -1 times -1 is 1, which one bit does not hold.
            Shape::Bool if is_signed => result.scalar(),
            Shape::Bool => self.code.boolean(false),
            // The exact product in twice the width, from both halves of a 64-bit multiplication.
            shape => {
                let width = width_of(shape);
                let kind = if is_signed { Opcode::SEXT } else { Opcode::ZEXT };
                let word = Shape::Int(64);
                let (a, b) = (self.convert_int(kind, a, shape, &word), self.convert_int(kind, b, shape, &word));
                let low = self.code.int(Op::IMul, 64, &[a.scalar(), b.scalar()]);
                let high = if is_signed { Std::s_mul_hi } else { Std::u_mul_hi };
                let high = self.code.extended(high, Scalar::Int(64), &[a.scalar(), b.scalar()]);
                let fitting = self.convert_int(Opcode::TRUNC, &Translated::Scalar(low), &word, shape);
                let fitting = self.convert_int(kind, &fitting, shape, &word).scalar();
                let above = if is_signed {
                    let most = self.code.integer(64, 63);
                    self.code.int(Op::ShiftRightArithmetic, 64, &[low, most])
                } else {
                    self.code.integer(64, 0)
                };
                let high_differs = self.code.test(Op::INotEqual, &[high, above]);
                if width == 64 {
                    high_differs
                } else {
                    let low_differs = self.code.test(Op::INotEqual, &[low, fitting]);
                    self.code.test(Op::LogicalOr, &[high_differs, low_differs])
                }
            }
        };
        Ok((result, overflow))
    }

    /// Whether the product of unsigned numbers overflows. `result` is the wrapped product.
    fn wide_product_overflows(&mut self, a: &Translated, b: &Translated, result: &Translated, width: u32) -> Word {
        let ((a_low, a_high), (b_low, b_high)) = (a.wide(), b.wide());
        let zero = self.code.integer(64, 0);
        let a_is_wide = self.code.test(Op::INotEqual, &[a_high, zero]);
        let b_is_wide = self.code.test(Op::INotEqual, &[b_high, zero]);
        let both = self.code.test(Op::LogicalAnd, &[a_is_wide, b_is_wide]);
        // At most one of the cross products is not zero if `both` is false; it must fit into a word, and so must its sum.
        let mut high_product = |a, b| {
            let high = self.code.extended(Std::u_mul_hi, Scalar::Int(64), &[a, b]);
            self.code.test(Op::INotEqual, &[high, zero])
        };
        let (first, second) = (high_product(a_low, b_high), high_product(a_high, b_low));
        let cross = self.code.test(Op::LogicalOr, &[first, second]);
        let low_high = self.code.extended(Std::u_mul_hi, Scalar::Int(64), &[a_low, b_low]);
        let first = self.code.int(Op::IMul, 64, &[a_low, b_high]);
        let second = self.code.int(Op::IMul, 64, &[a_high, b_low]);
        let middle = self.code.int(Op::IAdd, 64, &[first, second]);
        let high = self.code.int(Op::IAdd, 64, &[middle, low_high]);
        let carried = self.code.test(Op::ULessThan, &[high, low_high]);
        let any = self.code.test(Op::LogicalOr, &[both, cross]);
        let any = self.code.test(Op::LogicalOr, &[any, carried]);
        if width == 128 {
            return any;
        }
        let beyond = self.code.test(Op::INotEqual, &[high, result.wide().1]);
        self.code.test(Op::LogicalOr, &[any, beyond])
    }

    /// The product of signed numbers by their magnitudes. It fits if it is below 2^(width-1), or equal to that and negative.
    fn overflowing_wide_signed(
        &mut self,
        a: &Translated,
        b: &Translated,
        shape: &Shape,
    ) -> Result<(Translated, Word), Refused> {
        let (magnitude_a, magnitude_b) = (self.absolute(a, shape)?, self.absolute(b, shape)?);
        let (product, overflow) = self.overflowing_product(false, &magnitude_a, &magnitude_b, shape)?;
        let signs = self.arithmetic(Opcode::XOR, a, b, shape)?;
        let zero = self.bits(shape, 0);
        let is_negative = self.compare(Predicate::SignedLess, &signs, &zero, shape)?;
        let negated = self.arithmetic(Opcode::SUB, &zero, &product, shape)?;
        let result = self.choose(is_negative, &negated, &product, shape);
        let half = 1 << (width_of(shape) - 1);
        let (limit, positive_limit) = (self.bits(shape, half), self.bits(shape, half - 1));
        let limit = self.choose(is_negative, &limit, &positive_limit, shape);
        let is_beyond = self.compare(Predicate::Greater, &product, &limit, shape)?;
        Ok((result, self.code.test(Op::LogicalOr, &[overflow, is_beyond])))
    }

    /// Saturating addition and subtraction.
    pub(super) fn saturating(
        &mut self,
        name: &str,
        a: &Translated,
        b: &Translated,
        shape: &Shape,
    ) -> Result<Translated, Refused> {
        let (result, overflow) = self.overflowing(name, a, b, shape)?;
        let width = width_of(shape);
        let limit = match name {
            "uadd" => self.bits(shape, ones(width)),
            "usub" => self.bits(shape, 0),
            _ => {
                let zero = self.bits(shape, 0);
                let is_negative = self.compare(Predicate::SignedLess, a, &zero, shape)?;
                let (least, greatest) = (self.bits(shape, 1 << (width - 1)), self.bits(shape, ones(width) >> 1));
                self.choose(is_negative, &least, &greatest, shape)
            }
        };
        Ok(self.choose(overflow, &limit, &result, shape))
    }

    /// `umin`, `umax`, `smin` and `smax`.
    pub(super) fn extremum(
        &mut self,
        name: &str,
        a: &Translated,
        b: &Translated,
        shape: &Shape,
    ) -> Result<Translated, Refused> {
        let predicate = match name {
            "umin" => Predicate::Less,
            "umax" => Predicate::Greater,
            "smin" => Predicate::SignedLess,
            _ => Predicate::SignedGreater,
        };
        let first = self.compare(predicate, a, b, shape)?;
        Ok(self.choose(first, a, b, shape))
    }

    /// The absolute value.
    pub(super) fn absolute(&mut self, a: &Translated, shape: &Shape) -> Result<Translated, Refused> {
        let zero = self.bits(shape, 0);
        let is_negative = self.compare(Predicate::SignedLess, a, &zero, shape)?;
        let negated = self.arithmetic(Opcode::SUB, &zero, a, shape)?;
        Ok(self.choose(is_negative, &negated, a, shape))
    }

    /// Three-way comparison: -1, 0 or 1.
    pub(super) fn three_way(
        &mut self,
        is_signed: bool,
        (a, b): (&Translated, &Translated),
        shape: &Shape,
        result: &Shape,
    ) -> Result<Translated, Refused> {
        let predicate = if is_signed { Predicate::SignedLess } else { Predicate::Less };
        let (less, greater) = (self.compare(predicate, a, b, shape)?, self.compare(predicate, b, a, shape)?);
        let (zero, one) = (self.bits(result, 0), self.bits(result, 1));
        let minus_one = self.bits(result, ones(width_of(result)));
        let not_less = self.choose(greater, &one, &zero, result);
        Ok(self.choose(less, &minus_one, &not_less, result))
    }

    /// Funnel shifts, `fshl` and `fshr`: the upper or lower half of two numbers that were shifted as one.
    pub(super) fn funnel_shift(
        &mut self,
        is_left: bool,
        [a, b, distance]: [&Translated; 3],
        shape: &Shape,
    ) -> Result<Translated, Refused> {
        let width = width_of(shape);
        if *shape == Shape::Bool {
            return Ok(if is_left { a.clone() } else { b.clone() });
        }
        let modulus = self.bits(shape, u128::from(width));
        let distance = if width.is_power_of_two() {
            let mask = self.bits(shape, u128::from(width - 1));
            self.arithmetic(Opcode::AND, distance, &mask, shape)?
        } else if matches!(shape, Shape::Int(_)) {
            self.arithmetic(Opcode::UREM, distance, &modulus, shape)?
        } else {
            return Err(Refused::new(format!("a funnel shift of {width} bits")));
        };
        let (one, most) = (self.bits(shape, 1), self.bits(shape, u128::from(width - 1)));
        let rest = self.arithmetic(Opcode::SUB, &most, &distance, shape)?;
        // The other number is shifted in two steps: a shift by the whole width is not defined.
        let (near, far, to_near, to_far) =
            if is_left { (a, b, Opcode::SHL, Opcode::LSHR) } else { (b, a, Opcode::LSHR, Opcode::SHL) };
        let near = self.arithmetic(to_near, near, &distance, shape)?;
        let far = self.arithmetic(to_far, far, &one, shape)?;
        let far = self.arithmetic(to_far, &far, &rest, shape)?;
        self.arithmetic(Opcode::OR, &near, &far, shape)
    }
}
