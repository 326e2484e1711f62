//! The speed of images: `cargo xtask bench images [--json FILE] [--filter SUBSTR] [--rounds N] [--seed N] [--reference PROGRAM]`.
//!
//! `images.gpu` is beside CUDA C++ with plain loads and with texture objects (`reference.cu`), where there is a CUDA device. `images.cpu` is
//! beside `fast_image_resize` and plain Rust with rayon. The device code of the host is that of `cargo sycl` with vectors of eight work-items.
//!
//! Kernels are safe code. Pictures come from a seed that is printed, and results are compared with a model in `f64` at places of the seed
//! (`model.rs`). `protocol.rs` says how everything is measured.

#[path = "../arguments.rs"]
mod arguments;
#[path = "../case.rs"]
mod case;
mod cpu;
mod gpu;
mod kernels;
mod model;
mod peer;
#[path = "../processor.rs"]
mod processor;
#[path = "../protocol.rs"]
#[expect(dead_code, reason = "some kinds of bars are for the benchmark of the runtime")]
mod protocol;
#[path = "../random.rs"]
#[expect(dead_code, reason = "pixels come from numbers, not from floats")]
mod random;

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;

use oxisycl::BackendKind;
use oxisycl::prelude::*;

use arguments::{Arguments, Options};

fn main() -> ExitCode {
    let (mut seed, mut reference) = (random::any_seed(), None);
    let usage = " [--reference PROGRAM] [--seed N]";
    let arguments = Arguments::parse(std::env::args().skip(1), usage, |name, value| match name {
        "--seed" => {
            seed = random::seed(&value()?)?;
            Ok(true)
        }
        "--reference" => {
            reference = Some(value()?);
            Ok(true)
        }
        _ => Ok(false),
    });
    Arguments::run(arguments, "images", |Arguments { options, json }| run(&options, json, seed, reference.as_deref()))
}

/// Whether no bar is missed.
fn run(options: &Options, json: Option<PathBuf>, seed: u64, reference: Option<&str>) -> Result<bool, Box<dyn Error>> {
    println!("--seed {seed}");
    let devices = Device::all()?;
    let find = |backend| devices.iter().find(|device| device.backend() == backend);
    let mut results = Vec::new();
    match find(BackendKind::Cuda) {
        Some(device) => {
            println!("{}", device.name());
            gpu::run(device, options, seed, reference, &mut results)?;
        }
        None => println!("no CUDA device: no figure of images.gpu is measured"),
    }
    cpu::run(find(BackendKind::Host).ok_or("no host device")?, options, seed, &mut results)?;
    if results.is_empty() {
        return Err(format!("no case matches --filter {}", options.filter).into());
    }
    let all_hold = protocol::print_table(&results, "beside");
    println!("values of images.cpu are of processor time, of all threads together");
    if let Some(file) = json {
        std::fs::write(&file, protocol::json(&results))
            .map_err(|error| format!("cannot write \"{}\": {error}", file.display()))?;
    }
    Ok(all_hold)
}
