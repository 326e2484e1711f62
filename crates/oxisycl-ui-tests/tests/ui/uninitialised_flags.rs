//! Memory that nobody wrote must not become values that do not exist.
#![forbid(unsafe_code)]

use oxisycl::prelude::*;

fn main() -> oxisycl::Result<()> {
    let queue = Queue::default()?;
    let _flags = Buffer::<bool, 1>::uninit(8)?;
    let _letters = queue.malloc_shared::<char>(8)?;
    Ok(())
}
