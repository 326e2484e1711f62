//! Which pixels a coordinate means, and how they are mixed: the formulas of OpenCL C (section "Image addressing and filtering").
//!
//! Every coordinate has a meaning. One that is not a number lies before the image, or is 0 where the image repeats; so is an infinite one there.

use oxisycl_types::{AddressingMode, CoordinateMode, FilteringMode, ImageSampler};

use super::pixel::sealed::Data;

/// The two pixels around a coordinate along one dimension, and the weight of the second. A position outside of the extent is the border.
#[derive(Clone, Copy)]
struct Between {
    first: i32,
    second: i32,
    weight: f32,
}

/// The greatest integer that is not above `x`, which is far inside of what an `i32` can be.
#[inline(always)]
fn floor(x: f32) -> i32 {
    let whole = x as i32;
    if whole as f32 > x { whole - 1 } else { whole }
}

/// `x` between both ends. The lower end for what is not a number.
#[inline(always)]
fn bounded(x: f32, low: f32, high: f32) -> f32 {
    if x > low { if x < high { x } else { high } } else { low }
}

/// From where on floats are even integers. There a repeated image begins.
const EVEN: f32 = 16_777_216.0;

/// The coordinate in pixels, in the first of the images that repeat.
#[inline(always)]
fn in_pixels(sampler: ImageSampler, coordinate: f32, extent: i32) -> f32 {
    let n = extent as f32;
    let is_normalized = matches!(sampler.coordinates, CoordinateMode::Normalized);
    let part = if is_normalized { coordinate } else { coordinate / n };
    // False for what is not a number.
    let is_small = part > -EVEN && part < EVEN;
    match sampler.addressing {
        AddressingMode::Repeat => {
            let part = if is_small { part } else { 0.0 };
            (part - floor(part) as f32) * n
        }
        AddressingMode::MirroredRepeat => {
            let part = if is_small { part } else { 0.0 };
            // Of two nearest integers either will do: it lies at the other end of the same mirror.
            let nearest = floor(0.5 * part + 0.5);
            (part - 2.0 * nearest as f32).abs() * n
        }
        // One pixel beyond an end is as good as many.
        _ => bounded(if is_normalized { coordinate * n } else { coordinate }, -1.0, n + 1.0),
    }
}

/// The position that a coordinate lies in.
#[inline(always)]
fn nearest(sampler: ImageSampler, coordinate: f32, extent: i32) -> i32 {
    let at = floor(in_pixels(sampler, coordinate, extent));
    match sampler.addressing {
        // Rounding may lead to the end itself.
        AddressingMode::Repeat => {
            if at >= extent {
                at - extent
            } else {
                at
            }
        }
        AddressingMode::MirroredRepeat | AddressingMode::ClampToEdge => clamped(at, extent),
        AddressingMode::Clamp | AddressingMode::None => at,
    }
}

/// The positions that a coordinate lies between.
#[inline(always)]
fn between(sampler: ImageSampler, coordinate: f32, extent: i32) -> Between {
    let at = in_pixels(sampler, coordinate, extent) - 0.5;
    let first = floor(at);
    let (second, weight) = (first + 1, at - first as f32);
    let (first, second) = match sampler.addressing {
        AddressingMode::Repeat => {
            (if first < 0 { first + extent } else { first }, if second >= extent { second - extent } else { second })
        }
        AddressingMode::MirroredRepeat | AddressingMode::ClampToEdge => {
            (clamped(first, extent), clamped(second, extent))
        }
        AddressingMode::Clamp | AddressingMode::None => (first, second),
    };
    Between { first, second, weight }
}

#[inline(always)]
fn clamped(at: i32, extent: i32) -> i32 {
    if at < 0 {
        0
    } else if at < extent {
        at
    } else {
        extent - 1
    }
}

/// What a sampler reads. `fetch` gives the pixel at a position, or the border. Extents are from 1 to 2^30.
#[inline(always)]
pub(super) fn sample<V: Data, const D: usize>(
    sampler: ImageSampler,
    coordinates: [f32; D],
    extent: [i32; D],
    nearest_pixel: impl Fn([i32; D]) -> V,
    mixed_pixel: impl Fn([i32; D]) -> V::Mixed,
) -> V {
    if !V::MIXES || matches!(sampler.filtering, FilteringMode::Nearest) {
        return nearest_pixel(core::array::from_fn(|d| nearest(sampler, coordinates[d], extent[d])));
    }
    let axes: [Between; D] = core::array::from_fn(|d| between(sampler, coordinates[d], extent[d]));
    V::of_mixed(mixed::<V::Mixed, D>(&axes, &mixed_pixel))
}

/// The mixture along all dimensions, the last one first.
#[inline(always)]
fn mixed<P: Data, const D: usize>(axes: &[Between; D], pixel: &impl Fn([i32; D]) -> P) -> P {
    // The lowest bit of a corner's number is for the last dimension, x.
    let corner = |number: usize| {
        let at = |d: usize| if number >> (D - 1 - d) & 1 == 0 { axes[d].first } else { axes[d].second };
        pixel(core::array::from_fn(at))
    };
    let row = |number: usize| P::mix(corner(number), corner(number + 1), axes[D - 1].weight);
    match D {
        1 => row(0),
        2 => P::mix(row(0), row(2), axes[0].weight),
        _ => {
            let plane = |number: usize| P::mix(row(number), row(number + 2), axes[1].weight);
            P::mix(plane(0), plane(4), axes[0].weight)
        }
    }
}
