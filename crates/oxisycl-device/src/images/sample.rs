//! Which pixels a coordinate means, and how they are mixed: the formulas of OpenCL C (section "Image addressing and filtering").
//!
//! Every coordinate has a meaning. One that is not a number lies before the image, or is 0 where the image repeats; so is an infinite one there.

use oxisycl_types::{AddressingMode, CoordinateMode, FilteringMode, ImageSampler};

use super::pixel::sealed::Data;
use crate::vector::Float4;
use crate::{builtin, math};

/// A position along one dimension, and whether it is below the extent and not negative. Otherwise it is the border.
#[derive(Clone, Copy)]
pub(super) struct Position {
    pub(super) at: i32,
    pub(super) is_inside: bool,
}

/// What positions are before they are computed.
const NOWHERE: Position = Position { at: 0, is_inside: false };

/// The two pixels around a coordinate along one dimension, and the weight of the second.
#[derive(Clone, Copy)]
struct Between {
    first: Position,
    second: Position,
    weight: f32,
}

/// The greatest integer that is not above `x`, which is far inside of what an `i32` can be.
#[inline(always)]
fn floor(x: f32) -> i32 {
    if builtin::is_device_code() {
        return math::floor(x) as i32;
    }
    // The oldest processors have no instruction for it.
    let whole = x as i32;
    if whole as f32 > x { whole - 1 } else { whole }
}

/// `x` between both ends. The lower end for what is not a number.
#[inline(always)]
fn bounded(x: f32, low: f32, high: f32) -> f32 {
    if builtin::is_device_code() {
        // One instruction each.
        return x.max(low).min(high);
    }
    // One instruction each on most processors, in this order of operands.
    let at_least = if x > low { x } else { low };
    if at_least < high { at_least } else { high }
}

/// From where on floats are even integers. There a repeated image begins.
const EVEN: f32 = 16_777_216.0;

/// From where on a coordinate's floor does not fit in an `i32`.
const TOO_FAR: f32 = 2_147_483_648.0;

/// A coordinate in pixels: the position that it lies in, and how far behind its begin, from 0 to 1.
#[derive(Clone, Copy)]
struct Place {
    at: i32,
    part: f32,
}

impl Place {
    #[inline(always)]
    fn of(x: f32) -> Self {
        let at = floor(x);
        Self { at, part: x - at as f32 }
    }
}

/// What is left of `at` in a period of that many pixels. A quotient of floats would be rounded, and could lead to a neighbour.
#[inline(always)]
fn remainder(at: i32, period: u32) -> u32 {
    let period = if period == 0 { 1 } else { period };
    let rest = at.unsigned_abs() % period;
    if at < 0 && rest > 0 { period - rest } else { rest }
}

/// A coordinate that counts in pixels, in the first of the images that repeat.
#[inline(always)]
fn repeated(coordinate: f32, extent: i32, is_mirrored: bool) -> Place {
    // False for what is not a number.
    let is_near = coordinate > -TOO_FAR && coordinate < TOO_FAR;
    let Place { at, part } = Place::of(if is_near { coordinate } else { 0.0 });
    let n = extent as u32;
    if !is_mirrored {
        return Place { at: remainder(at, n) as i32, part };
    }
    let rest = remainder(at, 2 * n);
    if rest < n {
        Place { at: rest as i32, part }
    } else if part > 0.0 {
        Place { at: (2 * n - 1).wrapping_sub(rest) as i32, part: 1.0 - part }
    } else {
        Place { at: (2 * n).wrapping_sub(rest) as i32, part }
    }
}

/// Where a coordinate lies, in the first of the images that repeat.
#[inline(always)]
fn place(sampler: ImageSampler, coordinate: f32, extent: i32) -> Place {
    let n = extent as f32;
    let is_normalized = matches!(sampler.coordinates, CoordinateMode::Normalized);
    // False for what is not a number.
    let is_small = coordinate > -EVEN && coordinate < EVEN;
    let part = if is_small { coordinate } else { 0.0 };
    match sampler.addressing {
        AddressingMode::Repeat if is_normalized => Place::of((part - floor(part) as f32) * n),
        AddressingMode::MirroredRepeat if is_normalized => {
            // Of two nearest integers either will do: it lies at the other end of the same mirror.
            let nearest = floor(0.5 * part + 0.5);
            Place::of((part - 2.0 * nearest as f32).abs() * n)
        }
        AddressingMode::Repeat => repeated(coordinate, extent, false),
        AddressingMode::MirroredRepeat => repeated(coordinate, extent, true),
        _ => Place::of(near(sampler, coordinate, extent)),
    }
}

/// A coordinate in pixels of an image that does not repeat. One pixel beyond an end is as good as many.
#[inline(always)]
fn near(sampler: ImageSampler, coordinate: f32, extent: i32) -> f32 {
    let n = extent as f32;
    let is_normalized = matches!(sampler.coordinates, CoordinateMode::Normalized);
    bounded(if is_normalized { coordinate * n } else { coordinate }, -1.0, n + 1.0)
}

/// The position that a coordinate lies in.
#[inline(always)]
fn nearest(sampler: ImageSampler, coordinate: f32, extent: i32) -> Position {
    inside(sampler.addressing, place(sampler, coordinate, extent).at, extent)
}

/// The positions that a coordinate lies between.
#[inline(always)]
fn between(sampler: ImageSampler, coordinate: f32, extent: i32) -> Between {
    let (first, weight) = if matches!(sampler.addressing, AddressingMode::Repeat | AddressingMode::MirroredRepeat) {
        let Place { at, part } = place(sampler, coordinate, extent);
        if part < 0.5 { (at - 1, part + 0.5) } else { (at, part - 0.5) }
    } else {
        // Exact inside of the image.
        let Place { at, part } = Place::of(near(sampler, coordinate, extent) - 0.5);
        (at, part)
    };
    let [first, second] = [first, first + 1].map(|at| inside(sampler.addressing, at, extent));
    Between { first, second, weight }
}

/// A position at most two pixels beyond an end, as one of the image or of its border.
#[inline(always)]
fn inside(addressing: AddressingMode, at: i32, extent: i32) -> Position {
    if matches!(addressing, AddressingMode::MirroredRepeat | AddressingMode::ClampToEdge) {
        return Position { at: clamped(at, extent), is_inside: true };
    }
    let at = match addressing {
        AddressingMode::Repeat if at < 0 => at + extent,
        // Rounding may lead to the end itself.
        AddressingMode::Repeat if at >= extent => at - extent,
        _ => at,
    };
    Position { at, is_inside: (at as u32) < extent as u32 }
}

/// The position that is nearest to `at`, of an extent of at least 1.
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

/// What a sampler reads: a pixel, or what pixels were mixed to. Extents are from 1 to 2^30.
#[inline(always)]
pub(super) fn sample<V: Data, const D: usize>(
    sampler: ImageSampler,
    coordinates: [f32; D],
    extent: [i32; D],
    pixel: impl Fn([Position; D]) -> V,
    pixel_to_mix: impl Fn([Position; D]) -> Float4,
    decode_mixed: impl Fn(Float4) -> Float4,
) -> V {
    // Loops and no closures: in those, a constant sampler is one that was captured, and LLVM would not inline a closure for all of them.
    if !V::MIXES || matches!(sampler.filtering, FilteringMode::Nearest) {
        let mut at = [NOWHERE; D];
        for (d, at) in at.iter_mut().enumerate() {
            *at = nearest(sampler, coordinates[d], extent[d]);
        }
        return pixel(at);
    }
    let mut axes = [Between { first: NOWHERE, second: NOWHERE, weight: 0.0 }; D];
    for (d, axis) in axes.iter_mut().enumerate() {
        *axis = between(sampler, coordinates[d], extent[d]);
    }
    V::of_mixed(decode_mixed(mixed::<D>(&axes, &pixel_to_mix)))
}

/// One pixel and `weight` of the other one.
#[inline(always)]
fn mix(one: Float4, other: Float4, weight: f32) -> Float4 {
    let rest = 1.0 - weight;
    Float4::from_fn(|i| rest * one[i] + weight * other[i])
}

/// The mixture along all dimensions, the last one first.
#[inline(always)]
fn mixed<const D: usize>(axes: &[Between; D], pixel: &impl Fn([Position; D]) -> Float4) -> Float4 {
    match D {
        1 => row(axes, pixel, 0),
        2 => plane(axes, pixel, 0),
        _ => mix(plane(axes, pixel, 0), plane(axes, pixel, 4), axes[0].weight),
    }
}

/// A corner of the pixels that a place lies between. The lowest bit of its number is for the last dimension, x.
#[inline(always)]
fn corner<const D: usize>(axes: &[Between; D], pixel: &impl Fn([Position; D]) -> Float4, number: usize) -> Float4 {
    let at = |d: usize| if number >> (D - 1 - d) & 1 == 0 { axes[d].first } else { axes[d].second };
    pixel(core::array::from_fn(at))
}

/// The mixture of a corner and the next one along x.
#[inline(always)]
fn row<const D: usize>(axes: &[Between; D], pixel: &impl Fn([Position; D]) -> Float4, first: usize) -> Float4 {
    mix(corner(axes, pixel, first), corner(axes, pixel, first + 1), axes[D - 1].weight)
}

/// The mixture of four corners along y and x.
#[inline(always)]
fn plane<const D: usize>(axes: &[Between; D], pixel: &impl Fn([Position; D]) -> Float4, first: usize) -> Float4 {
    mix(row(axes, pixel, first), row(axes, pixel, first + 2), axes[D.saturating_sub(2)].weight)
}

#[cfg(test)]
pub(super) fn positions(sampler: ImageSampler, coordinate: f32, extent: i32) -> [i32; 3] {
    let Between { first, second, .. } = between(sampler, coordinate, extent);
    [nearest(sampler, coordinate, extent), first, second].map(|position| position.at)
}
