//! The speed of a GPU through OxiSYCL, beside the same work in CUDA C++ in the same run.
//! `cargo xtask bench gpu [--filter SUBSTR] [--rounds N] [--json FILE] [--seed N]` builds `reference.cu` beside this file where there is nvcc; or
//! `--reference PROGRAM` names it. Without a reference only our own figures are printed. `--filter` chooses figures whose names contain the
//! text, and the reference measures what they are compared with; each takes seconds a round.
//!
//! Both programs run in turn, 15 times if nothing else is asked for. A bar holds if the median of the rounds' ratios reaches it within the
//! noise. The noise is the median difference of the peer from itself in neighbouring rounds. What batching must not make worse has our own
//! queues without batching as its peer.
//!
//! Each case takes the best of several repetitions, each of which ends with a wait, as the reference does. Kernels are safe code, with the group
//! size that the backend chooses where it is not part of the kernel. Results are checked before they are timed. Random inputs of both programs come from
//! one seed, which is printed.

#[path = "../arguments.rs"]
mod arguments;
#[path = "../bodies.rs"]
#[expect(dead_code, reason = "the set of Mandelbrot is for benchmarks on processors")]
mod bodies;
mod cases;
mod first_launch;
mod groups;
mod launches;
mod list;
#[path = "../random.rs"]
mod random;
mod reductions;
mod specialised;
#[path = "../verdict.rs"]
#[expect(dead_code, reason = "some figures have no bar in the other benchmarks")]
mod verdict;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::Instant;

use oxisycl::prelude::*;
use oxisycl::{BackendKind, Result};

use arguments::{Arguments, Options};
use bodies::{Body, pull};
use cases::{Case, Peer};
use random::Random;
use verdict::Verdict;

const N: usize = 1 << 27;
/// Repetitions of a stream: as many as the reference has for all of its block sizes together, of which it takes the best.
const STREAMS: usize = 4 * 50;
const BODIES: usize = 65_536;
/// Bytes of copies, and what their cases are called after the direction.
const COPIES: [(usize, [&str; 2]); 2] = [
    (64 << 20, ["gpu.copy.to_device", "gpu.copy.to_host"]),
    (1 << 30, ["gpu.copy.to_device.1gib", "gpu.copy.to_host.1gib"]),
];

fn main() -> ExitCode {
    // A run loads what the one before did, and first launches are what one of the figures is about.
    // SAFETY: no other thread runs yet.
    unsafe { std::env::set_var("OXISYCL_LOAD", "lazy") };
    let (mut reference, mut seed) = (None, random::any_seed());
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
    Arguments::run(arguments, "gpu", |Arguments { options, json }| run(reference.as_deref(), &options, json, seed))
}

type Figures = BTreeMap<String, f64>;

/// Whether no bar is missed.
fn run(
    reference: Option<&str>,
    options: &Options,
    json: Option<PathBuf>,
    seed: u64,
) -> std::result::Result<bool, Box<dyn std::error::Error>> {
    let cases = cases::chosen(|name| options.wants(name));
    if cases.is_empty() {
        return Err(format!("no case matches --filter {}", options.filter).into());
    }
    let devices: Vec<Device> = Device::all()?;
    let Some(device) = devices.iter().find(|device| device.backend() == BackendKind::Cuda) else {
        println!("no CUDA device: nothing is measured");
        return Ok(true);
    };
    println!("{}\n--seed {seed}", device.name());
    let Some(reference) = reference else {
        let figures = measure(device, options, seed)?;
        for Case { name, unit, .. } in cases {
            println!("{name:26} {:9.3} {unit}", figures[name]);
        }
        return Ok(true);
    };
    let peers = cases::peers(&cases);
    let n_rounds = options.rounds;
    // In turn, so that what changes while they run changes both.
    let mut rounds: Vec<[Figures; 2]> = Vec::new();
    for _ in 0..n_rounds {
        // Without names it would measure all that it has.
        let theirs = if peers.is_empty() { Figures::new() } else { figures_of(reference, &peers, seed)? };
        let ours = measure(device, options, seed)?.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        rounds.push([ours, theirs]);
    }
    let mut all_hold = true;
    let mut lines = Vec::new();
    println!(
        "{n_rounds} rounds: medians, the ratio of each round's figures (least to greatest), the peer against itself"
    );
    for &Case { name, unit, more_is_better, bar, peer } in cases {
        let (label, side, peer) = match peer {
            Peer::Reference(peer) => ("CUDA C++", 1, peer),
            Peer::Own(label, peer) => (label, 0, peer),
        };
        let [ours, theirs] = [(0, name), (side, peer)].map(|(side, name)| -> Vec<f64> {
            rounds.iter().map(|round| round[side].get(name).copied().unwrap_or(f64::NAN)).collect()
        });
        let [least, ratio, greatest] = spread(ours.iter().zip(&theirs).map(|(ours, theirs)| ours / theirs));
        // How far apart two neighbouring rounds of the same program are, as a ratio above one.
        let noise = spread(theirs.windows(2).map(|pair| (pair[1] / pair[0]).max(pair[0] / pair[1])))[1].max(1.0);
        // By how much the bar is missed; at most 1 if it holds.
        let excess = if more_is_better { bar / ratio } else { ratio / bar };
        let verdict = Verdict::of(excess, noise);
        all_hold &= verdict != Verdict::Missed;
        let sign = if more_is_better { ">=" } else { "<=" };
        let [value, peer_value] = [ours, theirs].map(|values| spread(values.into_iter())[1]);
        println!(
            "{name:26} {value:9.3} {unit:5} {label:9} {peer_value:9.3}  ratio {ratio:.3} ({least:.3} to {greatest:.3})  \
             A/A {noise:.3}  bar {sign} {bar}  {verdict}"
        );
        lines.push(format!(
            "{{\"name\": \"{name}\", \"value\": {value}, \"unit\": \"{unit}\", \"peer\": \"{label}\", \"peer_value\": {peer_value}, \
             \"ratio\": {ratio}, \"ratio_min\": {least}, \"ratio_max\": {greatest}, \"a_a\": {noise}, \"verdict\": \"{verdict}\"}}"
        ));
    }
    if let Some(file) = json {
        std::fs::write(file, format!("[\n  {}\n]\n", lines.join(",\n  ")))?;
    }
    Ok(all_hold)
}

/// The least, the median and the greatest; not numbers if there are none.
fn spread(values: impl Iterator<Item = f64>) -> [f64; 3] {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    match values.as_slice() {
        [] => [f64::NAN; 3],
        [least, .., greatest] => [*least, values[values.len() / 2], *greatest],
        [only] => [*only; 3],
    }
}

/// Runs the reference for these figures, with inputs of the seed, and reads its lines.
fn figures_of(
    program: &str,
    names: &BTreeSet<&str>,
    seed: u64,
) -> std::result::Result<Figures, Box<dyn std::error::Error>> {
    let output = Command::new(program).args(["--seed", &seed.to_string()]).args(names).output()?;
    if !output.status.success() {
        return Err(format!("{program} failed: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    let mut figures = BTreeMap::new();
    for line in String::from_utf8(output.stdout)?.lines() {
        let (name, value) = line.split_once(' ').ok_or("a line of the reference without a value")?;
        figures.insert(name.to_owned(), value.trim().parse()?);
    }
    Ok(figures)
}

/// The best time of several runs in seconds, after one that warms up.
fn best_of(repetitions: usize, mut run: impl FnMut() -> Result) -> Result<f64> {
    run()?;
    let mut best = f64::INFINITY;
    for _ in 0..repetitions {
        let start = Instant::now();
        run()?;
        best = best.min(start.elapsed().as_secs_f64());
    }
    Ok(best)
}

/// What was measured of what is wanted.
struct Measured<'a> {
    options: &'a Options,
    seed: u64,
    figures: BTreeMap<&'static str, f64>,
}

impl Measured<'_> {
    /// Numbers of the seed, the same for each file of cases with whatever filter.
    fn random(&self) -> Random {
        Random::new(self.seed)
    }

    /// Measures a figure if it is wanted.
    fn add(&mut self, name: &'static str, measure: impl FnOnce() -> Result<f64>) -> Result {
        if self.options.wants(name) {
            self.figures.insert(name, measure()?);
        }
        Ok(())
    }

    /// Measures a figure and its own peer, if the figure is wanted.
    fn add_pair(&mut self, names: [&'static str; 2], measure: impl FnOnce() -> Result<[f64; 2]>) -> Result {
        if self.options.wants(names[0]) {
            self.figures.extend(names.into_iter().zip(measure()?));
        }
        Ok(())
    }
}

fn measure(device: &Device, options: &Options, seed: u64) -> Result<BTreeMap<&'static str, f64>> {
    let mut measured = Measured { options, seed, figures: BTreeMap::new() };
    stream(device, &mut measured)?;
    let mut random = measured.random();
    measured.add("gpu.nbody", || nbody(device, &mut random))?;
    groups::measure(device, &mut measured)?;
    reductions::measure(device, &mut measured)?;
    list::measure(device, &mut measured)?;
    launches::measure(device, &mut measured)?;
    specialised::measure(device, &mut measured)?;
    first_launch::measure(device, &mut measured)?;
    copies(device, &mut measured)?;
    Ok(measured.figures)
}

fn stream(device: &Device, measured: &mut Measured<'_>) -> Result {
    if !measured.options.wants_any(&["gpu.stream.copy", "gpu.stream.mul", "gpu.stream.add", "gpu.stream.triad"]) {
        return Ok(());
    }
    let queue = Queue::builder().device(device).in_order().build()?;
    let [a, b, c] = [0.1, 0.2, 0.0].map(|value: f64| -> Result<_> {
        let buffer = Buffer::<f64, 1>::uninit(N)?;
        queue.submit(|cg| {
            let data = cg.access(&buffer, Write.no_init());
            cg.fill(data, value)
        })?;
        Ok(buffer)
    });
    let (a, b, c) = (a?, b?, c?);
    let s = 0.4;
    let gigabytes = (N * size_of::<f64>()) as f64 / 1e9;
    let copy = || -> Result {
        let kernel = queue.submit(|cg| {
            let (a, c) = (cg.access(&a, Read), cg.access(&c, Write.no_init()));
            cg.parallel_for(N, move |item| c.set(item, a.get(item)))
        });
        kernel?.wait()
    };
    let mul = || -> Result {
        let kernel = queue.submit(|cg| {
            let (b, c) = (cg.access(&b, Write.no_init()), cg.access(&c, Read));
            cg.parallel_for(N, move |item| b.set(item, s * c.get(item)))
        });
        kernel?.wait()
    };
    let add = || -> Result {
        let kernel = queue.submit(|cg| {
            let (a, b, c) = (cg.access(&a, Read), cg.access(&b, Read), cg.access(&c, Write.no_init()));
            cg.parallel_for(N, move |item| c.set(item, a.get(item) + b.get(item)))
        });
        kernel?.wait()
    };
    let triad = || -> Result {
        let kernel = queue.submit(|cg| {
            let (a, b, c) = (cg.access(&a, Write.no_init()), cg.access(&b, Read), cg.access(&c, Read));
            cg.parallel_for(N, move |item| a.set(item, b.get(item) + s * c.get(item)))
        });
        kernel?.wait()
    };
    copy()?;
    mul()?;
    add()?;
    triad()?;
    let expected = s * 0.1 + s * (0.1 + s * 0.1);
    let first = a.to_vec()?;
    assert!(first.iter().all(|&x| (x - expected).abs() < 1e-12), "the stream kernels agree with plain Rust");
    measured.add("gpu.stream.copy", || Ok(2.0 * gigabytes / best_of(STREAMS, copy)?))?;
    measured.add("gpu.stream.mul", || Ok(2.0 * gigabytes / best_of(STREAMS, mul)?))?;
    measured.add("gpu.stream.add", || Ok(3.0 * gigabytes / best_of(STREAMS, add)?))?;
    measured.add("gpu.stream.triad", || Ok(3.0 * gigabytes / best_of(STREAMS, triad)?))?;
    Ok(())
}

/// Where bodies begin, in a cube.
fn bodies(random: &mut Random) -> Vec<Body> {
    let places = random.floats(3 * BODIES);
    places.as_chunks().0.iter().map(|[x, y, z]| Body { x: *x, y: *y, z: *z, w: 1.0 }).collect()
}

/// Compares forces with those that plain Rust computes in double precision, at places of the seed.
fn check_forces(start: &[Body], found: &[Body], n_places: usize, random: &mut Random) {
    for _ in 0..n_places {
        let i = random.below(start.len());
        let own = start[i];
        let (mut expected, mut size) = (0.0f64, 0.0f64);
        for other in start {
            let d = [other.x - own.x, other.y - own.y, other.z - own.z].map(f64::from);
            let distance = d[0] * d[0] + d[1] * d[1] + d[2] * d[2] + 1e-6;
            let force = d[0] / (distance * distance.sqrt());
            expected += force;
            size += force.abs();
        }
        // What a sum of so many numbers may lose: one body may be so near that others are lost beside it.
        let bound = size * start.len() as f64 * f64::from(f32::EPSILON) / 2.0;
        let error = (f64::from(found[i].x) - expected).abs();
        assert!(error < bound, "body {i}: {} on the device, {expected} in plain Rust", found[i].x);
    }
}

/// Interactions in 10^9 per second.
fn nbody(device: &Device, random: &mut Random) -> Result<f64> {
    let queue = Queue::builder().device(device).in_order().build()?;
    let start = bodies(random);
    let bodies = Buffer::from_vec(start.clone())?;
    let forces = Buffer::from_vec(start.clone())?;
    let run = || pull(&queue, &bodies, &forces)?.wait();
    let time = best_of(10, run)?;
    check_forces(&start, &forces.to_vec()?, 20, random);
    Ok((BODIES * BODIES) as f64 / time / 1e9)
}

/// Gigabytes per second between host allocations of ours and the device.
fn copies(device: &Device, measured: &mut Measured<'_>) -> Result {
    let queue = Queue::builder().device(device).in_order().build()?;
    for (size, names) in COPIES {
        if !measured.options.wants_any(&names) {
            continue;
        }
        let host = queue.malloc_host::<u8>(size)?;
        let memory = queue.malloc_device::<u8>(size)?;
        let copy = |target: *mut u8, source: *const u8| -> Result<f64> {
            // SAFETY: both allocations are that large, live until the copies have ended, and nothing else uses them.
            let time = best_of(20, || unsafe { queue.memcpy(target, source, size) }?.wait());
            Ok(size as f64 / time? / 1e9)
        };
        let [to_device, to_host] = names;
        measured.add(to_device, || copy(memory.as_ptr(), host.as_ptr()))?;
        measured.add(to_host, || copy(host.as_ptr(), memory.as_ptr()))?;
    }
    Ok(())
}
