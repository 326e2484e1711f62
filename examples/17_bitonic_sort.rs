//! Two tiles that change places. Here a bitonic network sorts blocks: in each phase a work-item keeps the smaller or the larger number of a pair.
//!
//! `cargo run --release --example 17_bitonic_sort`

#![forbid(unsafe_code)]

use oxisycl::group::{Fixed1, Local};
use oxisycl::prelude::*;

// ANCHOR: kernel
const BLOCK: usize = 256;

/// Sorts each block of the numbers, which are a multiple of `BLOCK`.
pub(crate) fn sort_blocks(queue: &Queue, numbers: &Buffer<u32, 1>) -> oxisycl::Result<Event> {
    queue.submit(|cg| {
        let numbers = cg.access(numbers, ReadWrite);
        let memory = (Local::<u32, BLOCK>::new(), Local::<u32, BLOCK>::new());
        let groups = numbers.size() / BLOCK;
        cg.parallel_for_work_group(groups, Fixed1::<BLOCK>, memory, move |mut group, (mut from, mut to)| {
            group.for_each(&mut from, move |item, slot| *slot = numbers.get(item.global()));
            let mut sorted = 1;
            while sorted < BLOCK {
                let mut distance = sorted;
                sorted *= 2;
                while distance > 0 {
                    group.for_each((&from, &mut to), move |item, (from, to)| {
                        let own = item.local_linear_id();
                        let [a, b] = [from[own], from[(own ^ distance) % BLOCK]];
                        let is_first = own & distance == 0;
                        let ascends = own & sorted == 0;
                        *to = if is_first == ascends { a.min(b) } else { a.max(b) };
                    });
                    std::mem::swap(&mut from, &mut to);
                    distance /= 2;
                }
            }
            group.for_each(&from, move |item, from| numbers.set(item.global(), from[item.local_linear_id()]));
        })
    })
}
// ANCHOR_END: kernel

fn main() -> oxisycl::Result<()> {
    let start: Vec<u32> = (0..16 * BLOCK as u32).map(|i| i.wrapping_mul(2_654_435_761)).collect();
    let numbers = Buffer::from_slice(&start)?;

    sort_blocks(&Queue::default()?, &numbers)?;

    let mut expected = start;
    expected.chunks_mut(BLOCK).for_each(|block| block.sort_unstable());
    assert_eq!(numbers.to_vec()?, expected);
    println!("the first block is sorted from {} to {}", expected[0], expected[BLOCK - 1]);
    Ok(())
}
