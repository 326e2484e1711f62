//! A kernel captures accessors; it must not borrow a buffer.
#![forbid(unsafe_code)]

use oxisycl::prelude::*;

fn main() -> oxisycl::Result<()> {
    let (queue, buffer) = (Queue::default()?, Buffer::from_vec(vec![0u32; 8])?);
    queue.submit(|cg| {
        let borrowed = &buffer;
        cg.parallel_for(8, move |_| println!("{:?}", borrowed.range()))
    })?;
    Ok(())
}
