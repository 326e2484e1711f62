//! A block belongs to its work-item: it must not reach another one.
#![forbid(unsafe_code)]

use oxisycl::prelude::*;

fn main() -> oxisycl::Result<()> {
    let (queue, buffer) = (Queue::default()?, Buffer::from_vec(vec![0u32; 8], 8)?);
    queue.submit(|cg| {
        let blocks = cg.access_chunks(&buffer, ReadWrite, 4);
        cg.parallel_for(2, move |item| {
            let block = blocks.block(item);
            std::thread::scope(|scope| {
                scope.spawn(move || block.set(0, 1));
            });
        })
    })?;
    thread_local!(static LAST: std::cell::Cell<Option<oxisycl::Block<'static, u32, 1, ReadWrite>>> = Default::default());
    queue.submit(|cg| {
        let blocks = cg.access_chunks(&buffer, ReadWrite, 4);
        cg.parallel_for(2, move |item| LAST.set(Some(blocks.block(item))))
    })?;
    Ok(())
}
