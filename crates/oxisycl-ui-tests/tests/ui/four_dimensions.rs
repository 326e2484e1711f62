//! Index spaces have one, two or three dimensions.
#![forbid(unsafe_code)]

use oxisycl::prelude::*;

fn main() -> oxisycl::Result<()> {
    let queue = Queue::default()?;
    queue.parallel_for(Range([2, 2, 2, 2]), |_| {})?;
    Ok(())
}
