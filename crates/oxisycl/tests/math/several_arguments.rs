//! Functions of several arguments.

use oxisycl::math;
use oxisycl::prelude::*;
use oxisycl_builtins::{double, exact, single};

use crate::inputs;
use crate::measure::{Real, Report, Worst, worst};
use crate::on_devices::{devices, has_double, mapped};

/// A function of two numbers.
struct Binary<T> {
    name: &'static str,
    limit: f64,
    reference: fn(f64, f64) -> f64,
    library: Option<fn(T, T) -> T>,
    on_device: fn(&Queue, &[[T; 2]]) -> Vec<T>,
}

fn powr(x: f64, y: f64) -> f64 {
    let is_limit = (x == 0.0 || x.is_infinite()) && y == 0.0 || x == 1.0 && y.is_infinite();
    if x < 0.0 || x.is_nan() || y.is_nan() || is_limit { f64::NAN } else { pow(x.abs(), y) }
}

fn pow(x: f64, y: f64) -> f64 {
    // `pxfm` is wrong where results are subnormal, and for a few special arguments; the platform's function is within 0.6 ULP.
    let result = if y == 0.0 { 1.0 } else { pxfm::f_pow(x, y) };
    if result.is_normal() { result } else { x.powf(y) }
}

fn fdim(x: f64, y: f64) -> f64 {
    if x <= y { 0.0 } else { x - y }
}

fn hypot(x: f64, y: f64) -> f64 {
    if x.is_infinite() || y.is_infinite() { f64::INFINITY } else { pxfm::f_hypot(x, y) }
}

macro_rules! table {
    ($table:ident, $float:ident, $library:ident; $($name:ident $limit:literal $reference:expr $(, $native:ident)?;)*) => {
        const $table: &[Binary<$float>] = &[$(Binary {
            name: stringify!($name),
            limit: $limit as f64,
            reference: $reference,
            library: table!(@ $library $name $($native)?),
            on_device: |queue, inputs| mapped(queue, inputs, |[x, y]: [$float; 2]| math::$name(x, y)),
        }),*];
    };
    (@ $library:ident $name:ident) => { Some($library::$name) };
    (@ $library:ident $name:ident exact) => { Some(exact::$library::$name) };
    (@ $library:ident $name:ident native) => { None };
}

table! {
    SINGLE, f32, single;
    atan2 6 pxfm::f_atan2;
    atan2pi 6 pxfm::f_atan2pi;
    // Of the difference, which is rounded once.
    fdim 0.5 fdim, exact;
    fmax 0 f64::max, native;
    fmin 0 f64::min, native;
    fmod 0 |x, y| x % y, exact;
    hypot 4 hypot;
    pow 16 pow;
    powr 16 powr;
    remainder 0 libm::remainder, exact;
}

table! {
    DOUBLE, f64, double;
    atan2 6 pxfm::f_atan2;
    atan2pi 6 pxfm::f_atan2pi;
    fdim 0 fdim, exact;
    fmax 0 f64::max, native;
    fmin 0 f64::min, native;
    fmod 0 |x, y| x % y, exact;
    hypot 4 hypot;
    pow 16 pow;
    powr 16 powr;
    remainder 0 libm::remainder, exact;
}

impl<T: Real> Binary<T> {
    fn judge(&self, inputs: &[[T; 2]], results: &[T]) -> Worst {
        worst(results.len(), |position| {
            let [x, y] = inputs[position];
            let expected = (self.reference)(x.into(), y.into());
            (format!("{x:e}, {y:e}"), results[position], expected, expected)
        })
    }

    fn test_library(&self, inputs: &[[T; 2]], report: &mut Report) {
        let Some(library) = self.library else { return };
        let results: Vec<_> = inputs.iter().map(|&[x, y]| library(x, y)).collect();
        report.add("library", self.name, self.limit, &self.judge(inputs, &results));
    }
}

#[test]
fn f32_functions_of_two_arguments_are_within_their_limits() {
    let inputs = inputs::single_pairs(inputs::n_inputs() / 2);
    let (mut report, devices) = (Report::default(), devices());
    for function in SINGLE {
        function.test_library(&inputs, &mut report);
        for (name, queue) in &devices {
            report.add(
                name,
                function.name,
                function.limit,
                &function.judge(&inputs, &(function.on_device)(queue, &inputs)),
            );
        }
    }
    report.end();
}

#[test]
fn f64_functions_of_two_arguments_are_within_their_limits() {
    let inputs = inputs::double_pairs(inputs::n_inputs() / 2);
    let (mut report, devices) = (Report::default(), devices());
    for function in DOUBLE {
        function.test_library(&inputs, &mut report);
        for (name, queue) in devices.iter().filter(|device| has_double(device)) {
            report.add(
                name,
                function.name,
                function.limit,
                &function.judge(&inputs, &(function.on_device)(queue, &inputs)),
            );
        }
    }
    report.end();
}

/// `value` to the power of `n` divided by `x`, less 1, without the error of rounding: the product is a sum of two numbers.
fn relative_rest(value: f64, n: u32, x: f64) -> f64 {
    let (mut high, mut low) = (value, 0.0_f64);
    for _ in 1..n {
        let product = high * value;
        low = low.mul_add(value, high.mul_add(value, -product));
        high = product;
    }
    ((high - x) + low) / x
}

#[test]
fn roots_and_integer_powers_are_within_their_limits() {
    let n = inputs::n_inputs() / 4;
    let (mut report, devices) = (Report::default(), devices());
    let (single_inputs, double_inputs) = (inputs::single(n), inputs::double(n));
    for exponent in [1, 2, 3, 5, 7, -1, -2, -3, 10, 31, -100, 1001, 16_777_217, i32::MAX, i32::MIN, 0] {
        let expected = |x: f32| if exponent == 0 { 1.0 } else { pow(x.into(), exponent.into()) };
        let judge = |results: &[f32]| {
            worst(results.len(), |i| {
                let expected = expected(single_inputs[i]);
                (format!("{:e}, {exponent}", single_inputs[i]), results[i], expected, expected)
            })
        };
        let results: Vec<_> = single_inputs.iter().map(|&x| single::pown(x, exponent)).collect();
        report.add("library", "pown", 16.0, &judge(&results));
        for (name, queue) in &devices {
            report.add(name, "pown", 16.0, &judge(&mapped(queue, &single_inputs, move |x| math::pown(x, exponent))));
        }
        let judge = |results: &[f64]| {
            worst(results.len(), |i| {
                let expected = pow(double_inputs[i], exponent.into());
                (format!("{:e}, {exponent}", double_inputs[i]), results[i], expected, expected)
            })
        };
        for (name, queue) in devices.iter().filter(|device| has_double(device)) {
            report.add(
                name,
                "pown f64",
                16.0,
                &judge(&mapped(queue, &double_inputs, move |x| math::pown(x, exponent))),
            );
        }
    }
    for degree in [1, 2, 3, 4, 5, 7, -1, -2, -3, 10, 31, 1001, i32::MAX, i32::MIN, 0] {
        // The exponent is rounded to f64, which is nothing beside f32.
        let judge = |results: &[f32]| {
            worst(results.len(), |i| {
                let x = f64::from(single_inputs[i]);
                let is_odd = degree & 1 == 1;
                let expected = if degree == 0 || x.is_nan() || x < 0.0 && !is_odd {
                    f64::NAN
                } else {
                    let root = pow(x.abs(), 1.0 / f64::from(degree));
                    if is_odd { root.copysign(x) } else { root }
                };
                (format!("{x:e}, {degree}"), results[i], expected, expected)
            })
        };
        let results: Vec<_> = single_inputs.iter().map(|&x| single::rootn(x, degree)).collect();
        report.add("library", "rootn", 16.0, &judge(&results));
        for (name, queue) in &devices {
            report.add(name, "rootn", 16.0, &judge(&mapped(queue, &single_inputs, move |x| math::rootn(x, degree))));
        }
    }
    // For f64 the power of the result tells its error.
    let positive: Vec<_> = double_inputs.iter().map(|x| x.abs()).filter(|x| (1.0e-290..1.0e290).contains(x)).collect();
    for degree in [2_u32, 3, 5, 7, 10, 31] {
        for (name, queue) in devices.iter().filter(|device| has_double(device)) {
            let results = mapped(queue, &positive, move |x| math::rootn(x, degree as i32));
            let judged = worst(results.len(), |i| {
                let (x, root) = (positive[i], results[i]);
                // To first order, and in units of the numbers for which they are smallest.
                let error = relative_rest(root, degree, x) / f64::from(degree) * 2.0_f64.powi(53);
                // The last place of 2^52 is 1.
                (format!("{x:e}, {degree}"), error.abs(), 0.0, 2.0_f64.powi(52))
            });
            report.add(name, "rootn f64", 16.0, &judged);
        }
    }
    report.end();
}

#[test]
fn fused_sums_are_rounded_once() {
    let pairs = inputs::single_pairs(inputs::n_inputs() / 8);
    let triples: Vec<_> = pairs.iter().zip(pairs.iter().rev()).map(|(&[a, b], &[c, _])| [a, b, c]).collect();
    // Sums that cancel.
    let triples: Vec<_> = triples.into_iter().flat_map(|[a, b, c]| [[a, b, c], [a, b, -(a * b)]]).collect();
    for (name, queue) in devices() {
        let results = mapped(&queue, &triples, |[a, b, c]: [f32; 3]| math::fma(a, b, c));
        for ([a, b, c], result) in triples.iter().zip(results) {
            let expected = a.mul_add(*b, *c);
            assert!(
                result.to_bits() == expected.to_bits() || result.is_nan() && expected.is_nan(),
                "{name}: {a:e} * {b:e} + {c:e} = {result:e}"
            );
        }
    }
}

#[test]
fn functions_with_several_results_agree_with_their_parts() {
    let inputs = inputs::single(inputs::n_inputs() / 8);
    let same = |found: f32, expected: f32| found.to_bits() == expected.to_bits() || found.is_nan() && expected.is_nan();
    for (name, queue) in devices() {
        let sincos = mapped(&queue, &inputs, |x: f32| <[f32; 2]>::from(math::sincos(x)));
        let parts = mapped(&queue, &inputs, |x: f32| [math::sin(x), math::cos(x)]);
        let modf = mapped(&queue, &inputs, |x: f32| <[f32; 2]>::from(math::modf(x)));
        let fract = mapped(&queue, &inputs, |x: f32| <[f32; 2]>::from(math::fract(x)));
        let frexp = mapped(&queue, &inputs, |x: f32| math::frexp(x));
        let remquo = mapped(&queue, &inputs, |x: f32| math::remquo(x, 0.75));
        let signs = mapped(&queue, &inputs, |x: f32| math::lgamma_r(x).1);
        for (i, &x) in inputs.iter().enumerate() {
            assert!(same(sincos[i][0], parts[i][0]) && same(sincos[i][1], parts[i][1]), "{name}: sincos({x:e})");
            let [rest, whole] = modf[i];
            assert!(
                same(whole, x.trunc())
                    && same(rest, if x.is_infinite() { 0.0_f32.copysign(x) } else { x.fract().copysign(x) }),
                "{name}: modf({x:e}) = {rest:e}"
            );
            let [rest, floor] = fract[i];
            let expected = if x.is_infinite() { 0.0_f32.copysign(x) } else { (x - x.floor()).min(1.0_f32.next_down()) };
            assert!(same(floor, x.floor()) && (rest == expected || x.is_nan()), "{name}: fract({x:e}) = {rest:e}");
            let (mantissa, exponent) = frexp[i];
            let is_plain = x == 0.0 || !x.is_finite();
            assert!(
                if is_plain { same(mantissa, x) && exponent == 0 } else { (mantissa, exponent) == libm::frexpf(x) },
                "{name}: frexp({x:e})"
            );
            let (rest, quotient) = libm::remquo(x.into(), 0.75);
            assert!(same(remquo[i].0, rest as f32) && remquo[i].1 & 7 == quotient & 7, "{name}: remquo({x:e}, 0.75)");
            let is_negative = x < 0.0 && x > -16_777_216.0 && x.floor() as i32 & 1 == 1;
            assert_eq!(signs[i], if is_negative { -1 } else { 1 }, "{name}: lgamma_r({x:e})");
        }
    }
}
