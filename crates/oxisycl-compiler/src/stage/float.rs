//! How strictly floating-point operations are compiled, and which functions stand for LLVM's mathematical intrinsics.

use crate::compile::FloatPolicy;
use crate::llvm::{Linkage, Module};

// The bits of `LLVMFastMathFlags`.
const ALLOW_CONTRACT: u32 = 1 << 5;
const ALL: u32 = (1 << 7) - 1;

/// Marks all floating-point operations as the policy allows.
pub(crate) fn apply_policy(module: &Module<'_>, policy: FloatPolicy) {
    let flags = match policy {
        FloatPolicy::Strict => return,
        FloatPolicy::Contract => ALLOW_CONTRACT,
        FloatPolicy::Fast => ALL,
    };
    for function in module.functions() {
        for instruction in function.instructions() {
            instruction.add_fast_math(flags);
        }
    }
}

/// Intrinsics that no target expresses, with the function of `oxisycl-builtins` that computes them; the type's letter comes last.
const FUNCTIONS: [(&str, &str); 19] = [
    ("sin", "sin"),
    ("cos", "cos"),
    ("tan", "tan"),
    ("asin", "asin"),
    ("acos", "acos"),
    ("atan", "atan"),
    ("atan2", "atan2"),
    ("sinh", "sinh"),
    ("cosh", "cosh"),
    ("tanh", "tanh"),
    ("exp", "exp"),
    ("exp2", "exp2"),
    ("exp10", "exp10"),
    ("log", "log"),
    ("log2", "log2"),
    ("log10", "log10"),
    ("pow", "pow"),
    ("powi", "powi"),
    ("ldexp", "ldexp"),
];

/// Names that rustc and the standard library call for functions of C's mathematical library.
const C_FUNCTIONS: [&str; 14] =
    ["tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh", "expm1", "log1p", "hypot", "cbrt", "fmod", "fdim"];

/// The prefix of the functions of `oxisycl-builtins`.
pub(crate) const PREFIX: &str = "__oxisycl_";

/// Replaces intrinsics and C functions by those of `oxisycl-builtins`.
pub(crate) fn replace_functions(module: &Module<'_>) {
    let replace = |name: &str, replacement: String| {
        let Some(function) = module.function(name).filter(|function| function.is_declaration()) else { return };
        let other = module.declare(&replacement, function.held_type());
        if other.is_declaration() {
            other.set_linkage(Linkage::EXTERNAL);
        }
        function.replace_all_uses_with(other);
        function.delete_function();
    };
    for (intrinsic, function) in FUNCTIONS {
        let suffix = match intrinsic {
            "powi" | "ldexp" => ".i32",
            _ => "",
        };
        replace(&format!("llvm.{intrinsic}.f64{suffix}"), format!("{PREFIX}{function}"));
        replace(&format!("llvm.{intrinsic}.f32{suffix}"), format!("{PREFIX}{function}f"));
    }
    for function in C_FUNCTIONS {
        replace(function, format!("{PREFIX}{function}"));
        replace(&format!("{function}f"), format!("{PREFIX}{function}f"));
    }
    for function in ["tgamma", "erf", "erfc"] {
        replace(function, format!("{PREFIX}{function}"));
        replace(&format!("{function}f"), format!("{PREFIX}{function}f"));
    }
    for function in ["memcmp", "bcmp", "strlen"] {
        replace(function, format!("{PREFIX}{function}"));
    }
}
