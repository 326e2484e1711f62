//! Atomic operations on local memory. Here each group counts bytes in bins of its own, and adds them to those of all groups at its end.
//!
//! `cargo run --release --example 16_histogram`

#![forbid(unsafe_code)]

use oxisycl::group::{Atomically, Fixed1, Local};
use oxisycl::prelude::*;

// ANCHOR: kernel
const ITEMS: usize = 256;
/// Bytes of a group.
const PART: usize = 128 * ITEMS;

/// Adds to `bins` how often each value is in `bytes`.
pub(crate) fn count(queue: &Queue, bytes: &Buffer<u8, 1>, bins: &Buffer<u32, 1>) -> oxisycl::Result<Event> {
    let groups = bytes.size().div_ceil(PART);
    queue.submit(|cg| {
        let (bytes, bins) = (cg.access(bytes, Read), cg.access(bins, Atomic));
        cg.parallel_for_work_group(groups, Fixed1::<ITEMS>, Local::<u32, 256>::new(), move |mut group, mut own| {
            let bytes = bytes.view(group.uniform()).as_slice();
            let begin = group.linear_id() * PART;
            let part = &bytes[begin..bytes.len().min(begin + PART)];
            group.for_each(&mut own, move |_, bin| *bin = 0);
            let (runs, rest) = part.as_chunks::<16>();
            group.for_each(Atomically(&mut own), move |item, own| {
                let id = item.local_linear_id();
                if let Some(byte) = rest.get(id) {
                    own.fetch_add(usize::from(*byte), 1);
                }
                for run in runs.iter().skip(id).step_by(ITEMS) {
                    for byte in run {
                        own.fetch_add(usize::from(*byte), 1);
                    }
                }
            });
            group.for_each(&own, move |item, own| {
                let value = item.local_linear_id();
                bins.fetch_add(item, value, own[value]);
            });
        })
    })
}
// ANCHOR_END: kernel

fn main() -> oxisycl::Result<()> {
    let text: Vec<u8> = (0..100_000_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 27) as u8 * 3).collect();
    let bytes = Buffer::from_slice(&text)?;
    let bins = Buffer::from_vec(vec![0; 256])?;

    count(&Queue::default()?, &bytes, &bins)?;

    let mut expected = vec![0; 256];
    for byte in text {
        expected[usize::from(byte)] += 1;
    }
    assert_eq!(bins.to_vec()?, expected);
    println!("{} of 100000 bytes are 0", expected[0]);
    Ok(())
}
