//! Floating-point policies: how strictly operations are compiled.
//!
//! Operations of the device library stay as they are, unless [`fast_math`](super::fast_math) has replaced them. Its sums that make up for
//! rounding are wrong if they are contracted or reordered. So its functions are [kept apart](keep_library_apart) until all others were
//! marked.

use crate::analyses::references::globals_in;
use crate::builtin_table::PREFIX;
use crate::llvm::{Attribute, Linkage, Module, Value, ValueKind};
use crate::options::FloatPolicy;
use crate::origin;
use crate::passes::libcalls::is_library;
use crate::passes::panic_names;
use rustc_hash::{FxHashMap, FxHashSet};

// The bits of `LLVMFastMathFlags`. The two flags that promise the absence of NaNs and infinities are never set. A value that breaks the
// promise is poison, and a branch on it undefined. LLVM may then delete the check of an index on the other side of that branch.
pub(crate) const ALLOW_REASSOCIATION: u32 = 1 << 0;
const NO_SIGNED_ZEROS: u32 = 1 << 3;
pub(crate) const ALLOW_RECIPROCAL: u32 = 1 << 4;
pub(crate) const ALLOW_CONTRACT: u32 = 1 << 5;
pub(crate) const ALLOW_APPROXIMATION: u32 = 1 << 6;
const FAST: u32 = ALLOW_REASSOCIATION | NO_SIGNED_ZEROS | ALLOW_RECIPROCAL | ALLOW_CONTRACT | ALLOW_APPROXIMATION;

/// The builtins by which a kernel chooses a policy, without `oxisycl_device::builtin::`. In native code they are functions that do nothing.
const MARKERS: [(&str, FloatPolicy); 3] = [
    ("float_strict", FloatPolicy::Strict),
    ("float_contract", FloatPolicy::Contract),
    ("float_fast", FloatPolicy::Fast),
];

/// Keeps the functions of the device library from being inlined into others, and from losing parameters that all callers agree on, until
/// [`unite_with_library`].
pub(crate) fn keep_library_apart(module: &Module<'_>) {
    for function in library(module) {
        if !function.has_attribute(Attribute::FUNCTION, "alwaysinline") {
            function.add_attribute(Attribute::FUNCTION, Attribute::plain(module.context(), "noinline", 0));
            function.set_linkage(Linkage::EXTERNAL);
        }
    }
}

/// Reverts [`keep_library_apart`].
pub(crate) fn unite_with_library(module: &Module<'_>) {
    for function in library(module) {
        function.remove_attribute(Attribute::FUNCTION, "noinline");
        // What is called only once panics are lowered is visible until then.
        if function.name() != panic_names::RECORD {
            function.set_linkage(Linkage::INTERNAL);
        }
    }
}

/// The functions of the device library, except those that record panics and prints. These are never inlined, and would count for every
/// kernel.
fn library<'c>(module: &Module<'c>) -> impl Iterator<Item = Value<'c>> {
    let is_record = |name: &str| panic_names::is_record(name) || panic_names::is_print(name);
    let is_of_library = move |name: &str| is_library(name) && !is_record(name);
    module.functions().into_iter().filter(move |function| !function.is_declaration() && is_of_library(function.name()))
}

/// The policy of each kernel, as [`policy`] has it. Removes the markers of devices.
pub(crate) fn policies(module: &Module<'_>, kernels: &[Value<'_>], of_build: FloatPolicy) -> Vec<FloatPolicy> {
    let policies = kernels.iter().map(|kernel| policy(module, *kernel, of_build)).collect();
    let markers = markers(module);
    for (marker, _) in markers.into_iter().filter(|(marker, _)| marker.is_declaration()) {
        for call in marker.users() {
            call.erase();
        }
        marker.delete_function();
    }
    policies
}

/// The policy of a kernel: the strictest one whose marker it calls, else that of the build.
pub(crate) fn policy<'c>(module: &Module<'c>, kernel: Value<'c>, of_build: FloatPolicy) -> FloatPolicy {
    let reached = reached(kernel);
    let chosen = markers(module).into_iter().filter(|(marker, _)| reached.contains(marker)).map(|(_, policy)| policy);
    chosen.min().unwrap_or(of_build)
}

fn markers<'c>(module: &Module<'c>) -> Vec<(Value<'c>, FloatPolicy)> {
    let policy_of = |function: Value<'_>| {
        let name =
            function.name().strip_prefix(PREFIX).map(str::to_owned).or_else(|| origin::builtin(function.name()))?;
        MARKERS.iter().find(|(marker, _)| *marker == name).map(|(_, policy)| *policy)
    };
    module.functions().into_iter().filter_map(|function| Some((function, policy_of(function)?))).collect()
}

/// Sets fast-math flags on the floating-point operations that the kernels reach, by their policies. If several kernels reach an operation,
/// the strictest policy counts.
pub(crate) fn apply_policies(kernels: &[Value<'_>], policies: &[FloatPolicy]) {
    let mut of_function = FxHashMap::default();
    for (&kernel, &policy) in kernels.iter().zip(policies) {
        for function in reached(kernel) {
            let known = of_function.entry(function).or_insert(policy);
            *known = policy.min(*known);
        }
    }
    for (function, policy) in of_function {
        if is_library(function.name()) {
            continue;
        }
        let flags = match policy {
            FloatPolicy::Strict => continue,
            FloatPolicy::Contract => ALLOW_CONTRACT,
            FloatPolicy::Fast => FAST,
        };
        for instruction in function.instructions() {
            instruction.add_fast_math(flags);
        }
    }
}

/// The functions that a function refers to, also through constants. The function itself is first.
fn reached(function: Value<'_>) -> Vec<Value<'_>> {
    let mut seen = FxHashSet::from_iter([function]);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::passes::tests::{context, module};

    #[test]
    fn what_records_panics_stays_a_function_of_its_own() {
        let context = context();
        let text = "define void @__oxisycl_record_panic_numbers() noinline { ret void }
            define void @__oxisycl_sinf() { ret void }";
        let module = module(&context, text);
        let is_apart =
            |name| module.function(name).expect("it is there").has_attribute(Attribute::FUNCTION, "noinline");
        keep_library_apart(&module);
        assert!(is_apart("__oxisycl_record_panic_numbers") && is_apart("__oxisycl_sinf"));
        unite_with_library(&module);
        assert!(is_apart("__oxisycl_record_panic_numbers") && !is_apart("__oxisycl_sinf"));
    }
}
