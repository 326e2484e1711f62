//! The whole-function vectoriser: work-items in the lanes of vectors.
//!
//! The input is an item function `body(env.., x)`, which is the code of one work-item. The last parameter is the item's number in its row, and the
//! others are the same for all items. The output runs W consecutive items at once, each in a *lane*.
//!
//! Parts, in the order of their use:
//! - `item_loops` finds the loops over items, takes their bodies apart, and makes steps of as many items as there are lanes.
//! - `barriers` parts kernels at the barriers of their groups, into item loops between them.
//! - `arms` has what both sides of a branch compute computed once.
//! - `borders` splits rows where few items are at a border, and what the others run has no masks.
//! - `cfg` has the body's regions and nodes, and `shape` what differs between lanes.
//! - `in_turn`, `examine` and `scalar_only` refuse what cannot be in lanes, or must not be.
//! - `fields` finds accesses of structures in an array that are made together.
//! - `linear` puts regions in line under masks. `widen` has instructions, and `singly` what has no vector form. `memory` has accesses,
//!   `interleaved` those of structures, and `packed` those of integers of odd sizes. `traps` has the way of a lane that fails. They write by `emitter`. `plan` decides what stands behind branches, and
//!   `conversions` replaces what processors have no instruction for.
//! - `cost` estimates how much faster that is, and chooses the number of lanes. `llvms` finds loops that LLVM makes vectors of without lanes.
//! - `outcome` is what is said of it all in images.
//! - `wide_masks` comes last, once LLVM has optimised the code: masks between blocks become numbers.
//!
//! Two tests make random functions. `fuzz` holds what `cfg` and `shape` say against an interpreter. `tests::vectors` executes bodies as vectors, and
//! compares the bits that they leave in memory with those of single items.
//!
//! # What a vector does
//! Lanes run in lockstep. Each region (the function, or one iteration of a loop) has a mask of *active* lanes. Its nodes stand in topological
//! order, and each instruction is executed for all active lanes before the next one.
//! - A branch that all lanes take together stays a branch. At any other branch, both sides follow each other, each under its mask.
//! - A *divergent* loop repeats until no lane is left. Lanes that have left wait behind it.
//! - A trap edge that a lane takes ends the vector: that lane goes on alone, and never returns.
//!
//! # Why uniform values are equal
//! Claims are about lanes that are active where a value is defined, and about one passage of that place. By induction over the instructions that a
//! vector executes:
//! - An instruction whose result depends on its operands alone makes equal results of equal operands.
//! - A load from a uniform address is executed once, at one moment, for all active lanes. Stores of other lanes come before it for all of them, or
//!   for none. That this is an order which the program allows is the contract below.
//! - A phi at a join takes the edge that its lane took. If all edges into the block are uniform, all lanes took one.
//! - The phi of a header takes the preheader's value in the first iteration and the latch's in others. Lanes of one iteration were active in the
//!   previous one.
//! - Any other use is in the loop of the definition, by lanes that were active there in the same iteration. A value leaves its loop by a phi at an
//!   exit alone (`lcssa`). The exits of a divergent loop are no uniform edges, so these phis vary.
//!
//! # What is not said
//! - Lanes that are not active may hold any bits, or poison, and lane 0 is no exception. The scalar of an affine value is computed as that of lane
//!   0, so its operations have no `nuw`, `nsw`, `exact` or `inbounds`.
//! - A masked node may be reached with no active lane. Then its scalar code must not run, if it loads, divides, branches or calls. A masked loop
//!   would not end.
//! - A value may be poison in some lanes only. There, what is said of it is a refinement: these lanes get the value that fits.
//!
//! # What the caller promises
//! The items of one row may run at the same time, as the chunks of a launch do on several threads. So no item stores to a place that another one
//! accesses, unless both accesses are atomic. Lockstep is one of the orders in which such items may run. Four things are no part of that:
//! - A wait of one item for another one of its vector never ends. [`scalar_only`] refuses what may wait.
//! - Memory of a thread, such as a `thread_local!`, serves one item at a time. [`scalar_only`] refuses what reaches it.
//! - A caught panic would let a lane go on alone to the return. [`cfg::Graph::of`] refuses it.
//! - Items that run in turn on a thread may share memory without atomics, such as the bins of a group in its own memory. The device library marks
//!   them, and [`in_turn`] has [`item_loops`] leave their loops scalar.

mod arms;
mod barriers;
mod borders;
mod cfg;
mod checks;
mod conversions;
mod cost;
mod emitter;
mod examine;
mod fields;
#[cfg(test)]
mod fuzz;
mod in_turn;
mod interleaved;
pub(crate) mod item_loops;
mod linear;
mod llvms;
mod memory;
pub(crate) mod outcome;
mod packed;
mod plan;
mod rows;
mod scalar_only;
mod shape;
mod singly;
#[cfg(test)]
mod tests;
mod traps;
pub(crate) mod wide_masks;
pub(crate) mod widen;

use cfg::Graph;
use cost::{Costs, Estimate};
use emitter::{Emitter, Mask};
use examine::Refused;
use fields::Groups;
use oxisycl_image::HostLevel;
use shape::Shapes;

use crate::error::CompileError;
use crate::llvm::{self, Layout, Linkage, Machine, Module, PassTuning, Type, TypeKind, Value};
use crate::options::Lanes;
use crate::passes::native_code;

/// LLVM's passes that give a function the form that [`cfg::Graph::of`] reads. No pass runs after them: `instsimplify` would remove phis at exits.
///
/// `fix-irreducible` is not among them. LLVM 22.1 loses the values that a block passes to itself, if the block is one of several entries of a cycle.
pub(crate) const PREPARE: &str = "function(lower-switch,mergereturn,loop-simplify,lcssa)";

/// A body in lanes.
struct Vectorised<'c> {
    /// Does for the items `x..x + lanes` what the body does for `x`, all of them at once.
    function: Value<'c>,
    estimate: Estimate,
}

/// What is made of a body.
#[derive(Clone, Copy)]
struct Wanted {
    level: HostLevel,
    lanes: Lanes,
    /// The most items of a row, if that is known.
    most_items: Option<u64>,
    is_of_groups: bool,
}

/// Makes a function of a body `body(env, x)` that runs several items at once.
///
/// The body is in its simplified form, and stays valid. The outer error is one of LLVM, the inner one says why there is no such function.
fn vectorise<'c>(
    module: &Module<'c>,
    machine: Option<&Machine>,
    body: Value<'c>,
    wanted: Wanted,
) -> Result<Result<Vectorised<'c>, Refused<'c>>, CompileError> {
    vectorise_without(module, machine, body, wanted, None)
}

/// As [`vectorise`], without a rule of the emitter.
fn vectorise_without<'c>(
    module: &Module<'c>,
    machine: Option<&Machine>,
    body: Value<'c>,
    wanted: Wanted,
    without: Option<emitter::Rule>,
) -> Result<Result<Vectorised<'c>, Refused<'c>>, CompileError> {
    let context = module.context();
    let (pointer, number) = (Type::pointer(context, 0), Type::int(context, 64));
    let expected = Type::function(Type::void(context), &[pointer, number]);
    if body.held_type() != expected || pointer.kind() != TypeKind::Pointer(0) {
        return Ok(Err(Refused::new("its function has other parameters than captures and a number")));
    }
    arms::unite(context, body)?;
    let mut rounds = borders::ROUNDS;
    let mut is_split = false;
    loop {
        Module::run_on(body, PREPARE, machine, &PassTuning::NATIVE)?;
        let vectorised = match Graph::of(body) {
            Ok(graph) => {
                let shapes = Shapes::of(&graph, Layout::of(module));
                if rounds > 0 && borders::split(module, &graph, &shapes) {
                    rounds -= 1;
                    is_split = true;
                    continue;
                }
                in_lanes(module, &graph, &shapes, wanted, without)?
            }
            Err(refusal) => Err(refusal.into()),
        };
        if is_split {
            borders::forget(module, body)?;
            if vectorised.is_err() {
                // It has another chance as it was. The instruction that was the reason may be gone.
                (rounds, is_split) = (0, false);
                continue;
            }
        }
        return Ok(vectorised);
    }
}

/// The function that runs several items, of a body in the form that is read.
fn in_lanes<'c>(
    module: &Module<'c>,
    graph: &Graph<'c>,
    shapes: &Shapes<'_, 'c>,
    Wanted { level, lanes, most_items, is_of_groups }: Wanted,
    without: Option<emitter::Rule>,
) -> Result<Result<Vectorised<'c>, Refused<'c>>, CompileError> {
    let (context, layout, body) = (module.context(), Layout::of(module), graph.function());
    if let Err(refused) = examine::examine(graph, shapes, layout) {
        return Ok(Err(refused));
    }
    if let Err(refusal) = scalar_only::scalar_only(graph, shapes) {
        return Ok(Err(refusal.into()));
    }
    let groups = Groups::of(graph, shapes, layout, without);
    let costs = Costs::with(graph, shapes, layout, (level, groups));
    let estimate = match lanes {
        Lanes::Number(lanes) => match most_items.filter(|most| u64::from(lanes) > *most) {
            Some(most) => return Ok(Err(Refused::new(format!("its rows have {most} work-items")))),
            None => costs.of(lanes),
        },
        Lanes::Auto => match costs.judge(most_items, is_of_groups) {
            Ok(estimate) => estimate,
            Err(refused) => return Ok(Err(refused)),
        },
    };
    let lanes = estimate.lanes;
    if let Err(refused) = examine::variables_are_small(graph, layout, lanes) {
        return Ok(Err(refused));
    }
    let copy = module.declare(&format!("{}.lanes{lanes}", body.name()), body.held_type());
    if !copy.is_declaration() {
        // Another loop has this body, too.
        return Ok(Ok(Vectorised { function: copy, estimate }));
    }
    copy.set_linkage(Linkage::INTERNAL);
    native_code::compile_like(context, copy, body);
    if let Some(personality) = body.personality() {
        copy.set_personality(personality);
    }
    llvm::describe(module, copy, body);
    let groups = costs.into_groups();
    let mut emitter = Emitter::new(module, (graph, shapes, &groups), (body, copy), lanes, without);
    let first = emitter.new_block();
    emitter.builder.move_to(first);
    emitter.region(None, Mask::All);
    emitter.builder.ret_void();
    emitter.finish(first);
    conversions::lower(module, copy, lanes)?;
    Ok(Ok(Vectorised { function: copy, estimate }))
}
