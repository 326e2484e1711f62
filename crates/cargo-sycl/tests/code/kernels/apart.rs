//! A package outside the workspace that uses it: cargo gives absolute names to its sources.

use oxisycl::prelude::*;

unsafe extern "C" {
    fn getpid() -> i32;
}

pub fn process(x: u32) -> u32 {
    // SAFETY: it has no conditions.
    x + unsafe { getpid() } as u32
}

/// Has a kernel of its own.
pub fn count(buffer: &Buffer<u32, 1>) -> oxisycl::Result {
    let queue = Queue::builder().build()?;
    queue
        .submit(|cg| {
            let data = cg.access(buffer, ReadWrite);
            cg.parallel_for(64, move |item| data.update(item, |x| x + 1))
        })?
        .wait()
}
