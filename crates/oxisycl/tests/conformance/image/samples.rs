//! Samplers in kernels. What they give is compared with the host, where `oxisycl-device` has a model of them.

use oxisycl::images::{
    AddressingMode, CoordinateMode, FilteringMode, ImageFormat, ImageSampler, PixelFormat, R32Float, Rgba8Srgb,
    Rgba8Unorm, Rgba16Float,
};
use oxisycl::prelude::*;
use oxisycl::vector::{Float4, Uint4};

use super::bytes_of;
use crate::harness::{Env, tests};
use crate::support::Random;

tests![
    every_sampler_gives_what_it_gives_on_the_host,
    volumes_and_lines_are_sampled_as_on_the_host,
    integers_are_sampled_without_a_mixture,
    coordinates_that_are_no_numbers_or_infinite_are_harmless,
    one_coordinate_that_is_no_number_is_that_of_the_host,
    a_constant_sampler_takes_the_place_of_the_images,
];

/// Samples at random coordinates around the image; those of nearest pixels must have the same bits as on the host.
fn check<const D: usize, F: PixelFormat>(queue: &Queue, format: F, range: [usize; D]) {
    let n_samples = 64;
    let mut random = Random::new(3);
    let bytes = bytes_of(&mut random, format.format(), range.iter().product());
    let image = UnsampledImage::from_vec(format, bytes, range).unwrap();
    for &sampler in ImageSampler::ALL {
        let coordinates: Vec<[f32; D]> = (0..n_samples)
            .map(|_| {
                range.map(|n| {
                    // Multiples of an eighth of a pixel, which are exact, as extents are powers of two.
                    let place = random.below(40 * n) as f32 / 8.0 - 2.0 * n as f32;
                    if sampler.coordinates == CoordinateMode::Normalized { place / n as f32 } else { place }
                })
            })
            .collect();
        let (sampled, places) = (image.sampled(sampler), Buffer::from_slice(&coordinates).unwrap());
        let seen = Buffer::from_vec(vec![Float4::splat(9.0); n_samples]).unwrap();
        let submitted = queue.submit(|cg| {
            let sampled = cg.access_sampled::<Float4, _, _>(&sampled);
            let (places, seen) = (cg.access(&places, Read), cg.access(&seen, Write));
            cg.parallel_for(n_samples, move |item| seen.set(item, sampled.sample(item, places.get(item))))
        });
        submitted.unwrap();
        let (seen, host) = (seen.to_vec().unwrap(), sampled.host_access::<Float4>().unwrap());
        for (place, seen) in coordinates.into_iter().zip(seen) {
            let expected = host.sample(place);
            let is_right = (0..4).all(|i| match sampler.filtering {
                FilteringMode::Nearest => seen[i] == expected[i],
                FilteringMode::Linear => (seen[i] - expected[i]).abs() <= 4e-5,
            });
            assert!(is_right, "{sampler:?} at {place:?}: {seen}, not {expected}");
        }
    }
}

fn every_sampler_gives_what_it_gives_on_the_host(env: &Env) {
    let queue = env.queue();
    check(&queue, Rgba8Unorm, [4, 8]);
    check(&queue, Rgba8Srgb, [2, 4]);
    check(&queue, Rgba16Float, [8, 2]);
    check(&queue, ImageFormat::B8G8R8A8_UNORM, [8, 4]);
}

fn volumes_and_lines_are_sampled_as_on_the_host(env: &Env) {
    let queue = env.queue();
    check(&queue, R32Float, [16]);
    check(&queue, R32Float, [1]);
    check(&queue, R32Float, [2, 4, 8]);
}

fn integers_are_sampled_without_a_mixture(env: &Env) {
    let format = ImageFormat::R32G32B32A32_UINT;
    let image = SampledImage::from_vec(format, ImageSampler::LINEAR, (0..16).collect::<Vec<u32>>(), 4).unwrap();
    let seen = Buffer::from_vec(vec![Uint4::splat(9); 8]).unwrap();
    let submitted = env.queue().submit(|cg| {
        let (image, seen) = (cg.access_sampled::<Uint4, _, _>(&image), cg.access(&seen, Write));
        cg.parallel_for(8, move |item| seen.set(item, image.sample(item, item.index() as f32 / 2.0 + 0.25)))
    });
    submitted.unwrap();
    let expected: Vec<Uint4> = (0..8).map(|i| Uint4::from_fn(|j| (i / 2 * 4 + j) as u32)).collect();
    assert_eq!(seen.to_vec().unwrap(), expected);
}

fn coordinates_that_are_no_numbers_or_infinite_are_harmless(env: &Env) {
    let queue = env.queue();
    let coordinates = [f32::NAN, f32::NEG_INFINITY, f32::INFINITY, f32::MAX, f32::MIN, -3e9];
    let levels = UnsampledImage::from_vec(R32Float, vec![10.0f32, 20.0, 30.0, 40.0], 4).unwrap();
    for &sampler in ImageSampler::ALL {
        let (image, seen) = (levels.sampled(sampler), Buffer::from_vec(vec![-1.0f32; 6]).unwrap());
        let submitted = queue.submit(|cg| {
            let (image, seen) = (cg.access_sampled::<Float4, _, _>(&image), cg.access(&seen, Write));
            cg.parallel_for(6, move |item| seen.set(item, image.sample(item, coordinates[item.index()])[0]))
        });
        submitted.unwrap();
        let seen = seen.to_vec().unwrap();
        let expected = match sampler.addressing {
            // Between the last pixel and the first.
            AddressingMode::Repeat if sampler.filtering == FilteringMode::Linear => [25.0; 6],
            AddressingMode::Repeat | AddressingMode::MirroredRepeat => [10.0; 6],
            AddressingMode::ClampToEdge => [10.0, 10.0, 40.0, 40.0, 10.0, 10.0],
            _ => [0.0; 6],
        };
        assert_eq!(seen, expected, "{sampler:?}");
    }
}

fn a_constant_sampler_takes_the_place_of_the_images(env: &Env) {
    let levels = SampledImage::from_vec(R32Float, ImageSampler::NEAREST, vec![10.0f32, 20.0], 2).unwrap();
    let seen = Buffer::from_vec(vec![Float4::splat(9.0); 2]).unwrap();
    let submitted = env.queue().submit(|cg| {
        let (levels, seen) = (cg.access_sampled::<Float4, _, _>(&levels), cg.access(&seen, Write));
        cg.single_task(move |task| {
            const SMOOTH: ImageSampler = ImageSampler::LINEAR.normalized();
            seen.set_at(task, 0, levels.sample(task, 0.75));
            seen.set_at(task, 1, levels.sample_with(task, SMOOTH, 0.5));
        })
    });
    submitted.unwrap();
    let level = |x| Float4::new(x, 0.0, 0.0, 1.0);
    assert_eq!(seen.to_vec().unwrap(), [level(10.0), level(15.0)]);
}

fn one_coordinate_that_is_no_number_is_that_of_the_host(env: &Env) {
    const PLACES: [[f32; 3]; 6] = [
        [f32::NAN, 0.5, 0.5],
        [0.5, f32::NAN, 1.5],
        [1.5, 0.5, f32::NAN],
        [-0.5, 1.5, 0.5],
        [1.5, -7.25, f32::INFINITY],
        [f32::NAN; 3],
    ];
    let levels: Vec<f32> = (1..=8).map(|x| x as f32).collect();
    let volume = UnsampledImage::from_vec(R32Float, levels, [2, 2, 2]).unwrap();
    for &sampler in ImageSampler::ALL {
        // Mixtures may differ in their last bits.
        if sampler.filtering == FilteringMode::Linear {
            continue;
        }
        let (sampled, seen) = (volume.sampled(sampler), Buffer::from_vec(vec![-1.0f32; 6]).unwrap());
        let submitted = env.queue().submit(|cg| {
            let (sampled, seen) = (cg.access_sampled::<Float4, _, _>(&sampled), cg.access(&seen, Write));
            cg.parallel_for(6, move |item| seen.set(item, sampled.sample(item, PLACES[item.index()])[0]))
        });
        submitted.unwrap();
        let host = sampled.host_access::<Float4>().unwrap();
        assert_eq!(seen.to_vec().unwrap(), PLACES.map(|place| host.sample(place)[0]), "{sampler:?}");
    }
}
