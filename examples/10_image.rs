//! Images of the crate `image` as buffers of pixels: a picture is mirrored and made gray, and compared with the same by that crate.
//!
//! `cargo run --example 10_image --features image`

use image::imageops::flip_horizontal;
use image::{GrayImage, Luma, Rgb, RgbImage};
use oxisycl::prelude::*;

const WIDTH: usize = 320;
const HEIGHT: usize = 200;

/// One set of weights on the host and in the kernel.
fn gray(Rgb([r, g, b]): Rgb<u8>) -> Luma<u8> {
    Luma([((299 * u32::from(r) + 587 * u32::from(g) + 114 * u32::from(b)) / 1000) as u8])
}

fn main() -> oxisycl::Result<()> {
    let queue = Queue::default()?;
    let picture = RgbImage::from_fn(WIDTH as u32, HEIGHT as u32, |x, y| Rgb([x as u8, y as u8, (x * y) as u8]));
    let mirrored = flip_horizontal(&picture);

    // Rows come first in a buffer: the pixel at (x, y) is the element at [y, x].
    let picture = Buffer::from_image(picture)?;
    let result = Buffer::from_image(GrayImage::new(WIDTH as u32, HEIGHT as u32))?;
    queue.submit(|cg| {
        let (picture, result) = (cg.access(&picture, Read), cg.access(&result, Write));
        cg.parallel_for([HEIGHT, WIDTH], move |item: Item<2>| {
            let [y, x] = [item.get(0), item.get(1)];
            result.set(item, gray(picture.view(item)[[y, WIDTH - 1 - x]]));
        })
    })?;

    let result = result.into_image()?;
    assert!(result.enumerate_pixels().all(|(x, y, pixel)| *pixel == gray(*mirrored.get_pixel(x, y))));
    println!("a picture of {WIDTH} x {HEIGHT} pixels was mirrored; its first pixel is {}", result.get_pixel(0, 0)[0]);
    Ok(())
}
