//! Kernels over images, whose sampler is a constant or comes with the image.

use oxisycl::images::{AddressingMode, PixelFormat, R32Float, Rgba8Unorm};
use oxisycl::prelude::*;
use oxisycl::vector::Float4;

fn main() -> oxisycl::Result {
    let queue = Queue::default()?;
    every_kernel(&queue, Rgba8Unorm)?;
    every_kernel(&queue, R32Float)
}

/// Runs each kernel, and writes a number that stands for what it made.
fn every_kernel<F: PixelFormat>(queue: &Queue, format: F) -> oxisycl::Result {
    const RANGE: [usize; 2] = [16, 19];
    // Pixels of four bytes in both formats. Numbers from 0 to 1 in one of them.
    let bytes = (0..RANGE[0] * RANGE[1]).flat_map(|i| ((i * 7919 % 1000) as f32 / 1000.0).to_ne_bytes()).collect();
    let from = SampledImage::from_vec(format, ImageSampler::LINEAR, bytes, RANGE)?;
    for kernel in [resize, rotate, window, chosen] {
        let to = UnsampledImage::uninit(format, [21, 23])?;
        kernel(queue, &from, &to)?;
        let number = to.to_vec::<u8>()?.into_iter().fold(7_u64, |number, byte| (31 * number + u64::from(byte)) % 1_000_000_007);
        println!("{number}");
    }
    Ok(())
}

type Source<F> = SampledImage<2, F>;
type Target<F> = UnsampledImage<2, F>;

fn resize<F: PixelFormat>(queue: &Queue, from: &Source<F>, to: &Target<F>) -> oxisycl::Result<Event> {
    let arguments = (from.read::<Float4>(), to.with(Write.no_init()));
    queue.parallel_for_with(to.range(), arguments, |item: Item<2>, (from, to)| {
        let place = [(item.get(0) as f32 + 0.5) * 0.75, (item.get(1) as f32 + 0.5) * 0.75];
        to.set(item, from.sample_with(item, ImageSampler::LINEAR, place));
    })
}

/// The only difference to `resize` is where the sampler comes from.
fn chosen<F: PixelFormat>(queue: &Queue, from: &Source<F>, to: &Target<F>) -> oxisycl::Result<Event> {
    let arguments = (from.read::<Float4>(), to.with(Write.no_init()));
    queue.parallel_for_with(to.range(), arguments, |item: Item<2>, (from, to)| {
        let place = [(item.get(0) as f32 + 0.5) * 0.75, (item.get(1) as f32 + 0.5) * 0.75];
        to.set(item, from.sample(item, place));
    })
}

fn rotate<F: PixelFormat>(queue: &Queue, from: &Source<F>, to: &Target<F>) -> oxisycl::Result<Event> {
    const WITH_BORDER: ImageSampler = ImageSampler::LINEAR.normalized().with_addressing(AddressingMode::Clamp);
    let arguments = (from.read::<Float4>(), to.with(Write.no_init()));
    queue.parallel_for_with(to.range(), arguments, |item: Item<2>, (from, to)| {
        let [y, x] = [item.get(0) as f32 - 3.5, item.get(1) as f32 - 3.5];
        to.set(item, from.sample_with(item, WITH_BORDER, [0.1 * y + 0.05 * x + 0.5, 0.1 * x - 0.05 * y + 0.5]));
    })
}

fn window<F: PixelFormat>(queue: &Queue, from: &Source<F>, to: &Target<F>) -> oxisycl::Result<Event> {
    const WEIGHTS: [[f32; 3]; 3] = [[0.0, 0.125, 0.0], [0.125, 0.5, 0.125], [0.0, 0.125, 0.0]];
    let arguments = (from.unsampled().read::<Float4>(), to.with(Write.no_init()));
    queue.parallel_for_with(to.range(), arguments, |item: Item<2>, (from, to)| {
        let around = from.window::<3, 3>(item, [item.get(0) as i32 - 1, item.get(1) as i32 - 1]);
        let sum = around.fold(Float4::splat(0.0), |sum, [y, x], pixel| sum + pixel * WEIGHTS[y][x]);
        to.set(item, sum);
    })
}
