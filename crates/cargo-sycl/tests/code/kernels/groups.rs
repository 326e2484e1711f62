//! Kernels over groups, whose barriers and shuffles must be in the final code as often as the source has them.

use oxisycl::group::{Fixed1, Local, Private};
use oxisycl::operator::Sum;
use oxisycl::prelude::*;

const ITEMS: usize = 64;

type Numbers = Buffer<u32, 1>;

fn main() -> oxisycl::Result {
    let queue = Queue::default()?;
    let numbers = Buffer::from_vec((0..256).collect())?;
    phases_in_a_loop(&queue, &numbers, 3)?;
    sum_of_a_group(&queue, &numbers)?;
    barriers_in_both_arms(&queue, &numbers, true)?;
    barriers_in_a_loop(&queue, &numbers, 3)?;
    barrier_in_a_function(&queue, &numbers, 2)?;
    sums_in_both_arms(&queue, &numbers, 7)?;
    numbers.to_vec()?;
    Ok(())
}

/// Two phases, each of which the other waits for.
fn phases_in_a_loop(queue: &Queue, numbers: &Numbers, steps: u32) -> oxisycl::Result<Event> {
    queue.submit(|cg| {
        let numbers = cg.access(numbers, ReadWrite);
        let memory = (Local::<u32, ITEMS>::new(), Private::new(0u32));
        cg.parallel_for_work_group(4, Fixed1::<ITEMS>, memory, move |mut group, (mut tile, mut sum)| {
            for step in 0..steps {
                group.for_each(&mut tile, move |item, own| *own = numbers.get(item.global()).wrapping_add(step));
                group.for_each((&tile, &mut sum), move |item, (tile, sum)| {
                    *sum = sum.wrapping_add(tile[ITEMS - 1 - item.local_linear_id()]);
                });
            }
            group.for_each(&sum, move |item, sum| numbers.set(item.global(), *sum));
        })
    })
}

/// A reduction over the group.
fn sum_of_a_group(queue: &Queue, numbers: &Numbers) -> oxisycl::Result<Event> {
    queue.submit(|cg| {
        let numbers = cg.access(numbers, ReadWrite);
        cg.parallel_for_work_group(4, Fixed1::<ITEMS>, Private::new(0u32), move |mut group, mut own| {
            group.for_each(&mut own, move |item, own| *own = numbers.get(item.global()));
            let sum = group.reduce(&own, Sum);
            group.for_each((), move |item, ()| numbers.set(item.global(), sum));
        })
    })
}

/// The same barrier in both arms of a condition.
fn barriers_in_both_arms(queue: &Queue, numbers: &Numbers, forward: bool) -> oxisycl::Result<Event> {
    queue.submit(|cg| {
        let numbers = cg.access(numbers, ReadWrite);
        let memory = Local::<u32, ITEMS>::new();
        cg.parallel_for_nd_range((256, Fixed1::<ITEMS>), memory, move |mut item, tile| {
            let own = item.local_linear_id();
            // SAFETY: each work-item writes its own element before the barrier, and reads one behind it.
            unsafe {
                tile.set(own, numbers.get(item.global()));
                let from = if forward {
                    item.group().barrier();
                    (own + 1) % ITEMS
                } else {
                    item.group().barrier();
                    (own + ITEMS - 1) % ITEMS
                };
                numbers.set(item.global(), tile.get(from));
            }
        })
    })
}

/// Two barriers in a loop whose length is captured.
fn barriers_in_a_loop(queue: &Queue, numbers: &Numbers, steps: u32) -> oxisycl::Result<Event> {
    queue.submit(|cg| {
        let numbers = cg.access(numbers, ReadWrite);
        let memory = Local::<u32, ITEMS>::new();
        cg.parallel_for_nd_range((256, Fixed1::<ITEMS>), memory, move |mut item, tile| {
            let own = item.local_linear_id();
            let mut value = numbers.get(item.global());
            for _ in 0..steps {
                // SAFETY: as in `barriers_in_both_arms`; the second barrier stands between the reads and the next writes.
                unsafe {
                    tile.set(own, value);
                    item.group().barrier();
                    value = value.wrapping_add(tile.get((own + 1) % ITEMS));
                    item.group().barrier();
                }
            }
            numbers.set(item.global(), value);
        })
    })
}

/// Leaves a value for the neighbour.
///
/// # Safety
/// All work-items of a group call it, and use the tile nowhere else.
#[inline(never)]
unsafe fn exchange(item: &mut Wide<'_, '_>, tile: Tile<'_>, value: u32) -> u32 {
    let own = item.local_linear_id();
    // SAFETY: by the contract of this function.
    unsafe {
        tile.set(own, value);
        item.group().barrier();
        tile.get((own + 1) % ITEMS)
    }
}

type Wide<'wi, 'cg> = oxisycl::group::nd::NdItem<'wi, 'cg, 1, Fixed1<ITEMS>>;
type Tile<'wi> = oxisycl::group::nd::LocalAccessor<'wi, u32>;

/// A function that waits, called once.
fn barrier_in_a_function(queue: &Queue, numbers: &Numbers, factor: u32) -> oxisycl::Result<Event> {
    queue.submit(|cg| {
        let numbers = cg.access(numbers, ReadWrite);
        let memory = Local::<u32, ITEMS>::new();
        cg.parallel_for_nd_range((256, Fixed1::<ITEMS>), memory, move |mut item, tile| {
            let value = numbers.get(item.global());
            // SAFETY: all work-items call it, once.
            let other = unsafe { exchange(&mut item, tile, value) };
            numbers.set(item.global(), other.wrapping_mul(factor));
        })
    })
}

/// A reduction in each arm of a condition that all work-items of a group decide alike.
fn sums_in_both_arms(queue: &Queue, numbers: &Numbers, limit: u32) -> oxisycl::Result<Event> {
    queue.submit(|cg| {
        let numbers = cg.access(numbers, ReadWrite);
        cg.parallel_for_nd_range((256, Fixed1::<ITEMS>), (), move |mut item, ()| {
            let value = numbers.get(item.global());
            let largest = item.group().reduce(value, oxisycl::operator::Max);
            let sum = if largest > limit {
                item.group().reduce(value / 2, Sum)
            } else {
                item.group().reduce(value, Sum)
            };
            numbers.set(item.global(), sum);
        })
    })
}
