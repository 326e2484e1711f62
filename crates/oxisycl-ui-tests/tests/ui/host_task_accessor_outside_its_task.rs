//! A host task's accessor gives nothing in the closure that records the task.
#![forbid(unsafe_code)]

use oxisycl::prelude::*;

fn main() -> oxisycl::Result<()> {
    let (queue, buffer) = (Queue::default()?, Buffer::from_vec(vec![0u32; 8])?);
    queue.submit(|cg| {
        let data = cg.access_host(&buffer, Read);
        let first = data.slice()[0];
        cg.host_task(move |_| println!("{first}"))
    })?;
    Ok(())
}
