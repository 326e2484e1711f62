//! The accessor that a kernel gets for an image ends with the kernel's call. One of a command group is no argument of another group.
#![forbid(unsafe_code)]

use std::sync::Mutex;

use oxisycl::images::{Rgba8Unorm, SampledImageAccessor, UnsampledImageAccessor};
use oxisycl::prelude::*;
use oxisycl::vector::Float4;

static KEPT: Mutex<Option<UnsampledImageAccessor<Float4, 1, Read, Rgba8Unorm>>> = Mutex::new(None);
static SMOOTH: Mutex<Option<SampledImageAccessor<Float4, 1, Rgba8Unorm>>> = Mutex::new(None);

fn main() -> oxisycl::Result<()> {
    let (queue, image) = (Queue::default()?, UnsampledImage::uninit(Rgba8Unorm, 8)?);
    let smooth = image.sampled(ImageSampler::LINEAR);
    queue.parallel_for_with(8, image.read::<Float4>(), |_, image| *KEPT.lock().unwrap() = Some(image))?;
    queue.parallel_for_with(8, smooth.read::<Float4>(), |_, image| *SMOOTH.lock().unwrap() = Some(image))?;
    queue.submit(|outer| {
        let outer_image = outer.access_image::<Float4, _, _, _>(&image, ReadWrite);
        queue.submit(|cg| cg.parallel_for_with(8, outer_image, |item, image| image.update(item, |x| x * 2.0)))
    })?;
    queue.submit(|outer| {
        let outer_image = outer.access_sampled::<Float4, _, _>(&smooth);
        queue.submit(|cg| cg.parallel_for_with(8, outer_image, |item, image| _ = image.sample(item, 0.5)))
    })?;
    Ok(())
}
