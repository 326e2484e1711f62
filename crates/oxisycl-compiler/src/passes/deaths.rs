//! Work-items that end before their kernel does, and what others of the group learn of it.
//!
//! A work-item that panics ends, and barriers go on without it. An algorithm over the group asks at its barriers whether all came, since its result
//! would lack a value and still decide for the whole group. Only in kernels that ask and may panic there are words in local memory for it, cleared at
//! the start before a barrier. Elsewhere a meeting is a barrier.

use crate::builtin_table::Family;
use crate::codegen::Target;
use crate::error::CompileError;
use crate::llvm::{Attribute, Builder, Linkage, Module, Opcode, PassTuning, Type, Value};
use crate::passes::panic_names;

const ENDING: &str = include_str!("deaths.nvptx.ll");
const COUNTED: &str = include_str!("deaths.counted.ll");
/// The variable that says whether a work-item has ended, or how many came.
pub(crate) const WORD: &str = "oxisycl_deaths";
const BEGIN: &str = "oxisycl.deaths.begin";
const NOTE: &str = "oxisycl.deaths.note";
const MEET: &str = "oxisycl.deaths.meet";
/// The builtin that asks.
const MEETING: &str = "oxisycl.meet_group";
const BARRIER: &str = "oxisycl.group_barrier";
/// What ends a work-item, on NVIDIA's processors and elsewhere.
const ENDS: [&str; 2] = ["llvm.nvvm.exit", "oxisycl.end_work_item"];
/// The builtin that says of which size an algorithm's values are.
const SCRATCH: &str = "oxisycl.group_scratch";
const CLEAN_UP: &str = "always-inline,function(adce,simplifycfg<no-sink-common-insts;no-hoist-common-insts>),globaldce";

/// Makes barriers of the meetings of a kernel, once its panics are records and ends.
pub(crate) fn answer<'c>(
    module: &Module<'c>,
    kernel: Option<Value<'c>>,
    target: &dyn Target,
) -> Result<(), CompileError> {
    let Some(meeting) = module.function(MEETING) else { return Ok(()) };
    let context = module.context();
    let bodies = target.builtins();
    let may_panic = module.functions().into_iter().any(|of| panic_names::is_record(of.name()) && of.is_used());
    let action = Type::function(Type::void(context), &[]);
    let mut text = bodies.text.to_owned();
    match kernel.filter(|_| may_panic && meeting.is_used()) {
        Some(kernel) => {
            text += if bodies.family == Family::Nvptx { ENDING } else { COUNTED };
            let (begin, note) = (module.declare(BEGIN, action), module.declare(NOTE, action));
            let first =
                kernel.blocks()[0].instructions().into_iter().find(|instruction| !instruction.is(Opcode::ALLOCA));
            if let Some(first) = first {
                Builder::before(context, first).call(begin, &[]);
            }
            for end in ENDS.iter().filter_map(|name| module.function(name)) {
                for call in calls_of(end) {
                    Builder::before(context, call).call(note, &[]);
                }
            }
            meeting.replace_all_uses_with(module.declare(MEET, meeting.held_type()));
        }
        None => {
            let barrier = module.declare(BARRIER, action);
            for call in calls_of(meeting) {
                Builder::before(context, call).call(barrier, &[]);
                call.replace_all_uses_with(Type::int(context, 1).constant(1));
                call.erase();
            }
        }
    }
    meeting.delete_function();
    let bodies = Module::from_text(context, &text, "deaths")?;
    for function in bodies.functions().into_iter().filter(|function| !function.is_declaration()) {
        function.set_linkage(Linkage::LINK_ONCE_ODR);
        function.add_attribute(Attribute::FUNCTION, Attribute::plain(context, "alwaysinline", 0));
    }
    module.link(bodies)?;
    module.run(CLEAN_UP, None, &PassTuning::DEVICE)
}

fn calls_of(function: Value<'_>) -> Vec<Value<'_>> {
    function.users().into_iter().filter(|user| user.callee() == Some(function)).collect()
}

/// The largest value that algorithms of a kernel over groups combine, in bytes. Removes what says so.
pub(crate) fn bytes_of_element(module: &Module<'_>) -> u32 {
    let Some(marker) = module.function(SCRATCH) else { return 0 };
    let calls = calls_of(marker);
    let bytes = calls.iter().filter_map(|call| call.arguments()[0].integer()).max();
    calls.into_iter().for_each(Value::erase);
    marker.delete_function();
    bytes.unwrap_or(0).try_into().unwrap_or(u32::MAX)
}
