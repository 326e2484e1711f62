//! A kernel must not capture a reference to a local variable: it runs after the variable is gone.
#![forbid(unsafe_code)]

use oxisycl::prelude::*;

fn main() -> oxisycl::Result<()> {
    let (queue, buffer) = (Queue::default()?, Buffer::from_vec(vec![0u32; 8])?);
    let factor = 5;
    let borrowed = &factor;
    queue.submit(|cg| {
        let data = cg.access(&buffer, ReadWrite);
        cg.parallel_for(8, move |item| data.set(item, *borrowed))
    })?;
    Ok(())
}
