//! Barriers of nd-ranges: the code of a work-item is parted at them into item loops, so that no work-item waits.
//!
//! Native code without this runs each work-item on a stack of its own once one waits. Here a kernel becomes *regions*: the code from its begin,
//! or from a barrier, up to the next barriers. A region runs for all work-items of the group, then the next one. Each is an item loop, which may
//! get lanes as any other.
//!
//! - `code` has the pieces of a body between barriers, and what is alive at them.
//! - `keeping` decides how a value gets over a barrier.
//! - `regions` makes the functions of regions.
//! - `group` makes the function of a group, which runs them in their order.
//!
//! # Which kernels
//! All work-items have to come to a barrier equally often. [`OfItems`] proves it, or the kernel keeps its stacks. Then all of them leave a region for
//! the same barrier, so that any one may say which.
//!
//! Algorithms over a group leave the values of all work-items in memory that the builtin `item_array` names, one for each call in the code. Between two
//! barriers the first work-item runs the algorithm for all, in an item loop without lanes.
//!
//! # What gets over a barrier
//! - What is the same for all work-items is in one place. Work-items of a region read the old value while others leave the new one.
//!   So there are two places, and the group's function copies one to the other between regions.
//! - What is made of the position and of such values, without memory, is made again.
//! - All else is in arrays with an element for each work-item, and so are variables.
//!
//! Work-items that come to no barrier any more are in a panic: it unwinds out of its region and ends the group. The others end where they are. A kernel
//! whose work-items would have something to drop then keeps its stacks.

mod code;
mod group;
mod keeping;
mod regions;
#[cfg(test)]
mod tests;

use super::examine::Refused;
use super::in_turn::OTHER_MEMORY;
use super::item_loops::{self, ItemLoop};
use super::rows;
use crate::analyses::uniformity::OfItems;
use crate::builtin_table::ITEM_ARRAY;
use crate::error::CompileError;
use crate::llvm::pass_lists::DROP_UNUSED;
use crate::llvm::{Attribute, Block, Builder, Linkage, Machine, Module, Opcode, PassTuning, Type, Value};
use crate::origin;
use crate::passes::float_policy::{ALLOW_APPROXIMATION, ALLOW_REASSOCIATION, ALLOW_RECIPROCAL};
use crate::passes::native_code;
use code::Code;
use keeping::Keeping;

/// The calls that stand for barriers, and for other ways to wait.
const BARRIER: &str = "oxisycl.end_item_loop";
const ON_STACKS: &str = "oxisycl.only_on_stacks";

/// The most bytes that all arrays have. They are on the stack of a thread, which may be one of the program's that waits for the launch.
const MAX_BYTES: u64 = 64 << 10;
/// Flags of operations whose results depend on what is around them.
const LOOSE: u32 = ALLOW_REASSOCIATION | ALLOW_RECIPROCAL | ALLOW_APPROXIMATION;
/// The function by which a work-item that unwinds leaves which one it is.
const LEAVES: &str = "oxisycl.leave_item";
const NEVER_UNWINDS: &str = "nounwind";
const INLINED: &str = "alwaysinline";

/// Removes the way of kernels that wait.
const DROP_UNREACHABLE: &str = "function(simplifycfg<no-sink-common-insts;no-hoist-common-insts>),globaldce";
/// Brings the functions of regions into the form of other bodies.
const TIDY: &str = "sroa,early-cse<memssa>,instcombine<no-verify-fixpoint>,simplifycfg,loop-mssa(licm),instcombine<no-verify-fixpoint>,simplifycfg";

/// The names of the function of one work-item, and of one group.
pub(super) struct Nest {
    body: String,
    group: String,
    /// The most bytes that are kept over barriers, for all work-items of a group.
    most_bytes: u64,
}

impl Nest {
    /// The name of the function of one work-item.
    pub(super) fn body(&self) -> &str {
        &self.body
    }
}

/// Prepares a kernel whose loop over work-items can be parted. `None` if it has no barrier.
pub(super) fn begin(module: &Module<'_>) -> Result<Option<Nest>, CompileError> {
    let context = module.context();
    let named = |name: &str| -> Vec<Value<'_>> {
        let is_named = |function: &Value<'_>| origin::builtin(function.name()).as_deref() == Some(name);
        module.functions().into_iter().filter(is_named).collect()
    };
    if named("end_item_loop").iter().all(|builtin| !builtin.is_used()) {
        return Ok(None);
    }
    let yes = Type::int(context, 1).constant(1);
    for call in named("has_item_loops").into_iter().flat_map(Value::calls) {
        call.replace_all_uses_with(yes);
        if call.is(Opcode::CALL) {
            call.erase();
        }
    }
    let marks =
        [("end_item_loop", BARRIER), ("only_on_stacks", ON_STACKS), ("item_array", ITEM_ARRAY), ("leave_item", LEAVES)];
    for (name, mark) in marks {
        for builtin in named(name) {
            let mark = module.declare(mark, builtin.held_type());
            // A barrier stays where it is, so that what is proved of the place stays true.
            for attribute in ["willreturn", "convergent"] {
                mark.add_attribute(Attribute::FUNCTION, Attribute::plain(context, attribute, 0));
            }
            // A barrier seems to unwind, so that it is seen what a work-item drops there.
            if name != "end_item_loop" {
                mark.add_attribute(Attribute::FUNCTION, Attribute::plain(context, NEVER_UNWINDS, 0));
            }
            if name == "item_array" {
                // Two calls have memory of their own each.
                mark.add_attribute(Attribute::FUNCTION, Attribute::plain(context, "memory", OTHER_MEMORY));
            }
            builtin.replace_all_uses_with(mark);
        }
    }
    module.run(DROP_UNREACHABLE, None, &PassTuning::NATIVE)?;
    // Tables of what waits, which would keep the kernel's code in use.
    while native_code::drop_unused_statics(module) {
        module.run(DROP_UNUSED, None, &PassTuning::NATIVE)?;
    }
    let nests = named("each_position").into_iter().filter(|function| !function.is_declaration());
    let [nest] = nests.collect::<Vec<_>>()[..] else { return Ok(None) };
    let taken = item_loops::take_apart(module, nest, "oxisycl.group", 3)?;
    // Rounds that are unrolled have a region each, and what LLVM moves from one to another has to be kept between them.
    if let Some(mark) = module.function(BARRIER) {
        rows::keep_rounds(mark);
    }
    Ok(taken.ok().map(|parts| Nest { body: parts.body, group: parts.steps, most_bytes: MAX_BYTES }))
}

/// Whether what a panic reaches does more than to leave which work-item it was.
fn drops(pad: Block<'_>) -> bool {
    !item_loops::all_behind(pad, |instruction| {
        item_loops::is_unseen(instruction)
            || keeping::is_repeatable(instruction)
            || instruction.callee().is_some_and(|callee| callee.name() == LEAVES)
    })
}

/// Has barriers no longer unwind, and work-items leave which one they are by code of their own again.
fn end_unwinding(module: &Module<'_>) -> Result<(), CompileError> {
    let context = module.context();
    if let Some(mark) = module.function(BARRIER) {
        mark.add_attribute(Attribute::FUNCTION, Attribute::plain(context, NEVER_UNWINDS, 0));
    }
    if let Some(leave) = module.function(LEAVES) {
        // As the builtin does it.
        let (builder, number) = (Builder::at_end(context, Block::append(context, leave)), Type::int(context, 64));
        for position in 0..3 {
            let place = builder.offset(number, leave.parameter(0), number.constant(position));
            builder.store(leave.parameter(position as u32 + 1), place);
        }
        builder.ret_void();
        leave.set_linkage(Linkage::INTERNAL);
        leave.add_attribute(Attribute::FUNCTION, Attribute::plain(context, INLINED, 0));
    }
    module.run("always-inline,function(simplifycfg)", None, &PassTuning::NATIVE)
}

/// Replaces frozen positions by positions, which are never poison. A frozen value may be any, so it could not be made again.
fn melt(body: Value<'_>) {
    let positions: Vec<Value<'_>> = (1..body.parameter_count()).map(|index| body.parameter(index)).collect();
    for frozen in body.instructions().into_iter().filter(|instruction| instruction.is(Opcode::FREEZE)) {
        if positions.contains(&frozen.operand(0)) {
            frozen.replace_all_uses_with(frozen.operand(0));
            frozen.erase();
        }
    }
}

/// Parts the body, once all that it calls is inlined. The loops have their bodies, and no steps yet.
pub(super) fn part<'c>(
    module: &Module<'c>,
    machine: &Machine,
    nest: &Nest,
    n_loops: usize,
) -> Result<Result<Vec<ItemLoop>, Refused<'c>>, CompileError> {
    let lost = |name: &str| CompileError::Kernel(format!("{name} was lost"));
    let body = module.function(&nest.body).ok_or_else(|| lost(&nest.body))?;
    let group = module.function(&nest.group).ok_or_else(|| lost(&nest.group))?;
    if module.function(ON_STACKS).is_some_and(Value::is_used) {
        return Ok(Err(Refused::new("its work-items wait in a way that needs stacks")));
    }
    let calls = || module.function(BARRIER).map(Value::calls).unwrap_or_default();
    if let Some(barrier) =
        calls().into_iter().find(|call| call.is(Opcode::INVOKE) && drops(call.block().successors()[1]))
    {
        let reason = "a work-item has a value at a barrier that would have to be dropped if another one panics";
        return Ok(Err(Refused { reason: reason.to_owned(), at: Some(barrier) }));
    }
    end_unwinding(module)?;
    let barriers = calls();
    if barriers.iter().any(|barrier| barrier.function() != body) {
        return Ok(Err(Refused::new("a barrier is in a function that cannot become part of the kernel")));
    }
    melt(body);
    let same = OfItems::of(body);
    for barrier in body.instructions().into_iter().filter(|instruction| barriers.contains(instruction)) {
        if let Some(end) = same.parting(barrier) {
            let reason = "a barrier may be reached by some work-items only, as far as the compiler can prove";
            return Ok(Err(Refused { reason: reason.to_owned(), at: Some(end) }));
        }
    }
    // Vectors and the rest of a row may then come to other results, so that these are not the same for all.
    let is_loose = |of: &Value<'_>| of.fast_math() & LOOSE != 0 && same.is_same(*of);
    if let Some(float) = body.instructions().into_iter().find(is_loose) {
        let reason = "a float that is the same for all its work-items is computed as the policy `fast` allows";
        return Ok(Err(Refused { reason: reason.to_owned(), at: Some(float) }));
    }
    let code = Code::of(body, &barriers);
    let items = group::counts(group).into_iter().map(Value::integer);
    let items = items.reduce(|all, count| Some(all?.saturating_mul(count?))).flatten();
    let keeping = match Keeping::of(&code, &same, module, (items, nest.most_bytes)) {
        Ok(keeping) => keeping,
        Err(refused) => return Ok(Err(refused)),
    };
    let mut loops = Vec::new();
    for region in 0..code.n_regions() {
        let parts = regions::make(module, &code, &keeping, region, n_loops + region)?;
        Module::run_on(parts.body(module)?, TIDY, Some(machine), &PassTuning::NATIVE)?;
        loops.push(parts);
    }
    group::define(module, &code, &keeping, (group, body), &loops)?;
    body.set_linkage(Linkage::INTERNAL);
    group.set_linkage(Linkage::INTERNAL);
    Ok(Ok(loops))
}
