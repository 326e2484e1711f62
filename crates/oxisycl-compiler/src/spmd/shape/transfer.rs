//! The shape of an instruction's result, by opcode. What is not listed varies.

use super::{Rule, Shape, Shapes};
use crate::analyses::uniformity;
use crate::llvm::{Opcode, Type, TypeKind, Value, ValueKind};
use crate::spmd::borders::is_question;
use crate::spmd::cfg::BlockIdx;
use crate::spmd::singly::only_computes;

/// Instructions whose result depends on their operands alone, and on nothing else in the same lane.
pub(in crate::spmd) const PURE: &[Opcode] = &[
    Opcode::ADD,
    Opcode::FADD,
    Opcode::SUB,
    Opcode::FSUB,
    Opcode::MUL,
    Opcode::FMUL,
    Opcode::UDIV,
    Opcode::SDIV,
    Opcode::FDIV,
    Opcode::UREM,
    Opcode::SREM,
    Opcode::FREM,
    Opcode::SHL,
    Opcode::LSHR,
    Opcode::ASHR,
    Opcode::AND,
    Opcode::OR,
    Opcode::XOR,
    Opcode::FNEG,
    Opcode::INTEGER_COMPARISON,
    Opcode::FCMP,
    Opcode::SELECT,
    Opcode::GET_ELEMENT_PTR,
    Opcode::EXTRACT_ELEMENT,
    Opcode::INSERT_ELEMENT,
    Opcode::SHUFFLE_VECTOR,
    Opcode::EXTRACT_VALUE,
    Opcode::INSERT_VALUE,
    Opcode::FREEZE,
];

/// Intrinsics that only compute, and that no device has.
const PURE_ON_THE_HOST: &[&str] = &["llvm.maximumnum.", "llvm.minimumnum."];

/// The bits of a type that an affine value can have.
fn width(of: Type<'_>) -> Option<u32> {
    match of.kind() {
        TypeKind::Integer(width @ ..=64) => Some(width),
        TypeKind::Pointer(_) => Some(64),
        _ => None,
    }
}

/// The shape of a value with a stride, which is taken modulo the size of the value's type.
pub(super) fn affine(value: Value<'_>, stride: i64) -> Shape {
    let Some(width) = width(value.value_type()) else { return Shape::Varying };
    let unused = 64 - width;
    match stride << unused >> unused {
        0 => Shape::Uniform,
        stride => Shape::Affine(stride),
    }
}

/// The shape of what is neither an instruction nor a parameter.
pub(super) fn of_constant(value: Value<'_>) -> Shape {
    match value.kind() {
        ValueKind::GlobalVariable if value.is_thread_local() => Shape::Varying,
        ValueKind::ConstantExpression | ValueKind::Aggregate => {
            let is_uniform = value.operands().into_iter().all(|operand| of_constant(operand) == Shape::Uniform);
            if is_uniform { Shape::Uniform } else { Shape::Varying }
        }
        ValueKind::Other | ValueKind::InlineAsm => Shape::Varying,
        _ => Shape::Uniform,
    }
}

impl<'c> Shapes<'_, 'c> {
    /// The shape of an instruction's result, as far as known.
    pub(super) fn result(&self, instruction: Value<'c>, block: BlockIdx) -> Shape {
        let operand = |index| self.shape(instruction.operand(index));
        match instruction.opcode() {
            Some(Opcode::PHI) => self.phi(instruction, block),
            Some(Opcode::ADD) => self.sum(instruction, operand(0), operand(1)),
            Some(Opcode::OR) if instruction.is_disjoint_or() => self.sum(instruction, operand(0), operand(1)),
            Some(Opcode::SUB) => self.sum(instruction, operand(0), scaled(operand(1), Some(-1))),
            Some(Opcode::MUL) => {
                let constant = |index| instruction.operand(index).integer().map(|bits| bits as i64);
                match (operand(0), operand(1)) {
                    (shape @ Shape::Affine(_), _) => restrided(instruction, scaled(shape, constant(1))),
                    (_, shape @ Shape::Affine(_)) => restrided(instruction, scaled(shape, constant(0))),
                    _ => self.equal(instruction.operands()),
                }
            }
            Some(Opcode::SHL) => match operand(0) {
                shape @ Shape::Affine(_) => {
                    let count = instruction.operand(1).integer();
                    let factor = count.filter(|count| *count < 64).map(|count| 1 << count);
                    restrided(instruction, scaled(shape, factor))
                }
                _ => self.equal(instruction.operands()),
            },
            Some(Opcode::TRUNC | Opcode::FREEZE) => restrided(instruction, operand(0)),
            // An affine pointer is a number with the same stride; a number makes no pointer, since lane 0 has no object of its own.
            Some(Opcode::PTR_TO_INT | Opcode::PTR_TO_ADDR) => restrided(instruction, operand(0)),
            // The narrow number may wrap between two lanes, the wide one does not. It may also wrap below an inactive lane 0 alone.
            Some(Opcode::ZEXT | Opcode::SEXT) if self.has(Rule::Extensions) => self.equal(instruction.operands()),
            Some(Opcode::ZEXT | Opcode::SEXT) => operand(0),
            Some(Opcode::GET_ELEMENT_PTR) => self.address(instruction),
            Some(Opcode::SELECT) => self.selection(instruction),
            Some(Opcode::LOAD) if instruction.is_volatile() || instruction.is_atomic() => Shape::Varying,
            Some(Opcode::LOAD) => self.equal(vec![instruction.operand(0)]),
            Some(Opcode::CALL) => self.call(instruction),
            Some(opcode) if PURE.contains(&opcode) || opcode.is_cast() => self.equal(instruction.operands()),
            Some(Opcode::ALLOCA) if !self.has(Rule::Variables) => Shape::Uniform,
            // Each lane has its own variables. What atomics and calls give differs with the lane's turn.
            _ => Shape::Varying,
        }
    }

    /// The shape of what is equal wherever all these values are.
    fn equal(&self, values: Vec<Value<'c>>) -> Shape {
        let mut result = Shape::Uniform;
        for value in values {
            match self.shape(value) {
                Shape::Unknown => result = Shape::Unknown,
                Shape::Uniform => {}
                Shape::Affine(_) | Shape::Varying => return Shape::Varying,
            }
        }
        result
    }

    fn sum(&self, sum: Value<'c>, first: Shape, second: Shape) -> Shape {
        match (first, second) {
            (Shape::Varying, _) | (_, Shape::Varying) => Shape::Varying,
            (Shape::Unknown, _) | (_, Shape::Unknown) => Shape::Unknown,
            (Shape::Uniform, Shape::Uniform) => Shape::Uniform,
            (Shape::Affine(stride), Shape::Uniform) | (Shape::Uniform, Shape::Affine(stride)) => affine(sum, stride),
            (Shape::Affine(first), _) if !self.has(Rule::Strides) => affine(sum, first),
            (Shape::Affine(first), Shape::Affine(second)) => affine(sum, first.wrapping_add(second)),
        }
    }

    /// The shape of an address computation.
    fn address(&self, address: Value<'c>) -> Shape {
        let operands = address.operands();
        if width(address.value_type()).is_none() {
            return self.equal(operands);
        }
        let mut result = self.shape(operands[0]);
        let mut inside = address.gep_type();
        for (position, &index) in operands[1..].iter().enumerate() {
            if position > 0 {
                inside = match inside.kind() {
                    // The index is a constant, which moves all lanes alike.
                    TypeKind::Struct => {
                        let member = index.integer().expect("the index of a member is a constant");
                        inside = inside.members()[member as usize];
                        continue;
                    }
                    _ => inside.elements().0,
                };
            }
            let size = self.layout.size(inside) as i64;
            let offset = match self.shape(index) {
                // A narrower index is extended, and may wrap before.
                Shape::Affine(_) if width(index.value_type()) != Some(64) && self.has(Rule::NarrowIndices) => {
                    Shape::Varying
                }
                shape => restrided(address, scaled(shape, Some(size))),
            };
            result = self.sum(address, result, offset);
        }
        result
    }

    fn selection(&self, selection: Value<'c>) -> Shape {
        let [first, second] = [1, 2].map(|index| self.shape(selection.operand(index)));
        match self.shape(selection.operand(0)) {
            Shape::Unknown => Shape::Unknown,
            Shape::Uniform => first.or(second),
            _ if !self.has(Rule::Selections) => first.or(second),
            _ if selection.operand(1) == selection.operand(2) => first,
            _ => Shape::Varying,
        }
    }

    /// The shape of a call's result. Inline assembly, and functions that may have memory, are executed lane by lane.
    fn call(&self, call: Value<'c>) -> Shape {
        let Some(callee) = call.callee().filter(|callee| callee.kind() == ValueKind::Function) else {
            return Shape::Varying;
        };
        if is_question(call) {
            return Shape::Uniform;
        }
        let mut known = uniformity::COMPUTE.iter().chain(PURE_ON_THE_HOST);
        let is_known = callee.is_declaration() && known.any(|prefix| callee.name().starts_with(prefix));
        if is_known || only_computes(call) {
            return self.equal(call.arguments());
        }
        Shape::Varying
    }

    fn phi(&self, phi: Value<'c>, block: BlockIdx) -> Shape {
        let region = self.graph.innermost(block);
        let incoming = phi.incoming().into_iter().map(|(value, from)| (value, self.graph.index(from)));
        let incoming: Vec<_> = incoming.filter(|(_, from)| self.graph.returns(*from)).collect();
        // All lanes of an iteration come over the same edge: the one that enters the loop, or the latch's.
        let is_header = self.graph.headed(block).is_some();
        let mut edges = incoming.iter();
        if is_header || edges.all(|(_, from)| self.is_uniform_edge(*from, block, region)) || !self.has(Rule::Joins) {
            return incoming.iter().fold(Shape::Unknown, |shape, (value, _)| shape.or(self.shape(*value)));
        }
        let first = incoming[0].0;
        let is_same = incoming.iter().all(|(value, _)| *value == first);
        // Of an instruction, lanes that leave a loop at different times have different values.
        if is_same && first.kind() != ValueKind::Instruction { self.shape(first) } else { Shape::Varying }
    }
}

/// The shape of a value times a factor, if that is known.
fn scaled(shape: Shape, factor: Option<i64>) -> Shape {
    match (shape, factor) {
        (Shape::Affine(stride), Some(factor)) => Shape::Affine(stride.wrapping_mul(factor)),
        (Shape::Affine(_), None) => Shape::Varying,
        _ => shape,
    }
}

/// The shape of an instruction's result that has that stride.
fn restrided(result: Value<'_>, shape: Shape) -> Shape {
    match shape {
        Shape::Affine(stride) => affine(result, stride),
        _ => shape,
    }
}
