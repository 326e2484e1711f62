//! Errors in units in the last place, and the worst of many.

use std::fmt::{Debug, Display, LowerExp};

/// A type whose functions are measured.
pub(crate) trait Real:
    Copy + Debug + LowerExp + PartialEq + Default + Send + Sync + Into<f64> + 'static
{
    /// Explicit bits of the mantissa, and the exponent of the least normal number.
    const MANTISSA: i32;
    const LEAST: i32;
    const LARGEST: f64;
    fn of(value: f64) -> Self;
}

impl Real for f32 {
    const MANTISSA: i32 = 23;
    const LEAST: i32 = -126;
    const LARGEST: f64 = f32::MAX as f64;

    fn of(value: f64) -> Self {
        value as Self
    }
}

impl Real for f64 {
    const MANTISSA: i32 = 52;
    const LEAST: i32 = -1022;
    const LARGEST: f64 = f64::MAX;

    fn of(value: f64) -> Self {
        value
    }
}

/// 2 to the power of `n`, also where it is subnormal.
fn power_of_two(n: i32) -> f64 {
    if n < -1022 { f64::from_bits(1 << (n + 1074).max(0)) } else { f64::from_bits(((n + 1023) as u64) << 52) }
}

/// The unit in the last place of numbers as large as `value`.
pub(crate) fn ulp<T: Real>(value: f64) -> f64 {
    let exponent = (value.abs().to_bits() >> 52) as i32 - 1023;
    power_of_two(exponent.clamp(T::LEAST, 1 - T::LEAST) - T::MANTISSA)
}

/// The error in units in the last place of `at`. Infinite if one is a number and the other is not.
pub(crate) fn error<T: Real>(found: T, expected: f64, at: f64) -> f64 {
    let found: f64 = found.into();
    if expected.is_nan() || found.is_nan() {
        return if expected.is_nan() && found.is_nan() { 0.0 } else { f64::INFINITY };
    }
    if expected == found {
        return 0.0;
    }
    let expected_rounded: f64 = T::of(expected).into();
    if expected.is_infinite() || expected_rounded.is_infinite() && found.is_infinite() {
        return if expected_rounded == found { 0.0 } else { f64::INFINITY };
    }
    // The number above the largest one stands for infinity.
    let unit = ulp::<T>(at);
    let found = if found.is_infinite() { (T::LARGEST / unit + 1.0).copysign(found) } else { found / unit };
    (found - expected / unit).abs()
}

/// The largest error that was found.
#[derive(Clone, Debug)]
pub(crate) struct Worst {
    pub(crate) error: f64,
    pub(crate) n_inputs: u64,
    /// Input, result and expected result.
    pub(crate) place: String,
}

impl Worst {
    pub(crate) fn none() -> Self {
        Self { error: 0.0, n_inputs: 0, place: String::new() }
    }

    pub(crate) fn join(self, other: Self) -> Self {
        let n_inputs = self.n_inputs + other.n_inputs;
        Self { n_inputs, ..if other.error > self.error { other } else { self } }
    }
}

/// The largest error of the results for `n` inputs, computed by all processors. `judge` gives input, result, expected result and the
/// magnitude whose unit in the last place counts.
pub(crate) fn worst<T: Real, I: Display>(n: usize, judge: impl Fn(usize) -> (I, T, f64, f64) + Sync) -> Worst {
    let n_threads = std::thread::available_parallelism().map_or(1, |n| n.get());
    let part = n.div_ceil(n_threads).max(1);
    let examine = |range: std::ops::Range<usize>| {
        let mut worst = Worst { n_inputs: range.len() as u64, ..Worst::none() };
        for position in range {
            let (input, found, expected, at) = judge(position);
            let error = error(found, expected, at);
            if error > worst.error {
                worst.error = error;
                worst.place = format!("f({input}) = {found:e}, expected {expected:e}");
            }
        }
        worst
    };
    std::thread::scope(|scope| {
        let parts = (0..n).step_by(part).map(|start| start..n.min(start + part));
        let threads: Vec<_> = parts.map(|range| scope.spawn(|| examine(range))).collect();
        threads
            .into_iter()
            .fold(Worst::none(), |all, thread| all.join(thread.join().expect("no panic in a comparison")))
    })
}

/// Prints the largest errors, and fails in the end if one is above its limit.
#[derive(Default)]
pub(crate) struct Report {
    failures: Vec<String>,
}

impl Report {
    pub(crate) fn add(&mut self, device: &str, name: &str, limit: f64, worst: &Worst) {
        let Worst { error, n_inputs, place } = worst;
        println!("{device} {name}: {error:.3} of {limit} ULP, {n_inputs} inputs; {place}");
        if *error > limit || *n_inputs == 0 {
            self.failures.push(format!("{device} {name}: {error} ULP, the limit is {limit}; {place}"));
        }
    }

    pub(crate) fn end(self) {
        assert!(self.failures.is_empty(), "{} beyond their limits:\n{}", self.failures.len(), self.failures.join("\n"));
    }
}

#[test]
fn errors_count_units_in_the_last_place() {
    assert_eq!(error(1.0_f32, 1.0, 1.0), 0.0);
    assert_eq!(error(1.0_f32, 1.0 + f64::from(f32::EPSILON) * 1.5, 1.0), 1.5);
    assert_eq!(error(f32::from_bits(3), 0.0, 0.0), 3.0);
    assert_eq!(error(f64::from_bits(3), 0.0, 0.0), 3.0);
    assert_eq!(error(f32::INFINITY, 1.0e39, 1.0e39), 0.0);
    assert_eq!(error(f32::INFINITY, f64::from(f32::MAX), f64::from(f32::MAX)), 1.0);
    assert_eq!(error(f32::NAN, 1.0, 1.0), f64::INFINITY);
    assert_eq!(error(1.0_f32, f64::INFINITY, f64::INFINITY), f64::INFINITY);
}
