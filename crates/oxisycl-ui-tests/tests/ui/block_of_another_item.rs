//! A block belongs to its work-item: the next one on its thread must not find it.
#![forbid(unsafe_code)]

use oxisycl::prelude::*;
use std::cell::Cell;

use oxisycl::Block;

thread_local! {
    static LAST: Cell<Option<Block<'static, u32, 1, ReadWrite>>> = const { Cell::new(None) };
}

fn main() -> oxisycl::Result<()> {
    let (queue, buffer) = (Queue::default()?, Buffer::from_vec(vec![0u32; 8])?);
    queue.submit(|cg| {
        let blocks = cg.access_chunks(&buffer, ReadWrite, 4);
        cg.parallel_for(2, move |item| LAST.set(Some(blocks.block(item))))
    })?;
    Ok(())
}
