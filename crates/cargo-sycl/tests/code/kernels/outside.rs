//! Kernels that call functions of an optimised crate which knows nothing of OxiSYCL.

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

fn letter(x: u32) -> u32 {
    u32::from(tables::letter(x as usize))
}

fn hash(x: u32) -> u32 {
    tables::hash(x)
}

fn mixed(x: u32) -> u32 {
    tables::mixed(x)
}

fn main() -> oxisycl::Result {
    let numbers = Buffer::from_vec(vec![3u32; 64])?;
    updated(&numbers, letter)?;
    updated(&numbers, hash)?;
    updated(&numbers, mixed)?;
    Ok(())
}
