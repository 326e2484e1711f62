//! What an OpenCL device does through OxiSYCL, beside bare OpenCL on the same device and beside the host device:
//! `cargo xtask bench opencl [--json FILE] [--filter SUBSTR] [--rounds N] [--seed N]`.
//!
//! The kernels are safe code, compiled to SPIR-V by `cargo sycl`. `stream`, `compute`, `gemm`, `images` and `launches` hold a kind of work each, `reference` and
//! `reference.cl` the peer; `protocol.rs` says how everything is measured. Results are checked as they are made. Made for drivers whose
//! device is the CPU, where the host device is a fair comparison; other devices are measured with `--any`.

#[path = "../arguments.rs"]
#[expect(dead_code, reason = "cases that are measured together are the other benchmarks'")]
mod arguments;
#[path = "../bodies.rs"]
mod bodies;
#[path = "../case.rs"]
mod case;
mod compute;
mod gemm;
mod images;
#[path = "../images/kernels.rs"]
#[expect(dead_code, reason = "images are resized only")]
mod kernels;
mod launches;
#[path = "../matrices.rs"]
mod matrices;
#[path = "../images/model.rs"]
#[expect(dead_code, reason = "images are resized only")]
mod model;
#[path = "../processor.rs"]
mod processor;
mod product;
#[path = "../protocol.rs"]
#[expect(dead_code, reason = "some kinds of bars are for the benchmark of the runtime")]
mod protocol;
#[path = "../random.rs"]
mod random;
mod reference;
mod stream;

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;

use arguments::{Arguments, Options};
use oxisycl::BackendKind;
use oxisycl::prelude::*;
use reference::Reference;

/// What the cases run on.
struct Setting {
    options: Options,
    opencl: Device,
    host: Device,
    reference: Reference,
    /// Of random inputs.
    seed: u64,
}

fn main() -> ExitCode {
    let (mut takes_any, mut is_child, mut seed) = (false, false, random::any_seed());
    let arguments = Arguments::parse(std::env::args().skip(1), " [--any] [--seed N]", |name, value| {
        if name == "--seed" {
            seed = random::seed(&value()?)?;
            return Ok(true);
        }
        takes_any |= name == "--any";
        is_child |= name == launches::CHILD;
        Ok(name == "--any" || name == launches::CHILD)
    });
    Arguments::run(arguments, "opencl", |Arguments { options, json }| {
        if is_child { run_child(takes_any) } else { run(options, json, takes_any, seed) }
    })
}

/// The device that is measured.
fn opencl_device(takes_any: bool) -> Result<Device, Box<dyn Error>> {
    let is_wanted = |device: &Device| {
        device.backend() == BackendKind::OpenCl && (takes_any || device.is_cpu()) && device.unusable().is_none()
    };
    Ok(Device::all()?.into_iter().find(is_wanted).ok_or(
        "no OpenCL device that is a CPU; `cargo xtask test` installs one, and `cargo xtask bench opencl` uses it",
    )?)
}

/// Prints what a process of its own measures.
fn run_child(takes_any: bool) -> Result<bool, Box<dyn Error>> {
    println!("{}", launches::bytes_per_unfinished(&opencl_device(takes_any)?)?);
    Ok(true)
}

/// Whether every bar holds.
fn run(options: Options, json: Option<PathBuf>, takes_any: bool, seed: u64) -> Result<bool, Box<dyn Error>> {
    let opencl = opencl_device(takes_any)?;
    let devices = Device::all()?;
    let host = devices.iter().find(|device| device.backend() == BackendKind::Host).ok_or("no host device")?;
    let reference = Reference::of(&opencl)?;
    println!("{}, driver {}", opencl.name(), reference.driver);
    let setting = Setting { options, opencl, host: host.clone(), reference, seed };
    let mut results = Vec::new();
    for run in [stream::run, compute::run, gemm::run, images::run, launches::run] {
        run(&setting, &mut results)?;
    }
    if results.is_empty() {
        return Err(format!("no case matches --filter {}", setting.options.filter).into());
    }
    let all_hold = protocol::print_table(&results, "beside");
    if let Some(file) = json {
        std::fs::write(&file, protocol::json(&results))
            .map_err(|error| format!("cannot write \"{}\": {error}", file.display()))?;
    }
    Ok(all_hold)
}
