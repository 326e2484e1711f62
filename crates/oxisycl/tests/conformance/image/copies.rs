//! Copies and fills of images as commands: what they do, what they move, and what is refused before anything is enqueued.

use std::sync::Arc;

use oxisycl::images::{ImageFormat, PixelData, R8Uint, R8Unorm, R32Float, Rgba8Srgb, Rgba8Unorm, Rgba32Float};
use oxisycl::prelude::*;
use oxisycl::vector::{Float4, Int4, Uint4};
use oxisycl::{HostCopy, Result};

use super::bytes_of;
use crate::harness::{Env, tests};
use crate::support::{Gate, Random, assert_completes, assert_held_back, code, counted};

tests![
    an_image_is_filled_with_pixels_of_every_format,
    images_of_every_format_are_copied_to_images,
    images_and_buffers_are_copied_byte_by_byte,
    images_and_memory_of_the_host_are_copied,
    copies_and_fills_take_part_in_the_order,
    what_is_overwritten_by_a_copy_or_a_fill_is_not_moved,
    the_host_gets_the_newest_pixels_by_a_command,
    a_fill_makes_lost_pixels_whole,
    copies_that_do_not_fit_are_refused_before_anything_is_enqueued,
    a_copy_of_an_image_to_itself_is_refused,
];

/// Fills a volume, and a line whose pixel the host writes, and compares their bytes.
fn check_fill<V: PixelData>(queue: &Queue, format: ImageFormat, pixel: V) {
    let filled = UnsampledImage::uninit(format, [2, 3, 5]).unwrap();
    let (since, ()) = counted(|| queue.fill_image(&filled, pixel).unwrap().wait().unwrap());
    assert_eq!((since.fills, since.kernels), (1, 0));
    let one = UnsampledImage::zeroed(format, 1).unwrap();
    one.host_access(ReadWrite).unwrap().write(0, pixel);
    let one = one.into_vec::<u8>().unwrap();
    assert_eq!(filled.into_vec::<u8>().unwrap(), one.repeat(30), "{format}");
}

fn an_image_is_filled_with_pixels_of_every_format(env: &Env) {
    let queue = env.queue();
    for format in ImageFormat::all() {
        match format.channel_type() {
            t if t.is_signed() => check_fill(&queue, format, Int4::new(-100, 3000, -70_000, 7)),
            t if t.is_unsigned() => check_fill(&queue, format, Uint4::new(200, 3000, 70_000, 7)),
            _ => check_fill(&queue, format, Float4::new(0.25, 0.75, 0.5, 1.0)),
        }
    }
}

fn images_of_every_format_are_copied_to_images(env: &Env) {
    let (queue, mut random) = (env.queue(), Random::new(2));
    for format in ImageFormat::all() {
        let bytes = bytes_of(&mut random, format, 15);
        let source = UnsampledImage::from_slice(format, &bytes, [5, 3]).unwrap();
        let target = UnsampledImage::uninit(format, [5, 3]).unwrap();
        let (since, ()) = counted(|| queue.copy_image(&source, &target).unwrap().wait().unwrap());
        assert_eq!(since.kernels, 0);
        assert_eq!(
            (source.to_vec::<u8>().unwrap(), target.to_vec::<u8>().unwrap()),
            (bytes.clone(), bytes),
            "{format}"
        );
    }
    // A format that is a type is that format.
    let source = UnsampledImage::from_vec(Rgba8Unorm, vec![9u8; 24], [1, 2, 3]).unwrap().sampled(ImageSampler::LINEAR);
    let target = UnsampledImage::uninit(ImageFormat::R8G8B8A8_UNORM, [1, 2, 3]).unwrap();
    queue.copy_image(source.unsampled(), &target).unwrap();
    assert_eq!(target.to_vec::<u8>().unwrap(), [9; 24]);
}

fn images_and_buffers_are_copied_byte_by_byte(env: &Env) {
    let queue = env.queue();
    let channels: Vec<u8> = (0..96).collect();
    // Channels, pixels, rows, and numbers that are larger than a pixel.
    let image = UnsampledImage::uninit(Rgba8Unorm, [4, 6]).unwrap();
    queue.copy_image_from_buffer(&Buffer::from_slice(&channels).unwrap(), &image).unwrap();
    assert_eq!(image.to_vec::<u8>().unwrap(), channels);
    let pixels = Buffer::from_vec_nd(vec![[0u8; 4]; 24], [2, 3, 4]).unwrap();
    queue.copy_image_to_buffer(&image, &pixels).unwrap();
    assert_eq!(pixels.to_vec().unwrap().concat(), channels);
    let numbers = Buffer::from_vec_nd(vec![0u64; 12], [3, 4]).unwrap();
    queue.copy_image_to_buffer(&image, &numbers).unwrap();
    assert_eq!(numbers.to_vec().unwrap()[11].to_ne_bytes(), channels[88..]);
    let reversed = UnsampledImage::uninit(Rgba32Float, 6).unwrap();
    let rows = Buffer::from_vec(vec![[[1.0f32, 2.0, 3.0, 4.0], [5.0; 4]]; 3]).unwrap();
    queue.copy_image_from_buffer(&rows, &reversed).unwrap();
    assert_eq!(reversed.to_vec::<[f32; 4]>().unwrap()[4..], [[1.0, 2.0, 3.0, 4.0], [5.0; 4]]);
    // A part of a buffer.
    let all = Buffer::from_vec_nd(vec![0u8; 4 * 4096], [4, 4096]).unwrap();
    let row = all.sub_buffer([2, 0], [1, 4096]).unwrap();
    let line = UnsampledImage::from_vec(R8Uint, vec![7u8; 4096], [64, 64]).unwrap();
    queue.copy_image_to_buffer(&line, &row).unwrap();
    let all = all.to_vec().unwrap();
    assert!(all.iter().enumerate().all(|(i, &x)| x == if i / 4096 == 2 { 7 } else { 0 }));
}

fn images_and_memory_of_the_host_are_copied(env: &Env) {
    let queue = env.queue();
    let image = UnsampledImage::uninit(R32Float, [2, 3]).unwrap();
    let levels = [1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0];
    let copy = queue.copy_image_from_host(levels.to_vec(), &image).unwrap();
    assert_eq!(copy.wait().unwrap(), levels);
    let submitted = queue.submit(|cg| {
        let pixels = cg.access_image(&image, ReadWrite);
        cg.parallel_for([2, 3], move |item| pixels.update(item, |x: Float4| 10.0 * x))
    });
    submitted.unwrap();
    // Bytes of pixels, and several of them at once.
    let copy: HostCopy<Vec<[f32; 2]>> = queue.copy_image_to_host(&image, vec![[0.0f32; 2]; 3]).unwrap();
    assert_eq!(copy.wait().unwrap(), [[10.0, 20.0], [30.0, 40.0], [50.0, 60.0]]);
    static ZEROES: [u8; 24] = [0; 24];
    queue.copy_image_from_host(&ZEROES[..], &image).unwrap().wait().unwrap();
    let (event, slot) = queue.submit_with(|cg| cg.copy_image_to_host(&image, vec![1.0f32; 6])).unwrap();
    event.wait().unwrap();
    assert_eq!(slot.take().unwrap(), [0.0; 6]);
}

fn copies_and_fills_take_part_in_the_order(env: &Env) {
    let (queue, other) = (env.queue(), Queue::new(env.other_device()).unwrap());
    let [a, b] = [1.0f32, 2.0].map(|x| UnsampledImage::from_vec(R32Float, vec![x; 6], [2, 3]).unwrap());
    let gate = Gate::new(&queue, |_| {});
    let submitted = queue.submit(|cg| {
        cg.depends_on(gate.event());
        let a = cg.access_image(&a, ReadWrite);
        cg.parallel_for([2, 3], move |item| a.update(item, |x: Float4| x + 1.0))
    });
    submitted.unwrap();
    let copied = queue.copy_image(&a, &b).unwrap();
    let filled = other.fill_image(&a, Float4::splat(5.0)).unwrap();
    let back = other.copy_image_to_host(&b, vec![0.0f32; 6]).unwrap();
    assert_held_back(&copied);
    assert_held_back(&filled);
    gate.open();
    assert_completes(&copied);
    assert_eq!(back.wait().unwrap(), [2.0; 6]);
    assert_eq!(a.to_vec::<f32>().unwrap(), [5.0; 6]);
}

fn what_is_overwritten_by_a_copy_or_a_fill_is_not_moved(env: &Env) {
    let queue = env.queue_apart();
    let image = UnsampledImage::from_vec(R32Float, vec![1.0f32; 6], [2, 3]).unwrap();
    let (since, ()) = counted(|| queue.fill_image(&image, Float4::splat(2.0)).unwrap().wait().unwrap());
    assert_eq!((since.bytes_to_device, since.fills), (0, 1));
    let target = UnsampledImage::from_vec(R32Float, vec![1.0f32; 6], [2, 3]).unwrap();
    let (since, ()) = counted(|| queue.copy_image(&image, &target).unwrap().wait().unwrap());
    assert_eq!((since.bytes_to_device, since.bytes_to_host), (0, 0));
    assert!(target.is_current_on(queue.device()));
    assert_eq!(target.to_vec::<f32>().unwrap(), [2.0; 6]);
}

fn the_host_gets_the_newest_pixels_by_a_command(env: &Env) {
    let queue = env.queue();
    let image = UnsampledImage::uninit(R8Unorm, [2, 3]).unwrap();
    queue.fill_image(&image, Float4::splat(1.0)).unwrap();
    queue.update_image_on_host(&image).unwrap().wait().unwrap();
    let (since, bytes) = counted(|| image.host_access::<Float4, _>(Read).unwrap().as_bytes().to_vec());
    assert_eq!((since.bytes_to_host, bytes), (0, vec![255; 6]));
}

fn a_fill_makes_lost_pixels_whole(env: &Env) {
    let queue = env.queue();
    let image = UnsampledImage::from_vec(R32Float, vec![1.0f32; 4], [2, 2]).unwrap();
    let submitted = queue.submit(|cg| {
        let image = cg.access_image::<Float4, _, _, _>(&image, Write);
        cg.parallel_for([2, 2], move |item: Item<2>| {
            image.set(item, Float4::splat(0.0));
            panic!("a mistake")
        })
    });
    assert_eq!(code(submitted.unwrap().wait()), ErrorCode::Kernel);
    queue.take_errors();
    let target = UnsampledImage::uninit(R32Float, [2, 2]).unwrap();
    let event = queue.copy_image(&image, &target);
    assert_eq!(code(event.and_then(|event| event.wait())), ErrorCode::Kernel);
    queue.take_errors();
    queue.fill_image(&image, Float4::splat(3.0)).unwrap();
    queue.copy_image(&image, &target).unwrap();
    assert_eq!(target.to_vec::<f32>().unwrap(), [3.0; 4]);
}

/// The error must be `Invalid` and have all of the texts.
#[track_caller]
fn check_refused<T>(result: Result<T>, texts: &[&str]) {
    let Err(error) = result else { panic!("an error was expected") };
    let message = error.to_string();
    assert_eq!(error.code(), ErrorCode::Invalid, "{message}");
    for text in texts {
        assert!(message.contains(text), "{text} in: {message}");
    }
}

fn copies_that_do_not_fit_are_refused_before_anything_is_enqueued(env: &Env) {
    let queue = env.queue();
    let zeroed = |format: ImageFormat, range: [usize; 2]| UnsampledImage::zeroed(format, range).unwrap();
    let rgba = ImageFormat::R8G8B8A8_UNORM;
    let image = zeroed(rgba, [2, 3]).named("picture");
    let buffer = |n| Buffer::from_vec(vec![0u32; n]).unwrap();
    let (since, ()) = counted(|| {
        check_refused(
            queue.copy_image(&image, &zeroed(rgba, [3, 2])),
            &["\"picture\" of range [2, 3]", "of range [3, 2]", "the extents differ"],
        );
        let srgb = UnsampledImage::zeroed(Rgba8Srgb, [2, 3]).unwrap();
        let texts = ["Rgba of UnormInt8", "Srgba of UnormInt8", "the formats differ"];
        check_refused(queue.copy_image(&image, &srgb), &texts);
        check_refused(queue.copy_image(&srgb, &image), &texts);
        for n in [0, 5, 7] {
            let found = format!("has {}: a copy needs as many", 4 * n);
            let texts = ["image ", " has 24 bytes", "buffer ", &found];
            check_refused(queue.copy_image_to_buffer(&image, &buffer(n)), &texts);
            check_refused(queue.copy_image_from_buffer(&buffer(n), &image), &texts);
            let texts = ["24 bytes", &format!("the memory of the host with {n} of u32"), &found];
            check_refused(queue.copy_image_to_host(&image, vec![0u32; n]), &texts);
            check_refused(queue.copy_image_from_host::<u32, _, _, _>(vec![0u32; n], &image), &texts);
            // What was to be read is dropped with the error.
            let shared = Arc::<[u32]>::from(vec![0; n]);
            check_refused(queue.copy_image_from_host(shared.clone(), &image), &texts);
            assert_eq!(Arc::strong_count(&shared), 1);
        }
        check_refused(queue.fill_image(&image, Uint4::splat(1)), &["Rgba of UnormInt8", "Float4 or Half4, not Uint4"]);
        // An error that is not passed on fails the group nevertheless.
        let ignored = queue.submit(|cg| {
            let _ = cg.fill_image(&image, Int4::splat(1));
            Ok(())
        });
        check_refused(ignored, &["not Int4"]);
        let twice = queue.submit(|cg| {
            cg.fill_image(&image, Float4::splat(1.0))?;
            cg.update_image_on_host(&image)
        });
        assert_eq!(code(twice), ErrorCode::Invalid);
    });
    assert_eq!((since.fills, since.kernels, since.bytes_to_device, since.bytes_to_host), (0, 0, 0, 0));
    assert_eq!(image.to_vec::<u8>().unwrap(), [0; 24]);
}

fn a_copy_of_an_image_to_itself_is_refused(env: &Env) {
    let image = UnsampledImage::zeroed(Rgba8Unorm, [2, 3]).unwrap();
    let same = image.with_format(ImageFormat::R8G8B8A8_UNORM).unwrap();
    assert_eq!(code(env.queue().copy_image(&image, &same)), ErrorCode::Accessor);
}
