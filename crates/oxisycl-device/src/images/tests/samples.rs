//! Every format, addressing mode and filter between pixels and beyond the edges.

use oxisycl_types::{
    AddressingMode, ChannelOrder, ChannelType, CoordinateMode, FilteringMode, ImageFormat, ImageSampler,
};

use super::super::sample::positions;
use super::model::{random_bytes, sample};
use super::{Memory, Random};
use crate::vector::{Float4, Int4, Uint4};

/// Coordinates of an image: `exact` ones are integers, or multiples of an eighth of a pixel.
fn coordinate(random: &mut Random, sampler: ImageSampler, extent: usize, is_exact: bool) -> f32 {
    let n = extent as f64;
    let place = random.float(-10.5 * n - 1.0, 10.5 * n + 1.0);
    let steps = if random.next().is_multiple_of(2) { 8.0 } else { 1.0 };
    let place = if is_exact { (place * steps).round() / steps } else { place };
    (if sampler.coordinates == CoordinateMode::Normalized { place / n } else { place }) as f32
}

fn check<const D: usize>(random: &mut Random, format: ImageFormat, extent: [usize; D], n_samples: usize) {
    let n_pixels = extent.iter().product();
    let bytes = random_bytes(random, format, n_pixels);
    let mut memory = Memory::new(format, &bytes);
    let pixels = memory.pixels(extent);
    let largest = extent.iter().max().map_or(0.0, |&n| n as f64);
    let range = if matches!(format.channel_type(), ChannelType::Float16 | ChannelType::Float32) { 4.0 } else { 1.0 };
    for &sampler in ImageSampler::ALL {
        // Divisions by powers of two are exact, and so is all that follows. Coordinates in pixels are exact in any extent.
        let is_exact =
            sampler.coordinates == CoordinateMode::Unnormalized || extent.iter().all(|n| n.is_power_of_two());
        // A normalized coordinate has a part in a rounded product.
        let of_product = if is_exact { 0.0 } else { 4.0 * largest * f64::from(f32::EPSILON) };
        let tolerance = 1e-5 + of_product;
        for _ in 0..n_samples {
            let coordinates = extent.map(|n| coordinate(random, sampler, n, is_exact));
            let (expected, distance) = sample(format, &bytes, &extent, sampler, &coordinates);
            // SAFETY: the memory lives, and nothing writes it.
            let read = unsafe {
                match format.channel_type() {
                    t if t.is_signed() => pixels.sample::<Int4>(sampler, coordinates).to_array().map(f64::from),
                    t if t.is_unsigned() => pixels.sample::<Uint4>(sampler, coordinates).to_array().map(f64::from),
                    _ => pixels.sample::<Float4>(sampler, coordinates).to_array().map(f64::from),
                }
            };
            let is_nearest = sampler.filtering == FilteringMode::Nearest || !format.channel_type().is_float();
            if is_nearest && !is_exact && distance < 1e-4 + tolerance {
                continue;
            }
            let is_right = |(x, y): (f64, f64)| match () {
                () if !is_nearest => (x - y).abs() <= tolerance * range,
                () if format.order().is_srgb() => (x - y).abs() < 1e-7,
                () if format.channel_type().is_float() => x == f64::from(y as f32),
                () => x == y,
            };
            assert!(
                read.into_iter().zip(expected).all(is_right),
                "{format} {extent:?} {sampler:?} at {coordinates:?}: {read:?}, not {expected:?}"
            );
        }
    }
}

#[test]
fn every_format_addressing_mode_and_filter_gives_what_the_model_gives() {
    let n_samples = if cfg!(miri) { 1 } else { 12 };
    let mut random = Random(5);
    for format in ImageFormat::all().step_by(if cfg!(miri) { 17 } else { 1 }) {
        check(&mut random, format, [8], n_samples);
        check(&mut random, format, [5], n_samples);
        check(&mut random, format, [4, 8], n_samples);
        check(&mut random, format, [3, 7], n_samples);
        check(&mut random, format, [2, 4, 4], n_samples);
        check(&mut random, format, [3, 5, 2], n_samples);
    }
}

#[test]
fn coordinates_in_pixels_are_exact_in_images_of_any_width() {
    let n_samples = if cfg!(miri) { 1 } else { 500 };
    let mut random = Random(7);
    for format in [ImageFormat::R8G8B8A8_UNORM, ImageFormat::R16G16B16A16_SINT] {
        check(&mut random, format, [1000], n_samples);
        check(&mut random, format, [1920], n_samples);
        check(&mut random, format, [3, 1920], n_samples);
    }
    let sampler = ImageSampler { addressing: AddressingMode::Repeat, ..ImageSampler::NEAREST };
    for (extent, coordinate, at) in [(1920, 63.0, 63), (5, 7.0, 2), (5, -1e-9, 4), (1920, -1e-9, 1919)] {
        assert_eq!(positions(sampler, coordinate, extent)[0], at, "{coordinate} of {extent}");
    }
}

#[test]
fn repeated_images_have_no_border_however_wide_they_are() {
    for extent in [1, 5, 1920, (1 << 23) - 1, 1 << 24, (1 << 24) + 2, 1 << 30] {
        let inside = 0..extent;
        for &sampler in ImageSampler::ALL {
            if !matches!(sampler.addressing, AddressingMode::Repeat | AddressingMode::MirroredRepeat) {
                continue;
            }
            let n = if sampler.coordinates == CoordinateMode::Normalized { 1.0 } else { extent as f32 };
            for place in [0.0, -1e-9, 1e-9, 0.5, 1.0, 1.0_f32.next_down(), 1.0_f32.next_up(), 2.0, -1.0, -3.5] {
                let at = positions(sampler, place * n, extent);
                assert!(at.iter().all(|at| inside.contains(at)), "{sampler:?} {place} of {extent}: {at:?}");
            }
        }
    }
}

#[test]
fn images_of_one_pixel_have_it_everywhere_but_beyond_their_border() {
    let n_samples = if cfg!(miri) { 1 } else { 200 };
    let mut random = Random(6);
    for format in [ImageFormat::R8G8B8A8_UNORM, ImageFormat::R32G32B32A32_SFLOAT, ImageFormat::R16G16B16A16_SINT] {
        check(&mut random, format, [1], n_samples);
        check(&mut random, format, [1, 1], n_samples);
        check(&mut random, format, [1, 1, 1], n_samples);
        check(&mut random, format, [1, 4], n_samples);
    }
}

#[test]
fn coordinates_that_are_no_numbers_or_infinite_have_a_meaning() {
    let format = ImageFormat::new(ChannelOrder::R, ChannelType::Float32).unwrap();
    let levels = [10.0_f32, 20.0, 30.0, 40.0];
    let mut memory = Memory::new(format, bytemuck::cast_slice(&levels));
    let pixels = memory.pixels([4]);
    let huge = [f32::MAX, f32::MIN, 1e30, -3e9, 16_777_216.0, -16_777_216.0];
    for &sampler in ImageSampler::ALL {
        // SAFETY: the memory lives, and nothing writes it.
        let red = |x: f32| unsafe { pixels.sample::<Float4>(sampler, [x]) }[0];
        let is_linear = sampler.filtering == FilteringMode::Linear;
        let (low, high) = match sampler.addressing {
            // Between the last and the first pixel, where 0 is.
            AddressingMode::Repeat if is_linear => (25.0, 25.0),
            AddressingMode::Repeat | AddressingMode::MirroredRepeat => (10.0, 10.0),
            AddressingMode::ClampToEdge => (10.0, 40.0),
            AddressingMode::Clamp | AddressingMode::None => (0.0, 0.0),
        };
        assert_eq!((red(f32::NAN), red(f32::NEG_INFINITY), red(f32::INFINITY)), (low, low, high), "{sampler:?}");
        for x in huge {
            assert!((0.0..=40.0).contains(&red(x)), "{sampler:?} {x}");
        }
        if !matches!(sampler.addressing, AddressingMode::Repeat | AddressingMode::MirroredRepeat) {
            assert_eq!((red(f32::MIN), red(f32::MAX)), (low, high), "{sampler:?}");
        }
    }
}

#[test]
fn a_mixture_of_equal_pixels_is_within_one_unit_and_weights_are_those_of_the_centres() {
    let format = ImageFormat::R32G32B32A32_SFLOAT;
    let mut memory = Memory::new(format, bytemuck::cast_slice(&[0.0_f32, 0.0, 1.0, 2.0, 8.0, 0.0, 1.0, 4.0]));
    let pixels = memory.pixels([2]);
    // SAFETY: the memory lives, and nothing writes it.
    let sample = |x: f32| unsafe { pixels.sample::<Float4>(ImageSampler::LINEAR, [x]) }.to_array();
    assert_eq!(sample(0.5), [0.0, 0.0, 1.0, 2.0]);
    assert_eq!(sample(0.75), [2.0, 0.0, 1.0, 2.5]);
    assert_eq!(sample(1.5), [8.0, 0.0, 1.0, 4.0]);
}
