//! The passes of the compiler in their order, and the only runner, which times, verifies and dumps them.
//!
//! A phase is a part of the list that runs as a whole. `compile` and `program` decide which phase comes next: code is adapted until
//! nothing is missing, and optimised again when more code was linked. Invariant: the order of passes stands here and nowhere else.

use oxisycl_image::{Form, HostLevel};

use crate::analyses::group_scope::scopes;
use crate::analyses::uniformity;
use crate::builtin_table::Family;
use crate::codegen::Target;
use crate::codegen::quirks::{NEGATED_CONDITIONS, is_worked_around};
use crate::codegen::spirv::{NEXT_POSITIONS, PANIC_CALLS, PRIVATE_INTEGERS, PRIVATE_PHIS, expansion, panic_outlining};
use crate::error::CompileError;
use crate::llvm::Value;
use crate::llvm::pass_lists::{DROP_TYPES, DROP_UNUSED, SIMPLIFY};
use crate::options::FloatPolicy;
use crate::passes::{
    address_spaces, arena, atomics, bounds_check_merging, branch_correlation, builtins, by_value, cold_blocks,
    conversions, counters, cpu_features, early_exits, early_return, fast_math, float_atomics, float_policy,
    formatting_depth, frames, group_calls, idle_barriers, int128, libcalls, native, native_code, negations, overlap,
    panics, private_atomics, private_memory, range_steps, recursion, safe_gathers, specialization, strip_host_abi,
    thread_coarsening, unrolling, x86,
};
use crate::spmd::item_loops::{self, Vectorisation};
use crate::spmd::outcome::Outcome;
use crate::spmd::wide_masks;
use crate::unit::Unit;
use crate::{kernel, llvm};

/// Removes branches that are never taken, and what only they need. Keeps the order of calls.
const DROP_UNREACHABLE: &str = "function(simplifycfg<no-sink-common-insts;no-hoist-common-insts>),globaldce";
const SIMPLIFY_AGAIN: &str = "function(instcombine<no-verify-fixpoint>,simplifycfg)";
/// Passes after the lowering of panics: code that only their messages needed is dead.
const CLEAN_UP: &str = "function(sroa,instcombine<no-verify-fixpoint>,dse,adce,simplifycfg<no-sink-common-insts;no-hoist-common-insts>),globaldce";
/// The most nested conditions that are followed; a deeper search would only gain speed.
const MAX_NESTED_CONDITIONS: usize = 8;

/// A phase of the pipeline.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Phase {
    /// Turns host code into device code. Runs on everything that is linked.
    Adapt,
    /// Makes code small that kernels have in common, once it is linked.
    Share,
    /// Adds the function that a driver launches. From here on no other function is visible from outside.
    Entry,
    /// Optimises the linked code.
    Optimise,
    /// Adds stack checks to recursive functions, lowers panics to records, and removes code that only their messages needed.
    LowerPanics,
    /// Rewrites instructions that the target lacks, before the kernel is examined.
    Expand,
    /// Lowers optimised code to code that the code generator accepts.
    Legalize,
}

type Fallible = for<'u, 'c, 'a> fn(&'u mut Unit<'c, 'a>) -> Result<(), CompileError>;
type Infallible = for<'u, 'c, 'a> fn(&'u mut Unit<'c, 'a>);
type Applies = for<'u, 'c, 'a> fn(&'u Unit<'c, 'a>) -> bool;

#[derive(Clone, Copy)]
enum Run {
    Fallible(Fallible),
    Infallible(Infallible),
}

/// A pass, which makes one change to the code.
pub(crate) struct Pass {
    pub(crate) name: &'static str,
    pub(crate) phase: Phase,
    /// The code generators that the pass is for; empty for all that make code for drivers.
    families: &'static [Family],
    applies: Applies,
    run: Run,
}

impl Pass {
    /// A pass that cannot fail.
    const fn new(name: &'static str, phase: Phase, run: Infallible) -> Self {
        Self { name, phase, families: &[], applies: |_| true, run: Run::Infallible(run) }
    }

    const fn fallible(name: &'static str, phase: Phase, run: Fallible) -> Self {
        Self { name, phase, families: &[], applies: |_| true, run: Run::Fallible(run) }
    }

    /// Whether the pass applies to a target.
    pub(crate) fn is_for(&self, target: &dyn Target) -> bool {
        if self.families.is_empty() {
            !target.runs_in_process()
        } else {
            self.families.contains(&target.builtins().family)
        }
    }

    /// Restricts the pass to these code generators.
    const fn on(mut self, families: &'static [Family]) -> Self {
        self.families = families;
        self
    }

    /// Restricts the pass to units for which a condition holds.
    const fn when(mut self, applies: Applies) -> Self {
        self.applies = applies;
        self
    }
}

use Family::{Amdgcn, Host, Nvptx, SpirV};
use Phase::{Adapt, Entry, Expand, Legalize, LowerPanics, Optimise, Share};

/// For the passes that native code needs, too.
const ALL: &[Family] = &[Nvptx, Amdgcn, SpirV, Host];

/// All passes, in their order.
pub(crate) const PASSES: &[Pass] = &[
    Pass::fallible("native-code", Adapt, |unit| {
        if let Some(level) = unit.target.native_level() {
            native_code::set_level(&unit.module, level, &|name| {
                unit.is_entry(name) || !unit.lanes.is_one() && libcalls::is_for_lanes(name)
            });
        }
        native_code::answer(&unit.module);
        // As rustc leaves them out of optimised code. They hide what is never reached.
        strip_host_abi::drop_library_checks(&unit.module);
        libcalls::replace_exact(&unit.module);
        x86::lower_assembly(&unit.module);
        unit.run_llvm(DROP_UNREACHABLE)?;
        // Of other kernels of the crate. They would keep functions, which have to be compiled with each kernel.
        while native_code::drop_unused_statics(&unit.module) {
            unit.run_llvm(DROP_UNUSED)?;
        }
        Ok(())
    })
    .on(&[Host]),
    Pass::fallible("builtins", Adapt, |unit| builtins::replace(&unit.module, unit.target.builtins())),
    Pass::new("cpu-features", Adapt, |unit| {
        cpu_features::caches(&unit.module, &mut unit.caches);
        cpu_features::answer_no(&unit.module);
    }),
    Pass::fallible("native", Adapt, |unit| native::replace(&unit.module, unit.borrowed)),
    Pass::fallible("x86", Adapt, |unit| x86::lower(&unit.module)),
    Pass::new("int128", Adapt, |unit| int128::call_conversions(&unit.module)),
    Pass::new("libcalls", Adapt, |unit| libcalls::replace_all(&unit.module, unit.borrowed)),
    Pass::new("panic-hooks", Adapt, |unit| panics::hook(&unit.module)),
    Pass::new("strip-host-abi", Adapt, |unit| {
        let (is_entry, is_kernel) = (|name: &str| unit.is_entry(name), |name: &str| unit.is_kernel(name));
        strip_host_abi::strip(&unit.module, &is_entry, &is_kernel)
    }),
    Pass::new("by-value", Adapt, |unit| by_value::copy(&unit.module, &|name| unit.is_kernel(name))),
    Pass::new("drop-library-checks", Adapt, |unit| strip_host_abi::drop_library_checks(&unit.module)),
    Pass::new("private-memory", Adapt, |unit| private_memory::move_variables(&unit.module)).on(&[Amdgcn]),
    Pass::new("inline-panics", Adapt, |unit| early_return::inline_panics(&unit.module)).on(&[Amdgcn]),
    Pass::fallible("lower-invokes", Adapt, |unit| {
        unit.run_llvm(strip_host_abi::LOWER_INVOKES)?;
        strip_host_abi::remove_personalities(&unit.module);
        unit.run_llvm(DROP_UNUSED)
    }),
    // So that the recorder is linked once, and not with each kernel.
    Pass::new("declare-recorder", Adapt, |unit| panics::declare_record(&unit.module)).when(|unit| unit.is_first()),
    //
    Pass::fallible("drop-types", Share, |unit| unit.run_llvm(DROP_TYPES)).on(ALL),
    //
    Pass::fallible("kernel-entry", Entry, add_kernel).on(ALL),
    Pass::fallible("drop-recorder", Entry, |unit| {
        panics::drop_record(&unit.module);
        unit.run_llvm(DROP_UNUSED)
    })
    .when(|unit| !panics::may_begin(&unit.module)),
    //
    Pass::new("keep-recorders", Optimise, |unit| panics::keep_recorders(&unit.module)),
    Pass::new("call-graph", Optimise, |unit| unit.calls.add(&unit.module)).on(ALL),
    Pass::new("library-use", Optimise, |unit| unit.dependencies.add(&unit.module)),
    Pass::new("thread-coarsening", Optimise, |unit| thread_coarsening::decide(&unit.module, unit.is_paired)),
    Pass::new("keep-library-apart", Optimise, |unit| float_policy::keep_library_apart(&unit.module)),
    Pass::new("keep-choices-apart", Optimise, |unit| cpu_features::keep_choices_apart(&unit.module, &unit.caches)),
    Pass::new("inline-program", Optimise, inline_everything).when(|unit| unit.target.inlines_everything()),
    Pass::new("inline-marked", Optimise, |unit| uniformity::inline_marked(&unit.module)).when(is_linked_once),
    Pass::fallible("llvm-simplify", Optimise, |unit| unit.run_llvm(SIMPLIFY)),
    // Once calls are inlined, so that the constant or the argument is seen.
    Pass::new("address-spaces", Optimise, |unit| {
        address_spaces::place_constants(&unit.module);
        address_spaces::forget_arguments(&unit.module, unit.function);
    })
    .on(&[Nvptx, Amdgcn]),
    // Before anything changes how work-items diverge and meet.
    Pass::new("uniformity", Optimise, |unit| unit.unproved = uniformity::check(&unit.module, unit.function))
        .when(is_linked_once),
    Pass::new("inline-cold", Optimise, |unit| strip_host_abi::inline_cold(&unit.module)),
    Pass::fallible("arena", Optimise, |unit| {
        let refusal = arena::provide(&unit.module, unit.function)?;
        unit.allocates_at_group_scope = unit.allocates_at_group_scope.take().or(refusal);
        Ok(())
    }),
    Pass::new("cpu-feature-caches", Optimise, |unit| cpu_features::forget(&unit.module, &unit.caches)),
    Pass::fallible("private-atomics", Optimise, |unit| private_atomics::make_plain(&unit.module).map(drop)),
    Pass::fallible("branch-correlation", Optimise, |unit| {
        // Inner conditions first: what encloses them becomes simple by that.
        for _ in 0..MAX_NESTED_CONDITIONS {
            if !branch_correlation::follow_branches(&unit.module) {
                break;
            }
            unit.run_llvm(SIMPLIFY_AGAIN)?;
        }
        Ok(())
    }),
    // Before passes that count the rounds of loops.
    Pass::new("range-steps", Optimise, |unit| {
        range_steps::decide_steps(&unit.module);
    }),
    // Not again: by then code of the library is part of the functions. What is linked later formats values.
    Pass::new("float-policy", Optimise, |unit| {
        let policies = float_policy::policies(&unit.module, unit.function.as_slice(), unit.float);
        unit.float = policies.first().copied().unwrap_or(unit.float);
        // Contracted code of a processor is faster in lanes alone: a sum of products waits longer for each.
        if !unit.target.runs_in_process() || unit.float == FloatPolicy::Fast {
            float_policy::apply_policies(unit.function.as_slice(), &policies);
        }
    })
    .on(ALL)
    .when(is_linked_once),
    Pass::fallible("fast-math", Optimise, |unit| {
        fast_math::call_imprecise_functions(&unit.module, unit.target.builtins())
    })
    .when(|unit| is_linked_once(unit) && unit.float == FloatPolicy::Fast),
    Pass::fallible("float-atomics", Optimise, |unit| float_atomics::define(&unit.module, unit.float))
        .when(is_linked_once),
    Pass::new("drop-unused-library-use", Optimise, |unit| unit.dependencies.drop_unused(&unit.module)),
    Pass::new("unite-with-library", Optimise, |unit| float_policy::unite_with_library(&unit.module)),
    // Functions of the library, which were kept apart.
    Pass::new("inline-library", Optimise, inline_everything).when(|unit| unit.target.inlines_everything()),
    // Once the library is no longer apart.
    Pass::fallible("group-calls", Optimise, |unit| {
        unit.calls_at_group_scope = group_calls::inline(&unit.module, unit.function)?;
        Ok(())
    }),
    // Once calls are inlined, so that the size of a loop is known.
    Pass::new("unroll-marked", Optimise, |unit| unrolling::mark_loops(&unit.module)).on(&[Nvptx]),
    Pass::new("overlap", Optimise, |unit| {
        unit.function.into_iter().for_each(|kernel| overlap::overlap_rounds(&unit.module, kernel));
    })
    .on(&[Nvptx])
    .when(|unit| is_linked_once(unit) && unit.kernel.as_ref().is_some_and(|kernel| kernel.group != [0; 3])),
    Pass::fallible("item-loops", Optimise, vectorise_item_loops).on(&[Host]).when(|unit| !unit.lanes.is_one()),
    Pass::fallible("llvm-optimise", Optimise, |unit| {
        unit.run_llvm(&format!("{},{DROP_UNUSED}", unit.target.optimisation()))
    })
    .on(ALL),
    Pass::fallible("drop-statics", Optimise, |unit| {
        native_code::drop_statics(&unit.module);
        unit.run_llvm(DROP_UNUSED)
    })
    .on(&[Host]),
    // The last two, so that no pass of LLVM takes it back.
    Pass::new("safe-gathers", Optimise, |unit| safe_gathers::make_safe(&unit.module))
        .on(&[Host])
        .when(has_no_registers_for_masks),
    Pass::new("wide-masks", Optimise, |unit| wide_masks::widen(&unit.module))
        .on(&[Host])
        .when(has_no_registers_for_masks),
    // In what was inlined only now.
    Pass::fallible("private-atomics-again", Optimise, |unit| private_atomics::make_plain(&unit.module).map(drop)),
    Pass::fallible("check-recorders", Optimise, |unit| panics::check_recorders(&unit.module)),
    //
    Pass::new("recursion", LowerPanics, |unit| recursion::add_checks(&unit.module)).when(has_stack),
    Pass::fallible("frames", LowerPanics, |unit| frames::flatten(&unit.module).map(drop)).when(|unit| !has_stack(unit)),
    Pass::new("formatting-depth", LowerPanics, |unit| formatting_depth::provide(&unit.module, unit.function))
        .when(|unit| !has_stack(unit)),
    Pass::new("panics", LowerPanics, |unit| {
        let Unit { module, target, sites, .. } = unit;
        let module = &*module;
        panics::lower(module, sites, &|builder| builtins::launch(module, builder), &|builder| {
            target.end_work_item(module, builder);
        });
    }),
    Pass::fallible("clean-up", LowerPanics, |unit| unit.run_llvm(CLEAN_UP)),
    //
    Pass::new("group-scope-marks", Expand, |unit| scopes::drop_marks(&unit.module)),
    Pass::new("group-scratch", Expand, |unit| unit.bytes_of_element = early_exits::bytes_of_element(&unit.module)),
    Pass::new("idle-barriers", Expand, |unit| {
        unit.function.into_iter().for_each(|kernel| idle_barriers::drop(&unit.module, kernel))
    }),
    Pass::fallible("early-exits", Expand, |unit| {
        let is_over_groups = unit.kernel.as_ref().is_some_and(|kernel| matches!(kernel.form, Form::Group(_)));
        early_exits::lower_meetings(&unit.module, unit.function, unit.target, is_over_groups)
    }),
    Pass::fallible("scalarise", Expand, |unit| expansion::scalarise(&unit.module)).on(&[SpirV]),
    Pass::new("private-integers", Expand, |unit| expansion::restore_addresses(&unit.module))
        .on(&[SpirV])
        .when(|_| is_worked_around(&PRIVATE_INTEGERS)),
    Pass::new("private-phis", Expand, |unit| expansion::number_private_phis(&unit.module))
        .on(&[SpirV])
        .when(|_| is_worked_around(&PRIVATE_PHIS)),
    Pass::new("next-positions", Expand, |unit| expansion::compute_next_positions(&unit.module))
        .on(&[SpirV])
        .when(|_| is_worked_around(&NEXT_POSITIONS)),
    Pass::new("function-pointers", Expand, |unit| expansion::number_functions(&unit.module)).on(&[SpirV]),
    Pass::new("hide-remainders", Expand, |unit| expansion::hide_remainders(&unit.module)).on(&[SpirV]),
    Pass::new("hide-launches", Expand, |unit| expansion::hide_launches(&unit.module)).on(&[SpirV]),
    Pass::fallible("expand-instructions", Expand, |unit| expansion::expand_instructions(&unit.module)).on(&[SpirV]),
    //
    Pass::fallible("drop-expanded", Legalize, |unit| unit.run_llvm(DROP_UNUSED)),
    Pass::new("recursion-limit", Legalize, |unit| {
        if let (Some(kernel), Some(group_memory)) = (unit.function, unit.target.stack_limit_space()) {
            recursion::lower(&unit.module, kernel, group_memory);
        }
    })
    .when(has_stack),
    Pass::new("launch", Legalize, |unit| {
        builtins::lower_launch(&unit.module, unit.function.as_slice(), || unit.target.launch_slot(&unit.module));
    }),
    Pass::new("coarsened-loads", Legalize, |unit| thread_coarsening::separate(&unit.module)),
    Pass::new("bounds-check-merging", Legalize, |unit| {
        bounds_check_merging::merge(&unit.module, unit.function.as_slice())
    }),
    Pass::new("early-return", Legalize, |unit| early_return::lower(&unit.module)).on(&[Amdgcn]),
    Pass::new("amdgcn-atomics", Legalize, |unit| atomics::legalize_for_amdgcn(&unit.module)).on(&[Amdgcn]),
    Pass::fallible("nvptx-atomics", Legalize, |unit| atomics::legalize_for_nvptx(&unit.module)).on(&[Nvptx]),
    // Inline assembly, which programs may not have.
    Pass::fallible("prefetches", Legalize, |unit| {
        if address_spaces::prefetch(&unit.module)? { unit.run_llvm("always-inline") } else { Ok(()) }
    })
    .on(&[Nvptx]),
    Pass::new("known-spaces", Legalize, |unit| {
        unit.function.into_iter().for_each(|kernel| address_spaces::know_arguments(&unit.module, kernel));
        address_spaces::lower(&unit.module);
    })
    .on(&[Nvptx, Amdgcn]),
    // Last, so that no pass joins such loads, and all before it know what they load.
    Pass::fallible("specialization", Legalize, |unit| match (unit.function, &unit.kernel) {
        (Some(function), Some(kernel)) => specialization::mark_loads(&unit.module, function, &kernel.specialized),
        _ => Ok(()),
    })
    .on(&[Nvptx]),
    Pass::fallible("spirv-specialization", Legalize, |unit| match (unit.function, &unit.kernel) {
        (Some(function), Some(kernel)) => specialization::name_loads(&unit.module, function, &kernel.specialized),
        _ => Ok(()),
    })
    .on(&[SpirV]),
    Pass::new("negations", Legalize, |unit| negations::select_by_the_condition(&unit.module))
        .on(&[Nvptx, Amdgcn])
        .when(|_| is_worked_around(&NEGATED_CONDITIONS)),
    Pass::new("conversions", Legalize, |unit| conversions::lower(&unit.module)).on(&[Nvptx]),
    Pass::new("counters", Legalize, |unit| counters::compare_lower_halves(&unit.module)).on(&[Nvptx]),
    Pass::new("panic-outlining", Legalize, |unit| panic_outlining::call_through_others(&unit.module))
        .on(&[SpirV])
        .when(|_| is_worked_around(&PANIC_CALLS)),
    Pass::fallible("drop-legalized", Legalize, |unit| unit.run_llvm(DROP_UNUSED)),
    Pass::new("cold-blocks", Legalize, |unit| cold_blocks::move_endings_back(&unit.module)),
];

/// Runs the passes of a phase.
pub(crate) fn run(phase: Phase, unit: &mut Unit<'_, '_>) -> Result<(), CompileError> {
    PASSES.iter().filter(|pass| pass.phase == phase).try_for_each(|pass| run_pass(pass, unit))?;
    // Host code becomes valid device code in several passes.
    if phase == Adapt { unit.instruments.verify("adapt", &unit.module) } else { Ok(()) }
}

/// Runs one pass, if it applies.
pub(crate) fn run_pass(pass: &Pass, unit: &mut Unit<'_, '_>) -> Result<(), CompileError> {
    if !pass.is_for(unit.target) || !(pass.applies)(unit) {
        return Ok(());
    }
    let instruments = unit.instruments;
    instruments.time(pass.name, || match pass.run {
        Run::Fallible(run) => run(unit),
        Run::Infallible(run) => {
            run(unit);
            Ok(())
        }
    })?;
    instruments.dump(pass.name, &unit.module)?;
    if pass.phase == Adapt { Ok(()) } else { instruments.verify(pass.name, &unit.module) }
}

/// Runs the passes of a phase that are for single code generators on a module.
#[cfg(test)]
pub(crate) fn run_for_target<'c>(
    phase: Phase,
    target: &dyn Target,
    module: crate::llvm::Module<'c>,
) -> Result<crate::llvm::Module<'c>, CompileError> {
    let instruments = crate::instruments::Instruments::default();
    let mut unit = Unit::new(module, target, &instruments);
    let passes = PASSES.iter().filter(|pass| pass.phase == phase && !pass.families.is_empty());
    for pass in passes {
        run_pass(pass, &mut unit)?;
    }
    Ok(unit.module)
}

fn is_linked_once(unit: &Unit<'_, '_>) -> bool {
    unit.round == 1
}

/// Whether kernels in lanes are for processors that keep masks in registers of vectors.
fn has_no_registers_for_masks(unit: &Unit<'_, '_>) -> bool {
    !unit.lanes.is_one() && unit.target.native_level() == Some(HostLevel::V3)
}

/// Whether devices have a call stack, whose limit functions check.
fn has_stack(unit: &Unit<'_, '_>) -> bool {
    unit.target.stack_limit_space().is_some()
}

fn inline_everything(unit: &mut Unit<'_, '_>) {
    strip_host_abi::inline_everything(&unit.module, unit.function.as_slice());
}

fn vectorise_item_loops(unit: &mut Unit<'_, '_>) -> Result<(), CompileError> {
    let (Some(level), Some(kernel)) = (unit.target.native_level(), &unit.kernel) else { return Ok(()) };
    let done = if kernel.form == Form::Single {
        Vectorisation::none(vec![Outcome::of_a_task()])
    } else {
        let (lanes, function) = ((level, unit.lanes), unit.function.map(Value::name));
        item_loops::vectorise_all(&unit.module, unit.target.machine(), lanes, (kernel.form, unit.float), function)?
    };
    unit.item_loops.extend(done.outcomes);
    unit.unproved = done.waits;
    unit.is_parted = done.is_parted;
    if let Some(module) = done.module {
        unit.function = unit.function.and_then(|function| module.function(function.name()));
        unit.module = module;
    }
    libcalls::make_local(&unit.module);
    if done.is_stream {
        native_code::prefer_narrow_vectors(&unit.module);
    }
    Ok(())
}

fn add_kernel(unit: &mut Unit<'_, '_>) -> Result<(), CompileError> {
    let Unit { module, target, kernel: Some(kernel), .. } = unit else { return Ok(()) };
    let function = target.add_kernel(module, kernel)?;
    let entry = module.function(&kernel.entry).ok_or_else(|| kernel::entry_was_lost(kernel))?;
    llvm::describe(module, function, entry);
    entry.set_linkage(llvm::Linkage::INTERNAL);
    unit.function = Some(function);
    unit.run_llvm(DROP_UNUSED)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_passes_of_a_phase_stand_together_and_have_names_of_their_own() {
        let mut phases: Vec<Phase> = PASSES.iter().map(|pass| pass.phase).collect();
        phases.dedup();
        assert_eq!(phases, [Adapt, Share, Entry, Optimise, LowerPanics, Expand, Legalize]);
        let names: BTreeSet<&str> = PASSES.iter().map(|pass| pass.name).collect();
        assert_eq!(names.len(), PASSES.len());
    }
}
