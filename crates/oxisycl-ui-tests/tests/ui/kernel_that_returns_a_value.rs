//! A kernel returns nothing: it stores.
#![forbid(unsafe_code)]

use oxisycl::prelude::*;

fn main() -> oxisycl::Result<()> {
    let (queue, buffer) = (Queue::default()?, Buffer::from_vec(vec![0u32; 8])?);
    queue.submit(|cg| {
        let data = cg.access(&buffer, Read);
        cg.parallel_for(8, move |item| data.get(item))
    })?;
    Ok(())
}
