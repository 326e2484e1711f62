//! A command group inside another one must not use the outer one's accessors: it runs first.
#![forbid(unsafe_code)]

use oxisycl::prelude::*;

fn main() -> oxisycl::Result<()> {
    let (queue, buffer) = (Queue::default()?, Buffer::from_vec(vec![0u32; 8])?);
    queue.submit(|outer| {
        let data = outer.access(&buffer, ReadWrite);
        queue.submit(|inner| inner.parallel_for(8, move |item| data.set(item, 1)))?;
        Ok(())
    })?;
    Ok(())
}
