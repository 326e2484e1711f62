//! Programs on the host device: `cargo xtask bench host [--plain] [--lanes W] [--targets host-v4] [--json FILE] [--filter SUBSTR] [--rounds N] [--seed N]`. With
//! `--plain` as plain cargo builds them, beside the same programs with rayon. Without it with native code of `cargo sycl`, beside the plain
//! entries of their kernels. The figures `host.*` also are beside OpenCL C and beside vectors that were written by hand. Kernels of whole
//! programs are measured by `cargo xtask bench host --all-programs` (`xtask/src/bench/programs.rs`).
//!
//! Kernels and peers are written as users would write them. Each module has programs with their peers. Values are amounts of work in a second
//! of processor time of all threads together. `cargo xtask` gives both sides one thread, unless `OXISYCL_HOST_THREADS` and
//! `RAYON_NUM_THREADS` say otherwise. Beside them is the time that passed. `protocol.rs` says how everything is measured.
//!
//! Native entries are those of the best level, or of the one that `OXISYCL_HOST_CODE` names.
//!
//! Inputs and sizes come from a seed that is printed. Both sides must have the same results, bit for bit where no sum of products may be rounded once.

#[path = "../arguments.rs"]
#[expect(dead_code, reason = "each case here has one name")]
mod arguments;
mod beside;
#[path = "../bodies.rs"]
mod bodies;
#[path = "../case.rs"]
mod case;
mod counts;
mod entries;
mod grids;
mod groups;
#[cfg(target_arch = "x86_64")]
mod hand;
mod launches;
#[path = "../matrices.rs"]
#[expect(dead_code, reason = "peers are for the benchmark of groups")]
mod matrices;
mod numbers;
mod pictures;
mod points;
#[path = "../processor.rs"]
mod processor;
mod products;
#[path = "../protocol.rs"]
#[expect(dead_code, reason = "some kinds of bars are for the benchmark of the runtime")]
mod protocol;
#[path = "../random.rs"]
mod random;
mod reductions;
#[path = "../opencl/reference.rs"]
#[expect(dead_code, reason = "launches and images are for the benchmark of OpenCL")]
mod reference;
mod streams;
mod structures;
mod tiles;

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;

use oxisycl::BackendKind;
use oxisycl::prelude::*;

use arguments::{Arguments, Options};
use case::Case;
use protocol::Measured;
use random::Random;
use reference::Reference;

/// What stands beside figures of processor time.
const TIMES: &str = "wall time, ours / peer";

/// What is done with the cases.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// Measures them beside their peers.
    Plain,
    /// Measures their kernels' native entries beside the plain ones, in two processes.
    Native,
    /// Is one of these processes.
    Entry,
    /// Measures the figures `host.*` beside others' code.
    Beside,
}

/// What the cases run on.
struct Setting {
    options: Options,
    queue: Queue,
    seed: u64,
    mode: Mode,
    /// The peer of the figures `host.*`.
    opencl: Option<Reference>,
}

impl Setting {
    /// Whether it is a process of one entry.
    fn is_entry(&self) -> bool {
        self.mode == Mode::Entry
    }

    /// Numbers of the seed, the same for each case with whatever filter.
    fn random(&self) -> Random {
        Random::new(self.seed)
    }

    /// Runs a case beside its peer, or as a process of one entry is told.
    fn measure(&self, case: &Case<'_>, ours: &mut dyn FnMut(), peer: &mut dyn FnMut(), results: &mut Vec<Measured>) {
        match self.mode {
            Mode::Entry => entries::serve(case.name, ours, peer),
            _ => results.push(case.measure(self.options.rounds, ours, peer)),
        }
    }
}

/// Waits for the last command of a program.
fn finish(submitted: oxisycl::Result<Event>) {
    submitted.and_then(|event| event.wait()).expect("the command succeeds");
}

fn main() -> ExitCode {
    let (mut seed, mut mode) = (random::any_seed(), Mode::Native);
    let arguments = Arguments::parse(std::env::args().skip(1), " [--plain] [--seed N]", |name, value| match name {
        "--seed" => {
            seed = random::seed(&value()?)?;
            Ok(true)
        }
        "--plain" => {
            mode = Mode::Plain;
            Ok(true)
        }
        entries::ARGUMENT => {
            mode = Mode::Entry;
            Ok(true)
        }
        _ => Ok(false),
    });
    Arguments::run(arguments, "host", |Arguments { options, json }| run(options, json, seed, mode))
}

/// Whether no bar is missed.
fn run(options: Options, json: Option<PathBuf>, seed: u64, mode: Mode) -> Result<bool, Box<dyn Error>> {
    let devices = Device::all()?;
    let host = devices.iter().find(|device| device.backend() == BackendKind::Host).ok_or("no host device")?;
    let (results, all_hold) = match mode {
        Mode::Plain => {
            let results = run_cases(host, options, seed, mode)?;
            let all_hold = protocol::print_table(&results, TIMES);
            (results, all_hold)
        }
        Mode::Native => {
            println!("--seed {seed}");
            let mut results = entries::run(host, &options, seed)?;
            let beside = run_cases(host, options, seed, Mode::Beside)?;
            // A kernel without native code may have a peer.
            if results.is_empty() && beside.is_empty() {
                return Err(entries::NOTHING.into());
            }
            let all_hold = entries::print(&results) & (beside.is_empty() || protocol::print_table(&beside, TIMES));
            results.extend(beside);
            (results, all_hold)
        }
        Mode::Entry | Mode::Beside => {
            run_cases(host, options, seed, mode)?;
            return Ok(true);
        }
    };
    println!("values are of processor time, of all threads together");
    if let Some(file) = json {
        std::fs::write(&file, protocol::json(&results))
            .map_err(|error| format!("cannot write \"{}\": {error}", file.display()))?;
    }
    Ok(all_hold)
}

fn run_cases(host: &Device, options: Options, seed: u64, mode: Mode) -> Result<Vec<Measured>, Box<dyn Error>> {
    if mode == Mode::Plain {
        let threads = [host.info().max_compute_units as usize, rayon::current_num_threads()];
        println!("--seed {seed}\nthreads: ours {}, rayon's {}", threads[0], threads[1]);
        if threads[0] != threads[1] {
            return Err("both sides must have as many threads: see OXISYCL_HOST_THREADS and RAYON_NUM_THREADS".into());
        }
    }
    let opencl = if mode == Mode::Beside { beside::processor()? } else { None };
    let queue = Queue::builder().device(host).in_order().build()?;
    let setting = Setting { options, queue, seed, mode, opencl };
    let mut results = Vec::new();
    if mode != Mode::Beside {
        for run in [grids::run, products::run, points::run, counts::run, streams::run, structures::run] {
            run(&setting, &mut results)?;
        }
    }
    if mode != Mode::Plain {
        for run in [numbers::run, pictures::run, tiles::run, groups::run, reductions::run, launches::run] {
            run(&setting, &mut results)?;
        }
    }
    if mode == Mode::Plain && results.is_empty() {
        return Err(format!("no case matches --filter {}", setting.options.filter).into());
    }
    Ok(results)
}
