//! A kernel that reads and writes pixels with channels of 16 bits.

use oxisycl::images::Rgba16Float;
use oxisycl::prelude::*;
use oxisycl::vector::Float4;

fn main() -> oxisycl::Result {
    // Bits of 1.0 and 2.0.
    let pixels = UnsampledImage::from_vec(Rgba16Float, vec![0x3c00_u16; 4 * 6], [2, 3])?;
    pixels_of_halves(&Queue::builder().build()?, &pixels)?;
    assert_eq!(pixels.to_vec::<u16>()?, [0x4000; 24]);
    Ok(())
}

fn pixels_of_halves(queue: &Queue, pixels: &UnsampledImage<2, Rgba16Float>) -> oxisycl::Result<Event> {
    queue.submit(|cg| {
        let pixels = cg.access_image::<Float4, _, _, _>(pixels, ReadWrite);
        cg.parallel_for([2, 3], move |item: Item<2>| pixels.update(item, |pixel| pixel * pixel + 1.0))
    })
}
