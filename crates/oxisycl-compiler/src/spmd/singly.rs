//! What has no vector form: executed once for each active lane, one lane after the other, as scalar code.
//!
//! Such are atomic operations, copies of memory, and calls of functions that only compute. Those are C's mathematics, LLVM's intrinsics for it, and the
//! program's functions that were not inlined. No lane runs them that the item itself would not run.

use super::emitter::{Emitter, Mask, Rule};
use super::shape::Shape;
use super::widen::elementwise;
use crate::llvm::{Attribute, Opcode, TypeKind, Value, ValueKind};
use crate::passes::libcalls;

/// LLVM's intrinsics that compute, and that become calls of C's functions on the host.
const MATHEMATICS: [&str; 18] = [
    "llvm.acos.",
    "llvm.asin.",
    "llvm.atan.",
    "llvm.atan2.",
    "llvm.cos.",
    "llvm.cosh.",
    "llvm.exp.",
    "llvm.exp10.",
    "llvm.exp2.",
    "llvm.log.",
    "llvm.log10.",
    "llvm.log2.",
    "llvm.pow.",
    "llvm.powi.",
    "llvm.sin.",
    "llvm.sinh.",
    "llvm.tan.",
    "llvm.tanh.",
];

/// Intrinsics that are loads and stores of many bytes.
pub(super) const COPIES: [&str; 3] = ["llvm.memset.", "llvm.memcpy.", "llvm.memmove."];

/// Whether a call copies or fills memory, and is not volatile.
pub(super) fn is_copy(call: Value<'_>) -> bool {
    let is_named = |callee: Value<'_>| COPIES.iter().any(|name| callee.name().starts_with(name));
    call.is(Opcode::CALL) && call.callee().is_some_and(is_named) && call.operand(3).integer() == Some(0)
}

/// Whether a call only computes: the callee waits for nothing, keeps nothing, and returns.
pub(super) fn only_computes(call: Value<'_>) -> bool {
    let Some(callee) = call.callee().filter(|callee| callee.kind() == ValueKind::Function) else { return false };
    let name = callee.name();
    if MATHEMATICS.iter().any(|prefix| name.starts_with(prefix)) {
        return true;
    }
    // They may set `errno`, which no kernel reads.
    let is_number = |kind| matches!(kind, TypeKind::Float | TypeKind::Double | TypeKind::Integer(32));
    let parameters = callee.parameters().into_iter().map(Value::value_type);
    let has_numbers = || parameters.chain([callee.held_type().result()]).all(|of| is_number(of.kind()));
    if callee.is_declaration() && libcalls::only_computes_on_the_host(name) && has_numbers() {
        return true;
    }
    let has = |attribute| callee.has_attribute(Attribute::FUNCTION, attribute);
    callee.number_attribute(Attribute::FUNCTION, "memory") == Some(0) && has("willreturn") && has("nounwind")
}

/// Whether an instruction is made for one lane after the other, if it differs between lanes.
pub(super) fn is_made_singly(instruction: Value<'_>) -> bool {
    match instruction.opcode() {
        Some(Opcode::LOAD | Opcode::STORE) => instruction.is_atomic(),
        Some(Opcode::ATOMIC_RMW) => true,
        Some(Opcode::CALL) => is_copy(instruction) || elementwise(instruction).is_none() && only_computes(instruction),
        _ => false,
    }
}

impl<'c> Emitter<'c, '_> {
    /// Makes an instruction once for each lane of `mask`, from the first one to the last.
    pub(super) fn singly(&mut self, instruction: Value<'c>, mask: Mask<'c>) {
        // Before any loop: what is loaded inside of it is not there behind it.
        let operands: Vec<_> = instruction.operands().into_iter().map(|operand| self.of_all(operand)).collect();
        let result = instruction.value_type();
        let slot = (result.kind() != TypeKind::Void).then(|| self.variable(self.widened(result)));
        match if self.has(Rule::OneByOne) { mask } else { Mask::All } {
            Mask::All => {
                for lane in 0..self.lanes {
                    self.in_lane(instruction, &operands, self.int(32).constant(lane.into()), slot);
                }
            }
            Mask::Some(mask) => {
                let of = self.int(self.lanes);
                let left = self.variable(of);
                let [head, inside, behind] = [(); 3].map(|()| self.new_block());
                self.builder.store(self.bits(mask), left);
                self.builder.branch(head);
                self.builder.move_to(head);
                let bits = self.builder.load(of, left);
                self.builder.branch_if(self.builder.is_equal(bits, of.null()), behind, inside);
                self.builder.move_to(inside);
                let lane = self.zeros("llvm.cttz", bits);
                self.in_lane(instruction, &operands, lane, slot);
                let others = self.builder.subtract(bits, of.constant(1));
                self.builder.store(self.builder.binary(Opcode::AND, bits, others), left);
                self.builder.branch(head);
                self.builder.move_to(behind);
            }
        }
        if let Some(slot) = slot {
            let value = self.builder.load(self.widened(result), slot);
            self.define(instruction, value);
        }
    }

    /// An operand, with whether it is a vector.
    fn of_all(&mut self, operand: Value<'c>) -> (Value<'c>, bool) {
        match self.shape(operand) {
            _ if operand.is_constant() => (operand, false),
            Shape::Affine(_) | Shape::Varying => (self.vector(operand), true),
            _ => (self.raw(operand), false),
        }
    }

    /// Makes an instruction for one lane, and puts its result into the slot.
    fn in_lane(
        &mut self,
        instruction: Value<'c>,
        operands: &[(Value<'c>, bool)],
        lane: Value<'c>,
        slot: Option<Value<'c>>,
    ) {
        let copy = instruction.copy();
        for (index, &(operand, is_vector)) in operands.iter().enumerate() {
            if !operand.is_constant() || is_vector {
                let value = if is_vector { self.builder.extract_lane(operand, lane) } else { operand };
                copy.set_operand(index as u32, value);
            }
        }
        self.builder.insert(copy);
        self.places.set(copy, instruction);
        // Scopes that were declared within a work-item say nothing about several of them.
        copy.unmark("alias.scope");
        copy.unmark("noalias");
        if let Some(slot) = slot {
            let whole = self.builder.load(self.widened(instruction.value_type()), slot);
            self.builder.store(self.builder.insert_lane(whole, copy, lane), slot);
        }
    }
}
