//! The token of a single task must not leave its thread.
#![forbid(unsafe_code)]

use oxisycl::prelude::*;

fn main() -> oxisycl::Result<()> {
    let (queue, buffer) = (Queue::default()?, Buffer::from_vec(vec![0u32; 8])?);
    queue.submit(|cg| {
        let data = cg.access(&buffer, ReadWrite);
        cg.single_task(move |task| {
            std::thread::scope(|scope| {
                scope.spawn(move || data.set_at(task, 0, 1));
                data.set_at(task, 0, 2);
            });
        })
    })?;
    Ok(())
}
