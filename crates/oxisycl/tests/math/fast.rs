//! What the policy `fast` promises of functions and operations of `f32`, on every device; the book's chapter on mathematics has the table.

use oxisycl::float::fast;
use oxisycl::math;
use oxisycl::prelude::*;

use crate::measure::ulp;
use crate::on_devices::devices;

/// A function, its exact result, and the largest difference that is allowed at an argument and a result.
struct Promise {
    name: &'static str,
    arguments: (f32, f32),
    exact: fn(f64) -> f64,
    allowed: fn(f64, f64) -> f64,
}

const EXPONENT: f32 = 1.7;
const DIVISOR: f32 = 3.0e37;

/// One result for each promise. Functions of one kernel, since each has the flags of the whole.
fn results(x: f32) -> [f32; 15] {
    let even = if x as i32 % 2 == 0 { 2.0 } else { 4.0 };
    [
        x.sin(),
        x.cos(),
        x.tan(),
        x.exp(),
        x.exp2(),
        math::exp10(x),
        x.ln(),
        x.log2(),
        x.log10(),
        x.powf(EXPONENT),
        (-x).powf(even + 1.0),
        x.sqrt(),
        math::rsqrt(x),
        DIVISOR / x,
        math::sincos(x).1,
    ]
}

const LARGE: (f32, f32) = (1.0e-30, 1.0e30);

const PROMISES: [Promise; 15] = {
    const fn promise(
        name: &'static str,
        arguments: (f32, f32),
        exact: fn(f64) -> f64,
        allowed: fn(f64, f64) -> f64,
    ) -> Promise {
        Promise { name, arguments, exact, allowed }
    }
    const PI: f32 = std::f32::consts::PI;
    [
        promise("sin", (-PI, PI), f64::sin, |_, _| CIRCULAR),
        promise("cos", (-PI, PI), f64::cos, |_, _| CIRCULAR),
        promise("tan", (-1.0, 1.0), f64::tan, |_, y| 4.0 * CIRCULAR * (1.0 + y.abs())),
        promise("exp", (-80.0, 80.0), f64::exp, |x, y| (3.0 + 2.0 * x.abs()) * ulp::<f32>(y)),
        promise("exp2", (-120.0, 120.0), f64::exp2, |x, y| (3.0 + 2.0 * x.abs()) * ulp::<f32>(y)),
        promise("exp10", (-37.0, 37.0), |x| 10.0_f64.powf(x), |x, y| (3.0 + 4.0 * x.abs()) * ulp::<f32>(y)),
        promise("log", LARGE, f64::ln, logarithm),
        promise("log2", LARGE, f64::log2, logarithm),
        promise("log10", LARGE, f64::log10, logarithm),
        promise("pow", (1.0e-20, 1.0e20), |x| x.powf(EXPONENT as f64), |x, y| power(x, EXPONENT as f64, y)),
        promise(
            "pow of a negative number",
            (1.0, 50.0),
            |x| -x.powf(if x as i32 % 2 == 0 { 3.0 } else { 5.0 }),
            |x, y| power(x, 5.0, y),
        ),
        promise("sqrt", LARGE, f64::sqrt, |_, y| 3.0 * ulp::<f32>(y)),
        promise("rsqrt", LARGE, |x| 1.0 / x.sqrt(), |_, y| 3.0 * ulp::<f32>(y)),
        promise("quotient", (1.0, 8.0e37), |x| DIVISOR as f64 / x, |_, y| 2.5 * ulp::<f32>(y)),
        promise("sincos", (-PI, PI), f64::cos, |_, _| CIRCULAR),
    ]
};

/// 2^-20.
const CIRCULAR: f64 = 1.0 / 1_048_576.0;

fn logarithm(x: f64, y: f64) -> f64 {
    if (0.5..=2.0).contains(&x) { CIRCULAR / 2.0 } else { 3.0 * ulp::<f32>(y) }
}

fn power(base: f64, exponent: f64, result: f64) -> f64 {
    CIRCULAR / 2.0 * (1.0 + exponent * base.log2().abs().max(1.0)) * result.abs()
}

/// Arguments that are spread as their bits are, or evenly if they have both signs.
fn arguments((first, last): (f32, f32)) -> Vec<f32> {
    const N: u32 = 20_000;
    if first > 0.0 {
        let (first, last) = (first.to_bits(), last.to_bits());
        let step = (last - first) / N;
        (0..=N).map(|i| f32::from_bits(first + i * step)).collect()
    } else {
        (0..=N).map(|i| (first + (last - first) * (i as f32 / N as f32)).clamp(first, last)).collect()
    }
}

#[test]
fn fast_kernels_are_as_precise_as_the_book_says() {
    for (name, queue) in devices() {
        for (position, promise) in PROMISES.iter().enumerate() {
            let inputs = arguments(promise.arguments);
            let source = Buffer::from_slice(&inputs).expect("a buffer");
            let target = Buffer::from_vec(vec![0.0_f32; inputs.len()]).expect("a buffer");
            let event = queue.submit(|cg| {
                let (source, target) = (cg.access(&source, Read), cg.access(&target, Write));
                cg.parallel_for(inputs.len(), fast(move |item| target.set(item, results(source.get(item))[position])))
            });
            event.expect("the kernel is submitted").wait().expect("the kernel runs");
            let mut worst = 0.0;
            for (x, found) in inputs.iter().zip(target.into_vec().expect("results")) {
                let (argument, found) = (f64::from(*x), f64::from(found));
                let expected = (promise.exact)(argument);
                let part = (found - expected).abs() / (promise.allowed)(argument, expected);
                assert!(part <= 1.0, "{name}, {}({x:e}): {found:e}, expected {expected:e}", promise.name);
                worst = f64::max(worst, part);
            }
            println!("{name}: fast {} has at most {worst:.3} of the error that is allowed", promise.name);
        }
    }
}
