//! `half::f16` and `half::bf16`: conversions that devices have instructions for, and arithmetic.

use half::{bf16, f16};

use oxisycl::images::{ChannelType, PixelFormat, R16Float, R32Float, Rgba8Unorm};
use oxisycl::math;
use oxisycl::prelude::*;
use oxisycl::vector::{Float4, Half4};

use crate::harness::{Env, fraction, kernels, scramble};
use crate::outcome::Tolerance;

kernels![
    halves_are_converted,
    halves_are_added_and_multiplied,
    halves_are_compared_and_classified,
    brain_floats_are_converted,
    brain_floats_are_added_and_multiplied,
    halves_in_buffers,
    functions_of_halves,
    functions_of_halves_that_are_rounded_once,
    channels_of_pixels_are_halves,
    pixels_are_read_sampled_and_written_as_halves,
];

/// Each of the 65536 halves is met by a few of its neighbours' bits.
fn any(i: usize) -> f16 {
    f16::from_bits(scramble(i) as u16)
}

fn halves_are_converted(env: &Env) {
    env.compare(|i| {
        let wide = f32::from_bits((scramble(i) & 0x8FFF_FFFF).wrapping_add(0x3000_0000));
        let exact = any(i).to_f32();
        let near = f16::from_f32(fraction(i) * 1e-6 - 3e-7);
        (
            (f16::from_f32(wide), f16::from_f64(f64::from(wide) * 1.000_01)),
            exact,
            any(i).to_f64(),
            near,
            f16::from_f32(1e9),
        )
    });
}

fn halves_are_added_and_multiplied(env: &Env) {
    env.compare(|i| {
        let (a, b) = (any(i), any(i + 1));
        let c = f16::from_f32(fraction(i) * 4.0 - 2.0);
        ((a + b, a - c), a * c, a / b, -(c * c))
    });
}

fn halves_are_compared_and_classified(env: &Env) {
    env.compare(|i| {
        let (a, b) = (any(i), any(i + 1));
        let flags = [a < b, a >= b, a == a, a.is_nan(), a.is_finite(), a.is_normal(), a.is_sign_negative()];
        (flags, a.total_cmp(&b) as i8, a.partial_cmp(&b).map_or(9, |order| order as i8), a.copysign(f16::ONE))
    });
}

fn brain_floats_are_converted(env: &Env) {
    env.compare(|i| {
        let wide = f32::from_bits(scramble(i));
        let brain = bf16::from_f32(wide);
        (brain, brain.to_f32(), bf16::from_f64(f64::from(wide)), bf16::from_bits(scramble(i + 1) as u16).to_f64())
    });
}

fn brain_floats_are_added_and_multiplied(env: &Env) {
    env.compare(|i| {
        let (a, b) = (bf16::from_bits(scramble(i) as u16), bf16::from_f32(fraction(i) * 9.0));
        ((a + b, a - b), a * b, a / b, a < b)
    });
}

fn halves_in_buffers(env: &Env) {
    let input: Vec<f16> = (0..777).map(|i| f16::from_f32(fraction(i) * 100.0)).collect();
    env.compare_over(Tolerance::Exact, input, |all, i| {
        let near = &all[i.saturating_sub(3)..(i + 4).min(all.len())];
        let sum: f32 = near.iter().map(|half| half.to_f32()).sum();
        let largest = near.iter().copied().fold(f16::NEG_INFINITY, f16::max);
        (f16::from_f32(sum), largest, near.iter().map(|half| u32::from(half.to_bits())).sum::<u32>())
    });
}

/// The functions of SYCL. `f16` differs from device to device by a unit in the last place.
fn functions_of_halves(env: &Env) {
    env.compare_within(Tolerance::Approximate(1e-3), |i| {
        let x = f16::from_f32(fraction(i) * 2.0 - 1.0);
        let y = f16::from_f32(fraction(i + 1) * 8.0 + 0.01);
        let (sin, cos) = math::sincos(y);
        (
            [math::asin(x), math::atan(x), math::cbrt(x), math::cospi(x), math::erf(x), math::exp(x), math::tanh(x)],
            [math::lgamma(y), math::log2(y), math::log1p(y), math::rsqrt(y), sin, cos],
            [
                math::pow(y, x),
                math::hypot(x, y),
                math::atan2(x, y),
                math::pown(x, 3),
                math::mix(x, y, f16::from_f32(0.5)),
            ],
            math::length([x, y, x]),
        )
    });
}

fn functions_of_halves_that_are_rounded_once(env: &Env) {
    env.compare(|i| {
        let (a, b, c) = (any(i), any(i + 1), any(i + 2));
        let (mantissa, exponent) = math::frexp(a);
        (
            [math::sqrt(a), math::fma(a, b, c), math::fmod(a, b), math::rint(a), math::nextafter(a, b), mantissa],
            (exponent, math::isfinite(a), math::signbit(a)),
            math::ldexp(a, (scramble(i) % 64) as i32 - 32),
        )
    });
}

/// Each half is read from a pixel, and floats of all sizes become others.
fn channels_of_pixels_are_halves(env: &Env) {
    const RANGE: [usize; 2] = [256, 256];
    let value = |i: usize| {
        let bits = scramble(i);
        // A few of any size, and such about the least and the largest half.
        let least = if i % 2 == 0 { 0x3300_0000 } else { 0x3800_0000 };
        f32::from_bits(if i % 8 == 0 { bits } else { least + (bits & 0x8FFF_FFFF) })
    };
    let from = UnsampledImage::from_vec(R16Float, (0..=u16::MAX).collect::<Vec<u16>>(), RANGE).expect("an image");
    let to = UnsampledImage::uninit(R16Float, RANGE).expect("an image");
    let floats = Buffer::from_vec_nd(vec![0.0_f32; 1 << 16], RANGE).expect("a buffer");
    env.finish(env.queue().submit(|cg| {
        let (from, to) = (cg.access_image::<Float4, _, _, _>(&from, Read), cg.access_image(&to, Write.no_init()));
        let floats = cg.access(&floats, Write);
        cg.parallel_for(RANGE, move |item: Item<2>| {
            floats.set(item, from.get(item).x());
            to.set(item, Float4::splat(value(item.linear_id())));
        })
    }));
    let expected: Vec<f32> = (0..=u16::MAX).map(|bits| f16::from_bits(bits).to_f32()).collect();
    env.agree(&floats.to_vec().expect("the floats"), &expected, Tolerance::Exact);
    let found: Vec<f16> = to.to_vec::<u16>().expect("the pixels").into_iter().map(f16::from_bits).collect();
    let expected: Vec<f16> = (0..1 << 16).map(|i| f16::from_f32(value(i))).collect();
    env.agree(&found, &expected, Tolerance::Exact);
}

/// Pixels as halves are those as floats, rounded. The positions begin before the image and end behind it.
fn pixels_are_read_sampled_and_written_as_halves(env: &Env) {
    fn check<F: PixelFormat>(env: &Env, format: F) {
        const RANGE: [usize; 2] = [5, 9];
        const LAUNCH: [usize; 2] = [8, 12];
        let n_bytes = RANGE[0] * RANGE[1] * format.format().pixel_size();
        let bytes: Vec<u8> = match format.format().channel_type() {
            ChannelType::Float16 => (0..n_bytes / 2).flat_map(|i| f16::from_f32(fraction(i)).to_ne_bytes()).collect(),
            ChannelType::Float32 => (0..RANGE[0] * RANGE[1]).flat_map(|i| fraction(i).to_ne_bytes()).collect(),
            _ => (0..n_bytes).map(|i| scramble(i) as u8).collect(),
        };
        let image = SampledImage::from_vec(format, ImageSampler::LINEAR, bytes, RANGE).expect("an image");
        let made = || UnsampledImage::uninit(format, LAUNCH).expect("an image");
        let (of_halves, of_floats) = (made(), made());
        let halves = Buffer::<[f16; 12], 2>::uninit(LAUNCH).expect("a buffer");
        let floats = Buffer::<[f32; 12], 2>::uninit(LAUNCH).expect("a buffer");
        env.finish(env.queue().submit(|cg| {
            let as_halves = cg.access_image::<Half4, _, _, _>(image.unsampled(), Read);
            let as_floats = cg.access_image::<Float4, _, _, _>(image.unsampled(), Read);
            let (half_samples, samples) =
                (cg.access_sampled::<Half4, _, _>(&image), cg.access_sampled::<Float4, _, _>(&image));
            let (to_halves, to_floats) =
                (cg.access_image(&of_halves, Write.no_init()), cg.access_image(&of_floats, Write.no_init()));
            let (halves, floats) = (cg.access(&halves, Write.no_init()), cg.access(&floats, Write.no_init()));
            cg.parallel_for(LAUNCH, move |item: Item<2>| {
                let position = [item.get(0) as isize - 1, item.get(1) as isize - 1];
                let place = [0.75 * item.get(0) as f32 - 0.5, 0.875 * item.get(1) as f32 - 1.0];
                let half = [
                    as_halves.read(item, position),
                    half_samples.sample_with(item, ImageSampler::NEAREST, place),
                    half_samples.sample_with(item, ImageSampler::LINEAR, place),
                ];
                let float = [
                    as_floats.read(item, position),
                    samples.sample_with(item, ImageSampler::NEAREST, place),
                    samples.sample_with(item, ImageSampler::LINEAR, place),
                ];
                halves.set(item, core::array::from_fn(|i| half[i / 4][i % 4]));
                floats.set(item, core::array::from_fn(|i| float[i / 4][i % 4]));
                to_halves.set(item, half[2]);
                to_floats.set(item, Float4::from_fn(|i| half[2][i].to_f32()));
            })
        }));
        let expected = floats.to_vec().expect("the floats").into_iter().flatten().map(f16::from_f32);
        let found: Vec<f16> = halves.to_vec().expect("the halves").into_iter().flatten().collect();
        env.agree(&found, &expected.collect::<Vec<_>>(), Tolerance::Exact);
        let [found, expected] = [of_halves, of_floats].map(|image| image.to_vec::<u8>().expect("the bytes"));
        env.agree(&found, &expected, Tolerance::Exact);
    }
    check(env, Rgba8Unorm);
    check(env, R32Float);
    check(env, R16Float);
}
