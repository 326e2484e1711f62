//! Positions have as many dimensions as the image.
#![forbid(unsafe_code)]

use oxisycl::images::Rgba8Unorm;
use oxisycl::prelude::*;
use oxisycl::vector::Float4;

fn main() -> oxisycl::Result<()> {
    let (queue, image) = (Queue::default()?, UnsampledImage::uninit(Rgba8Unorm, [8, 8])?);
    queue.submit(|cg| {
        let read = cg.access_image::<Float4, _, _, _>(&image, Read);
        cg.parallel_for([8, 8], move |item: Item<2>| _ = read.read(item, [0, 0, 0]))
    })?;
    Ok(())
}
