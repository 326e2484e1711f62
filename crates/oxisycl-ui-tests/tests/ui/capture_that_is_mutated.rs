//! A kernel runs on many threads: it must not change what it captured.
#![forbid(unsafe_code)]

use oxisycl::prelude::*;

fn main() -> oxisycl::Result<()> {
    let queue = Queue::default()?;
    let mut count = 0;
    queue.parallel_for(8, move |_| count += 1)?;
    Ok(())
}
