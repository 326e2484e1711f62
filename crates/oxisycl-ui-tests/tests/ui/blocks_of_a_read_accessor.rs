//! Blocks are for writing; a read accessor has views.
#![forbid(unsafe_code)]

use oxisycl::prelude::*;

fn main() -> oxisycl::Result<()> {
    let (queue, buffer) = (Queue::default()?, Buffer::from_vec(vec![0u32; 8])?);
    queue.submit(|cg| {
        let blocks = cg.access_chunks(&buffer, Read, 4);
        cg.parallel_for(2, move |item| println!("{:?}", blocks.block(item).range()))
    })?;
    Ok(())
}
