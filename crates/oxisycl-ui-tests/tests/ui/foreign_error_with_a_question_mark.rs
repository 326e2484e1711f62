//! `?` in a command group takes errors of this crate; others are converted first.
#![forbid(unsafe_code)]

use oxisycl::prelude::*;

fn main() -> oxisycl::Result<()> {
    let queue = Queue::default()?;
    queue.submit(|cg| {
        let n: usize = "8".parse()?;
        cg.parallel_for(n, |_| {})
    })?;
    Ok(())
}
