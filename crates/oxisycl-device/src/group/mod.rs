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
//! | `reduce_over_group`, `joint_reduce` | [`Group::reduce`], [`Group::joint_reduce`] |
//! | `inclusive_scan_over_group`, `exclusive_scan_over_group` | [`Group::inclusive_scan`], [`Group::exclusive_scan`] |
//! | `joint_inclusive_scan`, `joint_exclusive_scan` | [`Group::joint_inclusive_scan`], [`Group::joint_exclusive_scan`] |
//! | `any_of_group`, `all_of_group`, `none_of_group` | [`Group::any`], [`Group::all`], [`Group::none`] |
//! | `group_broadcast` | [`Group::broadcast`], [`Group::read`] |
//! | `sub_group` | [`Group::sub_groups`] |
//!
//! # The order of operands
//!
//! A scan and a reduction combine values in one order on every device, so that sums of floats have the same bits everywhere. Work-items form blocks of 32
//! by their local linear ids. In a block, the value of item `i` is combined with that of item `i - s`, for `s` of 1, 2, 4, 8 and 16. Steps
//! without such an item are skipped. Blocks follow from left to right: a value is combined with that of the last item of the block before
//! it. A reduction is the last value of the inclusive scan. An exclusive scan has the values of the inclusive one, one item later.
//!
//! # Why this is safe
//!
//! - A phase borrows memory, so the borrow checker proves that no part is lent twice. What it lends to two work-items is disjoint, shared and not
//!   written, or atomic ([`PhaseArguments`]).
//! - Code at group scope has no way to the value of its own work-item, nor to atomic operations. Its inputs are the same for all work-items. An
//!   algorithm gives all of them what one has computed, or what each computes of the same values. So all of them run the same phases.
//! - A work-item that panics ends. The others would decide by values that lack its own, so an algorithm ends them, too.
//! - The closure of a phase captures nothing of group scope by reference: it is `Copy`, `Send` and lives as long as the group.
//! - Handles are branded by their group, so none of them outlives it or reaches another one.

mod atomic_elements;
mod blocks;
mod collective;
mod joint;
mod lanes;
mod launch;
mod memory;
pub mod nd;
mod phase;
mod place;
pub mod reduction;
mod scope;
mod shape;
mod sub_group;

pub use atomic_elements::{AtomicElements, Atomically};
pub use joint::JointElements;
pub use launch::GroupKernel;
#[doc(hidden)]
pub use launch::{ByGroup, ByGroupWith, GroupForm, GroupKind, GroupLaunch};
pub use memory::{Elements, GroupArguments, Local, LocalSlice, Private, PrivateValues, Tile, TileSlice};
pub use phase::{Column, Columns, PhaseArguments, Rows, Share, Shares};
pub use scope::{Group, LogicalItem, PhaseItem, Uniform};
pub use shape::{Fixed1, Fixed2, Fixed3, Shape};
pub use sub_group::SubGroups;
