//! Functions of one argument.

use std::fmt::{self, Display, LowerExp};

use oxisycl::math;
use oxisycl::prelude::*;
use oxisycl_builtins::{double, exact, single};

use crate::measure::{Real, Report, worst};
use crate::on_devices::{devices, has_double, mapped, of_bits};
use crate::{inputs, measure};

/// A function of one argument.
pub(crate) struct Unary<T> {
    pub(crate) name: &'static str,
    /// Of the specification, in ULP.
    pub(crate) limit: f64,
    pub(crate) reference: fn(f64) -> f64,
    /// Whose unit in the last place counts; the reference's result but where parts cancel.
    pub(crate) at: fn(f64, f64) -> f64,
    /// The device library's function, as native code; `None` if a device has an instruction for it.
    pub(crate) library: Option<fn(T) -> T>,
    pub(crate) on_device: fn(&Queue, &[T]) -> Vec<T>,
    /// Calls the function for successive bit patterns, as many as there is room for.
    pub(crate) of_bits: fn(&Queue, u32, &Buffer<f32, 1>),
}

/// `pxfm` is wrong for subnormal results.
fn exp10(x: f64) -> f64 {
    if x < -307.0 && x > -400.0 { pxfm::f_exp10(x + 20.0) * 1.0e-20 } else { pxfm::f_exp10(x) }
}

/// `pxfm` is wrong for huge arguments.
fn lgamma(x: f64) -> f64 {
    if x > 1.0e17 { x * (x.ln() - 1.0) } else { pxfm::f_lgamma(x) }
}

/// Near its zeros the function is a difference of large numbers.
fn parts_of_lgamma(x: f64, result: f64) -> f64 {
    if x < 0.0 { result.abs().max(pxfm::f_lgamma(-x)).max(1.0) } else { result }
}

/// Half-integers are poles of the tangent; OpenCL C and C23 say which infinity is meant. At integers C23 says which zero.
fn tanpi(x: f64) -> f64 {
    let rest = (x.abs() % 2.0).copysign(x);
    match rest.abs() {
        0.5 => f64::INFINITY.copysign(x),
        1.5 => -f64::INFINITY.copysign(x),
        _ => pxfm::f_tanpi(x),
    }
}

fn tgamma(x: f64) -> f64 {
    if x == 0.0 {
        1.0 / x
    } else if x < 0.0 && x.floor() == x {
        f64::NAN
    } else {
        pxfm::f_tgamma(x)
    }
}

macro_rules! table {
    ($table:ident, $float:ident, $library:ident, $of_bits:expr; $($name:ident $limit:literal $reference:expr $(=> $at:expr)? $(, $native:ident)?;)*) => {
        /// All of them, with the limit of the table for this type.
        pub(crate) const $table: &[Unary<$float>] = &[$(Unary {
            name: stringify!($name),
            limit: $limit as f64,
            reference: $reference,
            at: table!(@ at $($at)?),
            library: table!(@ library $library $name $($native)?),
            on_device: |queue, inputs| mapped(queue, inputs, math::$name::<$float>),
            of_bits: table!(@ bits $float $name),
        }),*];
    };
    (@ at) => { |_, result| result };
    (@ at $at:expr) => { $at };
    (@ library $library:ident $name:ident) => { Some($library::$name) };
    (@ library $library:ident $name:ident exact) => { Some(exact::$library::$name) };
    (@ library $library:ident $name:ident native) => { None };
    (@ bits f32 $name:ident) => { |queue, first, results| of_bits(queue, first, results, math::$name::<f32>) };
    (@ bits f64 $name:ident) => { |_, _, _| unreachable!("f64 has too many bit patterns") };
}

table! {
    SINGLE, f32, single, of_bits;
    acos 4 f64::acos;
    acosh 4 pxfm::f_acosh;
    acospi 5 pxfm::f_acospi;
    asin 4 f64::asin;
    asinh 4 pxfm::f_asinh;
    asinpi 5 pxfm::f_asinpi;
    atan 5 f64::atan;
    atanh 5 pxfm::f_atanh;
    atanpi 5 pxfm::f_atanpi;
    cbrt 2 f64::cbrt;
    ceil 0 f64::ceil, native;
    cos 4 f64::cos;
    cosh 4 f64::cosh;
    cospi 4 pxfm::f_cospi;
    erf 16 pxfm::f_erf;
    erfc 16 pxfm::f_erfc;
    exp 3 f64::exp;
    exp10 3 pxfm::f_exp10;
    exp2 3 f64::exp2;
    expm1 3 f64::exp_m1;
    fabs 0 f64::abs, native;
    floor 0 f64::floor, native;
    lgamma 8 lgamma => parts_of_lgamma;
    log 3 f64::ln;
    log10 3 f64::log10;
    log1p 2 f64::ln_1p;
    log2 3 f64::log2;
    logb 0 exact::double::logb, exact;
    rint 0 f64::round_ties_even, native;
    round 0 f64::round, native;
    rsqrt 2 |x| 1.0 / x.sqrt();
    sin 4 f64::sin;
    sinh 4 f64::sinh;
    sinpi 4 pxfm::f_sinpi;
    // Correctly rounded.
    sqrt 0.5 f64::sqrt, native;
    tan 5 f64::tan;
    tanh 5 f64::tanh;
    tanpi 6 tanpi;
    tgamma 16 tgamma;
    trunc 0 f64::trunc, native;
}

table! {
    DOUBLE, f64, double, ();
    acos 4 pxfm::f_acos;
    acosh 4 pxfm::f_acosh;
    acospi 5 pxfm::f_acospi;
    asin 4 pxfm::f_asin;
    asinh 4 pxfm::f_asinh;
    asinpi 5 pxfm::f_asinpi;
    atan 5 pxfm::f_atan;
    atanh 5 pxfm::f_atanh;
    atanpi 5 pxfm::f_atanpi;
    cbrt 2 pxfm::f_cbrt;
    ceil 0 f64::ceil, native;
    cos 4 pxfm::f_cos;
    cosh 4 pxfm::f_cosh;
    cospi 4 pxfm::f_cospi;
    erf 16 pxfm::f_erf;
    erfc 16 pxfm::f_erfc;
    exp 3 pxfm::f_exp;
    exp10 3 exp10;
    exp2 3 pxfm::f_exp2;
    expm1 3 pxfm::f_expm1;
    fabs 0 f64::abs, native;
    floor 0 f64::floor, native;
    lgamma 8 lgamma => parts_of_lgamma;
    log 3 pxfm::f_log;
    log10 3 pxfm::f_log10;
    log1p 2 pxfm::f_log1p;
    log2 3 pxfm::f_log2;
    rint 0 f64::round_ties_even, native;
    round 0 f64::round, native;
    rsqrt 2 pxfm::f_rsqrt;
    sin 4 pxfm::f_sin;
    sinh 4 pxfm::f_sinh;
    sinpi 4 pxfm::f_sinpi;
    sqrt 0 f64::sqrt, native;
    tan 5 pxfm::f_tan;
    tanh 5 pxfm::f_tanh;
    tanpi 6 tanpi;
    tgamma 16 tgamma;
    trunc 0 f64::trunc, native;
}

/// Shown as `{:e}` shows it, where it is shown at all.
struct Scientific<T>(T);

impl<T: LowerExp> Display for Scientific<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        LowerExp::fmt(&self.0, f)
    }
}

impl<T: Real + LowerExp> Unary<T> {
    /// The largest error of the results.
    pub(crate) fn judge(&self, input: impl Fn(usize) -> T + Sync, results: &[T]) -> measure::Worst {
        worst(results.len(), |position| {
            let x = input(position);
            let expected = (self.reference)(x.into());
            (Scientific(x), results[position], expected, (self.at)(x.into(), expected))
        })
    }
}

#[test]
fn f32_functions_of_the_device_library_are_within_their_limits_natively() {
    let inputs = inputs::single(inputs::n_inputs());
    let mut report = Report::default();
    for function in SINGLE {
        let Some(library) = function.library else { continue };
        let results: Vec<_> = inputs.iter().map(|&x| library(x)).collect();
        report.add("library", function.name, function.limit, &function.judge(|i| inputs[i], &results));
    }
    report.end();
}

#[test]
fn f64_functions_of_the_device_library_are_within_their_limits_natively() {
    let inputs = inputs::double(inputs::n_inputs());
    let mut report = Report::default();
    for function in DOUBLE {
        let Some(library) = function.library else { continue };
        let results: Vec<_> = inputs.iter().map(|&x| library(x)).collect();
        report.add("library", function.name, function.limit, &function.judge(|i| inputs[i], &results));
    }
    report.end();
}

#[test]
fn f32_functions_in_kernels_are_within_their_limits() {
    let inputs = inputs::single(inputs::n_inputs());
    let mut report = Report::default();
    for (name, queue) in devices() {
        for function in SINGLE {
            let results = (function.on_device)(&queue, &inputs);
            report.add(&name, function.name, function.limit, &function.judge(|i| inputs[i], &results));
        }
    }
    report.end();
}

#[test]
fn f64_functions_in_kernels_are_within_their_limits() {
    let inputs = inputs::double(inputs::n_inputs());
    let mut report = Report::default();
    for (name, queue) in devices().into_iter().filter(has_double) {
        for function in DOUBLE {
            let results = (function.on_device)(&queue, &inputs);
            report.add(&name, function.name, function.limit, &function.judge(|i| inputs[i], &results));
        }
    }
    report.end();
}
