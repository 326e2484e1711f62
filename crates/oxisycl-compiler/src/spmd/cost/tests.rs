//! The estimates of bodies, and the table.

use std::fmt::Write;

use super::*;
use crate::golden;
use crate::llvm::{Module, PassTuning, TypeKind};
use crate::passes::tests::context;
use crate::spmd::PREPARE;
use crate::spmd::shape::PURE;
use crate::spmd::widen::{CONVERTING, ELEMENTWISE};

/// Visits the bodies of `golden/cost.ll`, with their names.
fn with_bodies(mut visit: impl FnMut(&str, &Graph<'_>, &Shapes<'_, '_>, Layout<'_>)) {
    let context = context();
    let text = include_str!("../../../golden/cost.ll");
    let module = Module::from_text(&context, text, "cost").expect("a test is well-formed");
    module.verify("parsing").expect("a test is valid");
    module.run(PREPARE, None, &PassTuning::NATIVE).expect("it runs");
    let bodies = module
        .functions()
        .into_iter()
        .filter(|body| !body.is_declaration() && body.held_type().result().kind() == TypeKind::Void);
    for body in bodies {
        let graph = Graph::of(body).unwrap_or_else(|refusal| panic!("{}: {}", body.name(), refusal.reason));
        let layout = Layout::of(&module);
        let shapes = Shapes::of(&graph, layout);
        visit(body.name(), &graph, &shapes, layout);
    }
}

#[test]
fn golden_cost() {
    let mut text = String::new();
    with_bodies(|name, graph, shapes, layout| {
        let _ = writeln!(text, "{name}");
        for level in HostLevel::ALL {
            let costs = Costs::new(graph, shapes, layout, level);
            for lanes in [4, 8, 16] {
                let estimate = costs.of(lanes);
                let (scalar, vector) = (estimate.scalar, estimate.vector);
                let _ = writeln!(
                    text,
                    "  {level} {lanes:2} lanes: {scalar} for one, {vector} in lanes, {}",
                    estimate.gain()
                );
            }
            let _ = match costs.judge(None, false) {
                Ok(estimate) => writeln!(text, "  {level} auto: {} lanes", estimate.lanes),
                Err(refused) => writeln!(text, "  {level} auto: {}", refused.reason),
            };
        }
    });
    golden::check("cost.txt", &text);
}

/// How many lanes a body gets, or why it gets none.
fn verdict(of: &str, level: HostLevel) -> Result<u32, String> {
    let mut verdict = None;
    with_bodies(|name, graph, shapes, layout| {
        if name == of {
            let judged = Costs::new(graph, shapes, layout, level).judge(None, false);
            verdict = Some(judged.map(|estimate| estimate.lanes).map_err(|refused| refused.reason));
        }
    });
    verdict.unwrap_or_else(|| panic!("there is no body {of}"))
}

#[test]
fn computing_gets_lanes_and_scattered_memory_does_not() {
    for name in ["nbody", "mandelbrot", "stencil", "blur", "polynomial", "normalised"] {
        for level in HostLevel::ALL {
            assert!(verdict(name, level).is_ok_and(|lanes| lanes >= 4), "{name}: {:?}", verdict(name, level));
        }
    }
    let reasons = [
        ("spmv", "loads from scattered places"),
        ("histogram", "atomic operations for one lane after the other"),
        ("mathematics", "calls for one lane after the other"),
        ("quotients", "divisions for one lane after the other"),
    ];
    for (name, expected) in reasons {
        let reason = verdict(name, HostLevel::V3).expect_err(name);
        assert!(reason.starts_with("in lanes they would be about ") && reason.ends_with(expected), "{name}: {reason}");
    }
}

#[test]
fn one_item_costs_the_same_for_any_number_of_lanes() {
    with_bodies(|name, graph, shapes, layout| {
        let costs = Costs::new(graph, shapes, layout, HostLevel::V3);
        let estimates = [2, 4, 8, 16].map(|lanes| costs.of(lanes));
        assert!(estimates.iter().all(|estimate| estimate.scalar == estimates[0].scalar), "{name}: {estimates:?}");
        assert!(
            estimates.is_sorted_by_key(|estimate| estimate.vector),
            "{name}: more lanes are not cheaper: {estimates:?}"
        );
    });
}

#[test]
fn a_gain_is_shown_in_tenths() {
    let shown = [34, 36, 95, 100, 384].map(|gain| Gain(gain).to_string());
    assert_eq!(shown, ["0.3", "0.4", "1.0", "1.0", "3.8"].map(|times| format!("about {times} times as fast")));
    assert_eq!(Estimate { scalar: 10, vector: 20, lanes: 8 }.gain(), Gain(400));
    assert_eq!(Estimate { scalar: u64::MAX, vector: 0, lanes: 8 }.gain(), Gain(u64::MAX));
}

#[test]
fn each_instruction_that_lanes_may_run_has_a_row() {
    for name in ELEMENTWISE.iter().chain(&CONVERTING) {
        assert!(Kind::of_intrinsic(name).is_some(), "no row for llvm.{name}");
    }
    let casts = [
        Opcode::TRUNC,
        Opcode::ZEXT,
        Opcode::SEXT,
        Opcode::FP_TO_UI,
        Opcode::FP_TO_SI,
        Opcode::UI_TO_FP,
        Opcode::SI_TO_FP,
        Opcode::FP_TRUNC,
        Opcode::FP_EXT,
        Opcode::PTR_TO_INT,
        Opcode::INT_TO_PTR,
        Opcode::BITCAST,
        Opcode::ADDRESS_SPACE_CAST,
        Opcode::PTR_TO_ADDR,
    ];
    let others = [
        Opcode::LOAD,
        Opcode::STORE,
        Opcode::ATOMIC_RMW,
        Opcode::PHI,
        Opcode::ALLOCA,
        Opcode::BRANCH,
        Opcode::RET,
        Opcode::FENCE,
    ];
    for opcode in PURE.iter().chain(&casts).chain(&others) {
        assert!(Kind::of_opcode(*opcode).is_some(), "no row for {opcode:?}");
    }
    assert_eq!(Kind::of_opcode(Opcode::SWITCH), None, "it is lowered");
}

#[test]
fn a_vector_of_several_registers_costs_as_much_for_each() {
    let table = Table::of(HostLevel::V3);
    let busy = |bits, lanes| table.vector(Kind::Float, bits, lanes).busy;
    assert_eq!([busy(32, 4), busy(32, 8), busy(32, 16), busy(64, 16)], [4, 4, 8, 16]);
    // Fewer lanes than elements of a register, and calls for each.
    assert_eq!(table.vector(Kind::Call, 32, 8).busy, 8 * table.vector(Kind::Call, 32, 1).busy);
    let access = |place, is_masked| table.access(place, 32, 8, true, is_masked).busy;
    assert!(access(Access::Consecutive, false) < access(Access::Consecutive, true));
    assert!(access(Access::Consecutive, true) < access(Access::Anywhere, false));
    assert!(access(Access::Anywhere, false) < access(Access::Anywhere, true));
    let of_v4 = Table::of(HostLevel::V4).access(Access::Anywhere, 32, 8, true, true).busy;
    assert!(of_v4 < access(Access::Anywhere, true), "it has masked scatters");
}
