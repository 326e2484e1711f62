//! A kernel over two dimensions has no element of its own in a buffer of one.
#![forbid(unsafe_code)]

use oxisycl::prelude::*;

fn main() -> oxisycl::Result<()> {
    let (queue, buffer) = (Queue::default()?, Buffer::from_vec(vec![0u32; 8])?);
    queue.submit(|cg| {
        let data = cg.access(&buffer, ReadWrite);
        cg.parallel_for([2, 4], move |item| data.set(item, 1))
    })?;
    Ok(())
}
