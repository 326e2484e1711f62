//! A work-item must not share its item with a thread it starts.
#![forbid(unsafe_code)]

use oxisycl::prelude::*;

fn main() -> oxisycl::Result<()> {
    let (queue, buffer) = (Queue::default()?, Buffer::from_vec(vec![0u32; 8])?);
    queue.submit(|cg| {
        let data = cg.access(&buffer, ReadWrite);
        cg.parallel_for(8, move |item| {
            std::thread::scope(|scope| {
                scope.spawn(move || data.update(item, |x| x + 1));
                data.update(item, |x| x + 1);
            });
        })
    })?;
    Ok(())
}
