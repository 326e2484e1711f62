//! A kernel captures values that can be copied, not owners of memory.
#![forbid(unsafe_code)]

use oxisycl::prelude::*;

fn main() -> oxisycl::Result<()> {
    let (queue, buffer) = (Queue::default()?, Buffer::from_vec(vec![0u32; 8])?);
    let table = vec![1u32; 8];
    queue.submit(|cg| {
        let data = cg.access(&buffer, ReadWrite);
        cg.parallel_for(8, move |item| data.set(item, table[item.index()]))
    })?;
    Ok(())
}
