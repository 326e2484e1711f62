//! A block of pixels must not be shared with a thread.
#![forbid(unsafe_code)]

use oxisycl::images::R32Float;
use oxisycl::prelude::*;
use oxisycl::vector::Float4;

fn main() -> oxisycl::Result<()> {
    let (queue, image) = (Queue::default()?, UnsampledImage::uninit(R32Float, 8)?);
    queue.parallel_for_with(4, image.write::<Float4>().chunks(2), |item, image| {
        let block = image.block(item);
        std::thread::scope(|scope| {
            scope.spawn(move || block.set(0, Float4::splat(1.0)));
            block.set(0, Float4::splat(2.0));
        });
    })?;
    Ok(())
}
