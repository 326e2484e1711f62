//! How strictly floating-point operations are compiled, and which functions stand for LLVM's mathematical intrinsics.

use std::collections::{HashMap, HashSet};

use crate::compile::FloatPolicy;
use crate::llvm::{Attribute, Context, Linkage, Module, Value, ValueKind};
use crate::stage::legality::globals_in;

// The bits of `LLVMFastMathFlags`.
const ALLOW_CONTRACT: u32 = 1 << 5;
const ALL: u32 = (1 << 7) - 1;

/// The builtins by which a kernel chooses a policy, without `oxisycl_device::builtin::`.
const MARKERS: [(&str, FloatPolicy); 3] = [
    ("float_strict", FloatPolicy::Strict),
    ("float_contract", FloatPolicy::Contract),
    ("float_fast", FloatPolicy::Fast),
];

/// Whether a builtin chooses a policy.
pub(crate) fn is_marker(builtin: &str) -> bool {
    MARKERS.iter().any(|(name, _)| *name == builtin)
}

/// Tells LLVM what a call of a marker does: nothing that code around it would notice, and still it stays.
pub(crate) fn describe_marker<'c>(context: &'c Context, marker: Value<'c>) {
    // Reads and writes memory that no other code sees; the number is that of `MemoryEffects`.
    const INACCESSIBLE: u64 = 3 << 2;
    for (name, value) in [("nounwind", 0), ("willreturn", 0), ("memory", INACCESSIBLE)] {
        marker.add_attribute(Attribute::FUNCTION, Attribute::plain(context, name, value));
    }
}

/// The policy of each kernel: the strictest that it calls the marker of, else that of the build. Removes the markers.
pub(crate) fn policies(module: &Module<'_>, kernels: &[Value<'_>], of_build: FloatPolicy) -> Vec<FloatPolicy> {
    let markers: Vec<_> = MARKERS
        .iter()
        .filter_map(|&(name, policy)| Some((module.function(&format!("oxisycl.{name}"))?, policy)))
        .collect();
    let policies = kernels.iter().map(|&kernel| {
        let reached = reached(kernel);
        let chosen = markers.iter().filter(|(marker, _)| reached.contains(marker)).map(|(_, policy)| *policy);
        chosen.min().unwrap_or(of_build)
    });
    let policies = policies.collect();
    for (marker, _) in markers {
        for call in marker.users() {
            call.erase();
        }
        marker.delete_function();
    }
    policies
}

/// Marks the floating-point operations of what the kernels reach as their policies allow; what several reach as the strictest of them
/// allows.
pub(crate) fn apply_policies(kernels: &[Value<'_>], policies: &[FloatPolicy]) {
    let mut of_function = HashMap::new();
    for (&kernel, &policy) in kernels.iter().zip(policies) {
        for function in reached(kernel) {
            let known = of_function.entry(function).or_insert(policy);
            *known = policy.min(*known);
        }
    }
    for (function, policy) in of_function {
        let flags = match policy {
            FloatPolicy::Strict => continue,
            FloatPolicy::Contract => ALLOW_CONTRACT,
            FloatPolicy::Fast => ALL,
        };
        for instruction in function.instructions() {
            instruction.add_fast_math(flags);
        }
    }
}

/// The functions that a function refers to, itself first, also over constants.
fn reached(function: Value<'_>) -> Vec<Value<'_>> {
    let mut seen = HashSet::from([function]);
    let mut list = vec![function];
    let mut at = 0;
    while let Some(&value) = list.get(at) {
        at += 1;
        let mut visit = |other| {
            if seen.insert(other) {
                list.push(other);
            }
        };
        if value.kind() == ValueKind::Function {
            let operands = value.instructions().into_iter().flat_map(Value::operands);
            operands.for_each(|operand| globals_in(operand, &mut visit));
        } else if let Some(initializer) = value.initializer() {
            globals_in(initializer, &mut visit);
        }
    }
    list.retain(|value| value.kind() == ValueKind::Function);
    list
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
