//! A kernel that calls the runtime of the host, which no device can run, beside one that calls none of it.

use oxisycl::prelude::*;

fn main() -> oxisycl::Result {
    let buffer = Buffer::from_vec(vec![1u32; 64])?;
    update(&buffer, |x| 3 * x)?;
    update(&buffer, waited)?;
    assert_eq!(buffer.into_vec()?, [3; 64]);
    Ok(())
}

/// The number stays. There is one way into the runtime, so that each target meets the same reason first.
fn waited(x: u32) -> u32 {
    Queue::builder().build().map_or(x, |_| x)
}

fn update(buffer: &Buffer<u32, 1>, f: impl Fn(u32) -> u32 + Copy + Send + Sync + 'static) -> oxisycl::Result {
    let queue = Queue::builder().build()?;
    queue
        .submit(|cg| {
            let data = cg.access(buffer, ReadWrite);
            cg.parallel_for(64, move |item| data.update(item, f))
        })?
        .wait()
}
