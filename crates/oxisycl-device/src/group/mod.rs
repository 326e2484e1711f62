//! Kernels over work-groups: local memory, and phases with a barrier after each.
//!
//! A launch has a number of groups, the [`Shape`] of a group, and the memory that each group gets ([`Local`], [`LocalSlice`], [`Private`]). The
//! kernel is called once for each [`Group`]. It runs phases: [`Group::for_each`] calls a closure for every work-item, with what the phase borrows of the
//! group's memory. A phase ends when all of its work-items have ended.
//!
//! | SYCL 2020 | here |
//! |---|---|
//! | `local_accessor` | [`Local`], [`LocalSlice`] |
//! | `private_memory` | [`Private`] |
//! | `parallel_for_work_item` | [`Group::for_each`], [`Group::for_each_of`] |
//! | `group_barrier` | the end of a phase |
//!
//! # Why this is safe
//!
//! - A phase borrows memory, so the borrow checker proves that no part is lent twice. What it lends to two work-items is disjoint, shared and not
//!   written, or atomic ([`PhaseArguments`]).
//! - Code at group scope has no way to one element of a tile, nor to the value of one work-item, nor to atomic operations. Its inputs are the same for
//!   all work-items, so all of them run the same phases.
//! - The closure of a phase captures nothing of group scope by reference: it is `Copy`, `Send` and lives as long as the group.
//! - Handles are branded by their group, so none of them outlives it or reaches another one.

mod atomic_elements;
mod launch;
mod memory;
mod phase;
mod scope;
mod shape;

pub use atomic_elements::{AtomicElements, Atomically};
pub use launch::GroupKernel;
#[doc(hidden)]
pub use launch::{GroupForm, GroupLaunch};
pub use memory::{Elements, GroupArguments, Local, LocalSlice, Private, PrivateValues, Tile, TileSlice};
pub use phase::{Column, Columns, PhaseArguments, Rows, Share, Shares};
pub use scope::{Group, LogicalItem, PhaseItem, Uniform};
pub use shape::{Fixed1, Fixed2, Fixed3, Shape};
