//! A host accessor is for the host: a kernel must not capture it.
#![forbid(unsafe_code)]

use oxisycl::prelude::*;

fn main() -> oxisycl::Result<()> {
    let (queue, buffer) = (Queue::default()?, Buffer::from_vec(vec![0u32; 8])?);
    let host: &'static _ = Box::leak(Box::new(buffer.host_access(Read)?));
    queue.parallel_for(8, move |item| println!("{}", host[item.index()]))?;
    Ok(())
}
