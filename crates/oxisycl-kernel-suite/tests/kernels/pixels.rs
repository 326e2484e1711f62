//! Pixels of the crate `image`, with the few of their methods that kernels need.

use image::{GrayImage, Luma, LumaA, Pixel, Rgb, Rgba, RgbaImage};
use oxisycl::prelude::*;

use crate::harness::{Env, fraction, kernels, scramble};
use crate::outcome::Tolerance::Contracted;

kernels![channels_of_bytes, channels_of_floats, pictures_in_buffers];

fn any(i: usize) -> Rgba<u8> {
    Rgba(scramble(i).to_le_bytes())
}

fn channels_of_bytes(env: &Env) {
    env.compare(|i| {
        let mut pixel = any(i);
        pixel.invert();
        pixel.apply_without_alpha(|channel| channel / 2);
        let mapped = any(i).map2(&any(i + 1), |a, b| a.max(b));
        let LumaA(gray) = LumaA([pixel[0], pixel[3]]);
        (pixel.0, mapped.0, gray, any(i) == any(i + 1))
    });
}

fn channels_of_floats(env: &Env) {
    env.compare_within(Contracted(1e-5), |i| {
        let a = Rgb([fraction(i), fraction(i + 1), fraction(i + 2)]);
        let b = a.map(|channel| channel * channel + 0.5);
        (b.0, b.channels().iter().sum::<f32>())
    });
}

fn pictures_in_buffers(env: &Env) {
    const WIDTH: usize = 37;
    const HEIGHT: usize = 21;
    let picture = RgbaImage::from_fn(WIDTH as u32, HEIGHT as u32, |x, y| any((x + 100 * y) as usize));
    let red = |Rgba([r, ..]): Rgba<u8>| Luma([r]);
    let (source, target) =
        (Buffer::from_image(picture.clone()), Buffer::from_image(GrayImage::new(WIDTH as u32, HEIGHT as u32)));
    let (source, target) = (source.expect("a buffer"), target.expect("a buffer"));
    env.finish(env.queue().submit(|cg| {
        let (source, target) = (cg.access(&source, Read), cg.access(&target, Write));
        cg.parallel_for([HEIGHT, WIDTH], move |item: Item<2>| {
            let [y, x] = [item.get(0), item.get(1)];
            target.set(item, red(source.view(item)[[y, WIDTH - 1 - x]]));
        })
    }));
    let target = target.into_image().expect("the picture");
    let expected = |x, y| red(*picture.get_pixel(WIDTH as u32 - 1 - x, y));
    assert!(target.enumerate_pixels().all(|(x, y, pixel)| *pixel == expected(x, y)));
}
