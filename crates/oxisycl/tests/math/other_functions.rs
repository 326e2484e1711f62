//! Compares integer, common, geometric and relational functions in kernels with their results on the host. Unit tests of `oxisycl-device`
//! check the host's results against the definitions. The imprecise functions are tested here as well.

use oxisycl::math::{self, half_precision, native};

use crate::inputs;
use crate::measure::{Report, error, worst};
use crate::on_devices::{devices, mapped};

macro_rules! integers {
    ($(#[test] fn $test:ident() $type:ident;)*) => { $(
        #[test]
        fn $test() {
            let edges = [0, 1, 2, 7, $type::MAX, $type::MIN, $type::MAX - 1, $type::MIN + 1, $type::MAX / 2];
            let mut inputs: Vec<[$type; 3]> = (0..20_000)
                .map(|i| [3 * i, 3 * i + 1, 3 * i + 2].map(|i| (inputs::scattered(i) >> (i % 3 * 7)) as $type))
                .collect();
            for x in edges {
                for y in edges {
                    inputs.extend(edges.map(|z| [x, y, z]));
                }
            }
            let f = |[x, y, z]: [$type; 3]| {
                (
                    [math::abs(x), math::add_sat(x, y), math::sub_sat(x, y), math::hadd(x, y), math::rhadd(x, y), math::mul_hi(x, y)],
                    [math::mad_hi(x, y, z), math::mad_sat(x, y, z), math::rotate(x, y), math::max(x, y), math::clamp(x, 3, 100)],
                    [math::clz(x), math::ctz(x), math::popcount(x)],
                    math::abs_diff(x, y) as u64,
                )
            };
            for (name, queue) in devices() {
                for (input, found) in inputs.iter().zip(mapped(&queue, &inputs, f)) {
                    assert_eq!(found, f(*input), "{name}: {input:?}");
                }
            }
        }
    )* };
}

integers! {
    #[test]
    fn functions_of_i8_give_what_they_give_on_the_host() i8;
    #[test]
    fn functions_of_i16_give_what_they_give_on_the_host() i16;
    #[test]
    fn functions_of_i32_give_what_they_give_on_the_host() i32;
    #[test]
    fn functions_of_i64_give_what_they_give_on_the_host() i64;
    #[test]
    fn functions_of_u8_give_what_they_give_on_the_host() u8;
    #[test]
    fn functions_of_u16_give_what_they_give_on_the_host() u16;
    #[test]
    fn functions_of_u32_give_what_they_give_on_the_host() u32;
    #[test]
    fn functions_of_u64_give_what_they_give_on_the_host() u64;
}

/// Compares numbers that differ by contraction at most.
fn is_near(found: f32, expected: f32) -> bool {
    error(found, expected.into(), expected.into()) <= 8.0
}

#[test]
fn common_and_geometric_functions_give_what_they_give_on_the_host() {
    let numbers = inputs::single(4096);
    let inputs: Vec<[f32; 4]> =
        numbers.windows(4).map(|w| [w[0], w[1], w[2], w[3]]).filter(|w| w.iter().all(|x| x.is_finite())).collect();
    let f = |[x, y, z, w]: [f32; 4]| {
        [
            math::clamp(x, -2.0, 3.0),
            math::degrees(x),
            math::radians(x),
            math::sign(x),
            math::step(x, y),
            math::max(x, y),
            math::length([x, y, z]),
            math::length([x]),
            math::normalize([x, y, z, w])[1],
            math::smoothstep(0.0, 1.0, x),
            f32::from(u8::from(math::isless(x, y))),
            f32::from(u8::from(math::isunordered(x, y))),
            f32::from(u8::from(math::signbit(x))),
            math::bitselect(x, y, z),
            math::select(x, y, z > w),
            f32::from(u8::from(math::any([x > y, z > w]))),
        ]
    };
    for (name, queue) in devices() {
        for (input, found) in inputs.iter().zip(mapped(&queue, &inputs, f)) {
            for (part, (found, expected)) in found.into_iter().zip(f(*input)).enumerate() {
                assert!(
                    is_near(found, expected),
                    "{name}, {input:?}, function {part}: {found:e}, expected {expected:e}"
                );
            }
        }
    }
}

#[test]
fn lengths_neither_overflow_nor_underflow() {
    let inputs: Vec<[f32; 3]> = inputs::single(30_000).chunks_exact(3).map(|w| [w[0], w[1], w[2]]).collect();
    let mut report = Report::default();
    let exact = |p: [f32; 3]| {
        if p.iter().any(|x| x.is_infinite()) {
            f64::INFINITY
        } else {
            p.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>().sqrt()
        }
    };
    for (name, queue) in devices() {
        let results = mapped(&queue, &inputs, math::length::<[f32; 3]>);
        let judged =
            worst(results.len(), |i| (format!("{:?}", inputs[i]), results[i], exact(inputs[i]), exact(inputs[i])));
        // 2.5 and half a ULP per square, by the table of OpenCL C.
        report.add(&name, "length", 5.5, &judged);
    }
    report.end();
}

#[test]
fn imprecise_functions_are_near_enough() {
    // Where all of them are defined, and instructions keep what they promise.
    let inputs: Vec<f32> = (1..100_000).map(|i| i as f32 * 3.0e-5).collect();
    let f = |x: f32| {
        [
            [native::sin(x), half_precision::sin(x)],
            [native::cos(x), half_precision::cos(x)],
            [native::tan(x * 0.25), half_precision::tan(x * 0.25)],
            [native::exp(x), half_precision::exp(x)],
            [native::exp2(x), half_precision::exp2(x)],
            [native::exp10(x), half_precision::exp10(x)],
            [native::log(x), half_precision::log(x)],
            [native::log2(x), half_precision::log2(x)],
            [native::log10(x), half_precision::log10(x)],
            [native::sqrt(x), half_precision::sqrt(x)],
            [native::rsqrt(x), half_precision::rsqrt(x)],
            [native::recip(x), half_precision::recip(x)],
            [native::divide(x, 0.7), half_precision::divide(x, 0.7)],
            [native::powr(x, 1.7), half_precision::powr(x, 1.7)],
            [math::fast_length([x, 1.0, 2.0]), math::length([x, 1.0, 2.0])],
            [math::fast_normalize([x, 1.0])[0], math::normalize([x, 1.0])[0]],
        ]
    };
    let references: [fn(f64) -> f64; 16] = [
        f64::sin,
        f64::cos,
        |x| (x * 0.25).tan(),
        f64::exp,
        f64::exp2,
        |x| 10.0_f64.powf(x),
        f64::ln,
        f64::log2,
        f64::log10,
        f64::sqrt,
        |x| 1.0 / x.sqrt(),
        |x| 1.0 / x,
        |x| x / f64::from(0.7_f32),
        |x| x.powf(f64::from(1.7_f32)),
        |x| (x * x + 5.0).sqrt(),
        |x| x / (x * x + 1.0).sqrt(),
    ];
    for (name, queue) in devices() {
        for (x, found) in inputs.iter().zip(mapped(&queue, &inputs, f)) {
            for (part, ([native, precise], reference)) in found.into_iter().zip(references).enumerate() {
                let expected = reference(f64::from(*x));
                let difference = (f64::from(native) - expected).abs();
                // Relative, or absolute where the result is near zero.
                assert!(
                    difference <= 4.0e-6 * expected.abs().max(1.0),
                    "{name}, {x:e}, native {part}: {native:e}, expected {expected:e}"
                );
                assert!(
                    error(precise, expected, expected) <= 8192.0,
                    "{name}, {x:e}, half {part}: {precise:e}, expected {expected:e}"
                );
            }
        }
    }
}
