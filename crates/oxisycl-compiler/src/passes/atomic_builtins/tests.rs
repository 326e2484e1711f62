//! Each operation in each order and scope that it can have, down to the instructions of targets.

use oxisycl_image::ImageTarget;

use super::*;
use crate::builtin_table::{BUILTINS, Family, Lowering};
use crate::codegen;
use crate::golden::check;
use crate::llvm::{Context, PassTuning};
use crate::passes::tests::{context, module, ptx};
use crate::pipeline::{Phase, run_for_target};

/// An operation of an order, of a second order for a failure, and of a scope, all as numbers.
pub(crate) struct Case {
    pub(crate) builtin: &'static str,
    pub(crate) order: usize,
    pub(crate) failure: Option<usize>,
    pub(crate) scope: usize,
}

impl Case {
    pub(crate) fn title(&self) -> String {
        let failure = self.failure.map(|failure| format!(" {}", ORDERS[failure])).unwrap_or_default();
        format!("{} {}{failure} {}", self.builtin, ORDERS[self.order], SCOPES[self.scope])
    }

    /// A call, of which nothing is used, on the address `%p`.
    pub(crate) fn call(&self) -> String {
        let Self { builtin, order, scope, .. } = self;
        let (operation, of, _) = parse(builtin).expect("an atomic operation");
        let value = if of.starts_with('i') { "7" } else { "7.0" };
        let symbol = format!("@oxisycl.{builtin}");
        match operation {
            Operation::Fence => format!("call void {symbol}(i32 {order}, i32 {scope})"),
            Operation::Load => format!("%old = call {of} {symbol}(ptr %p, i32 {order}, i32 {scope})"),
            Operation::Store => format!("call void {symbol}(ptr %p, {of} {value}, i32 {order}, i32 {scope})"),
            Operation::CompareExchange => {
                let failure = self.failure.expect("an order");
                let values = format!("{of} 1, {of} {value}");
                format!("%old = call {of} {symbol}(ptr %p, {values}, i32 {order}, i32 {failure}, i32 {scope})")
            }
            Operation::Change(_) => {
                format!("%old = call {of} {symbol}(ptr %p, {of} {value}, i32 {order}, i32 {scope})")
            }
        }
    }
}

/// All cases that the device library can ask for.
pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for builtin in BUILTINS.iter().map(|builtin| builtin.name) {
        let Some((operation, ..)) = parse(builtin) else { continue };
        let (orders, failures): (&[usize], &[Option<usize>]) = match operation {
            Operation::Load => (&[0, 1, 4], &[None]),
            Operation::Store => (&[0, 2, 4], &[None]),
            Operation::CompareExchange => (&[0, 1, 2, 3, 4], &[Some(0), Some(1), Some(4)]),
            Operation::Change(_) | Operation::Fence => (&[0, 1, 2, 3, 4], &[None]),
        };
        for (&order, &failure) in orders.iter().flat_map(|order| failures.iter().map(move |failure| (order, failure))) {
            cases.extend((0..SCOPES.len()).map(|scope| Case { builtin, order, failure, scope }));
        }
    }
    cases
}

/// What is left of bodies: a function for each case, in LLVM's assembly, that does nothing else.
pub(crate) fn chosen(context: &Context, cases: &[Case]) -> String {
    let mut text = String::new();
    for builtin in BUILTINS.iter().map(|builtin| builtin.name) {
        let body = body(builtin, &format!("oxisycl.{builtin}")).unwrap_or_default();
        text += &body.replace("define ", "define internal ").replace(") {\n", ") alwaysinline {\n");
    }
    for (number, case) in cases.iter().enumerate() {
        let _ = write!(text, "define void @f{number}(ptr %p) {{\n{}\nret void\n}}\n", case.call());
    }
    let module = module(context, &text);
    let passes = "always-inline,globaldce,function(instcombine<no-verify-fixpoint>,simplifycfg)";
    module.run(passes, None, &PassTuning::DEVICE).expect("it is optimised");
    module.to_string()
}

/// The instructions of the function for a case.
pub(crate) fn function(chosen: &str, number: usize) -> &str {
    let (_, rest) = chosen.split_once(&format!("@f{number}(")).expect("the function");
    let (_, rest) = rest.split_once("{\n").expect("its body");
    rest.split_once("\n}").expect("its end").0
}

#[test]
fn each_builtin_that_is_said_to_be_atomic_has_a_body() {
    for builtin in BUILTINS {
        let is_atomic = builtin.lowering(Family::Nvptx) == Lowering::Atomic;
        let is_sum_of_floats = ["atomic_add_f32", "atomic_add_f64"].contains(&builtin.name);
        assert_eq!(body(builtin.name, "f").is_some(), is_atomic || is_sum_of_floats, "{}", builtin.name);
    }
}

#[test]
fn one_operation_is_left_of_a_body_and_no_choice() {
    let context = context();
    let cases = cases();
    let chosen = chosen(&context, &cases);
    for (number, case) in cases.iter().enumerate() {
        let code = function(&chosen, number);
        let lines: Vec<_> = code.lines().filter(|line| line.contains("syncscope")).collect();
        let is_nothing = case.builtin == "atomic_fence" && case.order == 0;
        assert_eq!(lines.len(), usize::from(!is_nothing), "{}: {code}", case.title());
        let Some(line) = lines.first() else { continue };
        let expected = format!("syncscope(\"{}\") {}", SCOPES[case.scope], ORDERS[case.order]);
        assert!(line.contains(&expected), "{}: {line}", case.title());
        assert!(!code.contains("switch") && !code.contains("br "), "{}: {code}", case.title());
    }
}

#[test]
fn orders_that_a_load_or_store_cannot_have_become_the_strongest() {
    let of = |(builtin, order)| Case { builtin, order, failure: None, scope: 1 };
    let cases =
        [("atomic_load_u32", 2), ("atomic_load_u64", 3), ("atomic_store_u32", 1), ("atomic_store_u64", 3)].map(of);
    let context = context();
    let chosen = chosen(&context, &cases);
    for number in 0..cases.len() {
        let code = function(&chosen, number);
        assert!(code.contains("syncscope(\"device\") seq_cst"), "{code}");
    }
}

/// The instructions of PTX that access or order memory.
#[test]
fn golden_atomics_in_ptx() {
    let context = context();
    let target = codegen::of(&ImageTarget::Ptx { sm: 70 }).expect("a target");
    let cases = cases();
    // The address is one of global memory, as kernels' are known to be.
    let global = "(ptr addrspace(1) %global) {\n  %p = addrspacecast ptr addrspace(1) %global to ptr\n";
    let chosen = chosen(&context, &cases);
    let text =
        (0..cases.len()).map(|number| format!("define void @f{number}{global}{}\n}}\n", function(&chosen, number)));
    let module = module(&context, &text.collect::<String>());
    let module = run_for_target(Phase::Legalize, &*target, module).expect("legal code");
    let code = ptx(&module);
    let mut golden = String::new();
    for (number, case) in cases.iter().enumerate() {
        let (_, rest) = code.rsplit_once(&format!("f{number}(")).expect("the function");
        let (body, _) = rest.split_once("\n}").expect("its end");
        let starts = ["atom.", "red.", "fence.", "membar.", "ld.", "st.", "bra", "@"];
        let lines = body.lines().map(str::trim).filter(|line| starts.iter().any(|start| line.starts_with(start)));
        let names: Vec<_> = lines
            .filter_map(|line| line.split([' ', '\t', ';']).next())
            .filter(|name| !name.contains(".param"))
            .collect();
        let names = names.join(" ");
        // What no new golden file may change: the scope is named, and an order is not dropped. Relaxed changes have the device's scope.
        let scope = [".cta", ".gpu", ".sys"][case.scope];
        let is_relaxed_change = case.order == 0 && names.starts_with("atom.global.") && case.scope < 2;
        let is_nothing = case.order == 0 && names.is_empty();
        assert!(names.contains(scope) || is_relaxed_change || is_nothing, "{}: {names}", case.title());
        let words: &[&str] = match case.order {
            1 => &["acquire", "acq_rel"],
            2 => &["release", "acq_rel", "fence.sc"],
            3 => &["acq_rel", "fence.sc"],
            4 => &["fence.sc"],
            _ => &[""],
        };
        assert!(words.iter().any(|word| names.contains(word)), "{}: {names}", case.title());
        let _ = writeln!(golden, "{}: {names}", case.title());
    }
    check("atomics.sm_70.txt", &golden);
}

#[test]
fn amd_gpus_have_names_of_their_own_for_scopes() {
    let context = context();
    let target = codegen::of(&ImageTarget::AmdGcn { arch: "gfx90a".to_owned() }).expect("a target");
    let cases = [0, 1, 2].map(|scope| Case { builtin: "atomic_exchange_u64", order: 3, failure: None, scope });
    let module = module(&context, &chosen(&context, &cases));
    module.set_target(target.machine().triple(), &target.machine().data_layout());
    let module = run_for_target(Phase::Legalize, &*target, module).expect("legal code");
    let code = module.to_string();
    for (number, expected) in ["syncscope(\"workgroup\") ", "syncscope(\"agent\") ", ""].into_iter().enumerate() {
        let code = function(&code, number);
        assert!(code.contains(&format!("i64 7 {expected}acq_rel")), "{code}");
    }
}
