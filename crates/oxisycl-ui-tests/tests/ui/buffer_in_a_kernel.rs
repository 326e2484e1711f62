//! A kernel uses accessors, not buffers.
#![forbid(unsafe_code)]

use oxisycl::prelude::*;

fn main() -> oxisycl::Result<()> {
    let (queue, buffer) = (Queue::default()?, Buffer::from_vec(vec![0f32; 8])?);
    let owned = buffer.clone();
    queue.parallel_for(8, move |item| owned.set(item, 1.0))?;
    queue.submit(|cg| cg.parallel_for(8, |item| println!("{}", buffer[item.index()])))?;
    Ok(())
}
