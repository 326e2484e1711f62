//! Images in host tasks.

use oxisycl::images::{R8Uint, R32Float, Rgba8Uint};
use oxisycl::prelude::*;
use oxisycl::simulated::{SimulatedConfig, Simulator};
use oxisycl::vector::{Float4, Int4, Uint4};

use crate::harness::{Env, tests};
use crate::support::{code, counted};

tests![
    host_tasks_and_kernels_use_an_image_in_turn,
    a_host_task_reads_the_border_outside_and_writes_nothing_there,
    a_host_task_sees_all_bytes,
    a_host_task_samples_as_the_host_does,
    a_host_task_moves_an_image_to_the_host_and_only_what_it_reads,
    what_a_failed_host_task_was_to_write_is_lost,
    what_host_tasks_cannot_use_is_refused;
    once:
    host_tasks_of_a_device_without_images_use_them,
];

fn host_tasks_and_kernels_use_an_image_in_turn(env: &Env) {
    let (queue, image) = (env.queue(), UnsampledImage::from_vec(R32Float, vec![1.0f32; 6], [2, 3]).unwrap());
    for _ in 0..3 {
        let task = queue.submit(|cg| {
            let mut pixels = cg.access_image_host::<Float4, _, _, _>(&image, ReadWrite);
            cg.host_task(move |scope| {
                for x in 0..3 {
                    let sum = pixels.read(scope, [0, x]) + pixels.read(scope, [1, x]);
                    pixels.write(scope, [1, x], sum);
                }
            })
        });
        task.unwrap();
        queue.parallel_for_with([2, 3], image.update(), |item, image| image.update(item, |x: Float4| x * 2.0)).unwrap();
    }
    // The first row doubles, and the second gets it before it does.
    let (first, second) = (0..3).fold((1.0f32, 1.0f32), |(a, b), _| (2.0 * a, 2.0 * (a + b)));
    assert_eq!(image.to_vec::<f32>().unwrap(), [[first; 3], [second; 3]].concat());
}

fn a_host_task_reads_the_border_outside_and_writes_nothing_there(env: &Env) {
    let image = UnsampledImage::from_vec(Rgba8Uint, vec![7u8; 16], [2, 2]).unwrap();
    let task = env.queue().submit(|cg| {
        let mut pixels = cg.access_image_host::<Uint4, _, _, _>(&image, ReadWrite);
        assert_eq!((pixels.range(), pixels.format()), (Range([2, 2]), image.format()));
        cg.host_task(move |scope| {
            for outside in [[-1, 0], [0, 2], [2, 0], [i32::MIN, i32::MAX]] {
                assert_eq!(pixels.read(scope, outside), Uint4::splat(0));
                pixels.write(scope, outside, Uint4::splat(9));
            }
            assert_eq!(pixels.read(scope, [1, 1]), Uint4::splat(7));
        })
    });
    task.unwrap().wait().unwrap();
    assert_eq!(image.to_vec::<u8>().unwrap(), [7; 16]);
}

fn a_host_task_sees_all_bytes(env: &Env) {
    let (queue, image) = (env.queue(), UnsampledImage::uninit(Rgba8Uint, [2, 2]).unwrap());
    queue.fill_image(&image, Uint4::new(1, 2, 3, 4)).unwrap();
    let task = queue.submit(|cg| {
        let mut pixels = cg.access_image_host::<Uint4, _, _, _>(&image, ReadWrite);
        cg.host_task(move |scope| {
            assert_eq!(pixels.bytes(scope), [1, 2, 3, 4].repeat(4));
            pixels.bytes_mut(scope)[4..8].fill(9);
            assert_eq!(pixels.read(scope, [0, 1]), Uint4::splat(9));
        })
    });
    task.unwrap().wait().unwrap();
    assert_eq!(image.to_vec::<[u8; 4]>().unwrap(), [[1, 2, 3, 4], [9; 4], [1, 2, 3, 4], [1, 2, 3, 4]]);
}

fn a_host_task_samples_as_the_host_does(env: &Env) {
    let levels: Vec<f32> = (0..12).map(|i| i as f32).collect();
    let smooth = SampledImage::from_vec(R32Float, ImageSampler::LINEAR, levels, [3, 4]).unwrap();
    let mut places: Vec<[f32; 2]> = (0..40).map(|i| [i as f32 * 0.2 - 2.0, 5.0 - i as f32 * 0.25]).collect();
    places.extend([[f32::NAN, 1.0], [1.0, f32::INFINITY], [f32::NEG_INFINITY, f32::NAN]]);
    let nearest = ImageSampler::NEAREST.normalized();
    let expected: Vec<[Float4; 2]> = {
        let host = smooth.host_access::<Float4>().unwrap();
        places.iter().map(|&place| [host.sample(place), host.sample_with(nearest, place)]).collect()
    };
    let task = env.queue().submit(|cg| {
        let smooth = cg.access_sampled_host::<Float4, _, _>(&smooth);
        assert_eq!(smooth.range(), Range([3, 4]));
        cg.host_task(move |scope| {
            for (&place, expected) in places.iter().zip(expected) {
                let found = [smooth.sample(scope, place), smooth.sample_with(scope, nearest, place)];
                assert_eq!(found, expected, "{place:?}");
            }
        })
    });
    task.unwrap().wait().unwrap();
}

fn a_host_task_moves_an_image_to_the_host_and_only_what_it_reads(env: &Env) {
    let queue = env.queue_apart();
    let image = UnsampledImage::from_vec(R32Float, vec![1.0f32; 12], [3, 4]).unwrap();
    queue.fill_image(&image, Float4::splat(2.0)).unwrap().wait().unwrap();
    let (read, ()) = counted(|| {
        let task = queue.submit(|cg| {
            let pixels = cg.access_image_host::<Float4, _, _, _>(&image, Read);
            cg.host_task(move |scope| assert_eq!(pixels.read(scope, [2, 3])[0], 2.0))
        });
        task.unwrap().wait().unwrap();
    });
    assert_eq!(read.transferred_bytes(), 48);
    queue.fill_image(&image, Float4::splat(3.0)).unwrap().wait().unwrap();
    let (written, ()) = counted(|| {
        let task = queue.submit(|cg| {
            let mut pixels = cg.access_image_host::<Float4, _, _, _>(&image, Write.no_init());
            cg.host_task(move |scope| pixels.bytes_mut(scope).fill(0))
        });
        task.unwrap().wait().unwrap();
    });
    assert_eq!(written.transferred_bytes(), 0);
    assert_eq!(image.to_vec::<f32>().unwrap(), [0.0; 12]);
}

fn what_a_failed_host_task_was_to_write_is_lost(env: &Env) {
    let (queue, image) = (env.queue(), UnsampledImage::from_vec(R8Uint, vec![1u8; 4], 4).unwrap());
    let task = queue.submit(|cg| {
        let mut pixels = cg.access_image_host(&image, ReadWrite);
        cg.host_task(move |scope| {
            pixels.write(scope, 0, Uint4::splat(2));
            panic!("a mistake");
        })
    });
    task.unwrap().wait().unwrap_err();
    queue.take_errors();
    image.to_vec::<u8>().unwrap_err();
    queue.fill_image(&image, Uint4::splat(3)).unwrap();
    assert_eq!(image.to_vec::<u8>().unwrap(), [3; 4]);
}

fn what_host_tasks_cannot_use_is_refused(env: &Env) {
    let (queue, image) = (env.queue(), UnsampledImage::from_vec(R8Uint, vec![1u8; 4], [2, 2]).unwrap());
    let smooth = image.sampled(ImageSampler::NEAREST);
    let (since, errors) = counted(|| {
        let submitted = queue.submit(|cg| {
            cg.access_image_host::<Int4, _, _, _>(&image, Read);
            cg.host_task(|_| {})
        });
        let sampled = queue.submit(|cg| {
            cg.access_sampled_host::<Float4, _, _>(&smooth);
            cg.host_task(|_| {})
        });
        [submitted, sampled].map(Result::unwrap_err)
    });
    assert_eq!(since.transferred_bytes(), 0);
    for error in errors {
        assert_eq!(error.code(), ErrorCode::Invalid);
        assert!(error.to_string().contains("its pixels are Uint4, not "), "{error}");
    }
    let overlapping = queue.submit(|cg| {
        let _read = cg.access_sampled_host::<Uint4, _, _>(&smooth);
        let _written = cg.access_image_host::<Uint4, _, _, _>(&image, Write);
        cg.host_task(|_| {})
    });
    assert_eq!(code(overlapping), ErrorCode::Accessor);
    let wide = UnsampledImage::uninit(R8Uint, 1 << 23).unwrap().sampled(ImageSampler::NEAREST);
    let too_wide = queue.submit(|cg| {
        cg.access_sampled_host::<Uint4, _, _>(&wide);
        cg.host_task(|_| {})
    });
    assert_eq!(code(too_wide), ErrorCode::Invalid);
}

fn host_tasks_of_a_device_without_images_use_them() {
    let simulator = Simulator::new(SimulatedConfig::new(1).images(false)).unwrap();
    let queue = Queue::new(&simulator.devices()[0]).unwrap();
    let image = UnsampledImage::from_vec(R8Uint, vec![1u8; 4], 4).unwrap();
    let task = queue.submit(|cg| {
        let mut pixels = cg.access_image_host(&image, ReadWrite);
        cg.host_task(move |scope| pixels.write(scope, 3, Uint4::splat(7)))
    });
    task.unwrap();
    assert_eq!(image.to_vec::<u8>().unwrap(), [1, 1, 1, 7]);
}
