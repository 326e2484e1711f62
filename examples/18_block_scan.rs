//! Several launches for one result. Here they make running totals: of each block by itself (Hillis and Steele's scan in local memory), after the
//! totals of the blocks before it.
//!
//! `cargo run --release --example 18_block_scan`

#![forbid(unsafe_code)]

use oxisycl::group::{Fixed1, Local};
use oxisycl::prelude::*;

// ANCHOR: kernel
const ITEMS: usize = 64;
/// Numbers of a work-item.
const ROW: usize = 64;
pub(crate) const BLOCK: usize = ITEMS * ROW;

/// Running totals of at most `BLOCK` blocks of numbers.
pub(crate) fn scan(queue: &Queue, numbers: &Buffer<u32, 1>, totals: &Buffer<u32, 1>) -> oxisycl::Result<Event> {
    // The total of each block, at the place of the one that follows.
    let sums = Buffer::from_vec(vec![0; BLOCK])?;
    let before = Buffer::uninit(BLOCK)?;
    sum_blocks(queue, numbers, &sums)?;
    scan_blocks(queue, &sums, &Buffer::from_vec(vec![0])?, &before)?;
    scan_blocks(queue, numbers, &before, totals)
}

fn sum_blocks(queue: &Queue, numbers: &Buffer<u32, 1>, sums: &Buffer<u32, 1>) -> oxisycl::Result<Event> {
    queue.submit(|cg| {
        let (numbers, sums) = (cg.access(numbers, Read), cg.access(sums, Atomic));
        let groups = numbers.size() / BLOCK;
        cg.parallel_for_work_group(groups, Fixed1::<ITEMS>, Local::<u32, ITEMS>::new(), move |mut group, mut own| {
            group.for_each(&mut own, move |item, own| {
                *own = numbers.view(item).chunk(item.global(), ROW).iter().fold(0, |sum, x| sum.wrapping_add(*x));
            });
            let next = group.linear_id() + 1;
            group.for_each(&own, move |item, own| {
                if item.local_linear_id() == 0 && next < BLOCK {
                    sums.store(item, next, own.iter().fold(0, |sum, x| sum.wrapping_add(*x)));
                }
            });
        })
    })
}

fn scan_blocks(
    queue: &Queue,
    numbers: &Buffer<u32, 1>,
    before: &Buffer<u32, 1>,
    totals: &Buffer<u32, 1>,
) -> oxisycl::Result<Event> {
    queue.submit(|cg| {
        let (numbers, before) = (cg.access(numbers, Read), cg.access(before, Read));
        let totals = cg.access_chunks(totals, ReadWrite.no_init(), ROW);
        let memory = (Local::<u32, ITEMS>::new(), Local::<u32, ITEMS>::new());
        let groups = numbers.size() / BLOCK;
        cg.parallel_for_work_group(groups, Fixed1::<ITEMS>, memory, move |mut group, (mut from, mut to)| {
            group.for_each(&mut from, move |item, sum| {
                *sum = numbers.view(item).chunk(item.global(), ROW).iter().fold(0, |sum, x| sum.wrapping_add(*x));
            });
            // Each phase adds the sum of as many rows as all phases before it.
            let mut rows = 1;
            while rows < ITEMS {
                group.for_each((&from, &mut to), move |item, (from, to)| {
                    let own = item.local_linear_id();
                    *to = if own < rows { from[own] } else { from[own].wrapping_add(from[own - rows]) };
                });
                std::mem::swap(&mut from, &mut to);
                rows *= 2;
            }
            let before = before.view(group.uniform())[group.id()];
            group.for_each(&from, move |item, sums| {
                let rows_before = item.local_linear_id().checked_sub(1).map_or(0, |row| sums[row]);
                let mut total = before.wrapping_add(rows_before);
                let row = numbers.view(item).chunk(item.global(), ROW);
                for (to, number) in totals.block(item.global()).as_cells().iter().zip(row) {
                    total = total.wrapping_add(*number);
                    to.set(total);
                }
            });
        })
    })
}
// ANCHOR_END: kernel

fn main() -> oxisycl::Result<()> {
    let start: Vec<u32> = (0..20 * BLOCK as u32).map(|i| i.wrapping_mul(2_654_435_761)).collect();
    let numbers = Buffer::from_slice(&start)?;
    let totals = Buffer::uninit(start.len())?;

    scan(&Queue::default()?, &numbers, &totals)?;

    let mut total = 0_u32;
    for (found, number) in totals.to_vec()?.into_iter().zip(start) {
        total = total.wrapping_add(number);
        assert_eq!(found, total);
    }
    println!("the total, modulo 2^32, is {total}");
    Ok(())
}
