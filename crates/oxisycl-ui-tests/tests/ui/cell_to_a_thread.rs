//! A cell of an element must not be shared with a thread.
#![forbid(unsafe_code)]

use oxisycl::prelude::*;

fn main() -> oxisycl::Result<()> {
    let (queue, buffer) = (Queue::default()?, Buffer::from_vec(vec![0u32; 8])?);
    queue.submit(|cg| {
        let data = cg.access(&buffer, ReadWrite);
        cg.parallel_for(8, move |item| {
            let cell = data.cell(item);
            std::thread::scope(|scope| {
                scope.spawn(move || cell.set(1));
                cell.set(2);
            });
        })
    })?;
    Ok(())
}
