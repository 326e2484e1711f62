//! What Rust's `as` makes of a `float`, on NVIDIA GPUs.
//!
//! For integers of 32 bits it is one instruction. That goes no further than the integer's ends, and makes 0 of a NaN (PTX ISA, `cvt`). LLVM
//! compares and selects around it.
//!
//! Invariant: results have the same bits.

use crate::llvm::{Builder, Module, Opcode, Value};

/// Intrinsics of LLVM that stop at the ends of an integer, and those of the processor that do the same.
const SATURATING: [(&str, &str); 2] =
    [("llvm.fptosi.sat.i32.f32", "llvm.nvvm.f2i.rz"), ("llvm.fptoui.sat.i32.f32", "llvm.nvvm.f2ui.rz")];

/// Replaces the intrinsics. Called right before code generation, since LLVM's simplifications know less of what replaces them.
pub(crate) fn lower(module: &Module<'_>) {
    for call in module.functions().into_iter().flat_map(Value::instructions) {
        let callee = call.callee().filter(|_| call.is(Opcode::CALL));
        let known = callee.and_then(|callee| SATURATING.into_iter().find(|(name, _)| callee.name() == *name));
        let Some((_, native)) = known else { continue };
        let builder = Builder::before(module.context(), call);
        let result = builder.call(module.intrinsic(native, &[]), &call.arguments());
        call.replace_all_uses_with(result);
        call.erase();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::passes::tests::{context, module, ptx};

    /// The PTX of a conversion from `float` to an integer type by an intrinsic.
    fn converted(intrinsic: &str, integer: &str) -> String {
        let context = context();
        let text = format!(
            "declare {integer} @{intrinsic}(float)
            define ptx_kernel void @k(ptr %p, float %f) {{
            %v = call {integer} @{intrinsic}(float %f)
            store {integer} %v, ptr %p
            ret void }}"
        );
        let module = module(&context, &text);
        lower(&module);
        module.verify("conversions").expect("a valid module");
        ptx(&module)
    }

    #[test]
    fn what_as_makes_of_a_float_is_one_instruction() {
        for (intrinsic, instruction) in
            [("llvm.fptosi.sat.i32.f32", "cvt.rzi.s32.f32"), ("llvm.fptoui.sat.i32.f32", "cvt.rzi.u32.f32")]
        {
            let text = converted(intrinsic, "i32");
            assert!(text.contains(instruction) && !text.contains("setp") && !text.contains("selp"), "{text}");
        }
    }

    #[test]
    fn other_integers_are_limited_by_selections() {
        // The processor makes no 0 of a NaN for 64 bits, and stops at other ends for 8.
        for (intrinsic, integer) in [("llvm.fptosi.sat.i64.f32", "i64"), ("llvm.fptoui.sat.i8.f32", "i8")] {
            let text = converted(intrinsic, integer);
            assert!(text.contains("setp") || text.contains("min"), "{text}");
        }
    }
}
