//! A block of elements must not be shared with a thread.
#![forbid(unsafe_code)]

use oxisycl::prelude::*;

fn main() -> oxisycl::Result<()> {
    let (queue, buffer) = (Queue::default()?, Buffer::from_vec(vec![0u32; 8])?);
    queue.submit(|cg| {
        let blocks = cg.access_chunks(&buffer, ReadWrite, 4);
        cg.parallel_for(2, move |item| {
            let block = blocks.block(item);
            std::thread::scope(|scope| {
                scope.spawn(move || block.set(0, 1));
                block.set(0, 2);
            });
        })
    })?;
    Ok(())
}
