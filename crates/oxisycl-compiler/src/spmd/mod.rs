//! The whole-function vectoriser: work-items in the lanes of vectors.
//!
//! The input is an item function `body(env.., x)`, which is the code of one work-item. The last parameter is the item's number in its row, and the
//! others are the same for all items. The output runs W consecutive items at once, each in a *lane*.
//!
//! Parts: `cfg` has the function's regions and nodes, `shape` what differs between lanes, and `scalar_only` what keeps a function scalar.
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
//! - Items that run in turn on a thread may share memory without atomics, such as the private bins of a histogram. Such an access stands in a call
//!   that is executed lane by lane. What a call returns varies.

pub(crate) mod cfg;
pub(crate) mod scalar_only;
pub(crate) mod shape;

/// LLVM's passes that give a function the form that [`cfg::Graph::of`] reads. No pass runs after them: `instsimplify` would remove phis at exits.
///
/// `fix-irreducible` is not among them. LLVM 22.1 loses the values that a block passes to itself, if the block is one of several entries of a cycle.
pub(crate) const PREPARE: &str = "function(lower-switch,mergereturn,loop-simplify,lcssa)";

#[cfg(test)]
mod fuzz;
