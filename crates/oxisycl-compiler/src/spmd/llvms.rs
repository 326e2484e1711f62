//! What LLVM makes of item loops by itself: vectors over the items of short bodies without loops, which lanes could at most equal.
//!
//! Nothing tells that beforehand. So a copy of the module is compiled with scalar loops, looked at, and thrown away.

use oxisycl_image::HostLevel;

use super::PREPARE;
use super::cfg::{BlockIdx, Graph};
use super::cost::Costs;
use super::fields::Groups;
use super::item_loops::{ItemLoop, define_steps};
use super::shape::Shapes;
use crate::error::CompileError;
use crate::llvm::pass_lists::DROP_UNUSED;
use crate::llvm::{Layout, Linkage, Machine, Module, PassTuning, TypeKind, Value, Vectors};
use crate::origin;

/// The most instructions of a body that LLVM is tried on.
const MOST_INSTRUCTIONS: usize = 64;
/// As [`MOST_INSTRUCTIONS`], for bodies that give to reductions, whose accumulators take some.
const MOST_OF_REDUCTIONS: usize = 96;
/// What native code goes through later on. Without vectors of single statements, which also are in loops without lanes.
const OPTIMISE: &str = "always-inline,default<O3>";
const TUNING: PassTuning = PassTuning { vectors: Vectors::OfLoops, ..PassTuning::NATIVE };

/// What LLVM makes of an item loop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Own {
    /// Code for one item after the other, or it was not tried.
    Scalar,
    Vectors,
    /// Vectors that move more than they compute.
    Stream,
}

/// What LLVM makes of one of the item loops of a kernel, whose functions have no bodies yet.
pub(super) fn own_vectors(
    module: &Module<'_>,
    machine: &Machine,
    level: HostLevel,
    (loops, number): (&[ItemLoop], usize),
) -> Result<Own, CompileError> {
    let parts = &loops[number];
    let own = expected(module, machine, level, (parts.body(module)?, origin::is_of_reductions(&parts.body)))?;
    if own == Own::Scalar {
        return Ok(own);
    }
    // As a part of its kernel, where lengths are known to be those of the range. The other loops stay calls.
    let trial = module.clone();
    for others in loops {
        others.body(&trial)?.set_linkage(Linkage::INTERNAL);
    }
    define_steps(&trial, parts.steps(&trial)?, parts.body(&trial)?, None);
    trial.run(DROP_UNUSED, Some(machine), &TUNING)?;
    trial.run(OPTIMISE, Some(machine), &TUNING)?;
    let has_vectors = trial.functions().into_iter().flat_map(Value::instructions).any(is_vector);
    Ok(if has_vectors { own } else { Own::Scalar })
}

/// What LLVM makes of a loop if it makes vectors of it.
fn expected(
    module: &Module<'_>,
    machine: &Machine,
    level: HostLevel,
    (body, is_of_reductions): (Value<'_>, bool),
) -> Result<Own, CompileError> {
    let most = if is_of_reductions { MOST_OF_REDUCTIONS } else { MOST_INSTRUCTIONS };
    if body.instructions().len() > most || body.instructions().into_iter().any(is_vector) {
        return Ok(Own::Scalar);
    }
    Module::run_on(body, PREPARE, Some(machine), &PassTuning::NATIVE)?;
    let Ok(graph) = Graph::of(body) else { return Ok(Own::Scalar) };
    let layout = Layout::of(module);
    let shapes = Shapes::of(&graph, layout);
    // Of what is behind a condition, LLVM may make vectors for a part of the range alone. Whether a row is the first one that gives to
    // accumulators is a constant in the kernel.
    let is_conditional = |block: &BlockIdx| {
        graph.block(*block).successors().len() > 1
            && graph.traps(*block).next().is_none()
            && (!is_of_reductions || shapes.diverges(*block))
    };
    if graph.loops().next().is_some() || graph.order().iter().any(is_conditional) {
        return Ok(Own::Scalar);
    }
    // Structures are as LLVM accesses them.
    let is_stream = Costs::with(&graph, &shapes, layout, (level, Groups::default())).is_stream();
    Ok(if is_stream { Own::Stream } else { Own::Vectors })
}

fn is_vector(instruction: Value<'_>) -> bool {
    instruction.value_type().kind() == TypeKind::Vector
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::passes::tests::context;

    /// What LLVM makes of the loop over a body with these statements, which has the addresses `%a`, `%b` and `%c` of `double`s.
    fn made_of(statements: &str) -> Own {
        made_of_body("body", statements)
    }

    /// As [`made_of`], of a body with that name.
    fn made_of_body(name: &str, statements: &str) -> Own {
        let context = context();
        let machine = Machine::new("x86_64-unknown-linux-gnu", HostLevel::V3.name(), "").expect("a machine");
        let text = format!(
            "declare double @sin(double)
            declare double @llvm.sqrt.f64(double)
            define void @\"{name}\"(ptr %env, i64 %x) {{
            %a = load ptr, ptr %env, !invariant.load !0
            %second = getelementptr ptr, ptr %env, i64 1
            %b = load ptr, ptr %second, !invariant.load !0
            %third = getelementptr ptr, ptr %env, i64 2
            %c = load ptr, ptr %third, !invariant.load !0
            %pa = getelementptr double, ptr %a, i64 %x
            %pb = getelementptr double, ptr %b, i64 %x
            %pc = getelementptr double, ptr %c, i64 %x
            {statements}
            ret void }}
            declare void @steps(ptr, i64)
            define void @kernel(ptr noalias readonly %env, i64 %n) {{
            call void @steps(ptr %env, i64 %n)
            ret void }}
            !0 = !{{}}"
        );
        let module = Module::from_text(&context, &text, "body").expect("a test is well-formed");
        module.set_target(machine.triple(), &machine.data_layout());
        module.verify("parsing").expect("a test is valid");
        let parts = ItemLoop { body: name.to_owned(), steps: "steps".to_owned() };
        let own = own_vectors(&module, &machine, HostLevel::V3, (&[parts], 0)).expect("passes");
        assert!(module.function("steps").expect("it is declared").is_declaration(), "the module stays as it is");
        own
    }

    #[test]
    fn loops_that_llvm_makes_vectors_of_are_found() {
        let triad = "%va = load double, ptr %pa
            %vb = load double, ptr %pb
            %p = fmul double %vb, 4.0
            %s = fadd double %va, %p
            store double %s, ptr %pc";
        assert_eq!(made_of(triad), Own::Stream);
        let computed = triad.replace("%s = fadd double %va, %p", "%q = fdiv double %va, %p\n%s = fadd double %q, %va");
        assert_eq!(made_of(&computed), Own::Vectors);
    }

    #[test]
    fn loops_that_stay_scalar_are_left_to_lanes() {
        let called = "%va = load double, ptr %pa\n%s = call double @sin(double %va)\nstore double %s, ptr %pc";
        assert_eq!(made_of(called), Own::Scalar);
        let on_condition = "%is = icmp ult i64 %x, 100
            br i1 %is, label %then, label %done
            then:
            %va = load double, ptr %pa
            store double %va, ptr %pc
            br label %done
            done:";
        assert_eq!(made_of(on_condition), Own::Scalar);
        // The next item may read what this one writes.
        let chained = "%n = getelementptr double, ptr %pa, i64 1\n%va = load double, ptr %pa
            %s = fadd double %va, 1.0\nstore double %s, ptr %n";
        assert_eq!(made_of(chained), Own::Scalar);
    }

    #[test]
    fn what_gives_to_accumulators_may_ask_whether_there_is_something() {
        const OF_REDUCTIONS: &str =
            "_ZN14oxisycl_device5group9reduction4tree13give_of_range28_$u7b$$u7b$closure$u7d$$u7d$17h0123456789abcdefE";
        let on_shared = "%fourth = getelementptr ptr, ptr %env, i64 3
            %is_first = load i1, ptr %fourth, !invariant.load !0
            %va = load double, ptr %pa
            %root = call double @llvm.sqrt.f64(double %va)
            br i1 %is_first, label %done, label %join
            join:
            %sum = load double, ptr %pc
            %joined = fadd double %sum, %root
            br label %done
            done:
            %result = phi double [ %root, %0 ], [ %joined, %join ]
            store double %result, ptr %pc";
        assert_eq!(made_of(on_shared), Own::Scalar);
        assert_eq!(made_of_body(OF_REDUCTIONS, on_shared), Own::Vectors);
        // Work-items that choose by their own are left to lanes.
        let on_own = on_shared.replace("br i1 %is_first", "%is_large = fcmp ogt double %va, 1.0\nbr i1 %is_large");
        assert_eq!(made_of_body(OF_REDUCTIONS, &on_own), Own::Scalar);
    }
}
