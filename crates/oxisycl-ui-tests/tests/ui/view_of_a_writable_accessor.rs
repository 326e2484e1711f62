//! Only read accessors give references to elements: others are written while a reference would exist.
#![forbid(unsafe_code)]

use oxisycl::prelude::*;

fn main() -> oxisycl::Result<()> {
    let (queue, buffer) = (Queue::default()?, Buffer::from_vec(vec![0u32; 8])?);
    queue.submit(|cg| {
        let data = cg.access(&buffer, ReadWrite);
        cg.parallel_for(8, move |item| data.set(item, data.view(item)[7 - item.index()]))
    })?;
    Ok(())
}
