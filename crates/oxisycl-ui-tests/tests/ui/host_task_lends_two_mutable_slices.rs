//! A host task's accessor lends one mutable slice at a time.
#![forbid(unsafe_code)]

use oxisycl::prelude::*;

fn main() -> oxisycl::Result<()> {
    let (queue, buffer) = (Queue::default()?, Buffer::from_vec(vec![0u32; 8])?);
    queue.submit(|cg| {
        let mut data = cg.access_host(&buffer, ReadWrite);
        cg.host_task(move |scope| {
            let a = data.slice_mut(scope);
            let b = data.slice_mut(scope);
            a[0] = b[0];
        })
    })?;
    Ok(())
}
