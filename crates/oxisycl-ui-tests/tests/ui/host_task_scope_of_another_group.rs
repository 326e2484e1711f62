//! A host task may submit another one, but its scope does not open the other one's accessors.
#![forbid(unsafe_code)]

use oxisycl::prelude::*;

fn main() -> oxisycl::Result<()> {
    let (queue, buffer) = (Queue::default()?, Buffer::from_vec(vec![0u32; 8])?);
    let (inner_queue, inner_buffer) = (queue.clone(), buffer.clone());
    queue.submit(|cg| {
        cg.host_task(move |scope| {
            let _ = inner_queue.submit(|inner| {
                let mut data = inner.access_host(&inner_buffer, ReadWrite);
                data.slice_mut(scope)[0] = 1;
                Ok(())
            });
        })
    })?;
    Ok(())
}
