//! Local memory, copies and sub-groups are of one call of a kernel, and one place at a time waits for the group.
#![forbid(unsafe_code)]

use std::cell::Cell;

use oxisycl::group::nd::{GroupCopy, LocalAccessor, NdItem, SubGroup};
use oxisycl::group::{Fixed1, Local};
use oxisycl::prelude::*;

type Eight<'wi, 'cg> = NdItem<'wi, 'cg, 1, Fixed1<8>>;

thread_local! {
    static TILE: Cell<Option<LocalAccessor<'static, u32>>> = const { Cell::new(None) };
    static COPY: Cell<Option<GroupCopy<'static>>> = const { Cell::new(None) };
}

/// The next group has the memory.
fn local_memory_of_the_group_before(queue: &Queue) -> oxisycl::Result<Event> {
    queue.parallel_for_nd_range((64, Fixed1::<8>), Local::<u32, 8>::new(), |_, tile| TILE.set(Some(tile)))
}

/// Another group may wait for it.
fn a_copy_that_is_kept(copy: GroupCopy<'_>) {
    COPY.set(Some(copy));
}

/// Nothing says that it is complete.
fn a_copy_of_another_group(item: &mut Eight<'_, '_>, copy: GroupCopy<'_>) {
    item.group().wait_for(copy);
}

/// Either could be at another place.
fn two_groups_of_one_item(item: &mut Eight<'_, '_>) {
    let mut one = item.group();
    let mut other = item.group();
    one.barrier();
    other.barrier();
}

/// The group waits in between.
fn a_sub_group_beside_its_group(item: &mut Eight<'_, '_>) -> u32 {
    let mut group = item.group();
    let mut sub_group = group.sub_group::<4>();
    group.barrier();
    sub_group.broadcast(1u32, 0)
}

/// The work-item may be at another place by then.
fn a_sub_group_that_is_kept<'a, 'wi, 'cg>(
    mut item: Eight<'wi, 'cg>,
) -> SubGroup<'a, 'wi, 'cg, 1, Fixed1<8>, 4, true> {
    item.group().sub_group()
}

fn main() {}
