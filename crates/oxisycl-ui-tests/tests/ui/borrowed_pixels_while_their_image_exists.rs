//! Memory whose pixels an image writes back is borrowed until then: no second image over a part of it, and no look at it.
#![forbid(unsafe_code)]

use oxisycl::images::R8Uint;
use oxisycl::prelude::*;
use oxisycl::vector::Uint4;

fn main() -> oxisycl::Result<()> {
    let queue = Queue::default()?;
    let mut data = [0u8; 8];
    let image = UnsampledImage::from_slice_mut(R8Uint, &mut data, [2, 4])?;
    let lower_row = UnsampledImage::from_slice_mut(R8Uint, &mut data[4..], 4)?;
    queue.fill_image(&image, Uint4::splat(1))?;
    println!("{}", data[0]);
    lower_row.finish()?;
    image.finish()
}
