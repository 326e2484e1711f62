//! A write accessor does not load, and so does not update.
#![forbid(unsafe_code)]

use oxisycl::prelude::*;

fn main() -> oxisycl::Result<()> {
    let (queue, buffer) = (Queue::default()?, Buffer::from_vec(vec![0u32; 8])?);
    queue.submit(|cg| {
        let data = cg.access(&buffer, Write);
        cg.parallel_for(8, move |item| {
            data.set(item, data.get(item));
            data.update(item, |x| x + 1);
        })
    })?;
    Ok(())
}
