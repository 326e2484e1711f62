//! A block of pixels ends with the call of its kernel. What a host task may use of an image ends with the task, and belongs to its group.
#![forbid(unsafe_code)]

use std::sync::Mutex;

use oxisycl::images::{ImageBlock, R32Float};
use oxisycl::prelude::*;
use oxisycl::vector::Float4;

static BYTES: Mutex<Option<&'static [u8]>> = Mutex::new(None);
thread_local! {
    static KEPT: Mutex<Option<ImageBlock<'static, Float4, 1, Write, R32Float>>> = const { Mutex::new(None) };
}

fn main() -> oxisycl::Result<()> {
    let (queue, image) = (Queue::default()?, UnsampledImage::uninit(R32Float, 8)?);
    queue.parallel_for_with(4, image.write::<Float4>().chunks(2), |item, image| {
        KEPT.with(|kept| *kept.lock().unwrap() = Some(image.block(item)));
    })?;
    queue.submit(|cg| {
        let pixels = cg.access_image_host::<Float4, _, _, _>(&image, Read);
        cg.host_task(move |scope| {
            let pixels = Box::leak(Box::new(pixels));
            *BYTES.lock().unwrap() = Some(pixels.bytes(scope));
        })
    })?;
    queue.submit(|cg| {
        let mut pixels = cg.access_image_host::<Float4, _, _, _>(&image, ReadWrite);
        cg.host_task(move |scope| {
            let bytes = pixels.bytes_mut(scope);
            pixels.write(scope, 0, Float4::splat(1.0));
            bytes.fill(0);
        })
    })?;
    queue.submit(|outer| {
        let pixels = outer.access_image_host::<Float4, _, _, _>(&image, Read);
        queue.submit(|cg| cg.host_task(move |scope| _ = pixels.read(scope, 0)))
    })?;
    Ok(())
}
