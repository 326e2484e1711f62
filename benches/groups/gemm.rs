//! The product of two matrices by tiles of 16 x 16: the example's kernel beside the same algorithm in plain Rust and in OpenCL C. Beside the latter it is
//! also measured by the time that passes, which an idle machine tells.

use std::error::Error;

use crate::Setting;
use crate::case::Case;
use crate::matrices::{AMOUNT, Matrices, N};
use crate::peers;
use crate::protocol::Measured;
use crate::random::Random;

const OPENCL: &str = "groups.gemm.scoped";
/// As [`OPENCL`], by the time that passes.
const PASSED: &str = "groups.gemm.scoped.wall";
const RUST: &str = "groups.gemm.scoped.rust";

pub(crate) fn run(setting: &Setting, results: &mut Vec<Measured>) -> Result<(), Box<dyn Error>> {
    if ![OPENCL, PASSED, RUST].into_iter().any(|name| setting.options.wants(name)) {
        return Ok(());
    }
    let mut random = setting.random();
    let matrices = Matrices::new(&mut random)?;
    let case = |name, peer, bar| Case { name, unit: "GFLOP/s", amount: AMOUNT, peer, bar };
    if [OPENCL, PASSED].into_iter().any(|name| setting.options.wants(name)) {
        match open_cl(&case(OPENCL, "OpenCL C", 1.0), setting, &matrices, &mut random) {
            Ok(measured) => results.extend(measured),
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
) -> Result<Vec<Measured>, Box<dyn Error>> {
    use oxisycl::BackendKind;
    use oxisycl::prelude::*;

    let is_wanted = |device: &Device| device.backend() == BackendKind::OpenCl && device.is_cpu();
    let device = Device::all()?.into_iter().find(is_wanted).ok_or(
        "no OpenCL device that is a CPU; `cargo xtask test` installs one, and `cargo xtask bench groups` uses it",
    )?;
    let reference = crate::reference::Reference::of(&device)?;
    println!("{OPENCL}: driver {}", reference.driver);
    let mut peer = crate::product::Product::new(&reference, matrices)?;
    let (options, mut measured) = (&setting.options, Vec::new());
    if options.wants(OPENCL) {
        measured.push(case.measure(options.rounds, &mut || matrices.multiply(&setting.queue), &mut || peer.multiply()));
    }
    if options.wants(PASSED) {
        measured
            .push(by_passed_time(options.rounds, &mut || matrices.multiply(&setting.queue), &mut || peer.multiply()));
    }
    matrices.check("OpenCL C", peer.elements(), random);
    matrices.check_ours(random)?;
    Ok(measured)
}

#[cfg(not(feature = "opencl"))]
fn open_cl(_: &Case<'_>, _: &Setting, _: &Matrices, _: &mut Random) -> Result<Vec<Measured>, Box<dyn Error>> {
    Err("the feature `opencl` is off".into())
}

/// By the time that passes, with the threads that each side has by itself.
#[cfg(feature = "opencl")]
fn by_passed_time(n_rounds: usize, ours: &mut dyn FnMut(), peer: &mut dyn FnMut()) -> Measured {
    use crate::processor::times;
    use crate::protocol::{Bar, Rounds, least};

    let rate = |f: &mut dyn FnMut()| AMOUNT / least(|| times(&mut *f).wall);
    let rounds = Rounds::run(n_rounds, None, || rate(ours), || rate(peer));
    let measured = rounds.measured(PASSED, "GFLOP/s", "OpenCL C, time that passed").bar(Bar::RatioAtLeast(0.5));
    measured.print();
    measured
}
