//! Samplers in kernels. What they give is compared with the host, where `oxisycl-device` has a model of them.

use std::cell::Cell;
use std::fmt::Debug;

use oxisycl::float;
use oxisycl::images::{
    AddressingMode, ChannelType, CoordinateMode, FilteringMode, ImageFormat, ImageSampler, PixelData, PixelFormat,
    R8Unorm, R32Float, Rgba8Srgb, Rgba8Unorm, Rgba16Float,
};
use oxisycl::prelude::*;
use oxisycl::vector::{Float4, Int4, Uint4};

use super::{bytes_of, bytes_without_numbers, formats_in_floats, have_numbers_alike};
use crate::harness::{Env, tests};
use crate::support::Random;

tests![
    every_sampler_gives_what_it_gives_on_the_host,
    volumes_and_lines_are_sampled_as_on_the_host,
    images_of_every_format_are_sampled_as_on_the_host,
    pixels_that_are_no_numbers_are_sampled_as_on_the_host,
    strict_samples_have_the_bits_of_the_host,
    the_far_end_of_the_widest_image_is_sampled,
    integers_are_sampled_without_a_mixture,
    coordinates_that_are_no_numbers_or_infinite_are_harmless,
    one_coordinate_that_is_no_number_is_that_of_the_host,
    a_constant_sampler_takes_the_place_of_the_images,
];

/// A coordinate around an image of that extent. If that is a power of two, the coordinate is exact, and so is its product.
fn place(random: &mut Random, sampler: ImageSampler, extent: usize) -> f32 {
    // Each second one is a multiple of an eighth of a pixel: edges and centres of pixels are among them.
    let steps = if random.below(2) == 0 { 8 } else { 4096 };
    let place = random.below(5 * steps * extent) as f32 / steps as f32 - 2.0 * extent as f32;
    if sampler.coordinates == CoordinateMode::Normalized { place / extent as f32 } else { place }
}

/// A coordinate as those of [`place`]. If it is rounded, it is not near to the edge of a pixel, so that all devices find the same pixel.
fn inner_place(random: &mut Random, sampler: ImageSampler, extent: usize) -> f32 {
    if sampler.coordinates == CoordinateMode::Unnormalized || extent.is_power_of_two() {
        return place(random, sampler, extent);
    }
    let place = place(random, ImageSampler { coordinates: CoordinateMode::Unnormalized, ..sampler }, extent);
    (place.floor() + (place - place.floor()).clamp(0.125, 0.875)) / extent as f32
}

/// Whether a device may give `seen` where the host gives `expected`. Nearest pixels are the same, and mixtures but for their rounding.
fn is_as_on_the_host(format: ImageFormat, filtering: FilteringMode, seen: Float4, expected: Float4) -> bool {
    let range = match format.channel_type() {
        // Those of `bytes_of`.
        ChannelType::Float16 | ChannelType::Float32 => 4.0,
        ChannelType::SnormInt8 | ChannelType::SnormInt16 => 2.0,
        _ => 1.0,
    };
    let tolerance = if filtering == FilteringMode::Linear { 1e-5 * range } else { 0.0 };
    (0..4).all(|i| (seen[i] - expected[i]).abs() <= tolerance)
}

/// Samples of an image at random coordinates around it.
fn check<const D: usize, F: PixelFormat>(queue: &Queue, format: F, range: [usize; D]) {
    let n_samples = 64;
    let mut random = Random::new(3);
    let bytes = bytes_of(&mut random, format.format(), range.iter().product());
    let image = UnsampledImage::from_vec(format, bytes, range).unwrap();
    for &sampler in ImageSampler::ALL {
        let coordinates: Vec<[f32; D]> =
            (0..n_samples).map(|_| range.map(|n| inner_place(&mut random, sampler, n))).collect();
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
            assert!(
                is_as_on_the_host(format.format(), sampler.filtering, seen, expected),
                "{sampler:?} at {place:?}: {seen}, not {expected}"
            );
        }
    }
}

fn every_sampler_gives_what_it_gives_on_the_host(env: &Env) {
    let queue = env.queue();
    check(&queue, Rgba8Unorm, [4, 8]);
    check(&queue, Rgba8Unorm, [3, 7]);
    check(&queue, Rgba8Srgb, [2, 4]);
    check(&queue, Rgba16Float, [8, 2]);
    check(&queue, ImageFormat::B8G8R8A8_UNORM, [8, 4]);
}

fn volumes_and_lines_are_sampled_as_on_the_host(env: &Env) {
    let queue = env.queue();
    check(&queue, R32Float, [16]);
    check(&queue, R32Float, [1]);
    check(&queue, R32Float, [2, 4, 8]);
    check(&queue, R32Float, [5]);
    check(&queue, R32Float, [3, 5, 2]);
}

/// Samples of an image of any format by all samplers, which one launch makes: a row of it is of one sampler. `is_right` gets the sampler, and what
/// a kernel and the host see. Any such function goes with the same kernel.
fn check_all_samplers<V: PixelData + Default + Debug, const D: usize>(
    queue: &Queue,
    image: &SampledImage<D>,
    places: &[Vec<[f32; D]>],
    is_right: &dyn Fn(ImageSampler, V, V) -> bool,
) {
    let launch = [ImageSampler::ALL.len(), places[0].len()];
    let coordinates = Buffer::from_vec_nd(places.concat(), launch).unwrap();
    let seen = Buffer::from_vec_nd(vec![V::default(); coordinates.size()], launch).unwrap();
    let arguments = (image.read::<V>(), coordinates.read(), seen.write());
    let event = queue.parallel_for_with(launch, arguments, |item: Item<2>, (image, coordinates, seen)| {
        let sampler = ImageSampler::ALL[item.get(0)];
        seen.set(item, image.sample_with(item, sampler, coordinates.get(item)));
    });
    event.unwrap();
    let (seen, host) = (seen.to_vec().unwrap(), image.host_access::<V>().unwrap());
    for ((&sampler, places), seen) in ImageSampler::ALL.iter().zip(places).zip(seen.chunks(launch[1])) {
        for (&place, &seen) in places.iter().zip(seen) {
            let expected = host.sample_with(sampler, place);
            assert!(
                is_right(sampler, seen, expected),
                "{image:?} by {sampler:?} at {place:?}: {seen:?}, not {expected:?}"
            );
        }
    }
}

/// Makes the bytes of that many pixels.
type MakeBytes = fn(&mut Random, ImageFormat, usize) -> Vec<u8>;

/// Samples of a new image of that format.
fn check_format<V: PixelData + Default + Debug, const D: usize>(
    queue: &Queue,
    format: ImageFormat,
    make: MakeBytes,
    range: [usize; D],
    is_right: &dyn Fn(ImageSampler, V, V) -> bool,
) {
    let mut random = Random::new(4);
    let bytes = make(&mut random, format, range.iter().product());
    let image = SampledImage::from_vec(format, ImageSampler::NEAREST, bytes, range).unwrap();
    let mut eight = |&sampler| (0..8).map(|_| range.map(|n| inner_place(&mut random, sampler, n))).collect();
    let places: Vec<Vec<[f32; D]>> = ImageSampler::ALL.iter().map(&mut eight).collect();
    check_all_samplers(queue, &image, &places, is_right);
}

/// Samples of images of that format in one to three dimensions, with extents that are powers of two, and others.
fn check_dimensions<V: PixelData + Default + Debug>(
    queue: &Queue,
    format: ImageFormat,
    is_right: &dyn Fn(ImageSampler, V, V) -> bool,
) {
    [[8], [5]].into_iter().for_each(|range| check_format(queue, format, bytes_of, range, is_right));
    [[4, 8], [3, 7]].into_iter().for_each(|range| check_format(queue, format, bytes_of, range, is_right));
    [[2, 4, 2], [3, 5, 2]].into_iter().for_each(|range| check_format(queue, format, bytes_of, range, is_right));
}

fn images_of_every_format_are_sampled_as_on_the_host(env: &Env) {
    let queue = env.queue();
    for format in ImageFormat::all() {
        match format.channel_type() {
            t if t.is_signed() => check_dimensions::<Int4>(&queue, format, &|_, seen, expected| seen == expected),
            t if t.is_unsigned() => check_dimensions::<Uint4>(&queue, format, &|_, seen, expected| seen == expected),
            _ => check_dimensions::<Float4>(&queue, format, &|sampler, seen, expected| {
                is_as_on_the_host(format, sampler.filtering, seen, expected)
            }),
        }
    }
}

/// Extents are powers of two, so that all devices take the same pixels, those with a weight of zero among them.
fn pixels_that_are_no_numbers_are_sampled_as_on_the_host(env: &Env) {
    let queue = env.queue();
    for format in formats_in_floats() {
        let n_without = Cell::new(0);
        let is_right = |sampler: ImageSampler, seen: Float4, expected: Float4| {
            n_without.set(n_without.get() + usize::from(seen.to_array().iter().any(|x| x.is_nan())));
            have_numbers_alike(seen, expected, |seen, expected| {
                is_as_on_the_host(format, sampler.filtering, seen, expected)
            })
        };
        check_format(&queue, format, bytes_without_numbers, [8], &is_right);
        check_format(&queue, format, bytes_without_numbers, [4, 8], &is_right);
        check_format(&queue, format, bytes_without_numbers, [2, 4, 2], &is_right);
        assert!(n_without.get() > 50, "{format}: {} samples are no numbers", n_without.get());
    }
}

/// Extents are no powers of two: coordinates and what follows from them are rounded.
fn strict_samples_have_the_bits_of_the_host(env: &Env) {
    fn check<const D: usize>(queue: &Queue, format: ImageFormat, range: [usize; D]) {
        let mut random = Random::new(6);
        let bytes = bytes_of(&mut random, format, range.iter().product());
        let image = SampledImage::from_vec(format, ImageSampler::NEAREST, bytes, range).unwrap();
        let launch = [ImageSampler::ALL.len(), 8];
        let samplers = ImageSampler::ALL.iter().flat_map(|&sampler| [sampler; 8]);
        let places: Vec<[f32; D]> = samplers.map(|sampler| range.map(|n| place(&mut random, sampler, n))).collect();
        let coordinates = Buffer::from_slice_nd(&places, launch).unwrap();
        let seen = Buffer::from_vec_nd(vec![Float4::splat(9.0); places.len()], launch).unwrap();
        let submitted = queue.submit(|cg| {
            let image = cg.access_sampled::<Float4, _, _>(&image);
            let (coordinates, seen) = (cg.access(&coordinates, Read), cg.access(&seen, Write));
            cg.parallel_for(
                launch,
                float::strict(move |item: Item<2>| {
                    let sampler = ImageSampler::ALL[item.get(0)];
                    seen.set(item, image.sample_with(item, sampler, coordinates.get(item)));
                }),
            )
        });
        submitted.unwrap();
        let (seen, host) = (seen.to_vec().unwrap(), image.host_access::<Float4>().unwrap());
        for (i, (place, seen)) in places.into_iter().zip(seen).enumerate() {
            let sampler = ImageSampler::ALL[i / launch[1]];
            let expected = host.sample_with(sampler, place);
            let bits = |pixel: Float4| pixel.to_array().map(f32::to_bits);
            assert_eq!(bits(seen), bits(expected), "{format} by {sampler:?} at {place:?}: {seen}, not {expected}");
        }
    }
    let queue = env.queue();
    for format in ImageFormat::all().filter(|format| format.channel_type().is_float()) {
        check(&queue, format, [5]);
        check(&queue, format, [3, 7]);
        check(&queue, format, [3, 5, 2]);
    }
}

fn the_far_end_of_the_widest_image_is_sampled(env: &Env) {
    const N: usize = (1 << 23) - 1;
    let (format, n) = (R8Unorm.format(), N as f32);
    let image =
        SampledImage::from_vec(format, ImageSampler::LINEAR, (0..N).map(|i| (i % 251) as u8).collect(), N).unwrap();
    // Whole and half pixels are the most that floats tell apart there.
    let pixels = [n - 0.5, n - 1.0, n - 1.5, n, n + 0.5, -0.5, 0.5, 2.0 * n];
    let parts = [1.0f32.next_down(), 1.0, 1.0f32.next_up(), 1.0 - 1e-6, 0.5, -1e-7, 2.0, -1.0];
    let places_of = |sampler: &ImageSampler| {
        let is_normalized = sampler.coordinates == CoordinateMode::Normalized;
        (if is_normalized { parts } else { pixels }).map(|place| [place]).to_vec()
    };
    let places: Vec<_> = ImageSampler::ALL.iter().map(places_of).collect();
    check_all_samplers::<Float4, 1>(&env.queue(), &image, &places, &|sampler, seen, expected| {
        is_as_on_the_host(format, sampler.filtering, seen, expected)
    });
    // The host's last pixels are the right ones.
    let host = image.host_access::<Float4>().unwrap();
    let level = |i: usize| (i % 251) as f32 / 255.0;
    assert_eq!(host.sample(n - 0.5)[0], level(N - 1));
    assert!((host.sample(n - 1.0)[0] - 0.5 * (level(N - 2) + level(N - 1))).abs() < 1e-6);
    assert_eq!(host.sample_with(ImageSampler::NEAREST, n - 1.0)[0], level(N - 1));
    assert_eq!(host.sample_with(ImageSampler::NEAREST.normalized(), 1.0f32.next_down())[0], level(N - 1));
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
