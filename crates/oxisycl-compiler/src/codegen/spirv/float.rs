//! Floating-point arithmetic, comparisons and intrinsics.
//!
//! Kernels are compiled with contraction off. Where a product and a sum may become one operation, they become `mad`, which rounds
//! once or twice as the device does faster. They stay apart where that would cost more than it saves (`divergent`). Functions of mathematics are
//! those of the device library, as on every target; here are the operations that OpenCL defines exactly.

use rspirv::dr::Operand;
use rspirv::spirv::{Decoration, FPFastMathMode, Op, Word};
use rustc_hash::FxHashSet;

use super::bfloat16::is_brain;
use super::function::FunctionTranslator;
use super::function_builder::Std;
use super::module_builder::Scalar;
use super::value::{Shape, Translated};
use crate::llvm::{Block, Opcode, Value};
use crate::refused::Refused;

// The bits of `LLVMFastMathFlags`.
const NO_SIGNED_ZEROS: u32 = 1 << 3;
const ALLOW_RECIPROCAL: u32 = 1 << 4;
const ALLOW_CONTRACT: u32 = 1 << 5;

fn may_contract(value: Value<'_>) -> bool {
    value.fast_math() & ALLOW_CONTRACT != 0
}

/// The fast-math flags of an instruction. They never assume the absence of NaNs and infinities; see [`float`](crate::passes::float_policy).
fn fast_math(value: Value<'_>) -> FPFastMathMode {
    let flags = value.fast_math();
    let modes = [(NO_SIGNED_ZEROS, FPFastMathMode::NSZ), (ALLOW_RECIPROCAL, FPFastMathMode::ALLOW_RECIP)];
    modes.into_iter().filter(|(flag, _)| flags & flag != 0).fold(FPFastMathMode::NONE, |all, (_, mode)| all | mode)
}

impl<'c> FunctionTranslator<'_, '_, 'c> {
    /// Finds products that only sums use, all of which may be rounded once with them. A product of two sums is computed in both: that is no
    /// more than the sums alone. Sums in the blocks of `divergent` loops stay sums.
    pub(super) fn find_fused(&mut self, instructions: &[Value<'c>], divergent: &FxHashSet<Block<'c>>) {
        let mut sums: FxHashSet<Value<'c>> = FxHashSet::default();
        for &product in instructions {
            if !product.is(Opcode::FMUL) || !may_contract(product) || is_brain(product.value_type()) {
                continue;
            }
            let users = product.users();
            let is_sum = |&user: &Value<'c>| (user.is(Opcode::FADD) || user.is(Opcode::FSUB)) && may_contract(user);
            let is_double = |user: &Value<'c>| (0..2).all(|index| user.operand(index) == product);
            let has_place =
                |user: &Value<'c>| !sums.contains(user) && !is_double(user) && !divergent.contains(&user.block());
            if !users.is_empty() && users.iter().all(|user| is_sum(user) && has_place(user)) {
                sums.extend(users);
                self.fused.insert(product);
            }
        }
    }

    pub(super) fn float_arithmetic(&mut self, instruction: Value<'c>, opcode: Opcode) -> Result<Translated, Refused> {
        if self.fused.contains(&instruction) {
            return Ok(Translated::Nothing);
        }
        let shape = Shape::of(instruction.value_type())?;
        if let Some(index) =
            (0..2).find(|&index| opcode != Opcode::FNEG && self.fused.contains(&instruction.operand(index)))
        {
            return self.fused_arithmetic(instruction, index, &shape);
        }
        let mut operands: Vec<_> =
            instruction.operands().into_iter().map(|operand| self.value(operand)).collect::<Result<_, _>>()?;
        let is_brain = is_brain(instruction.value_type());
        let mut computed = shape.clone();
        if is_brain {
            for operand in &mut operands {
                (*operand, computed) = self.widened(operand, &shape)?;
            }
        }
        let mode = fast_math(instruction);
        let result = Translated::zip(&operands.iter().collect::<Vec<_>>(), &computed, &mut |values, shape| {
            let scalar = float(shape)?;
            let ids: Vec<_> = values.iter().map(|value| value.scalar()).collect();
            let op = match opcode {
                Opcode::FADD => Op::FAdd,
                Opcode::FSUB => Op::FSub,
                Opcode::FMUL => Op::FMul,
                Opcode::FDIV => Op::FDiv,
                Opcode::FNEG => Op::FNegate,
                _ => return Ok(Translated::Scalar(self.code.extended(Std::fmod, scalar, &ids))),
            };
            let result = self.code.op(op, scalar, &ids);
            if mode != FPFastMathMode::NONE && op != Op::FNegate {
                self.code.writer.decorate(result, Decoration::FPFastMathMode, [Operand::FPFastMathMode(mode)]);
            }
            Ok(Translated::Scalar(result))
        })?;
        if is_brain { self.narrowed(&result, &shape) } else { Ok(result) }
    }

    /// Translates a sum or difference with a product as its operand `index`.
    fn fused_arithmetic(&mut self, sum: Value<'c>, index: u32, shape: &Shape) -> Result<Translated, Refused> {
        let product = sum.operand(index);
        let (a, b) = (self.operand(product, 0)?, self.operand(product, 1)?);
        let other = self.operand(sum, 1 - index)?;
        let is_difference = sum.is(Opcode::FSUB);
        Translated::zip(&[&a, &b, &other], shape, &mut |values, shape| {
            let scalar = float(shape)?;
            let (mut a, b, mut other) = (values[0].scalar(), values[1].scalar(), values[2].scalar());
            if is_difference && index == 0 {
                other = self.code.op(Op::FNegate, scalar, &[other]);
            } else if is_difference {
                a = self.code.op(Op::FNegate, scalar, &[a]);
            }
            Ok(Translated::Scalar(self.code.extended(Std::mad, scalar, &[a, b, other])))
        })
    }

    /// `fcmp` of LLVM.
    pub(super) fn compare_floats(&mut self, instruction: Value<'c>) -> Result<Translated, Refused> {
        let (mut a, mut b) = (self.operand(instruction, 0)?, self.operand(instruction, 1)?);
        let of = instruction.operand(0).value_type();
        let shape = Shape::of(of)?;
        if is_brain(of) {
            (a, b) = (self.widened(&a, &shape)?.0, self.widened(&b, &shape)?.0);
        }
        // In the order of `LLVMRealPredicate`, from 1 to 14.
        const OPS: [Op; 14] = [
            Op::FOrdEqual,
            Op::FOrdGreaterThan,
            Op::FOrdGreaterThanEqual,
            Op::FOrdLessThan,
            Op::FOrdLessThanEqual,
            Op::FOrdNotEqual,
            Op::Ordered,
            Op::Unordered,
            Op::FUnordEqual,
            Op::FUnordGreaterThan,
            Op::FUnordGreaterThanEqual,
            Op::FUnordLessThan,
            Op::FUnordLessThanEqual,
            Op::FUnordNotEqual,
        ];
        let predicate = instruction.float_predicate();
        Translated::zip(&[&a, &b], &shape, &mut |values, _| {
            Ok(Translated::Scalar(match predicate {
                1..=14 => self.code.test(OPS[predicate as usize - 1], &[values[0].scalar(), values[1].scalar()]),
                other => self.code.boolean(other != 0),
            }))
        })
    }

    /// A floating-point intrinsic, by its name without `llvm.` and types. `None` if there is none of that name.
    pub(super) fn float_intrinsic(
        &mut self,
        name: &str,
        values: &[Translated],
        shape: &Shape,
    ) -> Result<Option<Translated>, Refused> {
        let instruction = match name {
            "sqrt" => Std::sqrt,
            "fabs" => Std::fabs,
            "floor" => Std::floor,
            "ceil" => Std::ceil,
            "trunc" => Std::trunc,
            "rint" | "nearbyint" | "roundeven" => Std::rint,
            "round" => Std::round,
            "copysign" => Std::copysign,
            "fma" => Std::fma,
            "fmuladd" => Std::mad,
            "minnum" | "minimumnum" => Std::fmin,
            "maxnum" | "maximumnum" => Std::fmax,
            "minimum" | "maximum" => {
                let (a, b) = (&values[0], &values[1]);
                let result = Translated::zip(&[a, b], shape, &mut |values, shape| {
                    let is_less = name == "minimum";
                    Ok(Translated::Scalar(self.strict_extremum(
                        is_less,
                        values[0].scalar(),
                        values[1].scalar(),
                        shape,
                    )?))
                });
                return result.map(Some);
            }
            "canonicalize" => {
                let result = Translated::zip(&[&values[0]], shape, &mut |values, shape| {
                    let scalar = float(shape)?;
                    let one = self.one(scalar);
                    Ok(Translated::Scalar(self.code.op(Op::FMul, scalar, &[values[0].scalar(), one])))
                });
                return result.map(Some);
            }
            _ => return Ok(None),
        };
        let values: Vec<_> = values.iter().collect();
        let result = Translated::zip(&values, shape, &mut |values, shape| {
            let ids: Vec<_> = values.iter().map(|value| value.scalar()).collect();
            Ok(Translated::Scalar(self.code.extended(instruction, float(shape)?, &ids)))
        });
        result.map(Some)
    }

    fn one(&mut self, scalar: Scalar) -> Word {
        match scalar {
            Scalar::Float(16) => self.code.writer.float(16, 0x3C00),
            Scalar::Float(32) => self.code.writer.float(32, u64::from(1f32.to_bits())),
            _ => self.code.writer.float(64, 1f64.to_bits()),
        }
    }

    /// The minimum or maximum of two numbers. NaN wins, and negative zero is less than positive zero.
    fn strict_extremum(&mut self, is_less: bool, a: Word, b: Word, shape: &Shape) -> Result<Word, Refused> {
        let scalar = float(shape)?;
        let Scalar::Float(width) = scalar else { unreachable!("`float` gives floats") };
        let op = if is_less { Op::FOrdLessThan } else { Op::FOrdGreaterThan };
        let first = self.code.test(op, &[a, b]);
        let chosen = self.code.select(scalar, first, a, b);
        // Equal ones differ in the sign of zero at most.
        let (a_bits, b_bits) = (self.code.int(Op::Bitcast, width, &[a]), self.code.int(Op::Bitcast, width, &[b]));
        let join = if is_less { Op::BitwiseOr } else { Op::BitwiseAnd };
        let joined = self.code.int(join, width, &[a_bits, b_bits]);
        let joined = self.code.op(Op::Bitcast, scalar, &[joined]);
        let equal = self.code.test(Op::FOrdEqual, &[a, b]);
        let chosen = self.code.select(scalar, equal, joined, chosen);
        let sum = self.code.op(Op::FAdd, scalar, &[a, b]);
        let unordered = self.code.test(Op::Unordered, &[a, b]);
        Ok(self.code.select(scalar, unordered, sum, chosen))
    }

    /// `is.fpclass`: whether the value is of one of the classes in the mask.
    pub(super) fn is_of_class(&mut self, value: Word, mask: u64, shape: &Shape) -> Result<Word, Refused> {
        let Scalar::Float(width) = float(shape)? else { unreachable!("`float` gives floats") };
        let mantissa = match width {
            16 => 10,
            32 => 23,
            _ => 52,
        };
        let magnitude_mask = (1u64 << (width - 1)) - 1;
        let infinity = magnitude_mask >> mantissa << mantissa;
        let quiet = infinity | 1 << (mantissa - 1);
        let smallest_normal = 1u64 << mantissa;
        let bits = self.code.int(Op::Bitcast, width, &[value]);
        let all = self.code.integer(width, magnitude_mask);
        let magnitude = self.code.int(Op::BitwiseAnd, width, &[bits, all]);
        let zero = self.code.integer(width, 0);
        let is_negative = self.code.test(Op::SLessThan, &[bits, zero]);
        let is_positive = self.code.test(Op::LogicalNot, &[is_negative]);
        // First and one past the last magnitude of a class, and its bits in the mask: negative, positive.
        let classes = [
            (0, 1, 5, 6),
            (1, smallest_normal, 4, 7),
            (smallest_normal, infinity, 3, 8),
            (infinity, infinity + 1, 2, 9),
            (infinity + 1, quiet, 0, 0),
            (quiet, magnitude_mask + 1, 1, 1),
        ];
        let mut result = self.code.boolean(false);
        for (first, end, negative, positive) in classes {
            let wanted = (mask >> negative & 1 != 0, mask >> positive & 1 != 0);
            if wanted == (false, false) {
                continue;
            }
            let (first, count) = (self.code.integer(width, first), self.code.integer(width, end - first));
            let position = self.code.int(Op::ISub, width, &[magnitude, first]);
            let mut is_in = self.code.test(Op::ULessThan, &[position, count]);
            if wanted != (true, true) {
                let sign = if wanted.0 { is_negative } else { is_positive };
                is_in = self.code.test(Op::LogicalAnd, &[is_in, sign]);
            }
            result = self.code.test(Op::LogicalOr, &[result, is_in]);
        }
        Ok(result)
    }
}

/// The type of a floating-point value.
fn float(shape: &Shape) -> Result<Scalar, Refused> {
    match shape {
        Shape::Float(width) => Ok(Scalar::Float(*width)),
        other => Err(Refused::new(format!("floating-point arithmetic on {other:?}"))),
    }
}
