//! Images over borrowed memory of the host, and memory with gaps between rows.

use oxisycl::ImagePitch;
use oxisycl::images::{R8Uint, R32Float, Rgba8Uint};
use oxisycl::prelude::*;
use oxisycl::vector::{Float4, Uint4};

use crate::harness::{Env, tests};
use crate::support::{Gate, code};

tests![
    borrowed_pixels_are_written_back_when_all_commands_have_ended,
    what_lies_between_rows_and_slices_is_left_alone,
    a_failed_command_leaves_borrowed_pixels_as_they_were,
    discarded_images_write_nothing_and_do_not_wait,
    ; once:
    rows_with_gaps_are_put_together,
    pitches_that_are_too_small_and_memory_that_is_too_short_are_refused,
];

fn ten_times<const D: usize>(queue: &Queue, image: &UnsampledImage<D, R8Uint>) -> Event {
    let submitted = queue.submit(|cg| {
        let pixels = cg.access_image(image, ReadWrite);
        cg.parallel_for(image.range(), move |item| pixels.update(item, |x: Uint4| x * 10))
    });
    submitted.unwrap()
}

fn borrowed_pixels_are_written_back_when_all_commands_have_ended(env: &Env) {
    let queue = env.queue();
    let mut levels = [1u8, 2, 3, 4, 5, 6];
    let image = UnsampledImage::from_slice_mut(R8Uint, &mut levels, [2, 3]).unwrap();
    let gate = Gate::new(&queue, |_| {});
    let submitted = queue.submit(|cg| {
        cg.depends_on(gate.event());
        let pixels = cg.access_image(&image, ReadWrite);
        cg.parallel_for([2, 3], move |item| pixels.update(item, |x: Uint4| x + 1))
    });
    submitted.unwrap();
    ten_times(&queue, &image);
    gate.open_later();
    drop(image);
    assert_eq!(levels, [20, 30, 40, 50, 60, 70]);
}

fn what_lies_between_rows_and_slices_is_left_alone(env: &Env) {
    let queue = env.queue();
    // Two slices of two rows of three pixels, with one byte behind each row and two behind each slice; the last gap may be missing.
    let mut memory: Vec<u8> = (1..=17).collect();
    let pitch = ImagePitch::slices(4, 10);
    let image = UnsampledImage::from_slice_mut_pitched(R8Uint, &mut memory, [2, 2, 3], pitch).unwrap();
    assert_eq!(image.to_vec::<u8>().unwrap(), [1, 2, 3, 5, 6, 7, 11, 12, 13, 15, 16, 17]);
    ten_times(&queue, &image);
    image.finish().unwrap();
    assert_eq!(memory, [10, 20, 30, 4, 50, 60, 70, 8, 9, 10, 110, 120, 130, 14, 150, 160, 170]);
}

fn a_failed_command_leaves_borrowed_pixels_as_they_were(env: &Env) {
    let queue = env.queue();
    let mut levels = [1.0f32, 2.0];
    let image = UnsampledImage::from_slice_mut(R32Float, &mut levels, 2).unwrap();
    let submitted = queue.submit(|cg| {
        let pixels = cg.access_image(&image, ReadWrite);
        cg.parallel_for(2, move |item| {
            pixels.update(item, |x: Float4| 2.0 * x);
            assert!(item.index() != 1, "a mistake");
        })
    });
    assert_eq!(code(submitted.unwrap().wait()), ErrorCode::Kernel);
    assert_eq!(code(image.finish()), ErrorCode::Kernel);
    queue.take_errors();
    assert_eq!(levels, [1.0, 2.0]);
}

fn discarded_images_write_nothing_and_do_not_wait(env: &Env) {
    let queue = env.queue();
    let mut levels = [1u8, 2];
    let image = UnsampledImage::from_slice_mut(R8Uint, &mut levels, 2).unwrap();
    let gate = Gate::new(&queue, |_| {});
    let submitted = queue.submit(|cg| {
        cg.depends_on(gate.event());
        let pixels = cg.access_image(&image, ReadWrite);
        cg.parallel_for(2, move |item| pixels.update(item, |x: Uint4| x + 1))
    });
    image.discard();
    gate.open();
    submitted.unwrap().wait().unwrap();
    assert_eq!(levels, [1, 2]);
}

fn rows_with_gaps_are_put_together() {
    let padded: Vec<u32> = (0..12).collect();
    let image = UnsampledImage::from_slice_pitched(Rgba8Uint, &padded, [3, 2], ImagePitch::rows(16)).unwrap();
    assert_eq!(image.to_vec::<u32>().unwrap(), [0, 1, 4, 5, 8, 9]);
    // A pitch that is no multiple of a pixel.
    let bytes: Vec<u8> = (0..21).collect();
    let image = UnsampledImage::from_slice_pitched(Rgba8Uint, &bytes, [3, 1], ImagePitch::rows(7)).unwrap();
    assert_eq!(image.to_vec::<u8>().unwrap(), [0, 1, 2, 3, 7, 8, 9, 10, 14, 15, 16, 17]);
    let image = UnsampledImage::from_slice_pitched(Rgba8Uint, &padded, [2, 2, 1], ImagePitch::rows(8)).unwrap();
    assert_eq!(image.to_vec::<u32>().unwrap(), [0, 2, 4, 6]);
}

fn pitches_that_are_too_small_and_memory_that_is_too_short_are_refused() {
    let data = vec![0u8; 64];
    let make =
        |data: &[u8], range: [usize; 3], pitch| code(UnsampledImage::from_slice_pitched(Rgba8Uint, data, range, pitch));
    assert_eq!(make(&data, [2, 2, 4], ImagePitch::rows(15)), ErrorCode::Invalid);
    assert_eq!(make(&data, [2, 2, 4], ImagePitch::slices(16, 31)), ErrorCode::Invalid);
    assert_eq!(make(&data[..63], [2, 2, 4], ImagePitch::rows(16)), ErrorCode::Invalid);
    assert_eq!(make(&data, [2, 2, 4], ImagePitch::rows(17)), ErrorCode::Invalid);
    assert_eq!(make(&data, [2, 2, 4], ImagePitch::rows(usize::MAX)), ErrorCode::Invalid);
    assert_eq!(make(&data, [2, 2, 4], ImagePitch::slices(16, usize::MAX)), ErrorCode::Invalid);
    assert_eq!(make(&data, [0, 2, 4], ImagePitch::rows(16)), ErrorCode::Invalid);
    let error = UnsampledImage::from_slice_pitched(Rgba8Uint, &data, [2, 4], ImagePitch::rows(12)).unwrap_err();
    assert!(error.to_string().contains("rows of 16 bytes: a row pitch of 12 is too small"), "{error}");
    let mut short = vec![0u8; 15];
    assert_eq!(code(UnsampledImage::from_slice_mut(Rgba8Uint, &mut short, [2, 2])), ErrorCode::Invalid);
}
