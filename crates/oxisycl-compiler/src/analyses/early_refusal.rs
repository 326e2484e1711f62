//! Refuses kernels early that reach far more than could be meant for a device. Examples are kernels that call the host's runtime with its
//! queues and threads.
//!
//! Such kernels would be refused in the end for something that no device has, but LLVM takes minutes to optimise all that they reach. So
//! the functions nearest to the kernel are simplified by themselves first, which shows whether what they reach is dead on devices. A kernel
//! of common size is never examined here. Changes nothing: works on copies.

use std::collections::VecDeque;

use rustc_hash::FxHashSet;

use crate::analyses::legality::{self, Calls};
use crate::analyses::references::globals_in;
use crate::error::CompileError;
use crate::llvm::{Machine, Module, PassTuning, Value, ValueKind, Vectors};
use crate::origin;

/// The number of functions from which on a kernel is excessive; also the number of functions that are simplified first. Kernels of the
/// suites reach up to 400 before anything is optimised, and those that call the host's runtime reach 10,000. LLVM took more than four
/// minutes for one of these before it was refused; now it takes seven seconds.
const MANY_FUNCTIONS: usize = 1000;
/// Passes that remove dead code, at a small part of the cost of all optimisation.
const SIMPLIFY: &str = "default<O1>,globaldce";
const TUNING: PassTuning = PassTuning { inliner_threshold: 25, vectors: Vectors::None };
/// The prefix of functions that are too far from the kernel to be examined. Such names are never reported as a reason.
const FAR: &str = "oxisycl.far.";

/// The most instructions that a kernel may reach before anything is optimised: two hundred in each of as many functions as make it excessive.
/// One of 18 MB of assembly took LLVM more than 400 s and 1.7 GB.
pub(crate) const MAX_INSTRUCTIONS: usize = 200 * MANY_FUNCTIONS;

/// The reason why a module is too large to be optimised; `None` if it is not.
pub(crate) fn oversize(module: &Module<'_>, max_instructions: usize) -> Option<String> {
    let (mut n_functions, mut n_instructions) = (0, 0);
    for function in bodies(module) {
        n_functions += 1;
        n_instructions += function.instructions().len();
    }
    (n_instructions > max_instructions).then(|| {
        format!(
            "it is too large to be compiled by `cargo sycl`: it reaches {n_instructions} instructions in {n_functions} functions, the limit is \
             {max_instructions} instructions"
        )
    })
}

/// How much of the program was linked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Extent {
    /// Missing symbols may be found later.
    Part,
    /// Missing symbols cannot be found, except formatting functions.
    Linked,
}

/// Whether a module has more functions than a kernel for devices could need.
pub(crate) fn is_excessive(module: &Module<'_>) -> bool {
    bodies(module).count() > MANY_FUNCTIONS
}

fn bodies<'c>(module: &Module<'c>) -> impl Iterator<Item = Value<'c>> {
    module.functions().into_iter().filter(|function| !function.is_declaration())
}

/// The reason why no device can run an excessive module whose kernel has the entry `entry`, if simplified code still shows one. A reason
/// never lies in dead code. Without a reason the module may be refused later all the same.
pub(crate) fn refusal(
    module: &Module<'_>,
    entry: &str,
    extent: Extent,
    machine: &Machine,
    calls: &Calls,
    ours: &dyn Fn(&str) -> bool,
) -> Result<Option<String>, CompileError> {
    let amounts = match extent {
        Extent::Part => &[MANY_FUNCTIONS][..],
        Extent::Linked => &[MANY_FUNCTIONS, usize::MAX],
    };
    for amount in amounts {
        let trial = module.clone();
        keep_nearest(&trial, entry, *amount);
        trial.run(SIMPLIFY, Some(machine), &TUNING)?;
        let Some(function) = trial.function(entry) else { continue };
        let may_be_found = |name: &str| {
            let is_missing = || trial.function(name).is_some_and(Value::is_declaration) && !name.starts_with("llvm.");
            // Memory that one function allocates and frees may turn out to be needless.
            origin::formats_itself(name) || origin::is_allocation(name) || extent == Extent::Part && is_missing()
        };
        let findings = legality::examine(function, entry, calls, &|name| ours(name) || may_be_found(name));
        if findings.unsupported.is_some() {
            return Ok(findings.unsupported);
        }
    }
    Ok(None)
}

/// Removes the bodies of all functions except `amount` ones, those with the fewest references between them and the entry.
fn keep_nearest(module: &Module<'_>, entry: &str, amount: usize) {
    let mut queue: VecDeque<_> = module.function(entry).into_iter().collect();
    let mut seen: FxHashSet<Value<'_>> = queue.iter().copied().collect();
    let mut near = FxHashSet::default();
    while let Some(value) = queue.pop_front() {
        let mut operands: Vec<_> = value.initializer().into_iter().collect();
        if value.kind() == ValueKind::Function && !value.is_declaration() {
            if near.len() == amount {
                break;
            }
            near.insert(value);
            operands.extend(value.instructions().into_iter().flat_map(Value::operands));
        }
        for operand in operands {
            globals_in(operand, &mut |global| {
                if seen.insert(global) {
                    queue.push_back(global);
                }
            });
        }
    }
    let far: Vec<_> = bodies(module).filter(|function| !near.contains(function)).collect();
    for (number, function) in far.into_iter().enumerate() {
        let declaration = module.declare(&format!("{FAR}{number}"), function.held_type());
        function.replace_all_uses_with(declaration);
        function.delete_function();
    }
}

#[cfg(test)]
mod tests {
    use oxisycl_image::ImageTarget;

    use super::*;
    use crate::codegen;
    use crate::passes::tests::{context, module};

    /// A kernel that calls a row of so many functions, the last of which is `last`; each also calls `elsewhere` with its number.
    fn row(n: usize, entry: &str, last: &str) -> String {
        let mut text = format!(
            "@counter = internal global i32 0
             @local = internal thread_local global i32 0
             declare void @elsewhere(i32)
             declare void @__rust_dealloc(ptr)
             define void @entry() {{ {entry} call void @f0() ret void }}
             define internal void @last() {{ {last} ret void }}\n"
        );
        for i in 0..n {
            let next = if i + 1 == n { "last".to_owned() } else { format!("f{}", i + 1) };
            text += &format!(
                "define internal void @f{i}() noinline {{ call void @oxisycl.any(i32 {i}) call void @{next}() ret void }}\n"
            );
        }
        text + "declare void @oxisycl.any(i32)\n"
    }

    fn refused(text: &str, extent: Extent) -> Option<String> {
        let context = context();
        let target = codegen::of(&ImageTarget::Ptx { sm: 70 }).expect("a target");
        let module = module(&context, text);
        let before = module.to_string();
        assert!(is_excessive(&module));
        let mut calls = Calls::default();
        calls.add(&module);
        let found = refusal(&module, "entry", extent, target.machine(), &calls, &|_| false).expect("passes");
        assert_eq!(module.to_string(), before, "the module stays as it is");
        found
    }

    #[test]
    fn what_no_device_has_is_found_near_the_kernel_and_far_from_it() {
        let uses_local = "store volatile i32 1, ptr @local";
        let reason = "a thread-local variable, `local`";
        let near = refused(&row(1200, uses_local, ""), Extent::Part).expect("a reason");
        assert!(near.starts_with(reason), "{near}");
        assert_eq!(refused(&row(1200, "", uses_local), Extent::Part), None, "too far to be looked at yet");
        let far = refused(&row(1200, "", uses_local), Extent::Linked).expect("a reason");
        assert!(far.starts_with(reason), "{far}");
    }

    #[test]
    fn what_is_missing_counts_when_it_is_nowhere_and_memory_of_the_heap_may_be_needless() {
        let calls = "call void @elsewhere(i32 1)";
        assert_eq!(refused(&row(1200, calls, ""), Extent::Part), None);
        let found = refused(&row(1200, calls, ""), Extent::Linked).expect("a reason");
        assert!(found.starts_with("it calls `elsewhere`, which exists on the host only"), "{found}");
        assert_eq!(refused(&row(1200, "call void @__rust_dealloc(ptr null)", ""), Extent::Linked), None);
    }

    #[test]
    fn what_is_too_large_is_told_with_size_and_limit() {
        let text = row(3, "", "");
        let context = context();
        let module = module(&context, &text);
        let n_functions = bodies(&module).count();
        let n_instructions: usize = bodies(&module).map(|function| function.instructions().len()).sum();
        assert_eq!(oversize(&module, n_instructions), None);
        let reason = oversize(&module, n_instructions - 1).unwrap();
        let expected = format!(
            "it reaches {n_instructions} instructions in {n_functions} functions, the limit is {} instructions",
            n_instructions - 1
        );
        assert!(reason.ends_with(&expected), "{reason}");
    }

    #[test]
    fn dead_code_is_no_reason() {
        let dead = "%c = call i1 @never() br i1 %c, label %a, label %b
            a: store volatile i32 1, ptr @local br label %b
            b:";
        let text = row(1200, dead, "") + "define internal i1 @never() { ret i1 false }";
        assert_eq!(refused(&text, Extent::Linked), None);
        let small = row(3, "store volatile i32 1, ptr @local", "");
        let context = context();
        assert!(!is_excessive(&module(&context, &small)), "nothing is said of kernels of common size");
    }
}
