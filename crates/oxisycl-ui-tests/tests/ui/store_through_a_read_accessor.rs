//! A read accessor does not store, and a host accessor for reading lends no mutable slice.
#![forbid(unsafe_code)]

use oxisycl::prelude::*;

fn main() -> oxisycl::Result<()> {
    let (queue, buffer) = (Queue::default()?, Buffer::from_vec(vec![0u32; 8])?);
    queue.submit(|cg| {
        let data = cg.access(&buffer, Read);
        cg.parallel_for(8, move |item| data.set(item, 1))
    })?;
    let mut host = buffer.host_access(Read)?;
    host.as_mut_slice()[0] = 1;
    Ok(())
}
