//! The imprecise functions of kernels that are compiled under the policy `fast`. They replace the device library's functions where
//! processors have instructions.
//!
//! Only calls in the program's own code are replaced, and only of functions of `f32`. `fast_math.ll` has a body for each, made of the
//! target's imprecise builtins; a target that lacks one of them keeps the precise function. Quotients and square roots are operations,
//! for which the code generator itself has imprecise instructions under this policy.

use crate::builtin_table::Bodies;
use crate::error::CompileError;
use crate::llvm::{Attribute, Builder, Linkage, Module, Value};
use crate::origin;
use crate::passes::libcalls::{PREFIX, is_library};

const BODIES: &str = include_str!("fast_math.ll");
/// The prefix of the bodies' names.
const BODY: &str = "oxisycl.fast.";

/// The functions, by C's names without the `f` at their end, and the builtins that each body needs.
const FUNCTIONS: [(&str, &[&str]); 13] = [
    ("sin", &["native_sin"]),
    ("cos", &["native_cos"]),
    ("sincos", &["native_sin", "native_cos"]),
    ("tan", &["native_sin", "native_cos", "native_divide"]),
    ("exp", &["native_exp2"]),
    ("exp2", &["native_exp2"]),
    ("exp10", &["native_exp2"]),
    ("log", &["native_log2"]),
    ("log2", &["native_log2"]),
    ("log10", &["native_log2"]),
    ("pow", &["native_log2", "native_exp2"]),
    ("powr", &["native_log2", "native_exp2"]),
    ("rsqrt", &["native_rsqrt"]),
];

/// Replaces the calls in the module of a kernel under this policy. `builtins` are the target's.
pub(crate) fn call_imprecise_functions(module: &Module<'_>, builtins: Bodies) -> Result<(), CompileError> {
    let has = |builtin: &&str| builtins.has(builtin);
    let mut found = Vec::new();
    for function in module.functions() {
        let Some(name) = imprecise(function.name()) else { continue };
        if !FUNCTIONS.iter().any(|(other, needed)| *other == name && needed.iter().all(has)) {
            continue;
        }
        let is_call = |user: &Value<'_>| user.callee() == Some(function) && !is_library(user.function().name());
        found.extend(function.users().into_iter().filter(is_call).map(|call| (name.clone(), function, call)));
    }
    if found.is_empty() {
        return Ok(());
    }
    let context = module.context();
    let bodies = Module::from_text(context, BODIES, "approximate")?;
    bodies.link(Module::from_text(context, builtins.text, "builtins")?)?;
    for function in bodies.functions().into_iter().filter(|function| !function.is_declaration()) {
        function.set_linkage(Linkage::LINK_ONCE_ODR);
        function.add_attribute(Attribute::FUNCTION, Attribute::plain(context, "alwaysinline", 0));
    }
    for (name, function, call) in found {
        let body = format!("{BODY}{name}");
        // One of another type is of another version of the library.
        if bodies.function(&body).is_none_or(|body| body.held_type() != function.held_type()) {
            continue;
        }
        let replacement = module.declare(&body, function.held_type());
        let builder = Builder::before(context, call);
        call.replace_all_uses_with(builder.call(replacement, &call.arguments()));
        call.erase();
    }
    module.link(bodies)
}

/// The name in [`FUNCTIONS`] for a function of the device library, if the symbol is one.
fn imprecise(symbol: &str) -> Option<String> {
    if let Some(name) = symbol.strip_prefix(PREFIX) {
        return name.strip_suffix('f').map(str::to_owned);
    }
    // The device's half of `oxisycl_device::math` calls them by path.
    origin::single_precision(symbol)
}

#[cfg(test)]
mod tests {
    use oxisycl_image::ImageTarget;

    use super::*;
    use crate::codegen;
    use crate::llvm::PassTuning;
    use crate::options::FloatPolicy;
    use crate::passes::tests::{context, module, ptx_for};
    use crate::passes::{float_policy, strip_host_abi};

    #[test]
    fn only_fast_kernels_use_imprecise_instructions() {
        let context = context();
        // The device library as short as can be, and own code that uses some of it.
        let text = "
            declare float @llvm.sqrt.f32(float)
            define float @__oxisycl_sinf(float %x) { ret float %x }
            define float @__oxisycl_cosf(float %x) { ret float %x }
            define float @__oxisycl_expf(float %x) { %r = fmul float %x, 3.0 ret float %r }
            define float @__oxisycl_logf(float %x) { %s = call float @__oxisycl_sinf(float %x) ret float %s }
            define float @__oxisycl_erff(float %x) { %s = call float @__oxisycl_sinf(float %x) %r = fadd float %s, 7.0 ret float %r }
            define double @__oxisycl_sin(double %x) { ret double %x }
            define float @_ZN16oxisycl_builtins6single4root5rsqrt17h0123456789abcdefE(float %x) { ret float %x }
            define { float, float } @_ZN16oxisycl_builtins6single8circular6sincos17h0123456789abcdefE(float %x) {
                ret { float, float } zeroinitializer
            }
            define void @f(ptr %p, float %x, double %y) {
                %a = call float @__oxisycl_sinf(float %x)
                %b = call float @__oxisycl_expf(float %a)
                %c = call float @__oxisycl_logf(float %b)
                %d = call float @llvm.sqrt.f32(float %c)
                %e = fdiv float %d, %x
                %f = call float @_ZN16oxisycl_builtins6single4root5rsqrt17h0123456789abcdefE(float %e)
                %g = call { float, float } @_ZN16oxisycl_builtins6single8circular6sincos17h0123456789abcdefE(float %f)
                %h = extractvalue { float, float } %g, 1
                %i = call float @__oxisycl_erff(float %h)
                store volatile float %i, ptr %p
                %j = call double @__oxisycl_sin(double %y)
                store volatile double %j, ptr %p
                ret void
            }";
        let compile = |policy, target: &ImageTarget| {
            let module = module(&context, text);
            let target = codegen::of(target).expect("a target");
            module.set_target(target.machine().triple(), &target.machine().data_layout());
            strip_host_abi::strip(&module, &|name: &str| name == "f", &|_| false);
            float_policy::keep_library_apart(&module);
            float_policy::apply_policies(&[module.function("f").expect("a function")], &[policy]);
            if policy == FloatPolicy::Fast {
                call_imprecise_functions(&module, target.builtins()).expect("the table is well-formed");
            }
            float_policy::unite_with_library(&module);
            module.run("default<O3>,globaldce", Some(target.machine()), &PassTuning::DEVICE).expect("passes");
            module.verify("test").expect("a valid module");
            module
        };
        let sm_70 = ImageTarget::Ptx { sm: 70 };
        let imprecise = |policy| {
            let code = ptx_for(&compile(policy, &sm_70), 70);
            let instructions = code.lines().filter_map(|line| line.split_whitespace().next());
            instructions.filter(|name| name.contains(".approx")).map(str::to_owned).collect::<Vec<_>>()
        };
        let expected = ["sin", "ex2", "lg2", "sqrt", "div", "rsqrt", "cos"].map(|name| format!("{name}.approx.f32"));
        // In the order of the code; the sine in a precise function is as it was.
        assert_eq!(imprecise(FloatPolicy::Fast), expected);
        for policy in [FloatPolicy::Strict, FloatPolicy::Contract] {
            assert_eq!(imprecise(policy), Vec::<String>::new(), "{policy}");
        }
        // A target that has no such builtins keeps the library.
        let code = compile(FloatPolicy::Fast, &ImageTarget::AmdGcn { arch: "gfx90a".to_owned() }).to_string();
        assert!(!code.contains("native") && !code.contains("oxisycl.fast"), "{code}");
        assert!(code.contains("store volatile float 7.0"), "what the library above gives: {code}");
    }
}
