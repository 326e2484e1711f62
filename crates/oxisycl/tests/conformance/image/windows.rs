//! Windows of constant extent of images that are read.

use oxisycl::images::{ImageFormat, PixelFormat, R32Float, Rgba8Uint};
use oxisycl::prelude::*;
use oxisycl::vector::{Float4, Uint4};

use crate::harness::{Env, tests};

tests![
    a_window_has_the_pixels_of_its_positions,
    windows_over_the_edge_have_the_border,
    windows_of_images_that_are_smaller_have_the_border,
];

/// The sums of the windows that begin at each position around the image, weighted by the position in the window, and of single reads.
fn check<F: PixelFormat, const Y: usize, const X: usize>(queue: &Queue, format: F, range: [usize; 2]) {
    let n = range[0] * range[1];
    let image = UnsampledImage::from_vec(format, (1..=n).map(|i| [i as u8; 4]).collect(), range).unwrap();
    let around = [range[0] + 2 * Y + 2, range[1] + 2 * X + 2];
    let (windows, reads) = (
        Buffer::from_vec_nd(vec![Uint4::splat(9); around[0] * around[1]], around).unwrap(),
        Buffer::from_vec_nd(vec![Uint4::splat(9); around[0] * around[1]], around).unwrap(),
    );
    let arguments = (image.read::<Uint4>(), windows.write(), reads.write());
    let event = queue.parallel_for_with(around, arguments, |item: Item<2>, (image, windows, reads)| {
        let origin = [item.get(0) as i32 - Y as i32 - 1, item.get(1) as i32 - X as i32 - 1];
        let window = image.window::<Y, X>(item, origin);
        let zero = Uint4::splat(0);
        windows.set(item, window.fold(zero, |sum, [y, x], pixel| sum + pixel * (1 + y * X + x) as u32));
        let mut sum = zero;
        for y in 0..Y {
            for x in 0..X {
                sum += image.read(item, [origin[0] + y as i32, origin[1] + x as i32]) * (1 + y * X + x) as u32;
            }
        }
        reads.set(item, sum);
    });
    event.unwrap();
    assert_eq!(windows.to_vec().unwrap(), reads.to_vec().unwrap(), "{Y} x {X} of {range:?}");
    assert!(windows.to_vec().unwrap().contains(&Uint4::splat(0)), "some windows are outside");
}

fn windows_over_the_edge_have_the_border(env: &Env) {
    let queue = env.queue();
    check::<_, 3, 3>(&queue, Rgba8Uint, [5, 7]);
    check::<_, 1, 4>(&queue, Rgba8Uint, [5, 7]);
    check::<_, 2, 1>(&queue, ImageFormat::R8G8B8A8_UINT, [4, 4]);
}

fn windows_of_images_that_are_smaller_have_the_border(env: &Env) {
    check::<_, 3, 3>(&env.queue(), Rgba8Uint, [1, 2]);
    check::<_, 2, 5>(&env.queue(), Rgba8Uint, [3, 1]);
}

fn a_window_has_the_pixels_of_its_positions(env: &Env) {
    let levels: Vec<f32> = (0..20).map(|i| i as f32).collect();
    let image = UnsampledImage::from_vec(R32Float, levels, [4, 5]).unwrap();
    let seen = UnsampledImage::from_vec(R32Float, vec![-1.0f32; 9], 9).unwrap();
    let submitted = env.queue().submit(|cg| {
        let (image, seen) =
            (cg.access_image::<Float4, _, _, _>(&image, Read), cg.access_image::<Float4, _, _, _>(&seen, Write));
        cg.single_task(move |task| {
            let window = image.window::<2, 3>(task, [1, 2]);
            let last = window.fold(0, |n, [y, x], pixel| {
                seen.set_at(task, n, pixel + Float4::splat(100.0 * (y * 3 + x) as f32));
                n + 1
            });
            // Beyond the window, and beyond the image.
            seen.set_at(task, last, window.get([2, 0]));
            seen.set_at(task, last + 1, window.get([0, 3]));
            let inside = [window.is_inside(), image.window::<4, 5>(task, [0, 0]).is_inside()];
            let outside = [[3, 0], [0, 3], [-1, 0], [i32::MIN, i32::MAX]];
            let n_outside = outside.iter().filter(|&&origin| !image.window::<2, 3>(task, origin).is_inside()).count();
            seen.set_at(
                task,
                last + 2,
                Float4::splat((10 * inside.iter().filter(|&&is| is).count() + n_outside) as f32),
            );
        })
    });
    submitted.unwrap();
    assert_eq!(seen.to_vec::<f32>().unwrap(), [7.0, 108.0, 209.0, 312.0, 413.0, 514.0, 17.0, 0.0, 24.0]);
}
