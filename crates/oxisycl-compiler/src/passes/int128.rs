//! Converts between integers of 128 bits and floating-point numbers, for which no target has instructions. The conversions become calls of
//! the functions that Rust's own runtime library has for them.
//!
//! Those functions saturate, and give zero for NaN, so that they serve for `as` and for `to_int_unchecked` alike.

use crate::llvm::{Builder, Module, Opcode, Type, TypeKind, Value};

const WIDTH: u32 = 128;

/// Intrinsics of saturating conversions, which are functions already.
const INTRINSICS: [(&str, &str); 4] = [
    ("llvm.fptoui.sat.i128.f32", "__fixunssfti"),
    ("llvm.fptoui.sat.i128.f64", "__fixunsdfti"),
    ("llvm.fptosi.sat.i128.f32", "__fixsfti"),
    ("llvm.fptosi.sat.i128.f64", "__fixdfti"),
];

/// Replaces the conversions. Those of vectors and of other floating-point types stay, since Rust has none.
pub(crate) fn call_conversions(module: &Module<'_>) {
    for (intrinsic, name) in INTRINSICS {
        if let Some(function) = module.function(intrinsic) {
            function.replace_all_uses_with(module.declare(name, function.held_type()));
            function.delete_function();
        }
    }
    for function in module.functions() {
        for instruction in function.instructions() {
            let Some(name) = function_for(instruction) else { continue };
            let operand = instruction.operand(0);
            let held = Type::function(instruction.value_type(), &[operand.value_type()]);
            let call = Builder::before(module.context(), instruction).call(module.declare(name, held), &[operand]);
            instruction.replace_all_uses_with(call);
            instruction.erase();
        }
    }
}

/// The function of the runtime library for an instruction, if it is one of these conversions.
fn function_for(instruction: Value<'_>) -> Option<&'static str> {
    let opcode = instruction.opcode()?;
    let is_signed = opcode == Opcode::FP_TO_SI || opcode == Opcode::SI_TO_FP;
    if opcode == Opcode::FP_TO_UI || opcode == Opcode::FP_TO_SI {
        match (instruction.operand(0).value_type().kind(), instruction.value_type().kind()) {
            (TypeKind::Float, TypeKind::Integer(WIDTH)) => Some(if is_signed { "__fixsfti" } else { "__fixunssfti" }),
            (TypeKind::Double, TypeKind::Integer(WIDTH)) => Some(if is_signed { "__fixdfti" } else { "__fixunsdfti" }),
            _ => None,
        }
    } else if opcode == Opcode::UI_TO_FP || opcode == Opcode::SI_TO_FP {
        match (instruction.operand(0).value_type().kind(), instruction.value_type().kind()) {
            (TypeKind::Integer(WIDTH), TypeKind::Float) => {
                Some(if is_signed { "__floattisf" } else { "__floatuntisf" })
            }
            (TypeKind::Integer(WIDTH), TypeKind::Double) => {
                Some(if is_signed { "__floattidf" } else { "__floatuntidf" })
            }
            _ => None,
        }
    } else {
        None
    }
}
