//! Where the pixels of an image go when its last handle is dropped: rows 8.15 to 8.17 and rules 8.31 to 8.34 with images.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, TryRecvError};
use std::sync::{Arc, Mutex};

use oxisycl::images::{PixelFormat, R8Uint, R32Float};
use oxisycl::prelude::*;
use oxisycl::vector::Float4;
use oxisycl::{FinalData, Result};

use crate::blocking::hold::{Hold, ways};
use crate::harness::{Env, tests};
use crate::support::{Gate, code};

tests![
    row_8_15_final_pixels_for_a_function_block_until_it_has_returned,
    row_8_16_final_pixels_for_a_vector_block_until_it_is_written,
    row_8_17_final_pixels_for_a_vector_that_is_gone_never_block,
    an_image_ends_with_its_last_handle_of_any_kind,
    final_pixels_are_delivered_once_by_the_thread_of_the_last_handle,
    final_pixels_of_a_failed_command_are_all_or_nothing,
    ; once:
    shared_pixels_are_copied_and_never_written,
    final_pixels_have_the_type_that_is_asked_for,
];

/// An image of eight pixels that are 1.
pub(super) fn eight() -> UnsampledImage<2, R32Float> {
    UnsampledImage::from_vec(R32Float, vec![1.0f32; 8], [2, 4]).unwrap()
}

/// A command that makes all pixels 7 once the hold is opened.
pub(super) fn held_fill(queue: &Queue, hold: &Hold, image: &UnsampledImage<2, R32Float>) -> Event {
    let filled = queue.submit(|cg| {
        cg.depends_on(hold.event());
        cg.fill_image(image, Float4::splat(7.0))
    });
    filled.unwrap()
}

/// A command that reads the image.
fn reader(queue: &Queue, image: &UnsampledImage<2, R32Float>) -> Event {
    queue.copy_image(image, &eight()).unwrap()
}

fn row_8_15_final_pixels_for_a_function_block_until_it_has_returned(env: &Env) {
    for &way in ways(env) {
        let (queue, image) = (env.queue(), eight());
        let beside = Gate::new(&queue, |_| {});
        let hold = Hold::new(env, way, &queue);
        let users = [held_fill(&queue, &hold, &image), reader(&env.other_queue(), &image)];
        let seen = users.clone();
        let has_returned = Arc::new(AtomicBool::new(false));
        let returned = has_returned.clone();
        let end = FinalData::call(move |pixels: Result<Vec<f32>>| {
            assert!(seen.iter().all(Event::is_complete));
            assert_eq!(pixels.unwrap(), [7.0; 8]);
            std::thread::sleep(std::time::Duration::from_millis(5));
            returned.store(true, Ordering::SeqCst);
        });
        image.set_final_data(end).unwrap();
        hold.open_later();
        drop(image);
        assert!(has_returned.load(Ordering::SeqCst) && users.iter().all(Event::is_complete), "{way:?}");
        assert!(!beside.event().is_complete());
    }
}

fn row_8_16_final_pixels_for_a_vector_block_until_it_is_written(env: &Env) {
    for &way in ways(env) {
        let (queue, image, vector) = (env.queue(), eight(), Arc::new(Mutex::new(Vec::<[f32; 2]>::new())));
        image.set_final_data(FinalData::weak(Arc::downgrade(&vector))).unwrap();
        let beside = Gate::new(&queue, |_| {});
        let hold = Hold::new(env, way, &queue);
        let users = [held_fill(&queue, &hold, &image), reader(&env.other_queue(), &image)];
        hold.open_later();
        drop(image);
        assert_eq!(*vector.lock().unwrap(), [[7.0; 2]; 4], "{way:?}");
        assert!(users.iter().all(Event::is_complete) && !beside.event().is_complete());
    }
}

fn row_8_17_final_pixels_for_a_vector_that_is_gone_never_block(env: &Env) {
    for &way in ways(env) {
        let (queue, image, vector) = (env.queue(), eight(), Arc::new(Mutex::new(Vec::<f32>::new())));
        image.set_final_data(FinalData::weak(Arc::downgrade(&vector))).unwrap();
        let hold = Hold::new(env, way, &queue);
        let after = held_fill(&queue, &hold, &image);
        drop(vector);
        drop(image);
        assert!(!after.is_complete(), "{way:?}");
        hold.open();
        after.wait().unwrap();
    }
}

fn an_image_ends_with_its_last_handle_of_any_kind(env: &Env) {
    type Make = fn(&UnsampledImage<2, R32Float>) -> Box<dyn std::any::Any>;
    let makes: [Make; 3] = [
        |image| Box::new(image.clone()),
        |image| Box::new(image.with_format(R32Float.format()).unwrap()),
        |image| Box::new(image.sampled(ImageSampler::LINEAR)),
    ];
    for make in makes {
        let (queue, image) = (env.queue(), eight());
        let (to, delivered) = mpsc::channel();
        let end = FinalData::call(move |pixels: Result<Vec<f32>>| to.send(pixels.unwrap()).unwrap());
        image.sampled(ImageSampler::NEAREST).set_final_data(end).unwrap();
        let handle = make(&image);
        queue.fill_image(&image, Float4::splat(7.0)).unwrap();
        drop(image);
        assert_eq!(delivered.try_recv(), Err(TryRecvError::Empty), "a handle is left");
        drop(handle);
        assert_eq!(delivered.try_recv().unwrap(), [7.0; 8]);
    }
}

fn final_pixels_are_delivered_once_by_the_thread_of_the_last_handle(env: &Env) {
    let (to, delivered) = mpsc::channel();
    let to_channel = |name: &'static str| {
        let to = to.clone();
        FinalData::call(move |pixels: Result<Vec<f32>>| {
            to.send((name, pixels.unwrap(), std::thread::current().id())).unwrap();
        })
    };
    let image = eight();
    image.set_final_data(to_channel("first")).unwrap();
    image.clone().set_final_data(to_channel("second")).unwrap();
    env.queue().fill_image(&image, Float4::splat(7.0)).unwrap();
    let thread = std::thread::spawn(move || {
        drop(image);
        std::thread::current().id()
    });
    let dropper = thread.join().unwrap();
    assert_eq!(delivered.try_recv(), Ok(("second", vec![7.0; 8], dropper)));
    // What was taken otherwise, in the image's own vector or in a new one, is not delivered. Nor is it after the last wish.
    let images = [eight(), eight(), eight()];
    images.iter().for_each(|image| image.set_final_data(to_channel("taken")).unwrap());
    let [own, new, none] = images;
    assert_eq!(own.into_vec::<f32>().unwrap(), [1.0; 8]);
    assert_eq!(new.into_vec::<u32>().unwrap(), [1.0f32.to_bits(); 8]);
    none.set_final_data(FinalData::<u8>::none()).unwrap();
    drop(none);
    assert_eq!(delivered.try_recv(), Err(TryRecvError::Empty));
}

fn final_pixels_of_a_failed_command_are_all_or_nothing(env: &Env) {
    let (queue, image) = (env.queue(), eight());
    let (to, delivered) = mpsc::channel();
    image.set_final_data(FinalData::call(move |pixels: Result<Vec<f32>>| to.send(code(pixels)).unwrap())).unwrap();
    let submitted = queue.submit(|cg| {
        let pixels = cg.access_image(&image, ReadWrite);
        cg.parallel_for([2, 4], move |item: Item<2>| {
            pixels.update(item, |x: Float4| 2.0 * x);
            assert!(item.get(0) != 1, "a mistake");
        })
    });
    drop(image);
    assert_eq!(delivered.try_recv(), Ok(ErrorCode::Kernel));
    assert_eq!(code(submitted.unwrap().wait()), ErrorCode::Kernel);
    queue.take_errors();
}

fn shared_pixels_are_copied_and_never_written() {
    let shared = Arc::<[u8]>::from([1, 2, 3, 4, 5, 6]);
    let image = UnsampledImage::from_shared(R8Uint, shared.clone(), [2, 3]).unwrap();
    assert_eq!(Arc::strong_count(&shared), 1);
    image.host_access::<oxisycl::vector::Uint4, _>(Write).unwrap().as_mut_bytes().fill(9);
    drop(image);
    assert_eq!(*shared, [1, 2, 3, 4, 5, 6]);
    let smooth = SampledImage::from_shared(R8Uint, ImageSampler::NEAREST, shared.clone(), [2, 3]).unwrap();
    assert_eq!(smooth.to_vec::<u8>().unwrap(), *shared);
    assert_eq!(code(UnsampledImage::from_shared(R8Uint, shared, [2, 2])), ErrorCode::Invalid);
}

fn final_pixels_have_the_type_that_is_asked_for() {
    let image = UnsampledImage::from_slice(R8Uint, &[1u8, 2, 3, 4, 5, 6], [2, 3]).unwrap();
    let result = Arc::new(Mutex::new(Vec::<[u8; 2]>::new()));
    image.set_final_data(FinalData::weak(Arc::downgrade(&result))).unwrap();
    // Refused, so that the pairs stay what is wanted.
    let refused = image.set_final_data(FinalData::call(|_: Result<Vec<u32>>| panic!("was refused")));
    let error = refused.unwrap_err();
    assert_eq!(error.code(), ErrorCode::Invalid);
    assert!(error.to_string().contains("has 6 bytes, which are no whole number of u32"), "{error}");
    drop(image);
    assert_eq!(*result.lock().unwrap(), [[1, 2], [3, 4], [5, 6]]);
}
