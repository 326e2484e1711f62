//! Instructions: one scalar instruction where all lanes agree, else one on vectors.

use super::borders::is_question;
use super::emitter::{Emitter, Mask, Rule};
use super::shape::Shape;
use super::singly::is_made_singly;
use crate::llvm::{Opcode, TypeKind, Value};

/// Calls that only say something to LLVM about single work-items. Vector code drops them.
const NOTES: [&str; 5] =
    ["llvm.lifetime.", "llvm.assume", "llvm.experimental.noalias.scope.decl", "llvm.dbg.", "llvm.donothing"];

/// Intrinsics that act on each element of vectors of one type.
pub(super) const ELEMENTWISE: [&str; 41] = [
    "sqrt",
    "fma",
    "fmuladd",
    "fabs",
    "copysign",
    "minnum",
    "maxnum",
    "minimum",
    "maximum",
    "minimumnum",
    "maximumnum",
    "floor",
    "ceil",
    "trunc",
    "rint",
    "nearbyint",
    "round",
    "roundeven",
    "smin",
    "smax",
    "umin",
    "umax",
    "fshl",
    "fshr",
    "bswap",
    "bitreverse",
    "ctpop",
    "sadd.sat",
    "ssub.sat",
    "uadd.sat",
    "usub.sat",
    "sadd.with.overflow",
    "ssub.with.overflow",
    "smul.with.overflow",
    "uadd.with.overflow",
    "usub.with.overflow",
    "umul.with.overflow",
    "ctlz",
    "cttz",
    "abs",
    "canonicalize",
];
/// Intrinsics that act on each element, of another type than the result.
pub(super) const CONVERTING: [&str; 5] = ["fptosi.sat", "fptoui.sat", "is.fpclass", "scmp", "ucmp"];
/// Intrinsics whose last argument is a constant for all elements.
const WITH_CONSTANT: [&str; 4] = ["ctlz", "cttz", "abs", "is.fpclass"];

/// Whether a call is one of the [`NOTES`].
pub(super) fn is_note(call: Value<'_>) -> bool {
    call.callee().is_some_and(|callee| NOTES.iter().any(|note| callee.name().starts_with(note)))
}

/// The name of an intrinsic that acts on each element, without `llvm.` and its types.
pub(crate) fn elementwise(call: Value<'_>) -> Option<&'static str> {
    let callee = call.callee().filter(|callee| callee.intrinsic().is_some())?;
    let name = callee.name().strip_prefix("llvm.")?;
    let is_it = |known: &&&str| {
        name.strip_prefix(**known).is_some_and(|types| {
            types
                .split('.')
                .skip(1)
                .all(|of| of.starts_with(['i', 'f']) && of[1..].bytes().all(|digit| digit.is_ascii_digit()))
                && types.starts_with('.')
        })
    };
    ELEMENTWISE.iter().chain(&CONVERTING).find(is_it).copied()
}

/// Whether an operation is undefined for some divisors.
pub(super) fn is_division(opcode: Opcode) -> bool {
    matches!(opcode, Opcode::UDIV | Opcode::SDIV | Opcode::UREM | Opcode::SREM)
}

/// Whether an operation has two operands and acts on each element of vectors.
pub(super) fn is_binary(opcode: Opcode) -> bool {
    let floats = [Opcode::FADD, Opcode::FSUB, Opcode::FMUL, Opcode::FDIV, Opcode::FREM];
    opcode.is_integer_arithmetic() || floats.contains(&opcode)
}

impl<'c> Emitter<'c, '_> {
    /// Makes an instruction that is no phi and ends no block, for the lanes of `mask`.
    pub(super) fn instruction(&mut self, instruction: Value<'c>, mask: Mask<'c>) {
        if is_note(instruction) {
            return;
        }
        if is_question(instruction) {
            return self.answer(instruction);
        }
        let Some(opcode) = instruction.opcode() else { return };
        let shape = self.shape(instruction);
        if opcode == Opcode::SELECT && shape != Shape::Varying && self.shape(instruction.operand(0)) != Shape::Uniform {
            // Both values are the same one.
            let value = self.raw(instruction.operand(1));
            return self.define(instruction, value);
        }
        match (opcode, shape) {
            _ if is_made_singly(instruction) && (shape == Shape::Varying || instruction.is_atomic()) => {
                self.singly(instruction, mask);
            }
            (Opcode::FENCE, _) => self.scalar(instruction),
            (Opcode::STORE, _) => self.store(instruction, mask),
            (Opcode::ALLOCA, _) => self.private_variable(instruction),
            (Opcode::LOAD, Shape::Varying) => self.load(instruction, mask),
            (_, Shape::Varying) => {
                let value = self.widen(opcode, instruction, mask);
                value.copy_flags(instruction);
                self.define(instruction, value);
            }
            (_, Shape::Affine(_)) => {
                let value = self.first_of_affine(opcode, instruction);
                self.define(instruction, value);
            }
            _ => self.scalar(instruction),
        }
    }

    /// Makes one instruction for all lanes.
    fn scalar(&mut self, instruction: Value<'c>) {
        let operands = instruction.operands();
        if let Some(opcode) = instruction.opcode()
            && operands.iter().any(|operand| matches!(self.shape(*operand), Shape::Affine(_)))
        {
            // Such as a difference of two whose lanes are as far apart.
            let value = self.first_of_affine(opcode, instruction);
            return self.define(instruction, value);
        }
        let copy = instruction.copy();
        for (index, operand) in operands.into_iter().enumerate() {
            if !operand.is_constant() {
                copy.set_operand(index as u32, self.raw(operand));
            }
        }
        self.builder.insert(copy);
        self.places.set(copy, instruction);
        if instruction.is(Opcode::LOAD) {
            // Scopes that were declared within a work-item say nothing about several of them.
            copy.unmark("alias.scope");
            copy.unmark("noalias");
        }
        self.define(instruction, copy);
    }

    /// Makes the scalar of lane 0 of a value whose lanes are a constant distance apart. Lane 0 may not be active, so that no flag holds.
    fn first_of_affine(&mut self, opcode: Opcode, instruction: Value<'c>) -> Value<'c> {
        let operands: Vec<_> = instruction.operands().into_iter().map(|operand| self.raw(operand)).collect();
        let builder = &self.builder;
        match opcode {
            // A sum, since the operands have no bits in common in active lanes.
            Opcode::OR => builder.add(operands[0], operands[1]),
            Opcode::FREEZE => builder.freeze(operands[0]),
            Opcode::SELECT => builder.select(operands[0], operands[1], operands[2]),
            Opcode::GET_ELEMENT_PTR => builder.address(instruction.gep_type(), operands[0], &operands[1..]),
            _ if opcode.is_cast() => builder.cast(opcode, operands[0], instruction.value_type()),
            _ => builder.binary(opcode, operands[0], operands[1]),
        }
    }

    /// Makes an instruction on vectors.
    fn widen(&mut self, opcode: Opcode, instruction: Value<'c>, mask: Mask<'c>) -> Value<'c> {
        let operand = |index| instruction.operand(index);
        match opcode {
            Opcode::CALL => self.call(instruction),
            Opcode::SELECT => {
                let condition = self.scalar_or_vector(operand(0));
                let (yes, no) = (self.vector(operand(1)), self.vector(operand(2)));
                self.builder.select(condition, yes, no)
            }
            Opcode::GET_ELEMENT_PTR => {
                let operands: Vec<_> =
                    instruction.operands().into_iter().map(|operand| self.scalar_or_vector(operand)).collect();
                self.builder.address(instruction.gep_type(), operands[0], &operands[1..])
            }
            Opcode::INTEGER_COMPARISON => {
                let (left, right) = (self.vector(operand(0)), self.vector(operand(1)));
                self.builder.compare(instruction.predicate(), left, right)
            }
            Opcode::FCMP => {
                let (left, right) = (self.vector(operand(0)), self.vector(operand(1)));
                self.builder.compare_floats(instruction.float_predicate(), left, right)
            }
            Opcode::FNEG => {
                let value = self.vector(operand(0));
                self.builder.negate_float(value)
            }
            Opcode::FREEZE => {
                let value = self.vector(operand(0));
                self.builder.freeze(value)
            }
            Opcode::EXTRACT_VALUE => {
                let value = self.raw(operand(0));
                self.builder.extract_member(value, instruction.positions()[0])
            }
            _ if opcode.is_cast() => {
                let value = self.vector(operand(0));
                self.builder.cast(opcode, value, self.widened(instruction.value_type()))
            }
            _ => {
                let (left, mut right) = (self.vector(operand(0)), self.vector(operand(1)));
                if let Mask::Some(mask) = mask
                    && is_division(opcode)
                    && !divides_always(operand(1))
                    && self.has(Rule::Divisors)
                {
                    let one = self.splat(operand(1).value_type().constant(1));
                    right = self.builder.select(mask, right, one);
                }
                self.builder.binary(opcode, left, right)
            }
        }
    }

    /// The form in which operands mix that may each be a scalar or a vector.
    fn scalar_or_vector(&mut self, value: Value<'c>) -> Value<'c> {
        if self.shape(value) == Shape::Uniform { self.raw(value) } else { self.vector(value) }
    }

    /// Makes a call of an intrinsic that acts on each element.
    fn call(&mut self, call: Value<'c>) -> Value<'c> {
        let name = elementwise(call).expect("other calls are refused");
        let arguments = call.arguments();
        let last = arguments.len() - 1;
        let values: Vec<_> = arguments
            .iter()
            .enumerate()
            .map(|(index, argument)| {
                let is_constant = index == last && WITH_CONSTANT.contains(&name);
                if is_constant { *argument } else { self.vector(*argument) }
            })
            .collect();
        let of = values[0].value_type();
        let types = match name {
            "fptosi.sat" | "fptoui.sat" | "scmp" | "ucmp" => vec![self.widened(call.value_type()), of],
            _ => vec![of],
        };
        let id = call.callee().and_then(Value::intrinsic).expect("it is an intrinsic");
        self.builder.call(self.module.intrinsic_of(id, &types), &values)
    }
}

/// Whether any number may be divided by a divisor. Lanes that are not active divide by a constant, too. Processors have no division of vectors,
/// and multiply in the place of one by a constant.
fn divides_always(divisor: Value<'_>) -> bool {
    let TypeKind::Integer(bits @ 1..=64) = divisor.value_type().kind() else { return false };
    divisor.integer().is_some_and(|number| number != 0 && number != u64::MAX >> (64 - bits))
}

/// Whether vectors of a type are what the vectoriser handles: numbers of 1 to 64 bits, `float`, `double` and addresses.
pub(super) fn is_element(kind: TypeKind) -> bool {
    matches!(kind, TypeKind::Integer(1..=64) | TypeKind::Float | TypeKind::Double | TypeKind::Pointer(0))
}
