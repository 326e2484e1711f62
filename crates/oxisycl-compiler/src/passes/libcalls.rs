//! Replaces LLVM's mathematical intrinsics and C's functions by those that compute them on a device.
//!
//! Three kinds of names become one: intrinsics of LLVM, C's functions, and functions of the crate `libm`. The standard library and
//! `oxisycl-device` call C's functions, other crates those of `libm`. What a processor has an instruction for becomes an intrinsic that
//! code generators know, all else a function of `oxisycl-builtins`.
//!
//! Invariant: a function is replaced only by one of its type. One with the name and another type is a user's, and stays.

use crate::llvm::{Builder, Context, Linkage, Module, Opcode, Type, TypeKind, Value};
use crate::origin::{self, Libm, Origin};

/// The prefix of functions of `oxisycl-builtins` that replace others.
pub(crate) const PREFIX: &str = "__oxisycl_";

/// Whether a function belongs to the device library.
pub(crate) fn is_library(name: &str) -> bool {
    if name.starts_with(PREFIX) {
        return true;
    }
    match origin::of(name) {
        Origin::Builtins | Origin::Libm => true,
        Origin::Standard => origin::is_of_runtime_library(name),
        _ => false,
    }
}

/// C's functions that are one instruction or a few, with the intrinsic that code generators know.
const OPERATIONS: [(&str, &str); 14] = [
    ("fma", "fma"),
    ("sqrt", "sqrt"),
    ("rint", "rint"),
    ("nearbyint", "rint"),
    ("roundeven", "roundeven"),
    ("round", "round"),
    ("trunc", "trunc"),
    ("floor", "floor"),
    ("ceil", "ceil"),
    ("fabs", "fabs"),
    ("copysign", "copysign"),
    ("fmin", "minnum"),
    ("fmax", "maxnum"),
    ("scalbn", "ldexp"),
];

/// Functions that `oxisycl-builtins` computes, by C's names of the `f64` ones. Those of `f32` have an `f` at the end.
const FUNCTIONS: [&str; 33] = [
    "sin",
    "cos",
    "tan",
    "asin",
    "acos",
    "atan",
    "atan2",
    "sinh",
    "cosh",
    "tanh",
    "asinh",
    "acosh",
    "atanh",
    "exp",
    "exp2",
    "exp10",
    "expm1",
    "log",
    "log2",
    "log10",
    "log1p",
    "pow",
    "powi",
    "ldexp",
    "hypot",
    "cbrt",
    "fmod",
    "remainder",
    "fdim",
    "tgamma",
    "lgamma",
    "erf",
    "erfc",
];

/// Functions that tell the sign of their result by a static.
const WITH_STATICS: [&str; 2] = ["lgamma", "lgammaf"];

/// Whether a function of C's has numbers for numbers, and does nothing else but to set `errno`.
pub(crate) fn only_computes_on_the_host(name: &str) -> bool {
    let of_single = name.strip_suffix('f').unwrap_or(name);
    let known = |name: &str| FUNCTIONS.contains(&name) || OPERATIONS.iter().any(|(of_c, _)| *of_c == name);
    (known(name) || known(of_single)) && !WITH_STATICS.contains(&name)
}

/// Functions of `f32` whose vector form is faster than C's function for each lane. They are straight code for nearly all numbers.
const IN_LANES: [&str; 25] = [
    "sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "exp",
    "exp2", "exp10", "expm1", "log", "log2", "log10", "log1p", "pow", "hypot", "cbrt", "erf",
];

/// The [`OPERATIONS`] whose results C defines to the bit.
const EXACT: [&str; 10] = ["fma", "sqrt", "rint", "nearbyint", "roundeven", "round", "trunc", "floor", "ceil", "fabs"];

/// Makes instructions of C's functions that have one exact result. For native code, which stays as it is else.
pub(crate) fn replace_exact(module: &Module<'_>) {
    for (name, intrinsic) in OPERATIONS.into_iter().filter(|(name, _)| EXACT.contains(name)) {
        replace_declaration(module, name, &format!("llvm.{intrinsic}.f64"));
        replace_declaration(module, &format!("{name}f"), &format!("llvm.{intrinsic}.f32"));
    }
}

/// Whether a function is one of `oxisycl-builtins` that native code may call in lanes.
pub(crate) fn is_for_lanes(name: &str) -> bool {
    let single = name.strip_prefix(PREFIX).and_then(|name| name.strip_suffix('f'));
    single.is_some_and(|single| IN_LANES.contains(&single))
}

/// Whether native code has its own copy of a function of the device library, also where the program exports one.
pub(crate) fn is_copied(name: &str) -> bool {
    is_for_lanes(name) || origin::of(name) == Origin::Builtins
}

/// Declares what lanes may call in the place of C's functions of the module, so that it is linked.
pub(crate) fn declare_for_lanes(module: &Module<'_>) {
    for (_, ours) in called_singles(module) {
        _ = module.declare(&ours, type_of(module.context(), &ours));
    }
}

/// Has code call our functions in the place of C's, as far as they are linked. Then they are local.
pub(crate) fn replace_for_lanes(module: &Module<'_>) {
    for (function, ours) in called_singles(module) {
        if module.function(&ours).is_some_and(|ours| !ours.is_declaration()) {
            replace(module, function, &ours);
        }
    }
    make_local(module);
}

/// Makes the functions for lanes local, so that LLVM inlines them or deletes them.
pub(crate) fn make_local(module: &Module<'_>) {
    let linked = module.functions().into_iter().filter(|function| is_for_lanes(function.name()));
    linked.filter(|function| !function.is_declaration()).for_each(|function| function.set_linkage(Linkage::INTERNAL));
}

/// The functions of C's and LLVM's that a module calls, with the names of ours for lanes.
fn called_singles<'c>(module: &Module<'c>) -> Vec<(Value<'c>, String)> {
    let names = IN_LANES.into_iter().flat_map(|name| [(format!("{name}f"), name), (format!("llvm.{name}.f32"), name)]);
    let called = names.filter_map(|(of_c, name)| Some((module.function(&of_c)?, format!("{PREFIX}{name}f"))));
    called.filter(|(function, _)| function.is_declaration() && function.is_used()).collect()
}

/// C's memory functions that compiled Rust calls.
const MEMORY: [&str; 3] = ["memcmp", "bcmp", "strlen"];

/// Replaces intrinsics and functions, and remainders by calls, since GPUs have no exact instruction for them. Crates with `borrowed` names
/// keep their functions.
pub(crate) fn replace_all(module: &Module<'_>, borrowed: &[String]) {
    for (name, intrinsic) in OPERATIONS {
        for (c_name, float) in [(name.to_owned(), "f64"), (format!("{name}f"), "f32")] {
            let suffix = if intrinsic == "ldexp" { ".i32" } else { "" };
            replace_declaration(module, &c_name, &format!("llvm.{intrinsic}.{float}{suffix}"));
        }
    }
    for name in FUNCTIONS {
        let suffix = if matches!(name, "powi" | "ldexp") { ".i32" } else { "" };
        for (c_name, float) in [(name.to_owned(), "f64"), (format!("{name}f"), "f32")] {
            let ours = format!("{PREFIX}{c_name}");
            replace_declaration(module, &c_name, &ours);
            replace_declaration(module, &format!("llvm.{name}.{float}{suffix}"), &ours);
        }
    }
    for name in ["lgamma_r", "lgammaf_r"].iter().chain(&MEMORY) {
        replace_declaration(module, name, &format!("{PREFIX}{name}"));
    }
    for function in module.functions() {
        if origin::is_midpoint_of_singles(function.name()) {
            replace(module, function, "__oxisycl_midpointf");
        } else if let Some(replacement) =
            origin::of_libm(function.name(), borrowed).and_then(|function| in_place_of(&function))
        {
            replace(module, function, &replacement);
        }
    }
    replace_remainders(module);
}

/// The replacement for a function of the crate `libm`. Its operations are emulated with integers, and its functions of `f32` compute in
/// `f64`. Its functions of `f64` stay, since `oxisycl-builtins` itself uses them.
fn in_place_of(Libm { name, is_native }: &Libm) -> Option<String> {
    let single = name.strip_suffix('f');
    for (operation, intrinsic) in OPERATIONS {
        if intrinsic == "ldexp" {
            continue;
        }
        if name == operation {
            return Some(format!("llvm.{intrinsic}.f64"));
        }
        if single == Some(operation) {
            return Some(format!("llvm.{intrinsic}.f32"));
        }
    }
    single.filter(|single| !is_native && FUNCTIONS.contains(single)).map(|single| format!("{PREFIX}{single}f"))
}

/// Replaces a function that the module does not define.
fn replace_declaration(module: &Module<'_>, name: &str, replacement: &str) {
    if let Some(function) = module.function(name).filter(|function| function.is_declaration()) {
        replace(module, function, replacement);
    }
}

/// Replaces a function, if it has the type of its replacement.
fn replace<'c>(module: &Module<'c>, function: Value<'c>, replacement: &str) {
    let held = type_of(module.context(), replacement);
    if function.held_type() != held {
        return;
    }
    let other = module.declare(replacement, held);
    // A user's crate defines a function with our name.
    if other.held_type() != held {
        return;
    }
    if other.is_declaration() {
        other.set_linkage(Linkage::EXTERNAL);
    }
    function.replace_all_uses_with(other);
    function.delete_function();
}

/// The type of an intrinsic of [`OPERATIONS`] or of a function of `oxisycl-builtins`.
fn type_of<'c>(context: &'c Context, replacement: &str) -> Type<'c> {
    let number = |bits| Type::int(context, bits);
    let pointer = Type::pointer(context, 0);
    let name = replacement.strip_prefix(PREFIX).unwrap_or(replacement);
    let float = |is_single| if is_single { Type::single(context) } else { Type::double(context) };
    let (name, float) = match name.strip_prefix("llvm.") {
        Some(intrinsic) => {
            let mut parts = intrinsic.split('.');
            (parts.next().unwrap_or_default(), float(parts.next() == Some("f32")))
        }
        None => match name {
            "memcmp" | "bcmp" => return Type::function(number(32), &[pointer, pointer, number(64)]),
            "strlen" => return Type::function(number(64), &[pointer]),
            "lgamma_r" => ("lgamma_r", float(false)),
            "lgammaf_r" => ("lgamma_r", float(true)),
            _ if FUNCTIONS.contains(&name) => (name, float(false)),
            _ => (name.strip_suffix('f').unwrap_or(name), float(true)),
        },
    };
    let parameters = match name {
        "fma" => vec![float; 3],
        "atan2" | "pow" | "hypot" | "fmod" | "remainder" | "fdim" | "midpoint" | "copysign" | "minnum" | "maxnum" => {
            vec![float; 2]
        }
        "powi" | "ldexp" => vec![float, number(32)],
        "lgamma_r" => vec![float, pointer],
        _ => vec![float],
    };
    Type::function(float, &parameters)
}

/// Replaces remainders. That of code generators is `x - y * trunc(x / y)`, which is wrong for large quotients.
fn replace_remainders(module: &Module<'_>) {
    for function in module.functions() {
        for instruction in function.instructions() {
            if !instruction.is(Opcode::FREM) {
                continue;
            }
            let name = match instruction.value_type().kind() {
                TypeKind::Float => "fmodf",
                TypeKind::Double => "fmod",
                _ => continue,
            };
            let held = instruction.value_type();
            let other = module.declare(&format!("{PREFIX}{name}"), crate::llvm::Type::function(held, &[held, held]));
            let builder = Builder::before(module.context(), instruction);
            instruction.replace_all_uses_with(builder.call(other, &[instruction.operand(0), instruction.operand(1)]));
            instruction.erase();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_libm_become_operations_or_functions_of_ours() {
        let stands_for = |name: &str, is_native| in_place_of(&Libm { name: name.to_owned(), is_native });
        assert_eq!(stands_for("sqrtf", false).as_deref(), Some("llvm.sqrt.f32"));
        assert_eq!(stands_for("fma", false).as_deref(), Some("llvm.fma.f64"));
        assert_eq!(stands_for("sinf", false).as_deref(), Some("__oxisycl_sinf"));
        // Ours is made of it.
        assert_eq!(stands_for("sin", false), None);
        assert_eq!(stands_for("sqrtf", true).as_deref(), Some("llvm.sqrt.f32"));
        assert_eq!(stands_for("fma", true).as_deref(), Some("llvm.fma.f64"));
        assert_eq!(stands_for("get_x86_features", true), None);
    }

    #[test]
    fn the_library_is_told_by_names_and_paths() {
        assert!(is_library("__oxisycl_sinf"));
        assert!(is_library("_ZN16oxisycl_builtins6single8circular3sin17h0123456789abcdefE"));
        assert!(is_library(
            "_ZN63_$LT$f32$u20$as$u20$oxisycl_builtins..operation..Operations$GT$3fma17h0123456789abcdefE"
        ));
        assert!(!is_library("_ZN3app4main17h0123456789abcdefE"));
    }
}
