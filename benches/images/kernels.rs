//! What is measured, as users write it: kernels over images whose format is a type.

use oxisycl::Result;
use oxisycl::images::{AddressingMode, ImageSampler, PixelFormat};
use oxisycl::prelude::*;
use oxisycl::vector::Float4;

use crate::model::{TURN, weights};

/// Zeros beyond the edges.
const WITH_BORDER: ImageSampler = ImageSampler::LINEAR.with_addressing(AddressingMode::Clamp);

/// The picture in the size of the other one.
pub(crate) fn resize<F: PixelFormat>(
    queue: &Queue,
    from: &SampledImage<2, F>,
    to: &UnsampledImage<2, F>,
) -> Result<Event> {
    let range @ [height, width] = to.range().0;
    let scale = [from.range().get(0) as f32 / height as f32, from.range().get(1) as f32 / width as f32];
    queue.submit(|cg| {
        let from = cg.access_sampled::<Float4, _, _>(from);
        let to = cg.access_image(to, Write.no_init());
        cg.parallel_for(range, move |item: Item<2>| {
            let place = [(item.get(0) as f32 + 0.5) * scale[0], (item.get(1) as f32 + 0.5) * scale[1]];
            to.set(item, from.sample_with(item, ImageSampler::LINEAR, place));
        })
    })
}

/// The picture turned around its centre.
pub(crate) fn rotate<F: PixelFormat>(
    queue: &Queue,
    from: &SampledImage<2, F>,
    to: &UnsampledImage<2, F>,
) -> Result<Event> {
    let range = to.range().0;
    let centre = range.map(|extent| extent as f32 / 2.0);
    let [sine, cosine] = TURN;
    queue.submit(|cg| {
        let from = cg.access_sampled::<Float4, _, _>(from);
        let to = cg.access_image(to, Write.no_init());
        cg.parallel_for(range, move |item: Item<2>| {
            let dy = item.get(0) as f32 + 0.5 - centre[0];
            let dx = item.get(1) as f32 + 0.5 - centre[1];
            let place = [sine * dx + cosine * dy + centre[0], cosine * dx - sine * dy + centre[1]];
            to.set(item, from.sample_with(item, WITH_BORDER, place));
        })
    })
}

/// The weighted sum of the neighbours of each pixel.
pub(crate) fn convolve<F: PixelFormat, const N: usize>(
    queue: &Queue,
    from: &UnsampledImage<2, F>,
    to: &UnsampledImage<2, F>,
) -> Result<Event> {
    let (range, weights) = (to.range().0, weights::<N>());
    queue.submit(|cg| {
        let from = cg.access_image::<Float4, _, _, _>(from, Read);
        let to = cg.access_image(to, Write.no_init());
        cg.parallel_for(range, move |item: Item<2>| {
            let reach = N as isize / 2;
            let origin = [item.get(0) as isize - reach, item.get(1) as isize - reach];
            let around = from.window::<N, N>(item, origin);
            to.set(item, around.fold(Float4::splat(0.0), |sum, [y, x], pixel| sum + pixel * weights[y][x]));
        })
    })
}
