//! Unified shared memory: allocations used by address. The program itself says what waits for what, and promises in `unsafe`
//! code that it got that right.
//!
//! `cargo run --example 05_usm`

use oxisycl::prelude::*;

const LENGTH: usize = 10_000;

fn main() -> oxisycl::Result<()> {
    // In order: each command starts after the one before it.
    let queue = Queue::builder().in_order().build()?;
    let mut numbers = queue.malloc_device::<u64>(LENGTH)?;
    let squares = queue.malloc_shared::<u64>(LENGTH)?;

    numbers.copy_from_slice(&queue, &(0..LENGTH as u64).collect::<Vec<_>>())?;
    let (source, target) = (numbers.pointer(), squares.pointer());
    queue.parallel_for(LENGTH, move |item: Item<1>| {
        // SAFETY: both allocations have `LENGTH` elements and live until the queue is idle. `source` is only read, and each work-item
        // writes one element of its own.
        unsafe {
            let number = source.read(item.index());
            target.write(item.index(), number * number);
        }
    })?;
    queue.wait()?;

    // SAFETY: the queue is idle, and nothing is submitted while the slice is in use.
    let result = unsafe { squares.as_slice()? };
    assert!(result.iter().zip(0..).all(|(&square, i): (&u64, u64)| square == i * i));
    println!("the squares of {LENGTH} numbers went from a {} to a {} allocation", numbers.kind(), squares.kind());
    Ok(())
}
