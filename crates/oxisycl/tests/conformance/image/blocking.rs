//! Rows of what blocks (semantics, section 8) with images, beside those of final data and of borrowed pixels.
//!
//! As in the area of blocking, a [`Hold`] keeps a command that uses the image from ending. What never blocks is called while it does. What blocks is
//! called while another thread is about to let that command go.

use std::sync::Arc;

use oxisycl::images::{PixelFormat, R32Float};
use oxisycl::prelude::*;
use oxisycl::vector::Float4;
use oxisycl::{FinalData, Result};

use super::final_data::{eight, held_fill};
use crate::blocking::hold::{Hold, ways};
use crate::harness::{Env, tests};
use crate::support::{Gate, assert_held_back};

tests![
    row_8_12_making_images_and_handles_of_them_never_blocks,
    row_8_14_dropping_the_last_handle_of_an_image_never_blocks,
    row_8_20_pixels_on_the_host_block_until_conflicting_commands_have_ended,
    row_8_21_dropping_a_host_accessor_of_an_image_never_blocks,
    row_8_22_taking_pixels_blocks_until_no_command_uses_the_image,
    row_8_23_release_blocks_until_no_command_uses_the_image,
    row_8_24_asking_for_and_about_allocations_of_an_image_never_blocks,
];

/// A command that reads the image, and ends when the hold does.
fn held_reader(queue: &Queue, hold: &Hold, image: &UnsampledImage<2, R32Float>) -> Event {
    let target = eight();
    let reader = queue.submit(|cg| {
        cg.depends_on(hold.event());
        cg.copy_image(image, &target)
    });
    reader.unwrap()
}

fn row_8_12_making_images_and_handles_of_them_never_blocks(env: &Env) {
    for &way in ways(env) {
        let (queue, image, size) = (env.queue(), eight(), [2, 4]);
        let (levels, mut borrowed) = (vec![1.0f32; 8], [1.0f32; 8]);
        let hold = Hold::new(env, way, &queue);
        let last = held_fill(&queue, &hold, &image);
        drop([
            UnsampledImage::uninit(R32Float, size).unwrap(),
            UnsampledImage::zeroed(R32Float, size).unwrap(),
            UnsampledImage::from_slice(R32Float, &levels, size).unwrap(),
            UnsampledImage::from_slice_pitched(R32Float, &levels, size, oxisycl::ImagePitch::rows(16)).unwrap(),
            UnsampledImage::from_shared(R32Float, Arc::from(&levels[..]), size).unwrap(),
            UnsampledImage::from_vec(R32Float, levels, size).unwrap(),
        ]);
        UnsampledImage::from_slice_mut(R32Float, &mut borrowed, size).unwrap().discard();
        let handles =
            (image.clone(), image.with_format(R32Float.format()).unwrap(), image.sampled(ImageSampler::LINEAR));
        image.set_final_data(FinalData::call(|_: Result<Vec<f32>>| {})).unwrap();
        image.set_final_data(FinalData::<f32>::none()).unwrap();
        assert!(!last.is_complete(), "{way:?}");
        drop(handles);
        hold.open();
        last.wait().unwrap();
    }
}

fn row_8_14_dropping_the_last_handle_of_an_image_never_blocks(env: &Env) {
    for &way in ways(env) {
        let queue = env.queue();
        let cancelled = eight();
        cancelled.set_final_data(FinalData::call(|_: Result<Vec<f32>>| panic!("was replaced"))).unwrap();
        cancelled.set_final_data(FinalData::<f32>::none()).unwrap();
        for image in [eight(), cancelled, UnsampledImage::uninit(R32Float, [2, 4]).unwrap()] {
            let hold = Hold::new(env, way, &queue);
            let after = held_fill(&queue, &hold, &image);
            let last = image.sampled(ImageSampler::LINEAR);
            drop(image);
            drop(last);
            assert!(!after.is_complete(), "{way:?}");
            hold.open();
            after.wait().unwrap();
        }
    }
}

fn row_8_20_pixels_on_the_host_block_until_conflicting_commands_have_ended(env: &Env) {
    type Access = fn(&UnsampledImage<2, R32Float>) -> Result<f32>;
    let accesses: [Access; 4] = [
        |image| Ok(image.host_access::<Float4, _>(Read)?.read([1, 3])[0]),
        |image| Ok(image.sampled(ImageSampler::NEAREST).host_access::<Float4>()?.sample([1.5, 3.5])[0]),
        |image| Ok(image.to_vec::<f32>()?[7]),
        |image| Ok(image.sampled(ImageSampler::LINEAR).to_vec::<[f32; 2]>()?[3][1]),
    ];
    for &way in ways(env) {
        for access in accesses {
            let (queue, image) = (env.queue(), eight());
            let beside = Gate::new(&queue, |_| {});
            let hold = Hold::new(env, way, &queue);
            let writer = held_fill(&queue, &hold, &image);
            // Does not conflict with what only reads.
            let reader = Gate::new(&queue, |cg| {
                cg.access_image::<Float4, _, _, _>(&image, Read);
            });
            hold.open_later();
            assert_eq!(access(&image).unwrap(), 7.0, "{way:?}");
            assert!(writer.is_complete());
            assert!(!beside.event().is_complete() && !reader.event().is_complete());
        }
        // What writes on the host also waits for what reads.
        let (queue, image) = (env.queue(), eight());
        let hold = Hold::new(env, way, &queue);
        let reader = held_reader(&queue, &hold, &image);
        hold.open_later();
        image.host_access(Write).unwrap().write([0, 0], Float4::splat(2.0));
        assert!(reader.is_complete(), "{way:?}");
    }
}

fn row_8_21_dropping_a_host_accessor_of_an_image_never_blocks(env: &Env) {
    for &way in ways(env) {
        let (queue, image) = (env.queue(), eight());
        let hold = Hold::new(env, way, &queue);
        let host = image.host_access::<Float4, _>(ReadWrite).unwrap();
        // Held by the accessor, and then by what comes before it.
        let blocked = held_fill(&queue, &hold, &image);
        drop(host);
        assert_held_back(&blocked);
        hold.open();
        blocked.wait().unwrap();
        assert_eq!(image.to_vec::<f32>().unwrap(), [7.0; 8]);
    }
}

fn row_8_22_taking_pixels_blocks_until_no_command_uses_the_image(env: &Env) {
    type Take = fn(UnsampledImage<2, R32Float>) -> Vec<f32>;
    let takes: [Take; 3] = [
        |image| image.into_vec().unwrap(),
        // No vector of this type was taken over: the pixels are copied.
        |image| image.into_vec::<[f32; 4]>().unwrap().into_flattened(),
        |image| {
            let smooth = image.sampled(ImageSampler::LINEAR);
            drop(image);
            smooth.into_vec().unwrap()
        },
    ];
    for &way in ways(env) {
        for take in takes {
            let (queue, image) = (env.queue(), eight());
            let beside = Gate::new(&queue, |_| {});
            let hold = Hold::new(env, way, &queue);
            let reader = held_reader(&queue, &hold, &image);
            hold.open_later();
            assert_eq!(take(image), [1.0; 8]);
            assert!(reader.is_complete() && !beside.event().is_complete(), "{way:?}");
        }
    }
}

fn row_8_23_release_blocks_until_no_command_uses_the_image(env: &Env) {
    for &way in ways(env) {
        // A command uses the image also if it does so on another device.
        for user in [env.queue(), env.other_queue()] {
            let (queue, image) = (env.queue(), UnsampledImage::uninit(R32Float, [2, 4]).unwrap());
            env.third_queue().fill_image(&image, Float4::splat(7.0)).unwrap();
            queue.copy_image(&image, &eight()).unwrap().wait().unwrap();
            user.copy_image(&image, &eight()).unwrap().wait().unwrap();
            assert!(image.is_allocated_on(env.device()));
            let beside = Gate::new(&queue, |_| {});
            let hold = Hold::new(env, way, &queue);
            let reader = held_reader(&user, &hold, &image);
            hold.open_later();
            image.release(env.device()).unwrap();
            assert!(reader.is_complete() && !beside.event().is_complete(), "{way:?}");
            assert!(!image.is_allocated_on(env.device()));
            assert_eq!(image.to_vec::<f32>().unwrap(), [7.0; 8]);
        }
    }
}

fn row_8_24_asking_for_and_about_allocations_of_an_image_never_blocks(env: &Env) {
    for &way in ways(env) {
        let (queue, image) = (env.queue(), eight());
        let hold = Hold::new(env, way, &queue);
        let last = held_fill(&queue, &hold, &image);
        for device in env.devices() {
            image.reserve(device).unwrap();
            assert!(image.is_allocated_on(device));
            assert_eq!(image.is_current_on(device), device == env.device());
        }
        assert!(!last.is_complete(), "{way:?}");
        hold.open();
        last.wait().unwrap();
    }
}
