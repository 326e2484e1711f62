//! The same steps in plain Rust, and the comparison with what the devices made.
//!
//! Whole numbers must be equal. A device may round floating-point sums differently, for example with fused multiply-add. So a tolerance is
//! stated for these, and for everything made of them.

use std::ops::Range;
use std::time::{Duration, Instant};

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
    /// What the same steps took in plain Rust, on one thread.
    pub(crate) plain: Duration,
    pub(crate) blurred: f64,
    pub(crate) edges: f64,
    pub(crate) result: f64,
}

pub(crate) fn luminance([red, green, blue]: Rgb) -> u8 {
    ((54 * u32::from(red) + 183 * u32::from(green) + 19 * u32::from(blue) + 128) / 256) as u8
}

/// A row with its outer values repeated `n` times on each side.
fn padded<T: Copy>(row: &[T], n: usize) -> Vec<T> {
    let (first, last) = (row[0], row[row.len() - 1]);
    std::iter::repeat_n(first, n).chain(row.iter().copied()).chain(std::iter::repeat_n(last, n)).collect()
}

/// The sum of `weights[k]` times input `k`, element by element.
fn weighted<'i>(width: usize, weights: &[f32; TAPS], input: impl Fn(usize) -> &'i [f32]) -> Vec<f32> {
    let mut sums = vec![0.0; width];
    for (k, &weight) in weights.iter().enumerate() {
        for (sum, &tap) in sums.iter_mut().zip(input(k)) {
            *sum += weight * tap;
        }
    }
    sums
}

/// What the steps should make of `rows`. On one thread, as one would write it without a library.
fn expected(picture: &Picture, rows: &Range<usize>, curve: &[u8; LEVELS]) -> Expected {
    let (width, last_row) = (picture.width, picture.height - 1);
    let weights = gaussian();
    // The rows around, as far as there are any.
    let around = |rows: &Range<usize>, n: usize| rows.start.saturating_sub(n)..(rows.end + n).min(picture.height);
    let blurred_rows = around(rows, 1);
    let half_rows = around(&blurred_rows, RADIUS);
    let levels: Vec<u8> = picture.rows(half_rows.clone()).iter().map(|&pixel| luminance(pixel)).collect();
    let along_row = |levels: &[u8]| {
        let levels: Vec<f32> = padded(levels, RADIUS).into_iter().map(f32::from).collect();
        weighted(width, &weights, |k| &levels[k..])
    };
    let half: Vec<Vec<f32>> = levels.chunks(width).map(along_row).collect();
    let along_columns = |y: usize| {
        let row = |k: usize| (y + k).saturating_sub(RADIUS).min(last_row) - half_rows.start;
        weighted(width, &weights, |k| &half[row(k)])
    };
    let blurred: Vec<Vec<f32>> = blurred_rows.clone().map(|y| padded(&along_columns(y), 1)).collect();

    let n_pixels = rows.len() * width;
    let mut expected = Expected {
        luminance: levels[(rows.start - half_rows.start) * width..][..n_pixels].to_vec(),
        blurred: Vec::with_capacity(n_pixels),
        edges: Vec::with_capacity(n_pixels),
        result: Vec::with_capacity(n_pixels),
    };
    for ((y, pixels), levels) in
        rows.clone().zip(picture.rows(rows.clone()).chunks(width)).zip(expected.luminance.chunks(width))
    {
        let row = |y: usize| &blurred[y - blurred_rows.start][..width + 2];
        let (above, own, below) = (row(y.saturating_sub(1)), row(y), row((y + 1).min(last_row)));
        for x in 0..width {
            let right = above[x + 2] + 2.0 * own[x + 2] + below[x + 2];
            let left = above[x] + 2.0 * own[x] + below[x];
            let lower = below[x] + 2.0 * below[x + 1] + below[x + 2];
            let upper = above[x] + 2.0 * above[x + 1] + above[x + 2];
            let gradient = ((right - left) * (right - left) + (lower - upper) * (lower - upper)).sqrt();
            let edge = (EDGE_GAIN * gradient).min(255.0) as u8;
            let level = levels[x];
            let detail = f32::from(level) - own[x + 1];
            let target = f32::from(curve[usize::from(level)]) + detail * f32::from(edge) / (f32::from(edge) + 32.0);
            let factor = (target.max(0.0) + 1.0) / (f32::from(level) + 1.0);
            let tone = |channel: u8| (factor * (f32::from(channel) + 1.0) - 0.5).min(255.0) as u8;
            expected.blurred.push(own[x + 1]);
            expected.edges.push(edge);
            expected.result.push(pixels[x].map(tone));
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
        let start = Instant::now();
        let expected = picture.histogram();
        let expected_curve = curve(&expected);
        let plain = start.elapsed();
        compare("histogram", whole, &expected, histogram, 0.0, |a, b| a.abs_diff(b) as f64)?;
        compare("curve", whole, &expected_curve, found, 0.0, level_difference)?;
        Ok(Self { plain, ..Self::default() })
    }

    /// What the steps should make of some rows.
    pub(crate) fn expected(&mut self, picture: &Picture, rows: &Range<usize>, curve: &[u8; LEVELS]) -> Expected {
        let start = Instant::now();
        let expected = expected(picture, rows, curve);
        self.plain += start.elapsed();
        expected
    }

    /// Compares the rows of a strip, which are those from `row` on in the picture, while its buffers begin with row `begin`.
    pub(crate) fn compare(
        &mut self,
        strip: &Strip,
        expected: &Expected,
        row: usize,
        begin: usize,
    ) -> Result<(), Failure> {
        let width = strip.luminance.range()[1];
        let (range, offset) = ([expected.luminance.len() / width, width], [row - begin, 0]);
        let place = format!("the rows from {row} on, {width} pixels each");
        let luminance = strip.luminance.host_access_range(Read, offset, range)?;
        let blurred = strip.blurred.host_access_range(Read, offset, range)?;
        let edges = strip.edges.host_access_range(Read, offset, range)?;
        let result = strip.result.host_access_range(Read, offset, range)?;
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
