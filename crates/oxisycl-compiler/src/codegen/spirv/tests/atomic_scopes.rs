//! Each atomic operation in each order and scope, as instructions of SPIR-V.

use std::fmt::Write;

use rustc_hash::FxHashMap;

use super::golden::text;
use super::support::{BEGIN, context, translated, validated};
use crate::golden::check;
use crate::passes::atomic_builtins::tests::{cases, chosen, function};

/// The instructions of SPIR-V that are atomic or order memory, with scope and semantics as numbers.
#[test]
fn golden_atomics_in_spirv() {
    let cases = cases();
    let context = context();
    let chosen = chosen(&context, &cases);
    let kernel = |number: usize| {
        let body = function(&chosen, number).replace("%p", "%out");
        format!("define void @k{number}{BEGIN}{body}\n}}\n")
    };
    let code: String = (0..cases.len()).map(kernel).collect();
    let module = translated(&context, &code).module;
    validated(&module);
    let assembly = text(&module);
    let constants: FxHashMap<_, _> = assembly
        .lines()
        .filter(|line| line.contains("OpConstant "))
        .filter_map(|line| Some((line.split(' ').next()?, line.split(' ').next_back()?)))
        .collect();
    let functions: Vec<_> = assembly.split("OpFunctionEnd").filter(|text| text.contains("OpFunction ")).collect();
    assert_eq!(functions.len(), cases.len());
    let mut golden = String::new();
    for (case, function) in cases.iter().zip(functions) {
        let mut line = String::new();
        let is_meant = |line: &&str| line.contains("OpAtomic") || line.contains("OpMemoryBarrier");
        for instruction in function.lines().filter(is_meant) {
            let (_, instruction) = instruction.split_once("Op").expect("an instruction");
            let operands: Vec<_> = instruction.split_whitespace().collect();
            // A pointer comes first, except for a barrier; the values come last.
            let first = operands.iter().position(|operand| constants.contains_key(operand)).expect("a scope");
            let n = if operands[0] == "AtomicCompareExchange" { 3 } else { 2 };
            let numbers: Vec<_> = operands[first..first + n].iter().map(|operand| constants[operand]).collect();
            let _ = write!(line, " {} {}", operands[0], numbers.join(" "));
        }
        // What no new golden file may change.
        let scope = ["2", "1", "0"][case.scope];
        let semantics = ["0", "770", "772", "776", "784"][case.order];
        let is_kept = line.contains(&format!(" {scope} {semantics}"));
        // A failure with another order than relaxed can strengthen an exchange.
        let is_kept = is_kept || case.failure.is_some_and(|failure| failure > 0);
        let is_nothing = line.is_empty() && case.builtin == "atomic_fence" && case.order == 0;
        assert!(is_kept || is_nothing, "{}:{line}", case.title());
        let _ = writeln!(golden, "{}:{line}", case.title());
    }
    check("atomics.spirv1.2.txt", &golden);
}
