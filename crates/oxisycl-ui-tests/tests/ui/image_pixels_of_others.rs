//! A work-item writes its own pixel of an image, or those of its own block. Group scope has no pixel, and blocks are for writing.
#![forbid(unsafe_code)]

use oxisycl::group::Fixed1;
use oxisycl::images::R32Float;
use oxisycl::prelude::*;
use oxisycl::vector::Float4;

fn main() -> oxisycl::Result<()> {
    let (queue, image) = (Queue::default()?, UnsampledImage::uninit(R32Float, 8)?);
    // Two work-items with one pixel.
    queue.parallel_for_with(8, image.write::<Float4>(), |item, image| image.set(0, Float4::splat(1.0)))?;
    queue.parallel_for_with(8, image.write::<Float4>(), |item, image| image.set_at(item, 0, Float4::splat(1.0)))?;
    // Blocks of another work-item, and of none.
    queue.parallel_for_with(8, image.write::<Float4>().chunks(2), |_, image| image.block(0).fill(Float4::splat(1.0)))?;
    queue.parallel_for_with(8, image.write::<Float4>().chunks(2), |item, image| image.set(item, Float4::splat(1.0)))?;
    // All work-items of a group at once, and a work-item that is not that of the whole range.
    queue.submit(|cg| {
        let pixels = cg.access_image::<Float4, _, _, _>(&image, Write);
        cg.parallel_for_work_group(2, Fixed1::<4>, (), move |group, ()| {
            pixels.set(group.uniform(), Float4::splat(1.0));
        })
    })?;
    queue.submit(|cg| {
        let pixels = cg.access_image::<Float4, _, _, _>(&image, Write);
        cg.parallel_for_nd_range((8, Fixed1::<4>), (), move |item, ()| pixels.set(item.local_id(), Float4::splat(1.0)))
    })?;
    // Blocks of what is only read, and reads of what is only written.
    queue.submit(|cg| {
        cg.access_image_chunks::<Float4, _, _, _>(&image, Read, 2);
        cg.single_task(|_| {})
    })?;
    queue.parallel_for_with(4, image.read::<Float4>().chunks(2), |_, _| {})?;
    queue.parallel_for_with(4, image.write::<Float4>().chunks(2), |item, image| _ = image.block(item).get(0))?;
    // A host task's accessor outside of a task, and by the token of a kernel.
    queue.submit(|cg| {
        let pixels = cg.access_image_host::<Float4, _, _, _>(&image, Read);
        cg.single_task(move |task| _ = pixels.read(task, 0))
    })?;
    Ok(())
}
