//! An atomic accessor gives atomic operations only.
#![forbid(unsafe_code)]

use oxisycl::prelude::*;

fn main() -> oxisycl::Result<()> {
    let (queue, buffer) = (Queue::default()?, Buffer::from_vec(vec![0u32; 8])?);
    queue.submit(|cg| {
        let counts = cg.access(&buffer, Atomic);
        cg.parallel_for(8, move |item| counts.set(item, 1))
    })?;
    Ok(())
}
