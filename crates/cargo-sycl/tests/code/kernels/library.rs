//! Kernels that call functions which GPUs have no instruction for, and one that calls none.

use oxisycl::math;
use oxisycl::prelude::*;

fn updated<T: DeviceCopyable>(
    buffer: &Buffer<T, 1>,
    f: impl Fn(T) -> T + Copy + Send + Sync + 'static,
) -> oxisycl::Result<Vec<T>> {
    let queue = Queue::builder().build()?;
    queue
        .submit(|cg| {
            let data = cg.access(buffer, ReadWrite);
            cg.parallel_for(64, move |item| data.update(item, f))
        })?
        .wait()?;
    buffer.to_vec()
}

fn nothing_special(x: f32) -> f32 {
    2.0 * x
}

fn mathematics(x: f32) -> f32 {
    x.sin() + math::erf(x) + x % 0.3 + math::tgamma(f64::from(x)) as f32
}

fn wide_conversion(x: u128) -> u128 {
    (x as f32).to_bits().into()
}

fn text(x: u32) -> u32 {
    let digits = [b'0' + (x % 10) as u8, b'7'];
    std::str::from_utf8(&digits).map_or(0, |text| text.trim().chars().count() as u32)
}

fn main() -> oxisycl::Result {
    let floats = Buffer::from_vec(vec![0.5f32; 64])?;
    updated(&floats, nothing_special)?;
    updated(&floats, mathematics)?;
    updated(&Buffer::from_vec(vec![u128::MAX; 64])?, wide_conversion)?;
    updated(&Buffer::from_vec(vec![3u32; 64])?, text)?;
    Ok(())
}
