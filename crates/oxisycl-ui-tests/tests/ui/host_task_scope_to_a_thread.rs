//! The scope of a host task stays on its thread.
#![forbid(unsafe_code)]

use oxisycl::prelude::*;

fn main() -> oxisycl::Result<()> {
    let queue = Queue::default()?;
    queue.submit(|cg| {
        cg.host_task(|scope| {
            std::thread::scope(|threads| {
                threads.spawn(move || println!("{scope:?}"));
            });
        })
    })?;
    Ok(())
}
