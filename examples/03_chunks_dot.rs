//! A work-item may own a block of elements instead of one. Here it is a scalar product. Each item sums up a chunk of both vectors into a
//! partial result of its own, and a single task adds the partial results.
//!
//! `cargo run --example 03_chunks_dot`

use oxisycl::prelude::*;

const LENGTH: usize = 1_000_000;
const CHUNK: usize = 4096;

fn main() -> oxisycl::Result<()> {
    let queue = Queue::default()?;
    let x = Buffer::from_elements((0..LENGTH).map(|i| (i % 10) as f64))?;
    let y = Buffer::from_elements((0..LENGTH).map(|i| (i % 3) as f64))?;
    let partial = Buffer::<f64, 1>::uninit(LENGTH.div_ceil(CHUNK))?;
    let sum = Buffer::<f64, 1>::uninit(1)?;

    // Every item scales its own chunk of `x` in place, through cells that belong to it alone.
    queue.submit(|cg| {
        let x = cg.access_chunks(&x, ReadWrite, CHUNK);
        cg.parallel_for(x.n_blocks(), move |item: Item<1>| {
            for element in x.block(item).as_cells() {
                element.set(element.get() * 2.0);
            }
        })
    })?;
    // Reading needs no ownership: a view hands out the item's chunk as a slice.
    queue.submit(|cg| {
        let (x, y) = (cg.access(&x, Read), cg.access(&y, Read));
        let partial = cg.access(&partial, Write.no_init());
        cg.parallel_for(LENGTH.div_ceil(CHUNK), move |item: Item<1>| {
            let (x, y) = (x.view(item).chunk(item, CHUNK), y.view(item).chunk(item, CHUNK));
            partial.set(item, x.iter().zip(y).map(|(x, y)| x * y).sum());
        })
    })?;
    queue.submit(|cg| {
        let (partial, sum) = (cg.access(&partial, Read), cg.access(&sum, Write.no_init()));
        cg.single_task(move |task| sum.set_at(task, 0, partial.view(task).as_slice().iter().sum()))
    })?;

    let sum = sum.host_access(Read)?[0];
    let expected: f64 = (0..LENGTH).map(|i| (i % 10 * 2 * (i % 3)) as f64).sum();
    assert_eq!(sum, expected, "whole numbers add up exactly");
    println!("the scalar product of {LENGTH} elements is {sum}");
    Ok(())
}
