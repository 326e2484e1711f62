//! Optical flow: where each pixel of a frame is in the next one, to parts of a pixel, by the method of Lucas and Kanade. It looks at small copies of
//! both frames first. A sampler makes the copies, reads between pixels of the second frame, and brings what was found to the next size.
//!
//! `cargo run --release --example 22_optical_flow --features image -- [FIRST.png SECOND.png] FLOW.png`
//!
//! Without frames it makes two up, whose flow is known. The picture has the direction as a hue, and what stands still is white.
//! Where something leaves the frame, at its edges, the flow is wrong.

#![forbid(unsafe_code)]

#[path = "tour/jpeg.rs"]
mod jpeg;

use std::error::Error;
use std::f32::consts::TAU;
use std::ffi::OsString;

use image::RgbaImage;
use oxisycl::images::{R32Float, Rg32Float, Rgba8Unorm, Rgba32Float};
use oxisycl::prelude::*;
use oxisycl::vector::Float4;

/// Levels from 0 to 1.
type Frame = SampledImage<2, R32Float>;
/// How far each pixel goes: down, and to the right.
type Flow = SampledImage<2, Rg32Float>;

/// A flow explains the pixels that are at most so far away.
const RADIUS: i32 = 3;
/// The pixels along a side of that.
const AROUND: usize = 2 * RADIUS as usize + 1;
const STEPS: usize = 3;
/// The shortest side of the smallest copy.
const SMALLEST: usize = 16;

/// Where a work-item's pixel has its centre.
fn centre(item: Item<'_, 2>) -> [f32; 2] {
    [item.get(0) as f32 + 0.5, item.get(1) as f32 + 0.5]
}

/// A frame of half the size: each pixel is the mean of four.
fn halved(queue: &Queue, frame: &Frame) -> oxisycl::Result<Frame> {
    let size = frame.range().0.map(|n| n.div_ceil(2));
    let smaller = UnsampledImage::uninit(R32Float, size)?;
    let arguments = (frame.read::<Float4>(), smaller.with(Write.no_init()));
    queue.parallel_for_with(size, arguments, |item: Item<2>, (frame, smaller)| {
        smaller.set(item, frame.sample(item, centre(item).map(|at| 2.0 * at)));
    })?;
    Ok(smaller.sampled(ImageSampler::LINEAR))
}

/// Each pixel's level, and how it grows downwards and to the right. The sampler repeats the edge, where nothing grows.
fn slopes(queue: &Queue, frame: &Frame) -> oxisycl::Result<UnsampledImage<2, Rgba32Float>> {
    let slopes = UnsampledImage::uninit(Rgba32Float, frame.range())?;
    let arguments = (frame.read::<Float4>(), slopes.with(Write.no_init()));
    queue.parallel_for_with(frame.range(), arguments, |item: Item<2>, (frame, slopes)| {
        let [y, x] = centre(item);
        let level = |y, x| frame.sample(item, [y, x])[0];
        let [down, right] = [level(y + 1.0, x) - level(y - 1.0, x), level(y, x + 1.0) - level(y, x - 1.0)];
        slopes.set(item, Float4::new(level(y, x), 0.5 * down, 0.5 * right, 1.0));
    })?;
    Ok(slopes)
}

/// The flow from `first` to `second`, which begins with that of frames of half the size.
fn refined(queue: &Queue, first: &Frame, second: &Frame, coarse: &Flow) -> oxisycl::Result<Flow> {
    let slopes = slopes(queue, first)?;
    let flow = UnsampledImage::uninit(Rg32Float, first.range())?;
    let arguments =
        (slopes.read::<Float4>(), second.read::<Float4>(), coarse.read::<Float4>(), flow.with(Write.no_init()));
    queue.parallel_for_with(first.range(), arguments, |item: Item<2>, (slopes, second, coarse, flow)| {
        let [y, x] = [item.get(0) as i32, item.get(1) as i32];
        // The sums of squares of slopes around. Beyond the edge they read as zero. A little more keeps what is flat where it is.
        let around = slopes.window::<AROUND, AROUND>(item, [y - RADIUS, x - RADIUS]);
        let (yy, yx, xx) = around.fold((1e-4, 0.0, 1e-4), |(yy, yx, xx), _, slope| {
            (yy + slope[1] * slope[1], yx + slope[1] * slope[2], xx + slope[2] * slope[2])
        });
        let scale = 1.0 / (yy * xx - yx * yx);
        let [centre_y, centre_x] = centre(item);
        let guess = coarse.sample(item, [0.5 * centre_y, 0.5 * centre_x]) * 2.0;
        let [mut down, mut right] = [guess[0], guess[1]];
        for _ in 0..STEPS {
            let corner = [centre_y - RADIUS as f32 + down, centre_x - RADIUS as f32 + right];
            let (by_y, by_x) = around.fold((0.0, 0.0), |(by_y, by_x), [dy, dx], slope| {
                let there = second.sample(item, [corner[0] + dy as f32, corner[1] + dx as f32]);
                (by_y + slope[1] * (slope[0] - there[0]), by_x + slope[2] * (slope[0] - there[0]))
            });
            down += (scale * (xx * by_y - yx * by_x)).clamp(-1.5, 1.5);
            right += (scale * (yy * by_x - yx * by_y)).clamp(-1.5, 1.5);
        }
        flow.set(item, Float4::new(down, right, 0.0, 1.0));
    })?;
    Ok(flow.sampled(ImageSampler::LINEAR))
}

/// The flow from the smallest copies to the frames themselves.
fn optical_flow(queue: &Queue, first: Frame, second: Frame) -> oxisycl::Result<Flow> {
    let mut frames = vec![(first, second)];
    while let Some((first, second)) = frames.last()
        && first.range().0.iter().all(|&n| n >= 2 * SMALLEST)
    {
        frames.push((halved(queue, first)?, halved(queue, second)?));
    }
    // One pixel that does not move, as the sampler clamps to the edge.
    let mut flow = SampledImage::from_vec(Rg32Float, ImageSampler::LINEAR, vec![0.0f32; 2], [1, 1])?;
    for (first, second) in frames.iter().rev() {
        flow = refined(queue, first, second, &flow)?;
    }
    Ok(flow)
}

/// A picture of a flow, whose colours are full at the length `most`.
fn wheel(queue: &Queue, flow: &Flow, most: f32) -> oxisycl::Result<UnsampledImage<2, Rgba8Unorm>> {
    let picture = UnsampledImage::uninit(Rgba8Unorm, flow.range())?;
    let arguments = (flow.read::<Float4>(), picture.with(Write.no_init()));
    queue.parallel_for_with(flow.range(), arguments, move |item: Item<2>, (flow, picture)| {
        let flow = flow.sample(item, centre(item));
        let (down, right) = (flow[0], flow[1]);
        let length = (down.hypot(right) / most).min(1.0);
        let turn = 6.0 * (down.atan2(right) / TAU + 1.0);
        // Red, green and blue each have a third of the wheel.
        let channel = |middle: f32| 1.0 - length * (((turn + 6.0 - middle) % 6.0 - 3.0).abs() - 1.0).clamp(0.0, 1.0);
        picture.set(item, Float4::new(channel(3.0), channel(5.0), channel(1.0), 1.0));
    })?;
    Ok(picture)
}

/// The known motion: what is at a place of the second frame has come so far. All of it moves, and the middle turns.
fn motion([y, x]: [f32; 2], [height, width]: [usize; 2]) -> [f32; 2] {
    let [dy, dx] = [y - 0.5 * height as f32, x - 0.5 * width as f32];
    let turn = 0.07 * (-(dy * dy + dx * dx) / (0.05 * (height * height) as f32)).exp();
    [1.3 + turn * dx, -2.6 - turn * dy]
}

/// Where a pixel of the first frame goes by that motion: the flow `d` with `d = motion(at + d)`.
fn known_flow(at: [f32; 2], size: [usize; 2]) -> [f32; 2] {
    (0..20).fold([0.0; 2], |flow, _| motion([at[0] + flow[0], at[1] + flow[1]], size))
}

/// A smooth pattern that is nowhere the same, with detail for frames of all sizes.
fn pattern(size: [usize; 2]) -> oxisycl::Result<Frame> {
    let random = |y: i32, x: i32| {
        let bits = (y as u32).wrapping_mul(0x9E37_79B1) ^ (x as u32).wrapping_mul(0x85EB_CA77);
        let bits = (bits ^ (bits >> 15)).wrapping_mul(0x2C1B_3C6D);
        ((bits ^ (bits >> 13)) >> 8) as f32 / (1 << 24) as f32
    };
    let noise = |y: f32, x: f32| {
        let ease = |t: f32| t * t * (3.0 - 2.0 * t);
        let ([i, j], [s, t]) = ([y.floor() as i32, x.floor() as i32], [ease(y - y.floor()), ease(x - x.floor())]);
        let row = |i| random(i, j) * (1.0 - t) + random(i, j + 1) * t;
        row(i) * (1.0 - s) + row(i + 1) * s
    };
    let pixels = (0..size[0] * size[1]).map(|i| {
        let [y, x] = [(i / size[1]) as f32, (i % size[1]) as f32];
        0.3 * noise(y / 6.0, x / 6.0) + 0.3 * noise(y / 13.0 + 70.0, x / 13.0) + 0.4 * noise(y / 27.0, x / 27.0 + 50.0)
    });
    SampledImage::from_vec(R32Float, ImageSampler::LINEAR, pixels.collect(), size)
}

/// The frame after the known motion.
fn moved(queue: &Queue, frame: &Frame) -> oxisycl::Result<Frame> {
    let Range(size) = frame.range();
    let next = UnsampledImage::uninit(R32Float, size)?;
    let arguments = (frame.read::<Float4>(), next.with(Write.no_init()));
    queue.parallel_for_with(size, arguments, move |item: Item<2>, (frame, next)| {
        let (at, flow) = (centre(item), motion(centre(item), size));
        next.set(item, frame.sample(item, [at[0] - flow[0], at[1] - flow[1]]));
    })?;
    Ok(next.sampled(ImageSampler::LINEAR))
}

fn load(path: &OsString) -> Result<Frame, Box<dyn Error>> {
    let bytes = std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
    if bytes.starts_with(&[0xFF, 0xD8]) && !jpeg::is_whole(&bytes) {
        return Err(format!("{}: the file ends too early", path.display()).into());
    }
    let picture = image::load_from_memory(&bytes).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(SampledImage::from_image_buffer(R32Float, ImageSampler::LINEAR, picture.to_luma32f())?)
}

/// The middle one of some numbers, or the one at another part of their order.
fn at_part(mut numbers: Vec<f32>, part: f32) -> f32 {
    numbers.sort_by(f32::total_cmp);
    numbers[((numbers.len() - 1) as f32 * part) as usize]
}

fn main() -> Result<(), Box<dyn Error>> {
    let paths: Vec<OsString> = std::env::args_os().skip(1).collect();
    let queue = Queue::default()?;
    let (first, second, output) = match &paths[..] {
        [first, second, output] => (load(first)?, load(second)?, Some(output)),
        [] | [_] => {
            let first = pattern(if paths.is_empty() { [52, 72] } else { [480, 640] })?;
            (first.clone(), moved(&queue, &first)?, paths.first())
        }
        _ => return Err("expected two frames and the picture to write, or that picture alone".into()),
    };
    let Range(size) = first.range();
    if second.range() != first.range() {
        return Err(format!("the frames have different sizes: {size:?} and {:?}", second.range().0).into());
    }

    let flow = optical_flow(&queue, first, second)?;

    let found = flow.to_vec::<[f32; 2]>()?;
    let median = [0, 1].map(|i| at_part(found.iter().map(|flow| flow[i]).collect(), 0.5));
    println!("{} x {} pixels, the median of the flow: {:.2} down, {:.2} right", size[1], size[0], median[0], median[1]);
    if paths.len() < 3 {
        let errors = found.iter().enumerate().map(|(i, flow)| {
            let known = known_flow([(i / size[1]) as f32 + 0.5, (i % size[1]) as f32 + 0.5], size);
            (flow[0] - known[0]).hypot(flow[1] - known[1])
        });
        let errors: Vec<f32> = errors.collect();
        assert!((median[0] - 1.3).abs() < 0.05 && (median[1] + 2.6).abs() < 0.05, "the median is not the shift");
        let [middle, most] = [0.5, 0.8].map(|part| at_part(errors.clone(), part));
        println!("half of the pixels are right to {middle:.3} of a pixel, and four of five to {most:.3}");
        assert!(middle < 0.15 && most < 0.35, "the flow differs from the known one");
    }
    if let Some(path) = output {
        let most = at_part(found.iter().map(|flow| flow[0].hypot(flow[1])).collect(), 0.99);
        let picture: RgbaImage = wheel(&queue, &flow, most.max(1e-3))?.into_image_buffer()?;
        picture.save(path).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(())
}
