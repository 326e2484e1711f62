//! Atomic operations exist for numbers of 32 and 64 bits.
#![forbid(unsafe_code)]

use oxisycl::prelude::*;

fn main() -> oxisycl::Result<()> {
    let (queue, buffer) = (Queue::default()?, Buffer::from_vec(vec![0u16; 8])?);
    queue.submit(|cg| {
        let counts = cg.access(&buffer, Atomic);
        cg.parallel_for(8, move |item| _ = counts.fetch_add(item, 0, 1))
    })?;
    Ok(())
}
