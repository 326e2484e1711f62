//! Kernels that call the functions of a user's crate named `libm`.

#![forbid(unsafe_code)]

use libm::math::frexp::Kind;
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

fn reference(x: u32) -> u32 {
    *libm::math::sin::sinf(&[1, x, 3, x * x])
}

fn number(x: u32) -> u32 {
    libm::math::sqrt::sqrtf(x as f32).to_bits()
}

fn enumeration(x: u32) -> u32 {
    let (value, kind) = libm::math::frexp::frexp(f64::from(x));
    match kind {
        Kind::Small => value.to_bits() as u32,
        Kind::Large => 7,
    }
}

fn main() -> oxisycl::Result {
    let numbers = Buffer::from_vec(vec![3u32; 64])?;
    updated(&numbers, reference)?;
    updated(&numbers, number)?;
    updated(&numbers, enumeration)?;
    Ok(())
}
