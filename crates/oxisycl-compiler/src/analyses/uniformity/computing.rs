//! Which functions give what their arguments make, so that the same arguments give the same in all work-items.

use rustc_hash::FxHashMap;

use super::UNIFORM;
use crate::llvm::{Opcode, Value, ValueKind};

/// Declared functions whose result is made of their arguments alone.
pub(crate) const COMPUTE: &[&str] = &[
    "llvm.abs.",
    "llvm.bitreverse.",
    "llvm.bswap.",
    "llvm.ceil.",
    "llvm.copysign.",
    "llvm.ctlz.",
    "llvm.ctpop.",
    "llvm.cttz.",
    "llvm.expect.",
    "llvm.fabs.",
    "llvm.floor.",
    "llvm.fma.",
    "llvm.fmuladd.",
    "llvm.fptosi.sat.",
    "llvm.fptoui.sat.",
    "llvm.fshl.",
    "llvm.fshr.",
    "llvm.is.constant.",
    "llvm.is.fpclass.",
    "llvm.maximum.",
    "llvm.maxnum.",
    "llvm.minimum.",
    "llvm.minnum.",
    "llvm.nearbyint.",
    "llvm.rint.",
    "llvm.round.",
    "llvm.roundeven.",
    "llvm.sadd.",
    "llvm.scmp.",
    "llvm.smax.",
    "llvm.smin.",
    "llvm.smul.",
    "llvm.sqrt.",
    "llvm.ssub.",
    "llvm.trunc.",
    "llvm.uadd.",
    "llvm.ucmp.",
    "llvm.umax.",
    "llvm.umin.",
    "llvm.umul.",
    "llvm.usub.",
    UNIFORM,
];

/// The function that an instruction calls, if it is a call and that is known.
pub(super) fn called_function(instruction: Value<'_>) -> Option<Value<'_>> {
    let call = Some(instruction).filter(|instruction| instruction.is(Opcode::CALL))?;
    call.callee().filter(|callee| callee.kind() == ValueKind::Function)
}

/// Whether a function's result is made of its arguments alone: it has no memory, and calls only such functions. Notes that in `known`; a function that calls
/// itself is none.
pub(super) fn computes<'c>(function: Value<'c>, known: &mut FxHashMap<Value<'c>, bool>) -> bool {
    const MEMORY: &[Opcode] = &[
        Opcode::ALLOCA,
        Opcode::LOAD,
        Opcode::STORE,
        Opcode::FENCE,
        Opcode::ATOMIC_RMW,
        Opcode::ATOMIC_CMP_XCHG,
        Opcode::INVOKE,
    ];
    if let Some(&known) = known.get(&function) {
        return known;
    }
    known.insert(function, false);
    let result = if function.is_declaration() {
        COMPUTE.iter().any(|prefix| function.name().starts_with(prefix))
    } else {
        function.instructions().into_iter().all(|instruction| {
            let opcode = instruction.opcode();
            match called_function(instruction) {
                Some(callee) => computes(callee, known),
                None => opcode.is_some_and(|opcode| opcode != Opcode::CALL && !MEMORY.contains(&opcode)),
            }
        })
    };
    known.insert(function, result);
    result
}
