//! Images as buffers: memory, data state, dependencies, and what is refused before anything is enqueued.

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher, Hash};

use oxisycl::images::{ImageFormat, R8Unorm, R32Float, Rgba8Uint, Rgba8Unorm, Rgba32Float};
use oxisycl::prelude::*;
use oxisycl::vector::{Float4, Int4, Uint4};

use crate::harness::{Env, tests};
use crate::support::{assert_completes, assert_held_back, code, counted};

tests![
    commands_on_an_image_run_in_the_order_of_their_submission,
    an_image_moves_to_where_it_is_used_and_only_then,
    new_contents_move_nothing,
    a_host_accessor_holds_back_what_conflicts_with_it,
    two_accessors_of_an_image_are_refused_if_one_writes,
    pixels_of_another_kind_are_refused_before_anything_is_enqueued,
    what_a_failed_kernel_was_to_write_is_lost_until_it_is_overwritten,
    every_device_has_images,
    a_sampled_image_tells_what_the_unsampled_one_tells,
    accessors_of_one_image_are_equal_on_the_host_and_in_kernels,
    ; once:
    an_image_takes_over_a_vector_and_gives_it_back,
    pixels_on_the_host_are_aligned_to_their_format,
    images_that_cannot_be_are_refused,
    copies_of_a_handle_are_the_same_image,
    a_sampled_image_gives_its_pixels_back,
];

/// Replaces each pixel by `f` of its red.
fn update(
    queue: &Queue,
    image: &UnsampledImage<2, R32Float>,
    f: impl Fn(f32) -> f32 + Copy + Send + Sync + 'static,
) -> Event {
    let submitted = queue.submit(|cg| {
        let pixels = cg.access_image(image, ReadWrite);
        cg.parallel_for(image.range(), move |item| pixels.update(item, |x: Float4| Float4::splat(f(x[0]))))
    });
    submitted.unwrap()
}

fn commands_on_an_image_run_in_the_order_of_their_submission(env: &Env) {
    let image = UnsampledImage::from_vec(R32Float, vec![0.0f32; 12], [3, 4]).unwrap();
    let sums = UnsampledImage::from_vec(R32Float, vec![0.0f32; 12], [3, 4]).unwrap();
    let smooth = image.sampled(ImageSampler::LINEAR);
    let queues: Vec<Queue> = env.devices().iter().map(|device| Queue::new(device).unwrap()).collect();
    for round in 1..=9 {
        let queue = &queues[round % queues.len()];
        update(queue, &image, |x| 2.0 * x + 1.0);
        let submitted = queues[(round + 1) % queues.len()].submit(|cg| {
            let (smooth, sums) =
                (cg.access_sampled::<Float4, _, _>(&smooth), cg.access_image::<Float4, _, _, _>(&sums, ReadWrite));
            cg.parallel_for([3, 4], move |item: Item<2>| sums.update(item, |x| x + smooth.sample(item, [1.25, 2.0])))
        });
        submitted.unwrap();
    }
    let levels = (1..=9).map(|round| (1 << round) as f32 - 1.0);
    assert_eq!(sums.to_vec::<f32>().unwrap(), [levels.sum::<f32>(); 12]);
}

fn an_image_moves_to_where_it_is_used_and_only_then(env: &Env) {
    let queue = env.queue_apart();
    let image = UnsampledImage::from_vec(R32Float, vec![1.0f32; 12], [3, 4]).unwrap();
    assert!(!image.is_allocated_on(queue.device()));
    let (first, _) = counted(|| update(&queue, &image, |x| x + 1.0).wait().unwrap());
    let (second, _) = counted(|| update(&queue, &image, |x| x + 1.0).wait().unwrap());
    assert_eq!((first.bytes_to_device, second.bytes_to_device), (48, 0));
    assert!(image.is_current_on(queue.device()));
    assert_eq!(image.to_vec::<f32>().unwrap(), [3.0; 12]);
    image.release(queue.device()).unwrap();
    assert!(!image.is_allocated_on(queue.device()));
}

fn new_contents_move_nothing(env: &Env) {
    let queue = env.queue_apart();
    let image = UnsampledImage::from_vec(R32Float, vec![1.0f32; 12], [3, 4]).unwrap();
    let (changed, ()) = counted(|| {
        let submitted = queue.submit(|cg| {
            let image = cg.access_image(&image, Write.no_init());
            cg.parallel_for([3, 4], move |item: Item<2>| image.set(item, Float4::splat(7.0)))
        });
        submitted.unwrap().wait().unwrap();
    });
    assert_eq!(changed.bytes_to_device, 0);
    assert_eq!(image.to_vec::<f32>().unwrap(), [7.0; 12]);
}

fn a_host_accessor_holds_back_what_conflicts_with_it(env: &Env) {
    let queue = env.queue();
    let image = UnsampledImage::from_vec(R32Float, vec![1.0f32; 4], [2, 2]).unwrap();
    let mut host = image.host_access::<Float4, _>(ReadWrite).unwrap();
    let event = update(&queue, &image, |x| 10.0 * x);
    assert_held_back(&event);
    host.write([0, 1], Float4::splat(2.0));
    host.as_mut_bytes()[8..12].copy_from_slice(&3.0f32.to_le_bytes());
    assert_eq!(host.as_bytes().len(), 16);
    drop(host);
    assert_completes(&event);
    assert_eq!(image.to_vec::<f32>().unwrap(), [10.0, 20.0, 30.0, 10.0]);
}

fn two_accessors_of_an_image_are_refused_if_one_writes(env: &Env) {
    let queue = env.queue();
    let image = UnsampledImage::from_vec(R32Float, vec![1.0f32; 4], [2, 2]).unwrap();
    let smooth = image.sampled(ImageSampler::LINEAR);
    let refused = queue.submit(|cg| {
        let (_read, _write) =
            (cg.access_sampled::<Float4, _, _>(&smooth), cg.access_image::<Float4, _, _, _>(&image, Write));
        cg.single_task(|_| {})
    });
    assert_eq!(code(refused), ErrorCode::Accessor);
    let both_read = queue.submit(|cg| {
        let (_a, _b) = (cg.access_sampled::<Float4, _, _>(&smooth), cg.access_image::<Float4, _, _, _>(&image, Read));
        cg.single_task(|_| {})
    });
    both_read.unwrap();
}

fn pixels_of_another_kind_are_refused_before_anything_is_enqueued(env: &Env) {
    let queue = env.queue();
    let floats = UnsampledImage::from_vec(Rgba8Unorm, vec![0u8; 16], [2, 2]).unwrap();
    let numbers = UnsampledImage::from_vec(Rgba8Uint, vec![0u8; 16], [2, 2]).unwrap();
    let (changed, errors) = counted(|| {
        let submitted = queue.submit(|cg| {
            cg.access_image::<Uint4, _, _, _>(&floats, Write);
            cg.single_task(|_| {})
        });
        let sampled = queue.submit(|cg| {
            cg.access_sampled::<Float4, _, _>(&numbers.sampled(ImageSampler::NEAREST));
            cg.single_task(|_| {})
        });
        [submitted, sampled].map(|refused| refused.unwrap_err())
    });
    assert_eq!(changed.kernels, 0);
    for (error, text) in
        errors.iter().zip(["its pixels are Float4 or Half4, not Uint4", "its pixels are Uint4, not Float4"])
    {
        assert_eq!(error.code(), ErrorCode::Invalid);
        assert!(error.to_string().contains(text), "{error}");
    }
    assert_eq!(code(numbers.host_access::<Int4, _>(Read)), ErrorCode::Invalid);
    assert!(floats.is_current_on(&Device::select(oxisycl::selector::cpu_selector).unwrap()));
}

fn what_a_failed_kernel_was_to_write_is_lost_until_it_is_overwritten(env: &Env) {
    let queue = env.queue();
    let image = UnsampledImage::from_vec(R32Float, vec![1.0f32; 4], [2, 2]).unwrap();
    let event = update(&queue, &image, |_| panic!("a mistake"));
    assert_eq!(code(event.wait()), ErrorCode::Kernel);
    queue.take_errors();
    assert_eq!(code(image.to_vec::<f32>()), ErrorCode::Kernel);
    image.host_access::<Float4, _>(Write.no_init()).unwrap().as_mut_bytes().fill(0);
    assert_eq!(image.to_vec::<f32>().unwrap(), [0.0; 4]);
}

fn every_device_has_images(env: &Env) {
    assert!(env.device().has(Aspect::Image));
}

fn an_image_takes_over_a_vector_and_gives_it_back() {
    let data = vec![[1.0f32; 4]; 64];
    let address = data.as_ptr();
    assert!(address.addr().is_multiple_of(16), "the allocator aligns to 16 bytes");
    let image = UnsampledImage::from_vec(Rgba32Float, data, [8, 8]).unwrap();
    image.host_access(ReadWrite).unwrap().write([0, 1], Float4::splat(2.0));
    let data = image.into_vec::<[f32; 4]>().unwrap();
    assert_eq!((data.as_ptr(), data[1], data[2]), (address, [2.0; 4], [1.0; 4]));
    // As another type it is a copy.
    let image = UnsampledImage::from_vec(Rgba32Float, data, [8, 8]).unwrap();
    assert_eq!(image.into_vec::<f32>().unwrap()[3..6], [1.0, 2.0, 2.0]);
    let image = UnsampledImage::from_slice(R8Unorm, &[1u8, 2, 3, 4, 5, 6], [2, 3]).unwrap();
    assert_eq!(image.to_vec::<[u8; 2]>().unwrap(), [[1, 2], [3, 4], [5, 6]]);
    assert_eq!(code(image.to_vec::<u32>()), ErrorCode::Invalid);
    let copy = image.clone();
    let failed = image.into_vec::<u8>().unwrap_err();
    assert_eq!(failed.error().code(), ErrorCode::Invalid, "another handle exists");
    drop(copy);
    let failed = failed.into_image().into_vec::<u32>().unwrap_err();
    assert_eq!(failed.error().code(), ErrorCode::Invalid, "no whole number of elements");
    assert_eq!(failed.into_image().into_vec::<u8>().unwrap(), [1, 2, 3, 4, 5, 6]);
}

fn pixels_on_the_host_are_aligned_to_their_format() {
    let levels: Vec<u8> = (0..=255).collect();
    for n in 1..16 {
        for image in [
            UnsampledImage::from_vec(Rgba32Float, levels[..16 * n].to_vec(), n).unwrap(),
            UnsampledImage::from_slice(Rgba32Float, &levels[..16 * n], n).unwrap(),
            UnsampledImage::uninit(Rgba32Float, n).unwrap(),
        ] {
            let host = image.host_access::<Float4, _>(Write).unwrap();
            assert!(host.as_bytes().as_ptr().addr().is_multiple_of(16));
        }
    }
}

fn images_that_cannot_be_are_refused() {
    let format = ImageFormat::R8G8B8A8_UNORM;
    for range in [[0, 4], [4, 0], [(1 << 30) + 1, 1], [1, usize::MAX]] {
        assert_eq!(code(UnsampledImage::uninit(format, range)), ErrorCode::Invalid);
        assert_eq!(code(UnsampledImage::zeroed(format, range)), ErrorCode::Invalid);
        assert_eq!(code(UnsampledImage::from_vec(format, vec![0u8; 16], range)), ErrorCode::Invalid);
    }
    let too_much = UnsampledImage::zeroed(R8Unorm, [1 << 30, 1 << 30]);
    assert_eq!(code(too_much), ErrorCode::MemoryAllocation);
    let wide = UnsampledImage::uninit(R8Unorm, 1 << 23).unwrap().sampled(ImageSampler::NEAREST);
    let error = wide.host_access::<Float4>().unwrap_err();
    assert!(error.code() == ErrorCode::Invalid && error.to_string().contains("8388608 is above 8388607"), "{error}");
    let error = Queue::default().unwrap().submit(|cg| {
        let wide = cg.access_sampled::<Float4, _, _>(&wide);
        cg.single_task(move |single: Single| assert_eq!(wide.sample(single, 0.0)[1], 0.0))
    });
    assert_eq!(code(error), ErrorCode::Invalid);
    // Extents that are small enough, and bytes that are too many.
    assert_eq!(code(UnsampledImage::uninit(format, [1 << 30, 1 << 30, 1 << 30])), ErrorCode::Invalid);
    for n_bytes in [0, 15, 17, 64] {
        let error = UnsampledImage::from_slice(format, &vec![0u8; n_bytes], [2, 2]).unwrap_err();
        let expected = format!("expected 16 bytes, found {n_bytes} in {n_bytes} of u8");
        assert!(error.code() == ErrorCode::Invalid && error.to_string().contains(&expected), "{error}");
    }
}

fn copies_of_a_handle_are_the_same_image() {
    let image = UnsampledImage::from_vec(R8Unorm, vec![0u8; 4], [2, 2]).unwrap().named("levels");
    let copy = image.clone();
    assert_eq!((copy.id(), copy.name(), &copy), (image.id(), Some("levels"), &image));
    assert_eq!(image.sampled(ImageSampler::LINEAR), copy.sampled(ImageSampler::LINEAR));
    assert_ne!(image.sampled(ImageSampler::LINEAR), copy.sampled(ImageSampler::NEAREST));
    assert_ne!(image, UnsampledImage::from_vec(R8Unorm, vec![0u8; 4], [2, 2]).unwrap());
    assert!(format!("{image:?}").contains("UnormInt8"), "{image:?}");
}

fn a_sampled_image_tells_what_the_unsampled_one_tells(env: &Env) {
    let (device, is_apart) = (env.device(), !env.is_host());
    let format: ImageFormat = ImageFormat::R8G8B8A8_UNORM;
    let data = vec![[0u8, 51, 102, 255]; 6];
    let smooth = SampledImage::from_vec(format, ImageSampler::LINEAR, data, [2, 3]).unwrap().named("smooth");
    let plain = smooth.unsampled().clone();
    assert_eq!((smooth.id(), smooth.name(), plain.name()), (plain.id(), Some("smooth"), Some("smooth")));
    assert_eq!((smooth.range(), smooth.size(), smooth.byte_size()), (Range([2, 3]), 6, 24));
    assert_eq!((smooth.format(), smooth.sampler()), (format, ImageSampler::LINEAR));
    assert!(format!("{smooth:?}").contains("Some(\"smooth\")"), "{smooth:?}");
    let typed = smooth.with_format(Rgba8Unorm).unwrap();
    assert_eq!((typed.id(), typed.sampler()), (smooth.id(), smooth.sampler()));
    assert_eq!(code(smooth.with_format(Rgba8Uint)), ErrorCode::Invalid);
    smooth.reserve(device).unwrap();
    assert!(smooth.is_allocated_on(device) && plain.is_allocated_on(device));
    assert_eq!(smooth.is_current_on(device), !is_apart);
    let seen = UnsampledImage::uninit(Rgba8Unorm, 1).unwrap();
    let submitted = env.queue().submit(|cg| {
        let (typed, seen) = (cg.access_sampled::<Float4, _, _>(&typed), cg.access_image(&seen, Write.no_init()));
        cg.parallel_for(1, move |item: Item<1>| seen.set(item, typed.sample(item, [1.0, 1.5])))
    });
    submitted.unwrap();
    assert_eq!(seen.to_vec::<u8>().unwrap(), [0, 51, 102, 255]);
    assert!(smooth.is_current_on(device));
    if is_apart {
        smooth.release(device).unwrap();
        assert!(!plain.is_allocated_on(device));
    }
}

#[expect(clippy::mutable_key_type, reason = "the hash is of the image's number and sampler, which never change")]
fn a_sampled_image_gives_its_pixels_back() {
    let data: Vec<u32> = (0..6).collect();
    let address = data.as_ptr();
    let smooth = SampledImage::from_vec(Rgba8Unorm, ImageSampler::NEAREST, data, [2, 3]).unwrap();
    assert_eq!(smooth.to_vec::<u32>().unwrap(), [0, 1, 2, 3, 4, 5]);
    let failed = smooth.into_vec::<[u8; 5]>().unwrap_err();
    assert_eq!(failed.error().code(), ErrorCode::Invalid);
    let smooth = failed.into_image().sampled(ImageSampler::LINEAR);
    // What is the same image with the same sampler has the same place in a table.
    let mut found = std::collections::HashSet::from([smooth.clone()]);
    assert!(found.contains(&smooth) && !found.contains(&smooth.unsampled().sampled(ImageSampler::NEAREST)));
    assert!(found.remove(&smooth));
    let data = smooth.into_vec::<u32>().unwrap();
    assert_eq!((data.len(), data[5]), (6, 5));
    // A vector that is not aligned for pixels was copied.
    assert!(data.as_ptr() == address || !address.addr().is_multiple_of(16));
    let padded = [1u8, 2, 3, 0, 4, 5, 6, 0];
    let pitch = oxisycl::ImagePitch::rows(4);
    let smooth = SampledImage::from_slice_pitched(R8Unorm, ImageSampler::NEAREST, &padded, [2, 3], pitch).unwrap();
    assert_eq!(smooth.to_vec::<u8>().unwrap(), [1, 2, 3, 4, 5, 6]);
}

fn accessors_of_one_image_are_equal_on_the_host_and_in_kernels(env: &Env) {
    let (image, other) = (levels_of(4), levels_of(4));
    let (smooth, rough) = (image.sampled(ImageSampler::LINEAR), image.sampled(ImageSampler::NEAREST));
    let told = Buffer::<u8, 1>::uninit(6).unwrap();
    let kernel = env.queue().submit(|cg| {
        let [whole, again, foreign] =
            [&image, &image, &other].map(|image| cg.access_image::<Float4, _, _, _>(image, Read));
        let [first, second, sharp] = [&smooth, &smooth, &rough].map(|image| cg.access_sampled::<Float4, _, _>(image));
        let told = cg.access(&told, Write);
        let pairs = [(whole, again), (whole, foreign), (foreign, foreign)];
        let sampled = [(first, second), (first, sharp), (sharp, sharp)];
        assert_eq!(pairs.map(|(left, right)| left == right), [true, false, true]);
        assert_eq!(pairs.map(|(left, right)| hash(left) == hash(right)), [true, false, true]);
        assert_eq!(sampled.map(|(left, right)| left == right), [true, false, true]);
        assert_eq!(sampled.map(|(left, right)| hash(left) == hash(right)), [true, false, true]);
        cg.parallel_for(6, move |item| {
            let is_same = match item.index() {
                i @ 0..3 => pairs[i].0 == pairs[i].1,
                i => sampled[i - 3].0 == sampled[i - 3].1,
            };
            told.set(item, u8::from(is_same));
        })
    });
    kernel.unwrap();
    assert_eq!(told.to_vec().unwrap(), [1, 0, 1, 1, 0, 1]);
    // Blocks of one size, and others.
    let kernel = env.queue().submit(|cg| {
        let blocks =
            [(&image, 2), (&other, 2)].map(|(image, n)| cg.access_image_chunks::<Float4, _, _, _>(image, Write, n));
        let copy = blocks[0];
        assert!(copy == blocks[0] && hash(copy) == hash(blocks[0]) && copy != blocks[1]);
        cg.single_task(|_| {})
    });
    kernel.unwrap();
}

fn hash(accessor: impl Hash) -> u64 {
    BuildHasherDefault::<DefaultHasher>::default().hash_one(accessor)
}

fn levels_of(n: usize) -> UnsampledImage<1, R32Float> {
    UnsampledImage::from_vec(R32Float, vec![1.0f32; n], n).unwrap()
}
