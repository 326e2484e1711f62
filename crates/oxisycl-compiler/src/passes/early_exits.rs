//! Work-items that end before their kernel does, and how the others of the group notice it.
//!
//! A work-item that panics ends, and barriers go on without it. An algorithm over the group asks at its barriers whether all came.
//! Otherwise its result would lack a value and still decide for the whole group. Where some work-items may panic while others go on to a
//! meeting, words in local memory tell who comes. They are cleared at the start before a barrier. Elsewhere a meeting is a barrier.
//!
//! A loop that only the memory of other work-items ends may never end once one of them panicked. In a kernel with such an
//! [open loop](crate::analyses::open_loops), every barrier asks, too, and ends the others. So does every exchange within a sub-group that runs
//! without a lane which ended. Barriers and exchanges of all other kernels ask nothing.

use crate::analyses::{open_loops, uniformity};
use crate::codegen::Target;
use crate::codegen::intrinsics::{BARRIERS, ENDS};
use crate::error::CompileError;
use crate::llvm::{Attribute, Block, Builder, Linkage, Module, Opcode, PassTuning, Type, Value};
use crate::passes::panic_names;

const NOTED: &str = include_str!("early_exits.noted.ll");
const COUNTED: &str = include_str!("early_exits.counted.ll");
/// The variable for whether a work-item has ended, or how many work-items came.
pub(crate) const WORD: &str = "oxisycl_early_exits";
/// The variable for how many work-items there are, and how many came to barriers.
pub(crate) const PASSED: &str = "oxisycl_early_exits_passed";
const BEGIN: &str = "oxisycl.early_exits.begin";
const NOTE: &str = "oxisycl.early_exits.note";
const MEET: &str = "oxisycl.early_exits.meet";
const BEGIN_PASSING: &str = "oxisycl.early_exits.begin_passing";
const PASS: &str = "oxisycl.early_exits.pass";
const ASK: &str = "oxisycl.early_exits.ask";
/// The function that ends a work-item in `early_exits.*.ll`.
const END: &str = "oxisycl.early_exits.end";
/// The builtin at which work-items meet and learn whether all came.
pub(crate) const MEETING: &str = "oxisycl.meet_group";
const BARRIER: &str = "oxisycl.group_barrier";
/// The builtin that states the size of an algorithm's values.
const SCRATCH: &str = "oxisycl.group_scratch";
const CLEAN_UP: &str = "always-inline,function(adce,simplifycfg<no-sink-common-insts;no-hoist-common-insts>),globaldce";

/// Replaces the meetings of a kernel by barriers and counts. If the kernel is over groups, also its barriers, where they must ask. Called once its
/// panics are records and ends of work-items.
pub(crate) fn lower_meetings<'c>(
    module: &Module<'c>,
    kernel: Option<Value<'c>>,
    target: &dyn Target,
    is_over_groups: bool,
) -> Result<(), CompileError> {
    let barriers: Vec<_> = BARRIERS.iter().filter_map(|name| module.function(name)).flat_map(Value::calls).collect();
    let exchanges = exchanges_of(module);
    let asks = |at: &[Value<'c>]| {
        kernel.is_some_and(|kernel| is_over_groups && may_end_before(module, kernel, at) && open_loops::has(kernel))
    };
    let asking = asks(&barriers).then_some(barriers);
    let asking_exchanges = asks(&exchanges).then_some(exchanges);
    let is_asking = asking.is_some() || asking_exchanges.is_some();
    let meeting = module.function(MEETING);
    if meeting.is_none() && !is_asking {
        return Ok(());
    }
    let context = module.context();
    let bodies = target.builtins();
    let action = Type::function(Type::void(context), &[]);
    let begin = |kernel: Value<'c>, name: &str| {
        let first = kernel.blocks()[0].instructions().into_iter().find(|instruction| !instruction.is(Opcode::ALLOCA));
        if let Some(first) = first {
            Builder::before(context, first).call(module.declare(name, action), &[]);
        }
    };
    let counting = kernel.filter(|kernel| {
        meeting.is_some_and(|meeting| meeting.is_used() && may_end_before(module, *kernel, &meeting.calls()))
    });
    let is_noted = target.barriers_see_ends();
    if let Some(kernel) = kernel {
        if counting.is_some() {
            begin(kernel, BEGIN);
        }
        if is_asking && !(is_noted && counting.is_some()) {
            begin(kernel, BEGIN_PASSING);
        }
    }
    let mut text = bodies.text.to_owned();
    if counting.is_some() || is_asking {
        text += if is_noted { NOTED } else { COUNTED };
        if is_noted {
            let note = module.declare(NOTE, action);
            for call in ENDS.iter().filter_map(|name| module.function(name)).flat_map(Value::calls) {
                Builder::before(context, call).call(note, &[]);
            }
        }
    }
    // Those of the source alone: bodies of meetings have barriers of their own.
    for barrier in asking.into_iter().flatten() {
        Builder::before(context, barrier).call(module.declare(PASS, action), &[]);
        barrier.erase();
    }
    for exchange in asking_exchanges.into_iter().flatten() {
        Builder::before(context, exchange.next()).call(module.declare(ASK, action), &[]);
    }
    if let Some(meeting) = meeting {
        if counting.is_some() {
            meeting.replace_all_uses_with(module.declare(MEET, meeting.held_type()));
        } else {
            let barrier = module.declare(BARRIER, action);
            for call in meeting.calls() {
                Builder::before(context, call).call(barrier, &[]);
                call.replace_all_uses_with(Type::int(context, 1).constant(1));
                call.erase();
            }
        }
        meeting.delete_function();
    }
    let bodies = Module::from_text(context, &text, "early-exits")?;
    if let Some(end) = bodies.function(END) {
        let builder = Builder::at_end(context, Block::append(context, end));
        target.end_work_item(&bodies, &builder);
        builder.unreachable();
    }
    for function in bodies.functions().into_iter().filter(|function| !function.is_declaration()) {
        function.set_linkage(Linkage::LINK_ONCE_ODR);
        function.add_attribute(Attribute::FUNCTION, Attribute::plain(context, "alwaysinline", 0));
    }
    module.link(bodies)?;
    module.run(CLEAN_UP, None, &PassTuning::DEVICE)
}

/// The exchanges between lanes that a module calls. Only those of NVIDIA's processors go on without lanes that have ended.
fn exchanges_of<'c>(module: &Module<'c>) -> Vec<Value<'c>> {
    let is_exchange = |of: &Value<'c>| open_loops::EXCHANGES.iter().any(|prefix| of.name().starts_with(prefix));
    module.functions().into_iter().filter(is_exchange).flat_map(Value::calls).collect()
}

/// Whether a work-item may end before a meeting that others reach.
fn may_end_before<'c>(module: &Module<'c>, kernel: Value<'c>, meetings: &[Value<'c>]) -> bool {
    let records = module.functions().into_iter().filter(|of| panic_names::is_record(of.name()));
    let ends = ENDS.iter().filter_map(|name| module.function(name));
    let ends: Vec<_> = records.chain(ends).collect();
    // Behind an address nothing is known of who calls.
    let are_calls = |function: Value<'c>| function.calls().len() == function.users().len();
    let calls: Vec<_> = ends.iter().flat_map(|function| function.calls()).collect();
    !calls.is_empty()
        && !meetings.is_empty()
        && (!ends.into_iter().all(are_calls) || uniformity::may_diverge(kernel, &calls, meetings))
}

/// The largest value that algorithms of a kernel over groups combine, in bytes. Removes the calls that state it.
pub(crate) fn bytes_of_element(module: &Module<'_>) -> u32 {
    let Some(marker) = module.function(SCRATCH) else { return 0 };
    let calls = marker.calls();
    let bytes = calls.iter().filter_map(|call| call.arguments()[0].integer()).max();
    calls.into_iter().for_each(Value::erase);
    marker.delete_function();
    bytes.unwrap_or(0).try_into().unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codegen;
    use crate::llvm::Context;
    use crate::passes::tests::{context, module};

    /// What becomes of a kernel that meets in a loop. It ends there on a condition, with a panic if it says so.
    fn lowered_if(target: &str, panics: bool, condition: &str) -> String {
        let context = context();
        let target = codegen::of(&target.parse().expect("a target")).expect("a target");
        let (record, end) = (panic_names::RECORD, ENDS[usize::from(!target.barriers_see_ends())]);
        let call = if panics {
            format!("call void @{record}(ptr null, i32 0, i64 0, i64 0, i64 0, i64 0)")
        } else {
            String::new()
        };
        let text = format!(
            "declare i1 @{MEETING}(i32, i32) convergent
            declare void @{end}() noreturn
            declare i1 @differs()
            define internal void @{record}(ptr %l, i32 %s, i64 %k, i64 %a, i64 %b, i64 %c) {{
                store i32 %s, ptr %l
                ret void
            }}
            define void @kernel(i1 %bad) {{
                br label %loop
            loop:
                %n = phi i32 [ 0, %0 ], [ %next, %go ]
                %own = call i1 @differs()
                br i1 {condition}, label %fails, label %meets
            fails:
                {call}
                call void @{end}()
                unreachable
            meets:
                %all = call i1 @{MEETING}(i32 96, i32 %n)
                %next = add i32 %n, 1
                br i1 %all, label %go, label %ends
            ends:
                call void @{end}()
                unreachable
            go:
                %more = icmp ult i32 %next, 10
                br i1 %more, label %loop, label %done
            done:
                ret void
            }}"
        );
        lowered_kernel(&context, &*target, &text)
    }

    /// The kernel of a module, after the pass.
    fn lowered_kernel(context: &Context, target: &dyn Target, text: &str) -> String {
        let module = module(context, text);
        lower_meetings(&module, module.function("kernel"), target, true).expect("an answer");
        module.verify("early-exits").expect("a valid module");
        let kernel = module.to_string();
        let start = kernel.find("define void @kernel").expect("the kernel");
        let length = kernel[start..].find("\n}").expect("its end");
        kernel[start..start + length].to_owned()
    }

    fn count(text: &str, what: &str) -> usize {
        text.matches(what).count()
    }

    #[test]
    fn a_kernel_that_cannot_panic_has_plain_barriers() {
        for (target, barrier) in
            [("sm_70", "barrier.cta.sync.all"), ("spirv1.2", "spirv.barrier"), ("gfx90a", "s.barrier")]
        {
            let kernel = lowered_if(target, false, "%bad");
            assert_eq!(count(&kernel, barrier), 1, "{kernel}");
            assert_eq!(count(&kernel, "oxisycl_early_exits"), 0, "{kernel}");
            assert_eq!(count(&kernel, "label %ends"), 0, "{kernel}");
        }
    }

    #[test]
    fn where_all_panic_together_nobody_is_counted() {
        for target in ["sm_70", "spirv1.2"] {
            let kernel = lowered_if(target, true, "%bad");
            let counts = ["atomicrmw", "oxisycl_early_exits"].map(|what| count(&kernel, what));
            assert_eq!((counts, count(&kernel, "barrier")), ([0; 2], 1), "{kernel}");
        }
    }

    #[test]
    fn a_thread_that_ends_is_noted_on_nvidias_processors() {
        let kernel = lowered_if("sm_70", true, "%own");
        // One barrier behind the clearing, and that of the meeting.
        assert_eq!(count(&kernel, "barrier.cta.sync.all"), 2, "{kernel}");
        assert_eq!(count(&kernel, "store atomic i32 0, ptr addrspace(3) @oxisycl_early_exits"), 1, "{kernel}");
        assert_eq!(count(&kernel, "load atomic i32, ptr addrspace(3) @oxisycl_early_exits"), 1, "{kernel}");
        let noted = kernel.find("store atomic i32 1").expect("a note");
        assert!(noted < kernel.find("call void @llvm.nvvm.exit").expect("an end"), "{kernel}");
    }

    #[test]
    fn lanes_that_come_are_counted_elsewhere() {
        for target in ["spirv1.2", "gfx90a"] {
            let kernel = lowered_if(target, true, "%own");
            assert_eq!(count(&kernel, "atomicrmw add"), 1, "{kernel}");
            assert_eq!(count(&kernel, "store atomic i32 0"), 2, "{kernel}");
            assert_eq!(count(&kernel, "store atomic i32 1"), 0, "{kernel}");
            let [added, met, read] =
                ["atomicrmw add", "barrier", "load atomic"].map(|what| kernel.rfind(what).expect("it is there"));
            assert!(added < met && met < read, "{kernel}");
        }
    }

    /// What becomes of a kernel in which a work-item may panic before the others do `before`, and loop until `%is_end`, which `round` computes.
    fn lowered_loop(context: &Context, target: &dyn Target, before: &str, round: &str) -> String {
        let (record, end) = (panic_names::RECORD, ENDS[usize::from(!target.barriers_see_ends())]);
        let text = format!(
            "@tile = external addrspace(3) global i32
            declare void @llvm.nvvm.barrier.cta.sync.all(i32) convergent
            declare i32 @llvm.nvvm.shfl.sync.idx.i32(i32, i32, i32, i32) convergent
            declare i32 @llvm.nvvm.vote.ballot.sync(i32, i1) convergent
            declare i32 @llvm.nvvm.redux.sync.add(i32, i32) convergent
            declare void @oxisycl.spirv.barrier() convergent
            declare void @{end}() noreturn
            declare i1 @differs()
            define internal void @{record}(ptr %l, i32 %s, i64 %k, i64 %a, i64 %b, i64 %c) {{
                store i32 %s, ptr %l
                ret void
            }}
            define void @kernel(i32 %length) {{
                %own = call i1 @differs()
                br i1 %own, label %fails, label %goes
            fails:
                call void @{record}(ptr null, i32 0, i64 0, i64 0, i64 0, i64 0)
                call void @{end}()
                unreachable
            goes:
                {before}
                br label %loop
            loop:
                %n = phi i32 [ 0, %goes ], [ %next, %loop ]
                {round}
                br i1 %is_end, label %done, label %loop
            done:
                ret void
            }}"
        );
        lowered_kernel(context, target, &text)
    }

    /// What becomes of one with a barrier and that way out of the loop.
    fn lowered_barrier(target: &str, is_end: &str) -> String {
        let context = context();
        let target = codegen::of(&target.parse().expect("a target")).expect("a target");
        let barrier = match target.barriers_see_ends() {
            true => "call void @llvm.nvvm.barrier.cta.sync.all(i32 0)",
            false => "call void @oxisycl.spirv.barrier()",
        };
        let round = format!(
            "%next = add i32 %n, 1
            %left = load i32, ptr addrspace(3) @tile
            %is_end = icmp eq i32 {is_end}, %length"
        );
        lowered_loop(&context, &*target, barrier, &round)
    }

    #[test]
    fn barriers_ask_for_the_dead_only_before_loops_that_these_could_have_ended() {
        for (target, n_barriers, n_words) in [("sm_70", 2, 3), ("spirv1.2", 3, 5)] {
            let kernel = lowered_barrier(target, "%left");
            let found = ["barrier", "oxisycl_early_exits"].map(|what| count(&kernel, what));
            assert_eq!((found[0], found[1] >= n_words), (n_barriers, true), "{kernel}");
            // After the panic's own end, that of the work-items which found it.
            assert_eq!(count(&kernel, ENDS[usize::from(target != "sm_70")]), 2, "{kernel}");
            let kernel = lowered_barrier(target, "%next");
            let found = ["barrier", "oxisycl_early_exits"].map(|what| count(&kernel, what));
            assert_eq!(found, [1, 0], "{kernel}");
        }
    }

    /// What becomes of one with an exchange, no barrier, and that step from round to round.
    fn lowered_exchange(exchange: &str, step: &str) -> String {
        let context = context();
        let target = codegen::of(&"sm_70".parse().expect("a target")).expect("a target");
        let before = format!("%step = call i32 @llvm.nvvm.{exchange})");
        let round = format!(
            "%next = add i32 %n, {step}
            %is_end = icmp uge i32 %next, %length"
        );
        lowered_loop(&context, &*target, &before, &round)
    }

    #[test]
    fn exchanges_ask_for_the_dead_before_loops_that_a_lane_s_value_ends() {
        for exchange in [
            "shfl.sync.idx.i32(i32 -1, i32 1, i32 3, i32 31",
            "vote.ballot.sync(i32 -1, i1 true",
            "redux.sync.add(i32 1, i32 -1",
        ] {
            let kernel = lowered_exchange(exchange, "%step");
            // The word is cleared behind a barrier at the start, noted by the panic, and read behind the exchange.
            assert_eq!(count(&kernel, "barrier.cta.sync.all"), 1, "{kernel}");
            let [noted, exchanged, read] = ["store atomic i32 1", "sync", "load atomic"]
                .map(|what| kernel.rfind(what).unwrap_or_else(|| panic!("{what}: {kernel}")));
            assert!(noted < exchanged && exchanged < read, "{kernel}");
            assert_eq!(count(&kernel, ENDS[0]), 2, "{kernel}");
            let kernel = lowered_exchange(exchange, "1");
            assert_eq!(count(&kernel, "oxisycl_early_exits"), 0, "{kernel}");
        }
    }
}
