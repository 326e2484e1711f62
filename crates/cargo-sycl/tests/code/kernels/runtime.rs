//! A kernel that calls the runtime of the host, which no device can run, beside one that calls none of it.

use oxisycl::prelude::*;

fn main() -> oxisycl::Result {
    let buffer = Buffer::from_vec(vec![1u32; 64], 64)?;
    update(&buffer, |x| 3 * x)?;
    update(&buffer, waited)?;
    assert_eq!(buffer.into_vec()?, [3; 64]);
    Ok(())
}

/// On the host device that is an error, and the number stays.
fn waited(x: u32) -> u32 {
    Queue::builder().build().and_then(|queue| queue.wait()).map_or(x, |()| 0)
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
