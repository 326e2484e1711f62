//! An image that a kernel gets as its argument is used as the argument says, and only by that kernel.
#![forbid(unsafe_code)]

use oxisycl::images::Rgba8Unorm;
use oxisycl::prelude::*;
use oxisycl::vector::Float4;

fn main() -> oxisycl::Result<()> {
    let (queue, image) = (Queue::default()?, UnsampledImage::uninit(Rgba8Unorm, [8, 8])?);
    let smooth = image.sampled(ImageSampler::LINEAR);
    // Writes to what is read, reads another's pixel of what is written, and gets its own of what is only written.
    queue.parallel_for_with([8, 8], image.read::<Float4>(), |item, image| image.set(item, Float4::splat(1.0)))?;
    queue.parallel_for_with([8, 8], image.update::<Float4>(), |item, image| image.set(item, image.read(item, [0, 0])))?;
    queue.parallel_for_with([8, 8], image.write::<Float4>(), |item, image| image.set(item, image.get(item)))?;
    queue.parallel_for_with([8, 8], smooth.read::<Float4>(), |item, image| image.set(item, Float4::splat(1.0)))?;
    // Modes that images lack, and an image without a use.
    queue.parallel_for_with([8, 8], image.with::<Float4, _>(Atomic), |_, _| {})?;
    queue.parallel_for_with([8, 8], smooth.write::<Float4>(), |_, _| {})?;
    queue.parallel_for_with([8, 8], (1u8, &image), |_, _| {})?;
    // Of another number of dimensions.
    queue.parallel_for_with(8, image.update::<Float4>(), |item, image| image.set(item, image.get(item)))?;
    Ok(())
}
