//! A phase over less than the group. Here a group adds up numbers by halves, and one work-item adds the group's sum to that of all.
//!
//! `cargo run --release --example 19_reduction`

#![forbid(unsafe_code)]

use oxisycl::group::{Columns, Fixed1, Local};
use oxisycl::prelude::*;

// ANCHOR: kernel
const ITEMS: usize = 256;
/// Numbers of a group.
const PART: usize = 16 * ITEMS;

/// Adds the sum of the numbers to `sum`, which has one element.
pub(crate) fn add_up(queue: &Queue, numbers: &Buffer<u64, 1>, sum: &Buffer<u64, 1>) -> oxisycl::Result<Event> {
    let groups = numbers.size().div_ceil(PART);
    queue.submit(|cg| {
        let (numbers, sum) = (cg.access(numbers, Read), cg.access(sum, Atomic));
        cg.parallel_for_work_group(groups, Fixed1::<ITEMS>, Local::<u64, ITEMS>::new(), move |mut group, mut sums| {
            let numbers = numbers.view(group.uniform()).as_slice();
            let begin = group.linear_id() * PART;
            let part = &numbers[begin..numbers.len().min(begin + PART)];
            group.for_each(&mut sums, move |item, own| {
                *own = part.iter().skip(item.local_linear_id()).step_by(ITEMS).sum();
            });
            let mut half = ITEMS / 2;
            while half > 0 {
                // Position `i` has the elements `i`, `i + half`, `i + 2 half`, ..
                group.for_each_of([half], Columns(&mut sums), move |_, mut own| own[0] += own[1]);
                half /= 2;
            }
            group.for_each(&sums, move |item, sums| {
                if item.local_linear_id() == 0 {
                    sum.fetch_add(item, 0, sums[0]);
                }
            });
        })
    })
}
// ANCHOR_END: kernel

fn main() -> oxisycl::Result<()> {
    const LENGTH: u64 = 100_000;
    let numbers = Buffer::from_elements(0..LENGTH)?;
    let sum = Buffer::from_vec(vec![0])?;

    add_up(&Queue::default()?, &numbers, &sum)?;

    let sum = sum.to_vec()?[0];
    assert_eq!(sum, LENGTH * (LENGTH - 1) / 2);
    println!("the numbers below {LENGTH} add up to {sum}");
    Ok(())
}
