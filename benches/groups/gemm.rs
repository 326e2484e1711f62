//! The product of two matrices by tiles of 16 x 16: the example's kernel beside the same algorithm in plain Rust and in OpenCL C.

use std::error::Error;

use oxisycl::prelude::*;

use crate::Setting;
use crate::case::Case;
use crate::peers;
use crate::protocol::Measured;
use crate::random::Random;

#[path = "../../examples/14_tiled_gemm.rs"]
#[expect(dead_code, reason = "its `main` is the example's")]
mod example;

/// Rows and columns.
pub(crate) const N: usize = 1024;
const OPENCL: &str = "groups.gemm.scoped";
const RUST: &str = "groups.gemm.scoped.rust";
/// Elements that are checked.
const PLACES: usize = 200;

pub(crate) fn run(setting: &Setting, results: &mut Vec<Measured>) -> Result<(), Box<dyn Error>> {
    if !setting.options.wants(OPENCL) && !setting.options.wants(RUST) {
        return Ok(());
    }
    let mut random = setting.random();
    let [left, right] = [random.floats(N * N), random.floats(N * N)];
    let (a, b) = (Buffer::from_slice_nd(&left, [N, N])?, Buffer::from_slice_nd(&right, [N, N])?);
    let c = Buffer::<f32, 2>::uninit([N, N])?;
    let mut ours = || {
        let multiplied = example::multiply(&setting.queue, &a, &b, &c).and_then(|event| event.wait());
        multiplied.expect("the command succeeds");
    };
    ours();
    let inputs = [&left[..], &right[..]];
    check("ours", &c.to_vec()?, inputs, &mut random);
    let case = |name, peer, bar| Case { name, unit: "GFLOP/s", amount: 2e-9 * (N * N * N) as f64, peer, bar };
    if setting.options.wants(OPENCL) {
        match open_cl(&case(OPENCL, "OpenCL C", 1.0), setting, &mut ours, inputs, &mut random) {
            Ok(measured) => results.push(measured),
            Err(reason) => println!("{OPENCL} is not measured: {reason}"),
        }
    }
    if setting.options.wants(RUST) {
        let mut product = vec![0.0; N * N];
        let measured =
            case(RUST, "tiled loops, rayon", 0.9)
                .measure(setting, &mut ours, &mut || peers::multiply(N, &left, &right, &mut product));
        check("plain Rust", &product, inputs, &mut random);
        results.push(measured);
    }
    Ok(())
}

#[cfg(feature = "opencl")]
fn open_cl(
    case: &Case<'_>,
    setting: &Setting,
    ours: &mut dyn FnMut(),
    inputs: [&[f32]; 2],
    random: &mut Random,
) -> Result<Measured, Box<dyn Error>> {
    let reference = crate::opencl::reference()?;
    println!("OpenCL C: driver {}", reference.driver);
    let mut peer = crate::opencl::Product::new(&reference, inputs)?;
    let measured = case.measure(setting, ours, &mut || peer.multiply().expect("the peer's kernel runs"));
    check("OpenCL C", peer.product(), inputs, random);
    Ok(measured)
}

#[cfg(not(feature = "opencl"))]
fn open_cl(
    _: &Case<'_>,
    _: &Setting,
    _: &mut dyn FnMut(),
    _: [&[f32]; 2],
    _: &mut Random,
) -> Result<Measured, Box<dyn Error>> {
    Err("the feature `opencl` is off".into())
}

/// Compares elements with sums of `f64`.
pub(crate) fn check(whose: &str, product: &[f32], [left, right]: [&[f32]; 2], random: &mut Random) {
    for _ in 0..PLACES {
        let (y, x) = (random.below(N), random.below(N));
        let terms = (0..N).map(|k| f64::from(left[y * N + k]) * f64::from(right[k * N + x]));
        let (sum, size) = terms.fold((0.0, 0.0), |(sum, size), term: f64| (sum + term, size + term.abs()));
        let found = f64::from(product[y * N + x]);
        assert!((found - sum).abs() < 1e-5 * size, "{whose}: {found} in row {y}, column {x}, {sum} in plain Rust");
    }
}
