//! The cells of a single task must not be shared with a thread.
#![forbid(unsafe_code)]

use oxisycl::prelude::*;

fn main() -> oxisycl::Result<()> {
    let (queue, buffer) = (Queue::default()?, Buffer::from_vec(vec![0u32; 8])?);
    queue.submit(|cg| {
        let data = cg.access(&buffer, ReadWrite);
        cg.single_task(move |task| {
            let cells = data.cells(task);
            std::thread::scope(|scope| {
                scope.spawn(move || cells[0].set(1));
                cells[0].set(2);
            });
        })
    })?;
    Ok(())
}
