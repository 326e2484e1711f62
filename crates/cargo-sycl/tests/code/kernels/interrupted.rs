//! Kernels of a program whose build is interrupted.

use oxisycl::prelude::*;

fn updated(
    buffer: &Buffer<u32, 1>,
    f: impl Fn(u32) -> u32 + Copy + Send + Sync + 'static,
) -> oxisycl::Result<Vec<u32>> {
    let queue = Queue::builder().build()?;
    queue
        .submit(|cg| {
            let data = cg.access(buffer, ReadWrite);
            cg.parallel_for(64, move |item| data.update(item, f))
        })?
        .wait()?;
    buffer.to_vec()
}

fn first(x: u32) -> u32 {
    x + 1
}

fn second(x: u32) -> u32 {
    x * 3
}

fn endless(x: u32) -> u32 {
    x ^ 5
}

fn main() -> oxisycl::Result {
    let numbers = Buffer::from_vec(vec![3u32; 64])?;
    updated(&numbers, first)?;
    updated(&numbers, second)?;
    updated(&numbers, endless)?;
    Ok(())
}
