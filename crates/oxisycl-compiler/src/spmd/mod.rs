//! The whole-function vectoriser: work-items in the lanes of vectors.
//!
//! Its input is an item function `body(env.., x)`: the code of one work-item, the last parameter its number in the row, the others the same for
//! all. Its output runs W consecutive items at once, each in a *lane*. Parts: `cfg` has the function's regions and nodes, `shape` what differs
//! between lanes.
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
//! - A load from a uniform address is executed once, at one moment, for all active lanes. So stores of other lanes come before it for all of them,
//!   or for none. That this is an order that the program allows is the contract below.
//! - A phi at a join takes the edge that its lane took. If all edges into the block are uniform, all lanes took one.
//! - The phi of a header takes the preheader's value in the first iteration and the latch's in others. Lanes of one iteration were active in the
//!   previous one.
//! - A value is used in its own loop, by lanes that were active at its definition in that iteration, or by a phi at an exit (`lcssa`). Lanes leave a
//!   divergent loop in different iterations, so its exits are no uniform edges, and such phis vary.
//!
//! # What nothing says
//! - Lanes that are not active may hold any bits, or poison. No claim covers them, lane 0 included. So the scalar of an affine value is that of
//!   lane 0 only if lane 0 is active, and carries no `nuw`, `nsw`, `exact` or `inbounds`.
//! - A node that is *masked* may be reached with no active lane. Its scalar code must not be executed then, if it loads, divides, branches or calls.
//! - A value may be poison in some lanes only. What is said of it then is a refinement: these lanes get the value that fits.
//!
//! # What the caller promises
//! The items of one row may run at the same time. So they have no unordered accesses to one place, if one of them stores to it and they are not atomic.
//! Lockstep is one of their interleavings. Four things are no part of that, and such functions or instructions stay scalar:
//! - A wait of one item for another one of its vector: it never ends. Functions that can wait are refused.
//! - Memory of the thread, such as a `thread_local!`. Functions that use it are refused.
//! - A panic that is caught, so that a lane goes on alone to the return. [`cfg::Graph::of`] refuses it.
//! - Memory that the items of a row use in turn, without atomics, since one thread runs the row. Such accesses stand inside a call that is executed
//!   lane by lane, and what it returns varies.

mod cfg;
mod shape;
