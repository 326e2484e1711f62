//! A kernel runs on many threads: it must not share a cell with itself.
#![forbid(unsafe_code)]

use oxisycl::prelude::*;
use std::cell::Cell;

fn main() -> oxisycl::Result<()> {
    let queue = Queue::default()?;
    let count: &'static Cell<u32> = Box::leak(Box::new(Cell::new(0)));
    queue.parallel_for(8, move |_| count.set(count.get() + 1))?;
    Ok(())
}
