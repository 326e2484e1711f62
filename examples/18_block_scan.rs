//! Several launches for one result, which is running totals. Each group scans the sums of its rows in local memory, as Hillis and Steele do. One
//! group scans the totals of all groups. Then each row is added up from what comes before it.
//!
//! `cargo run --release --example 18_block_scan`

#![forbid(unsafe_code)]

use oxisycl::group::{Fixed1, Local};
use oxisycl::prelude::*;

// ANCHOR: kernel
const ITEMS: usize = 256;
/// Numbers of a row.
const ROW: usize = 256;
const BLOCK: usize = ITEMS * ROW;

/// Running totals of at most `ITEMS` blocks of `BLOCK` numbers.
pub(crate) fn scan(queue: &Queue, numbers: &Buffer<u32, 1>, totals: &Buffer<u32, 1>) -> oxisycl::Result<Event> {
    let n_rows = numbers.size() / ROW;
    let (rows, blocks) = (Buffer::uninit(n_rows)?, Buffer::from_vec(vec![0; ITEMS])?);
    scan_sums(queue, numbers, ROW, &rows, &blocks)?;
    let (before, all) = (Buffer::uninit(ITEMS)?, Buffer::from_vec(vec![0])?);
    scan_sums(queue, &blocks, 1, &before, &all)?;
    queue.submit(|cg| {
        let (numbers, rows) = (cg.access(numbers, Read), cg.access(&rows, Read));
        let before = cg.access(&before, Read);
        let totals = cg.access_chunks(totals, ReadWrite.no_init(), ROW);
        cg.parallel_for(n_rows, move |item| {
            let (block, row) = (item.index() / ITEMS, item.index() % ITEMS);
            let mut total = if block == 0 { 0 } else { before.view(item)[[block - 1]] };
            if row > 0 {
                total = rows.view(item)[[item.index() - 1]].wrapping_add(total);
            }
            for (to, number) in totals.block(item).as_cells().iter().zip(numbers.view(item).chunk(item, ROW)) {
                total = number.wrapping_add(total);
                to.set(total);
            }
        })
    })
}

/// Scans the sums of rows of `row` numbers in each group. `totals` gets the sum of each group.
fn scan_sums(
    queue: &Queue,
    numbers: &Buffer<u32, 1>,
    row: usize,
    sums: &Buffer<u32, 1>,
    totals: &Buffer<u32, 1>,
) -> oxisycl::Result<Event> {
    queue.submit(|cg| {
        let (numbers, totals) = (cg.access(numbers, Read), cg.access(totals, Atomic));
        let sums = cg.access(sums, Write.no_init());
        let memory = (Local::<u32, ITEMS>::new(), Local::<u32, ITEMS>::new());
        let groups = sums.size() / ITEMS;
        cg.parallel_for_work_group(groups, Fixed1::<ITEMS>, memory, move |mut group, (mut from, mut to)| {
            group.for_each(&mut from, move |item, sum| {
                *sum = numbers.view(item).chunk(item.global(), row).iter().fold(0, |sum, x| x.wrapping_add(sum));
            });
            // Each phase adds the sum of as many rows as the phases before it have added up.
            let mut n_added = 1;
            while n_added < ITEMS {
                group.for_each((&from, &mut to), move |item, (from, to)| {
                    let own = item.local_linear_id();
                    *to = if own < n_added { from[own] } else { from[own].wrapping_add(from[own - n_added]) };
                });
                std::mem::swap(&mut from, &mut to);
                n_added *= 2;
            }
            let id = group.linear_id();
            group.for_each(&from, move |item, from| {
                let own = item.local_linear_id();
                sums.set(item.global(), from[own]);
                if own == ITEMS - 1 {
                    totals.store(item, id, from[own]);
                }
            });
        })
    })
}
// ANCHOR_END: kernel

fn main() -> oxisycl::Result<()> {
    let start: Vec<u32> = (0..3 * BLOCK as u32).map(|i| i.wrapping_mul(2_654_435_761)).collect();
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
