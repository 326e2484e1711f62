//! Pixels of every format, read and written in kernels as on the host.

use half::f16;
use oxisycl::float;
use oxisycl::images::{ImageFormat, PixelData, PixelFormat, R8Unorm, R32Float, Rgb8Unorm, Rgba8Unorm, Rgba16Float};
use oxisycl::prelude::*;
use oxisycl::vector::{Float4, Int4, Uint4};

use super::{bytes_of, bytes_without_numbers, formats_in_floats, have_numbers_alike};
use crate::harness::{Env, tests};
use crate::support::Random;

tests![
    pixels_of_every_format_are_read_as_on_the_host,
    pixels_of_every_format_are_written_as_on_the_host,
    fast_reads_are_near_to_those_of_the_host,
    formats_that_are_types_are_read_and_written_as_those_that_are_values,
    pixels_that_are_no_numbers_are_read_and_written_as_such,
    a_position_outside_reads_the_border_and_writes_nothing,
    positions_of_every_type_may_be_outside,
    work_items_own_their_pixels_in_one_to_three_dimensions,
    pixels_of_single_bytes_leave_their_neighbours_alone,
    a_single_task_reads_and_writes_any_pixel,
    pixels_are_written_anywhere_if_the_kernel_vouches_for_it,
];

/// All pixels of a line as a kernel reads them.
fn read<V: PixelData, F: PixelFormat>(queue: &Queue, image: &UnsampledImage<1, F>) -> Vec<V> {
    let n = image.size();
    let seen = Buffer::from_vec(vec![[0_u32; 4]; n]).unwrap();
    let submitted = queue.submit(|cg| {
        let (image, seen) = (cg.access_image::<V, _, _, _>(image, Read), cg.access(&seen, Write));
        cg.parallel_for(n, move |item| {
            let value = image.read(item, item.index());
            // SAFETY: vectors of four numbers of at most 32 bits; the rest stays zero.
            let bits = unsafe {
                let mut bits = [0_u32; 4];
                (&raw mut bits).cast::<V>().write_unaligned(value);
                bits
            };
            seen.set(item, bits);
        })
    });
    submitted.unwrap();
    // SAFETY: they were made from values of the type.
    seen.to_vec().unwrap().iter().map(|bits| unsafe { (&raw const *bits).cast::<V>().read_unaligned() }).collect()
}

fn on_the_host<V: PixelData, F: PixelFormat>(image: &UnsampledImage<1, F>) -> Vec<V> {
    let host = image.host_access::<V, _>(Read).unwrap();
    (0..image.size()).map(|i| host.read(i)).collect()
}

fn pixels_of_every_format_are_read_as_on_the_host(env: &Env) {
    let (queue, mut random) = (env.queue(), Random::new(1));
    for format in ImageFormat::all() {
        let image = UnsampledImage::from_vec(format, bytes_of(&mut random, format, 33), 33).unwrap();
        match format.channel_type() {
            t if t.is_signed() => assert_eq!(read::<Int4, _>(&queue, &image), on_the_host(&image), "{format}"),
            t if t.is_unsigned() => assert_eq!(read::<Uint4, _>(&queue, &image), on_the_host(&image), "{format}"),
            _ => assert_eq!(read::<Float4, _>(&queue, &image), on_the_host(&image), "{format}"),
        }
    }
}

/// What a kernel makes of the pixels that `value` gives, and what the host makes of them.
/// Under `fast`, parts of 1 may be rounded otherwise. Positions outside still read the border.
fn fast_reads_are_near_to_those_of_the_host(env: &Env) {
    const PIXELS: usize = 33;
    let (queue, mut random) = (env.queue(), Random::new(8));
    for format in ImageFormat::all().filter(|format| format.channel_type().is_float()) {
        let image = UnsampledImage::from_vec(format, bytes_of(&mut random, format, PIXELS), PIXELS).unwrap();
        let seen = Buffer::from_vec(vec![Float4::splat(9.0); PIXELS + 1]).unwrap();
        let submitted = queue.submit(|cg| {
            let (image, seen) = (cg.access_image::<Float4, _, _, _>(&image, Read), cg.access(&seen, Write));
            let read = move |item: Item<1>| seen.set(item, image.read(item, item.index()));
            cg.parallel_for(PIXELS + 1, float::fast(read))
        });
        submitted.unwrap();
        let (seen, host) = (seen.to_vec().unwrap(), image.host_access::<Float4, _>(Read).unwrap());
        for (i, seen) in seen.into_iter().enumerate() {
            let expected = host.read(i);
            let is_near = |d: usize| (seen[d] - expected[d]).abs() <= 4.0 * f32::EPSILON * expected[d].abs();
            assert!((0..4).all(is_near), "{format} at {i}: {seen}, not {expected}");
        }
    }
}

fn written<V: PixelData>(
    queue: &Queue,
    format: ImageFormat,
    value: impl Fn(usize) -> V + Copy + Send + Sync + 'static,
) -> [Vec<u8>; 2] {
    let by_kernel = UnsampledImage::zeroed(format, 40).unwrap();
    let submitted = queue.submit(|cg| {
        let image = cg.access_image(&by_kernel, Write);
        cg.parallel_for(40, move |item| image.set(item, value(item.index())))
    });
    submitted.unwrap();
    let by_host = UnsampledImage::zeroed(format, 40).unwrap();
    let mut host = by_host.host_access(ReadWrite).unwrap();
    (0..40).for_each(|i| host.write(i, value(i)));
    drop(host);
    [by_kernel.to_vec().unwrap(), by_host.to_vec().unwrap()]
}

fn pixels_of_every_format_are_written_as_on_the_host(env: &Env) {
    let queue = env.queue();
    for format in ImageFormat::all() {
        let [by_kernel, by_host] = match format.channel_type() {
            t if t.is_signed() => written(&queue, format, |i| Int4::new(i as i32 - 20, 1 << i.min(30), -500, 40_000)),
            t if t.is_unsigned() => written(&queue, format, |i| Uint4::new(i as u32, 1 << i.min(30), 500, 40_000)),
            // Products with the channels' ends are exact, and so is what is between two numbers.
            _ => written(&queue, format, |i| {
                let x = i as f32 / 16.0 - 1.25;
                Float4::new(x, -x, 0.5 * x, if i == 7 { f32::INFINITY } else { 1.0 - x })
            }),
        };
        assert_eq!(by_kernel, by_host, "{format}");
    }
}

/// The bytes of an image to which a kernel has written what it has read of another one.
fn copied<F: PixelFormat>(queue: &Queue, image: &UnsampledImage<1, F>, format: F) -> Vec<u8> {
    let to = UnsampledImage::uninit(format, image.range()).unwrap();
    let submitted = queue.submit(|cg| {
        let (from, to) = (cg.access_image::<Float4, _, _, _>(image, Read), cg.access_image(&to, Write.no_init()));
        cg.parallel_for(image.range(), move |item| to.set(item, from.get(item)))
    });
    submitted.unwrap();
    to.into_vec().unwrap()
}

fn formats_that_are_types_are_read_and_written_as_those_that_are_values(env: &Env) {
    fn check<F: PixelFormat>(queue: &Queue, format: F) {
        let bytes = bytes_of(&mut Random::new(2), format.format(), 20);
        let image = UnsampledImage::from_vec(format.format(), bytes, 20).unwrap();
        let typed = image.with_format(format).unwrap();
        assert_eq!(read::<Float4, _>(queue, &typed), read::<Float4, _>(queue, &image));
        assert_eq!(copied(queue, &typed, format), image.to_vec::<u8>().unwrap(), "{:?}", format.format());
    }
    let queue = env.queue();
    check(&queue, Rgba8Unorm);
    check(&queue, Rgb8Unorm);
    check(&queue, Rgba16Float);
    check(&queue, R32Float);
}

fn pixels_that_are_no_numbers_are_read_and_written_as_such(env: &Env) {
    const PIXELS: usize = 40;
    let (queue, mut random) = (env.queue(), Random::new(9));
    for format in formats_in_floats() {
        let bytes = bytes_without_numbers(&mut random, format, PIXELS);
        let image = UnsampledImage::from_vec(format, bytes, PIXELS).unwrap();
        for (seen, expected) in read::<Float4, _>(&queue, &image).into_iter().zip(on_the_host::<Float4, _>(&image)) {
            assert!(have_numbers_alike(seen, expected, |a, b| a == b), "{format}: {seen}, not {expected}");
        }
    }
    // Numbers keep their bits, and the others are still none.
    let bytes = bytes_without_numbers(&mut random, Rgba16Float.format(), PIXELS);
    let image = UnsampledImage::from_vec(Rgba16Float, bytes.clone(), PIXELS).unwrap();
    let halves =
        |bytes: &[u8]| -> Vec<f16> { bytes.as_chunks().0.iter().map(|&channel| f16::from_ne_bytes(channel)).collect() };
    for (seen, expected) in halves(&copied(&queue, &image, Rgba16Float)).into_iter().zip(halves(&bytes)) {
        assert!(seen.to_bits() == expected.to_bits() || seen.is_nan() && expected.is_nan(), "{seen}, not {expected}");
    }
    let bytes = bytes_without_numbers(&mut random, R32Float.format(), PIXELS);
    let image = UnsampledImage::from_vec(R32Float, bytes.clone(), PIXELS).unwrap();
    let floats =
        |bytes: &[u8]| -> Vec<f32> { bytes.as_chunks().0.iter().map(|&channel| f32::from_ne_bytes(channel)).collect() };
    for (seen, expected) in floats(&copied(&queue, &image, R32Float)).into_iter().zip(floats(&bytes)) {
        assert!(seen.to_bits() == expected.to_bits() || seen.is_nan() && expected.is_nan(), "{seen}, not {expected}");
    }
}

fn a_position_outside_reads_the_border_and_writes_nothing(env: &Env) {
    let image = UnsampledImage::from_vec(R32Float, vec![1.0f32; 6], [2, 3]).unwrap();
    let seen = Buffer::from_vec(vec![Float4::splat(9.0); 7]).unwrap();
    let queue = env.queue();
    let submitted = queue.submit(|cg| {
        let (image, seen) = (cg.access_image::<Float4, _, _, _>(&image, Read), cg.access(&seen, Write));
        cg.parallel_for(7, move |item| {
            const OUTSIDE: [[i32; 2]; 6] = [[0, 3], [2, 0], [-1, 0], [0, -1], [i32::MIN, 1], [1, i32::MAX]];
            let value = match item.index() {
                6 => image.read(item, [usize::MAX; 2]),
                i => image.read(item, OUTSIDE[i]),
            };
            seen.set(item, value);
        })
    });
    submitted.unwrap();
    assert_eq!(seen.to_vec().unwrap(), [Float4::new(0.0, 0.0, 0.0, 1.0); 7]);
    // A launch beyond the image.
    let submitted = queue.submit(|cg| {
        let image = cg.access_image(&image, ReadWrite);
        cg.parallel_for([3, 5], move |item| image.update(item, |x: Float4| 2.0 * x))
    });
    submitted.unwrap().wait().unwrap();
    assert_eq!(image.to_vec::<f32>().unwrap(), [2.0; 6]);
}

fn work_items_own_their_pixels_in_one_to_three_dimensions(env: &Env) {
    fn check<const D: usize>(queue: &Queue, range: [usize; D]) {
        let image = UnsampledImage::uninit(R32Float, range).unwrap();
        let submitted = queue.submit(|cg| {
            let image = cg.access_image(&image, Write.no_init());
            cg.parallel_for(range, move |item: Item<D>| image.set(item, Float4::splat(item.linear_id() as f32)))
        });
        submitted.unwrap();
        let expected: Vec<f32> = (0..image.size()).map(|i| i as f32).collect();
        assert_eq!(image.to_vec::<f32>().unwrap(), expected);
    }
    check(&env.queue(), [70]);
    check(&env.queue(), [7, 9]);
    check(&env.queue(), [3, 5, 6]);
}

/// Work-items write bytes beside each other, of which none may take a neighbour's with it.
fn pixels_of_single_bytes_leave_their_neighbours_alone(env: &Env) {
    fn check<F: PixelFormat>(queue: &Queue, format: F) {
        const PIXELS: usize = 100_000;
        let n_channels = format.format().pixel_size();
        let bytes: Vec<u8> = (0..PIXELS * n_channels).map(|i| (i % 251) as u8).collect();
        let image = UnsampledImage::from_vec(format, bytes.clone(), PIXELS).unwrap();
        let submitted = queue.submit(|cg| {
            let image = cg.access_image(&image, ReadWrite);
            cg.parallel_for(PIXELS, move |item| image.update(item, |pixel: Float4| Float4::splat(1.0) - pixel))
        });
        submitted.unwrap();
        let expected: Vec<u8> = bytes.iter().map(|byte| 255 - byte).collect();
        assert_eq!(image.to_vec::<u8>().unwrap(), expected);
    }
    check(&env.queue(), R8Unorm);
    check(&env.queue(), Rgb8Unorm);
}

fn a_single_task_reads_and_writes_any_pixel(env: &Env) {
    let image = UnsampledImage::from_vec(Rgba8Unorm, (0..16).collect::<Vec<u8>>(), [2, 2]).unwrap();
    let submitted = env.queue().submit(|cg| {
        let image = cg.access_image::<Float4, _, _, _>(&image, ReadWrite);
        cg.single_task(move |task| {
            let first = image.get_at(task, [0, 0]);
            image.set_at(task, [0, 0], image.get_at(task, [1, 1]));
            image.set_at(task, [1, 1], first);
            image.set_at(task, [1, 2], first);
        })
    });
    submitted.unwrap();
    let expected = [12, 13, 14, 15, 4, 5, 6, 7, 8, 9, 10, 11, 0, 1, 2, 3];
    assert_eq!(image.to_vec::<u8>().unwrap(), expected);
}

fn pixels_are_written_anywhere_if_the_kernel_vouches_for_it(env: &Env) {
    let image = UnsampledImage::uninit(R32Float, 50).unwrap();
    let submitted = env.queue().submit(|cg| {
        let image = cg.access_image(&image, Write.no_init());
        // SAFETY: each work-item writes another pixel.
        cg.parallel_for(50, move |item| unsafe {
            image.scatter(item, 49 - item.index(), Float4::splat(item.index() as f32));
        })
    });
    submitted.unwrap();
    let expected: Vec<f32> = (0..50).rev().map(|i| i as f32).collect();
    assert_eq!(image.to_vec::<f32>().unwrap(), expected);
}

fn positions_of_every_type_may_be_outside(env: &Env) {
    let queue = env.queue();
    let border = Float4::new(0.0, 0.0, 0.0, 1.0);
    let line = UnsampledImage::from_vec(R32Float, vec![1.0f32, 2.0], 2).unwrap();
    let volume = UnsampledImage::from_vec(R32Float, vec![3.0f32; 8], [2, 2, 2]).unwrap();
    let seen = Buffer::from_vec(vec![Float4::splat(9.0); 14]).unwrap();
    let submitted = queue.submit(|cg| {
        let line = cg.access_image::<Float4, _, _, _>(&line, Read);
        let volume = cg.access_image::<Float4, _, _, _>(&volume, Read);
        let seen = cg.access(&seen, Write);
        cg.parallel_for(14, move |item: Item<1>| {
            let value = match item.index() {
                0 => line.read(item, -1),
                1 => line.read(item, i32::MIN),
                2 => line.read(item, 2_usize),
                3 => line.read(item, usize::MAX),
                4 => line.read(item, [-1]),
                5 => line.read(item, [2_usize]),
                6 => line.read(item, Id([1 << 40])),
                7 => volume.read(item, [0, 0, -1]),
                8 => volume.read(item, [-1, 1, 1]),
                9 => volume.read(item, [1, i32::MIN, 1]),
                10 => volume.read(item, [2_usize, 0, 0]),
                11 => volume.read(item, Id([0, 0, usize::MAX])),
                12 => line.read(item, 1),
                _ => volume.read(item, Id([1, 1, 1])),
            };
            seen.set(item, value);
        })
    });
    submitted.unwrap();
    let seen = seen.to_vec().unwrap();
    assert_eq!(seen[..12], [border; 12]);
    assert_eq!(seen[12..], [2.0, 3.0].map(|x| Float4::new(x, 0.0, 0.0, 1.0)));
    // What is written before the image is dropped.
    let submitted = queue.submit(|cg| {
        let (line, volume) = (cg.access_image(&line, ReadWrite), cg.access_image(&volume, ReadWrite));
        cg.single_task(move |task: Single| {
            // SAFETY: nothing else runs.
            unsafe {
                line.scatter(task, -1, Float4::splat(7.0));
                line.scatter(task, [i32::MIN], Float4::splat(7.0));
                volume.scatter(task, [0, -1, 1], Float4::splat(7.0));
                volume.scatter(task, [0, 1, -1], Float4::splat(7.0));
            }
        })
    });
    submitted.unwrap();
    assert_eq!(line.to_vec::<f32>().unwrap(), [1.0, 2.0]);
    assert_eq!(volume.to_vec::<f32>().unwrap(), [3.0; 8]);
}
