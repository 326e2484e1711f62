//! What kernels over work-groups cost on the host device, beside plain Rust and OpenCL C: `cargo xtask bench groups [--json FILE] [--filter SUBSTR]
//! [--rounds N] [--seed N]`.
//!
//! The kernels are those of the examples, which the book shows. Each case is a module with its peers; `peers` has the loops in plain Rust, and
//! `../opencl/reference.rs` what runs OpenCL C. `protocol.rs` says how everything is measured. Values are amounts of work in a second of
//! processor time of all threads together, since other programs share the machine. Beside them is the time that passed, which
//! cases in `.wall` are about.
//!
//! Inputs come from a seed that is printed. Results are checked at places of the same seed.

#[path = "../arguments.rs"]
#[expect(dead_code, reason = "cases that are measured together are the other benchmarks'")]
mod arguments;
#[path = "../case.rs"]
mod case;
mod gemm;
mod histogram;
#[path = "../matrices.rs"]
mod matrices;
mod nd;
mod peers;
#[path = "../processor.rs"]
mod processor;
#[cfg(feature = "opencl")]
#[path = "../opencl/product.rs"]
mod product;
#[path = "../protocol.rs"]
#[expect(dead_code, reason = "some kinds of bars are for the benchmark of the runtime")]
mod protocol;
#[path = "../random.rs"]
mod random;
#[cfg(feature = "opencl")]
#[path = "../opencl/reference.rs"]
#[expect(dead_code, reason = "launches and groups that are tried are for the benchmark of OpenCL")]
mod reference;
mod scan;
mod stencil;
mod sums;

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;

use oxisycl::BackendKind;
use oxisycl::prelude::*;

use arguments::{Arguments, Options};
use protocol::Measured;
use random::Random;

/// What the cases run on.
struct Setting {
    options: Options,
    queue: Queue,
    seed: u64,
}

impl Setting {
    /// Numbers of the seed, the same for each case with whatever filter.
    fn random(&self) -> Random {
        Random::new(self.seed)
    }
}

fn main() -> ExitCode {
    let mut seed = random::any_seed();
    let arguments = Arguments::parse(std::env::args().skip(1), " [--seed N]", |name, value| match name {
        "--seed" => {
            seed = random::seed(&value()?)?;
            Ok(true)
        }
        _ => Ok(false),
    });
    Arguments::run(arguments, "groups", |Arguments { options, json }| run(options, json, seed))
}

/// Whether no bar is missed.
fn run(options: Options, json: Option<PathBuf>, seed: u64) -> Result<bool, Box<dyn Error>> {
    println!("--seed {seed}");
    let devices = Device::all()?;
    let host = devices.iter().find(|device| device.backend() == BackendKind::Host).ok_or("no host device")?;
    let setting = Setting { options, queue: Queue::builder().device(host).in_order().build()?, seed };
    let mut results: Vec<Measured> = Vec::new();
    for run in [gemm::run, stencil::run, histogram::run, scan::run, sums::run, nd::run] {
        run(&setting, &mut results)?;
    }
    if results.is_empty() {
        return Err(format!("no case matches --filter {}", setting.options.filter).into());
    }
    let all_hold = protocol::print_table(&results, "wall time, ours / peer");
    println!(
        "values are of processor time, of all threads together; those of names in `.wall` are of the time that passed"
    );
    if let Some(file) = json {
        std::fs::write(&file, protocol::json(&results))
            .map_err(|error| format!("cannot write \"{}\": {error}", file.display()))?;
    }
    Ok(all_hold)
}
