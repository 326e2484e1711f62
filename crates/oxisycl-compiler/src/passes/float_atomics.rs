//! Atomic sums of floats: processor instructions, unless the kernel is compiled under the policy `strict`.
//!
//! Processors may treat subnormal numbers as zeros in them (NVIDIA's do so for `f32` in global memory), which that policy does not allow.
//! There, a loop compares and exchanges the float's bits: `float_atomics.ll`.

use crate::error::CompileError;
use crate::llvm::{Attribute, Linkage, Module};
use crate::options::FloatPolicy;
use crate::passes::atomic_builtins;

const LOOPS: &str = include_str!("float_atomics.ll");
/// The builtins, without `oxisycl_device::builtin::`.
const SUMS: [&str; 2] = ["atomic_add_f32", "atomic_add_f64"];
/// The builtins that the loops call.
const EXCHANGES: [&str; 2] = ["atomic_compare_exchange_u32", "atomic_compare_exchange_u64"];

/// Defines the sums that a module uses.
pub(crate) fn define(module: &Module<'_>, policy: FloatPolicy) -> Result<(), CompileError> {
    let (form, first, made) =
        if policy == FloatPolicy::Strict { ("loop", LOOPS, EXCHANGES) } else { ("native", "", SUMS) };
    let used: Vec<_> =
        SUMS.iter().filter_map(|name| Some((name, module.function(&format!("oxisycl.{name}"))?))).collect();
    if used.is_empty() {
        return Ok(());
    }
    let context = module.context();
    let made = made.iter().filter_map(|name| atomic_builtins::body(name, &format!("oxisycl.{form}.{name}")));
    let bodies = Module::from_text(context, &made.fold(first.to_owned(), |text, body| text + &body), "float_atomics")?;
    for function in bodies.functions() {
        function.set_linkage(Linkage::LINK_ONCE_ODR);
        function.add_attribute(Attribute::FUNCTION, Attribute::plain(context, "alwaysinline", 0));
    }
    for (name, declared) in used {
        let body = module.declare(&format!("oxisycl.{form}.{name}"), declared.held_type());
        declared.replace_all_uses_with(body);
        declared.delete_function();
    }
    module.link(bodies)
}

#[cfg(test)]
mod tests {
    use oxisycl_image::ImageTarget;

    use super::*;
    use crate::codegen;
    use crate::llvm::PassTuning;
    use crate::passes::tests::{context, module, ptx};
    use crate::pipeline::{Phase, run_for_target};

    #[test]
    fn sums_are_operations_of_the_processor_unless_the_policy_is_strict() {
        let text = "
            declare float @oxisycl.atomic_add_f32(ptr, float, i32, i32)
            declare double @oxisycl.atomic_add_f64(ptr, double, i32, i32)
            define ptx_kernel void @k(ptr %p, ptr %q) {
                %a = call float @oxisycl.atomic_add_f32(ptr %p, float 1.0, i32 0, i32 1)
                %b = call double @oxisycl.atomic_add_f64(ptr %q, double 1.0, i32 3, i32 1)
                ret void
            }";
        let code = |policy| {
            let context = context();
            let module = module(&context, text);
            define(&module, policy).unwrap();
            let target = codegen::of(&ImageTarget::Ptx { sm: 70 }).unwrap();
            module
                .run(
                    "always-inline,function(instcombine<no-verify-fixpoint>,simplifycfg),globaldce",
                    Some(target.machine()),
                    &PassTuning::DEVICE,
                )
                .unwrap();
            let module = run_for_target(Phase::Legalize, &*target, module).unwrap();
            ptx(&module)
        };
        for policy in [FloatPolicy::Contract, FloatPolicy::Fast] {
            let ptx = code(policy);
            assert!(ptx.contains(".add.f32") && ptx.contains(".add.f64") && !ptx.contains(".cas."), "{ptx}");
        }
        let ptx = code(FloatPolicy::Strict);
        assert!(ptx.contains(".cas.b32") && ptx.contains(".cas.b64") && !ptx.contains("atom.add"), "{ptx}");
    }
}
