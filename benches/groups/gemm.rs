//! The product of two matrices by tiles of 16 x 16: the example's kernel beside the same algorithm in plain Rust and in OpenCL C.

use std::error::Error;

use crate::Setting;
use crate::case::Case;
use crate::matrices::{AMOUNT, Matrices, N};
use crate::peers;
use crate::protocol::Measured;
use crate::random::Random;

const OPENCL: &str = "groups.gemm.scoped";
const RUST: &str = "groups.gemm.scoped.rust";

pub(crate) fn run(setting: &Setting, results: &mut Vec<Measured>) -> Result<(), Box<dyn Error>> {
    if !setting.options.wants(OPENCL) && !setting.options.wants(RUST) {
        return Ok(());
    }
    let mut random = setting.random();
    let matrices = Matrices::new(&mut random)?;
    let case = |name, peer, bar| Case { name, unit: "GFLOP/s", amount: AMOUNT, peer, bar };
    if setting.options.wants(OPENCL) {
        match open_cl(&case(OPENCL, "OpenCL C", 1.0), setting, &matrices, &mut random) {
            Ok(measured) => results.push(measured),
            Err(reason) => println!("{OPENCL} is not measured: {reason}"),
        }
    }
    if setting.options.wants(RUST) {
        let mut product = vec![0.0; N * N];
        let measured = case(RUST, "tiled loops, rayon", 0.9).measure(
            setting.options.rounds,
            &mut || matrices.multiply(&setting.queue),
            &mut || peers::multiply(N, &matrices.left, &matrices.right, &mut product),
        );
        matrices.check("plain Rust", &product, &mut random);
        matrices.check_ours(&mut random)?;
        results.push(measured);
    }
    Ok(())
}

#[cfg(feature = "opencl")]
fn open_cl(
    case: &Case<'_>,
    setting: &Setting,
    matrices: &Matrices,
    random: &mut Random,
) -> Result<Measured, Box<dyn Error>> {
    use oxisycl::BackendKind;
    use oxisycl::prelude::*;

    let is_wanted = |device: &Device| device.backend() == BackendKind::OpenCl && device.is_cpu();
    let device = Device::all()?.into_iter().find(is_wanted).ok_or(
        "no OpenCL device that is a CPU; `cargo xtask test` installs one, and `cargo xtask bench groups` uses it",
    )?;
    let reference = crate::reference::Reference::of(&device)?;
    println!("{OPENCL}: driver {}", reference.driver);
    let mut peer = crate::product::Product::new(&reference, matrices)?;
    let measured =
        case.measure(setting.options.rounds, &mut || matrices.multiply(&setting.queue), &mut || peer.multiply());
    matrices.check("OpenCL C", peer.elements(), random);
    matrices.check_ours(random)?;
    Ok(measured)
}

#[cfg(not(feature = "opencl"))]
fn open_cl(_: &Case<'_>, _: &Setting, _: &Matrices, _: &mut Random) -> Result<Measured, Box<dyn Error>> {
    Err("the feature `opencl` is off".into())
}
