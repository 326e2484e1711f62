//! Safe code reaches what work-items of an nd-range share by proved barriers and by algorithms only, and a work-item is of one thread.
#![forbid(unsafe_code)]

use std::cell::Cell;
use std::sync::Mutex;

use oxisycl::group::nd::{LocalAccessor, NdItem};
use oxisycl::group::{Fixed1, Local};
use oxisycl::prelude::*;

type Eight<'wi, 'cg> = NdItem<'wi, 'cg, 1, Fixed1<8>>;

/// Elements that others may write meanwhile.
fn elements_of_local_memory(tile: LocalAccessor<'_, u32>) -> u32 {
    tile.set(0, 1);
    let all = tile.as_slice();
    tile.get(1) + all[2]
}

/// Copies that others make meanwhile.
fn a_copy_of_the_group<'wi, 'cg: 'wi>(
    item: &Eight<'wi, 'cg>,
    tile: LocalAccessor<'wi, u32>,
    numbers: Accessor<'cg, u32, 1, ReadWrite>,
) {
    let _ = item.async_copy_to_local(numbers, 0, 1, tile);
    let _ = item.async_copy_from_local(tile, numbers, 0, 1);
}

/// Barriers to which some may not come.
fn a_barrier_without_a_proof(item: &mut Eight<'_, '_>) {
    item.unchecked().barrier();
}

/// Local memory of a group that may have ended.
fn local_memory_to_a_thread(queue: &Queue) -> oxisycl::Result<Event> {
    queue.parallel_for_nd_range((64, Fixed1::<8>), Local::<u32, 8>::new(), |_, tile| {
        std::thread::scope(|threads| {
            threads.spawn(|| tile.len());
        });
    })
}

/// A work-item where others find it.
fn a_stored_work_item(queue: &Queue) -> oxisycl::Result<Event> {
    let kept: &'static Mutex<Option<Eight<'static, 'static>>> = Box::leak(Box::default());
    queue.parallel_for_nd_range((64, Fixed1::<8>), (), move |item, ()| *kept.lock().unwrap() = Some(item))
}

/// The first work-item runs the operator for all on the host.
fn an_operator_that_shares_a_variable(item: &mut Eight<'_, '_>) -> u32 {
    let calls = Cell::new(0);
    item.group().reduce(1u32, |a, b| {
        calls.set(calls.get() + 1);
        a + b
    })
}

/// What a work-item that ended would have passed is zeros, of which a type may have no value.
fn values_of_few_bits(item: &mut Eight<'_, '_>) -> (bool, char) {
    let all = item.group().reduce(true, |a: bool, b: bool| a && b);
    (all, item.group().sub_group::<4>().broadcast('a', 0))
}

fn main() {}
