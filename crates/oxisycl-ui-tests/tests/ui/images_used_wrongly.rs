//! Pixels of a read image are not written, those of a written one are not read anywhere, and a sampled image has no pixels.
#![forbid(unsafe_code)]

use oxisycl::images::Rgba8Unorm;
use oxisycl::prelude::*;
use oxisycl::vector::Float4;

fn main() -> oxisycl::Result<()> {
    let (queue, image) = (Queue::default()?, UnsampledImage::uninit(Rgba8Unorm, [8, 8])?);
    let smooth = image.sampled(ImageSampler::LINEAR);
    queue.submit(|cg| {
        let read = cg.access_image::<Float4, _, _, _>(&image, Read);
        cg.parallel_for([8, 8], move |item: Item<2>| read.set(item, Float4::splat(1.0)))
    })?;
    queue.submit(|cg| {
        let written = cg.access_image::<Float4, _, _, _>(&image, ReadWrite);
        cg.parallel_for([8, 8], move |item: Item<2>| written.set(item, written.read(item, [0, 0])))
    })?;
    queue.submit(|cg| {
        let sampled = cg.access_sampled::<Float4, _, _>(&smooth);
        cg.parallel_for([8, 8], move |item: Item<2>| _ = sampled.read(item, [0, 0]))
    })?;
    queue.submit(|cg| {
        cg.access_image::<Float4, _, _, _>(&smooth, Read);
        cg.access_sampled::<Float4, _, _>(&image);
        cg.single_task(|_| {})
    })?;
    Ok(())
}
