//! The closure of a command group returns what its command returned.
#![forbid(unsafe_code)]

use oxisycl::prelude::*;

fn main() -> oxisycl::Result<()> {
    let queue = Queue::default()?;
    queue.submit(|cg| {
        cg.parallel_for(8, |_| {});
    })?;
    Ok(())
}
