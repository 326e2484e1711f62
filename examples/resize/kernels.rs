//! The work on the device: a pass along the rows, and one along the columns.

use image::RgbaImage;
use oxisycl::images::{Rgba8Srgb, Rgba32Float};
use oxisycl::prelude::*;
use oxisycl::vector::Float4;

use crate::filter::{Filter, Taps};

/// Pixels of the host as linear light, which may be mixed.
type Pixels = UnsampledImage<2, Rgba8Srgb>;

pub(crate) fn resized(
    queue: &Queue,
    pixels: RgbaImage,
    size: [usize; 2],
    filter: Filter,
) -> oxisycl::Result<RgbaImage> {
    let source = Pixels::from_image_buffer(Rgba8Srgb, pixels)?;
    let result = Pixels::uninit(Rgba8Srgb, size)?;
    if filter == Filter::Nearest {
        nearest(queue, &source, &result)?;
    } else {
        let Range([height, width]) = source.range();
        let half = UnsampledImage::uninit(Rgba32Float, [height, size[1]])?;
        along_rows(queue, &source, filter.taps(width, size[1]), &half)?;
        along_columns(queue, &half, filter.taps(height, size[0]), &result)?;
    }
    Ok(result.into_image_buffer()?)
}

/// Each pixel is the one at its place. By normalized coordinates, a place is the same in both pictures.
fn nearest(queue: &Queue, source: &Pixels, result: &Pixels) -> oxisycl::Result {
    let Range([height, width]) = result.range();
    let source = source.sampled(ImageSampler::NEAREST.normalized());
    let arguments = (source.read::<Float4>(), result.with(Write.no_init()));
    queue.parallel_for_with([height, width], arguments, move |item: Item<2>, (source, result)| {
        let place = [(item.get(0), height), (item.get(1), width)].map(|(i, n)| (i as f32 + 0.5) / n as f32);
        result.set(item, source.sample(item, place));
    })?;
    Ok(())
}

/// The first weight of each pixel, and all of them.
fn buffers(taps: Taps) -> oxisycl::Result<(Buffer<i32, 1>, Buffer<f32, 2>)> {
    let size = [taps.first.len(), taps.n];
    Ok((Buffer::from_vec(taps.first)?, Buffer::from_vec_nd(taps.weights, size)?))
}

/// The new columns of the old rows. Colours get the weight of their opacity: what is transparent has none.
fn along_rows(queue: &Queue, source: &Pixels, taps: Taps, half: &UnsampledImage<2, Rgba32Float>) -> oxisycl::Result {
    let (first, weights) = buffers(taps)?;
    let arguments = (source.read::<Float4>(), first.read(), weights.read(), half.with(Write.no_init()));
    queue.parallel_for_with(half.range(), arguments, |item: Item<2>, (source, first, weights, half)| {
        let [y, x] = item.id().into();
        let begin = *first.at(item, x);
        let mut sum = Float4::splat(0.0);
        for (k, &weight) in weights.view(item).row(x).iter().enumerate() {
            // Beyond the edge there is the border colour, whose weight is zero.
            let colour = source.read(item, [y as i32, begin + k as i32]);
            let opacity = colour.w();
            sum += colour * Float4::new(opacity, opacity, opacity, 1.0) * weight;
        }
        half.set(item, sum);
    })?;
    Ok(())
}

/// The new rows.
fn along_columns(queue: &Queue, half: &UnsampledImage<2, Rgba32Float>, taps: Taps, result: &Pixels) -> oxisycl::Result {
    let (first, weights) = buffers(taps)?;
    let arguments = (half.read::<Float4>(), first.read(), weights.read(), result.with(Write.no_init()));
    queue.parallel_for_with(result.range(), arguments, |item: Item<2>, (half, first, weights, result)| {
        let [y, x] = item.id().into();
        let begin = *first.at(item, y);
        let mut sum = Float4::splat(0.0);
        for (k, &weight) in weights.view(item).row(y).iter().enumerate() {
            sum += half.read(item, [begin + k as i32, x as i32]) * weight;
        }
        let opacity = sum.w();
        let scale = if opacity > 1e-6 { 1.0 / opacity } else { 0.0 };
        // What is below 0 or above 1 becomes that when it is written.
        result.set(item, sum * Float4::new(scale, scale, scale, 1.0));
    })?;
    Ok(())
}
