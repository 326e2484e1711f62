//! The same steps in plain Rust, pixel by pixel over the whole picture, and the comparison with what the devices made.
//!
//! Whole numbers must be equal. A device may round floating-point sums differently (for example with fused multiply-add), so for
//! these, and for what is made of them, a tolerance is stated.

use std::ops::Range;

use oxisycl::prelude::*;

use crate::failure::Failure;
use crate::picture::Picture;
use crate::steps::{EDGE_GAIN, LEVELS, RADIUS, Rgb, Strip, TAPS, gaussian};

/// Of the blurred luminance, in levels.
pub(crate) const BLUR_TOLERANCE: f64 = 0.001;
/// Of edges and result, in levels: where a sum lies just between two of them.
pub(crate) const LEVEL_TOLERANCE: f64 = 1.0;

/// What the steps should make of some rows.
pub(crate) struct Expected {
    luminance: Vec<u8>,
    blurred: Vec<f32>,
    edges: Vec<u8>,
    result: Vec<Rgb>,
}

/// What was found: the largest differences.
#[derive(Clone, Copy, Default)]
pub(crate) struct Check {
    pub(crate) n_pixels: usize,
    pub(crate) blurred: f64,
    pub(crate) edges: f64,
    pub(crate) result: f64,
}

pub(crate) fn luminance([red, green, blue]: Rgb) -> u8 {
    ((54 * u32::from(red) + 183 * u32::from(green) + 19 * u32::from(blue) + 128) / 256) as u8
}

/// Luminance and blur along the row, for one row of the picture; beyond the border, the nearest one.
fn blurred_row(picture: &Picture, y: isize, weights: &[f32; TAPS]) -> Vec<f32> {
    let y = y.clamp(0, picture.height as isize - 1) as usize;
    let levels: Vec<u8> = picture.rows(y..y + 1).iter().map(|&pixel| luminance(pixel)).collect();
    let last = levels.len() - 1;
    let tap = |x: usize, k: usize| weights[k] * f32::from(levels[(x + k).saturating_sub(RADIUS).min(last)]);
    (0..levels.len()).map(|x| (0..TAPS).map(|k| tap(x, k)).sum()).collect()
}

pub(crate) fn expected(picture: &Picture, rows: &Range<usize>, curve: &[u8; LEVELS]) -> Expected {
    let width = picture.width;
    let weights = gaussian();
    let (begin, end) = (rows.start as isize, rows.end as isize);
    // Row `i` of this is row `begin - 1 - RADIUS + i` of the picture; of `blurred`, row `begin - 1 + i`.
    let reach = RADIUS as isize;
    let half: Vec<Vec<f32>> = (begin - 1 - reach..end + 1 + reach).map(|y| blurred_row(picture, y, &weights)).collect();
    let blur = |y: usize| -> Vec<f32> {
        let sum = |x: usize| (0..TAPS).map(|k| weights[k] * half[y + k][x]).sum();
        (0..width).map(sum).collect()
    };
    let mut blurred: Vec<Vec<f32>> = (0..rows.len() + 2).map(blur).collect();
    // Beyond the picture, edges see the nearest row, not one that was blurred there.
    let n_blurred = blurred.len();
    if rows.start == 0 {
        blurred[0] = blurred[1].clone();
    }
    if rows.end == picture.height {
        blurred[n_blurred - 1] = blurred[n_blurred - 2].clone();
    }
    let n_pixels = rows.len() * width;
    let mut expected = Expected {
        luminance: picture.rows(rows.clone()).iter().map(|&pixel| luminance(pixel)).collect(),
        blurred: Vec::with_capacity(n_pixels),
        edges: Vec::with_capacity(n_pixels),
        result: Vec::with_capacity(n_pixels),
    };
    let pixels = picture.rows(rows.clone());
    for y in 0..rows.len() {
        for x in 0..width {
            let at = |dy: usize, dx: usize| blurred[y + dy][(x + dx).saturating_sub(1).min(width - 1)];
            let right = at(0, 2) + 2.0 * at(1, 2) + at(2, 2);
            let left = at(0, 0) + 2.0 * at(1, 0) + at(2, 0);
            let below = at(2, 0) + 2.0 * at(2, 1) + at(2, 2);
            let above = at(0, 0) + 2.0 * at(0, 1) + at(0, 2);
            let gradient = ((right - left) * (right - left) + (below - above) * (below - above)).sqrt();
            let edge = (EDGE_GAIN * gradient).min(255.0) as u8;
            let level = expected.luminance[y * width + x];
            let detail = f32::from(level) - at(1, 1);
            let target = f32::from(curve[usize::from(level)]) + detail * f32::from(edge) / (f32::from(edge) + 32.0);
            let factor = (target.max(0.0) + 1.0) / (f32::from(level) + 1.0);
            let tone = |channel: u8| (factor * (f32::from(channel) + 1.0) - 0.5).min(255.0) as u8;
            expected.blurred.push(at(1, 1));
            expected.edges.push(edge);
            expected.result.push(pixels[y * width + x].map(tone));
        }
    }
    expected
}

/// Histogram equalisation with a limit, and a quarter of the original level.
fn curve(histogram: &[u64; LEVELS]) -> Vec<u8> {
    let limit = histogram.iter().sum::<u64>() * 3 / 256 + 1;
    let above: u64 = histogram.iter().filter(|&&count| count > limit).map(|count| count - limit).sum();
    let clipped: Vec<u64> = histogram.iter().map(|&count| count.min(limit) + above / 256).collect();
    let total = clipped.iter().sum::<u64>().max(1);
    let middle = |level: usize| 2 * clipped[..level].iter().sum::<u64>() + clipped[level];
    (0..LEVELS).map(|level| ((level as u64 + 3 * (255 * middle(level) / (2 * total)) + 2) / 4) as u8).collect()
}

impl Check {
    /// Compares what concerns the picture as a whole.
    pub(crate) fn new(picture: &Picture, histogram: &[u64; LEVELS], found: &[u8; LEVELS]) -> Result<Self, Failure> {
        let whole = "the whole picture";
        compare("histogram", whole, &picture.histogram(), histogram, 0.0, |a, b| a.abs_diff(b) as f64)?;
        compare("curve", whole, &curve(histogram), found, 0.0, level_difference)?;
        Ok(Self::default())
    }

    /// Compares the rows of a strip, which are those from `row` on in the picture, while its buffers begin with row `begin`.
    pub(crate) fn compare(
        &mut self,
        strip: &Strip,
        expected: &Expected,
        row: usize,
        begin: usize,
    ) -> Result<(), Failure> {
        let width = strip.pixels.range()[1];
        let (range, offset) = ([expected.luminance.len() / width, width], [row - begin, 0]);
        let place = format!("the rows from {row} on, {width} pixels each");
        let luminance = strip.luminance.host_access_range(Read, range, offset)?;
        let blurred = strip.blurred.host_access_range(Read, range, offset)?;
        let edges = strip.edges.host_access_range(Read, range, offset)?;
        let result = strip.result.host_access_range(Read, range, offset)?;
        compare("luminance", &place, &expected.luminance, slice(&luminance), 0.0, level_difference)?;
        let float = |a: f32, b: f32| f64::from((a - b).abs());
        let blurred = compare("blur", &place, &expected.blurred, slice(&blurred), BLUR_TOLERANCE, float)?;
        let edges = compare("edges", &place, &expected.edges, slice(&edges), LEVEL_TOLERANCE, level_difference)?;
        let (found, wanted) = (slice(&result).as_flattened(), expected.result.as_flattened());
        let result = compare("tone mapping", &place, wanted, found, LEVEL_TOLERANCE, level_difference)?;
        self.n_pixels += expected.luminance.len();
        self.blurred = self.blurred.max(blurred);
        self.edges = self.edges.max(edges);
        self.result = self.result.max(result);
        Ok(())
    }
}

fn slice<T: DeviceCopyable>(accessor: &HostAccessor<T, 2, Read>) -> &[T] {
    accessor.to_slice().unwrap_or_default()
}

fn level_difference(a: u8, b: u8) -> f64 {
    f64::from(a.abs_diff(b))
}

/// The largest difference, or a failure if it is above the tolerance.
fn compare<T: Copy + std::fmt::Debug>(
    step: &str,
    place: &str,
    expected: &[T],
    found: &[T],
    tolerance: f64,
    difference: impl Fn(T, T) -> f64,
) -> Result<f64, Failure> {
    if expected.len() != found.len() {
        let lengths = format!("{} values are expected in {place}, found {}", expected.len(), found.len());
        return Err(Failure::new(format!("the check of step \"{step}\" failed: {lengths}")));
    }
    let mut largest = 0.0f64;
    for (i, (&wanted, &got)) in expected.iter().zip(found).enumerate() {
        let difference = difference(wanted, got);
        if difference > tolerance || difference.is_nan() {
            return Err(Failure::new(format!(
                "the check of step \"{step}\" failed: value {i} of {place} is {got:?}, expected {wanted:?} (tolerance {tolerance})"
            )));
        }
        largest = largest.max(difference);
    }
    Ok(largest)
}
