//! `cargo xtask bench host --all-programs [--filter SUBSTR] [--rounds N] [--json FILE]`: `host.never_slower` for the kernels of whole programs. These
//! are the tour, the other examples, and the suite of kernels of ordinary code. Benchmarks have their own rounds. `--program FILE [--argument A]..` measures
//! one that was built already.
//!
//! In each round a program runs with plain entries and with native ones, in changing order, with one worker thread. Its trace file has the times of
//! its launches. Of each launch the least time of all rounds counts, since nothing but other work makes it longer. What a kernel takes is the sum
//! over its launches. Rounds go on until each kernel had [`LEAST`] with plain entries. A program has at least [`FEW`] rounds, and more for as long as
//! [`LIMIT`] says. A kernel that still had less is counted as too short. So is one whose launches take less than [`SHORT`] each, or [`COLD`]
//! together. What is below [`AGAIN`] is measured a second time, in [`ROUNDS`] and as many more as begin within the same time. Noise is what plain
//! entries of even rounds have beside those of odd ones.
//!
//! Whole programs take the place of ranges that grow, since a kernel's range is that of its data. The suite repeats its kernels instead.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use lexopt::Parser;
use lexopt::prelude::*;
use serde_json::{Value as Json, json};

use super::verdict::Verdict;
use crate::device_programs;
use crate::outcome::{Failure, Outcome, Result};
use crate::process;
use crate::workspace::{Workspace, read};

/// The least speed of a native entry, of its plain one's.
const BAR: f64 = 0.95;
/// What is below that is measured again.
const AGAIN: f64 = 0.97;
/// The least rounds of the first measurement.
const FEW: usize = 5;
/// Rounds of the second one, unless `--rounds` says otherwise.
const ROUNDS: usize = 15;
/// How long a kernel runs with plain entries, in microseconds.
const LEAST: f64 = 2000.0;
/// Microseconds of a launch below which the launch itself counts, not what the kernel does.
const SHORT: f64 = 2.0;
/// Microseconds of all launches of a run below which the first execution of code counts, which has to be read from a file.
const COLD: f64 = 20.0;
/// How long rounds of a program begin.
const LIMIT: Duration = Duration::from_secs(20);

/// The entries, as `OXISYCL_HOST_CODE` names them.
const PLAIN: &str = "plain";
const NATIVE: &str = "v3";

/// Arguments of programs. The suite repeats its kernels, so that the first launch counts for little.
const ARGUMENTS: &[(&str, &[&str])] = &[
    ("example tour", &["--device", "host", "--size", "3200x2000", "--no-check"]),
    ("test kernels", &["--device", "host", "--repeat", "200"]),
];
/// Programs that are left out. They need a library, files or arguments, or launch nothing.
const LEFT_OUT: &[&str] = &["example 20_cublas", "example ls", "example resize"];

/// A program with its arguments.
struct Program {
    name: String,
    file: PathBuf,
    arguments: Vec<String>,
}

/// What the launches of one kernel take.
#[derive(Default)]
struct Kernel {
    /// Of plain entries, in even and in odd rounds.
    plain: [Vec<f64>; 2],
    native: Vec<f64>,
    /// What plain entries took in all rounds together.
    plain_in_all: f64,
    /// Whether a launch had native code.
    has_native: bool,
}

/// What a trace has of a kernel.
#[derive(Default, Debug, PartialEq)]
struct Launches {
    /// Microseconds of each.
    times: Vec<f64>,
    has_native: bool,
}

type Kernels = BTreeMap<String, Kernel>;

/// What was measured of a kernel.
struct Measured {
    name: String,
    /// Microseconds of all launches with plain entries.
    plain: f64,
    n_launches: usize,
    ratio: f64,
    /// Plain entries beside plain ones.
    noise: f64,
}

impl Measured {
    fn verdict(&self) -> Verdict {
        Verdict::of(BAR / self.ratio, self.noise.max(1.0 / self.noise))
    }
}

impl Kernel {
    /// The times with plain entries.
    fn all_plain(&self) -> Vec<f64> {
        let mut all = self.plain[0].clone();
        keep_least(&mut all, &self.plain[1]);
        all
    }

    /// Nothing if it is too short.
    fn measured(&self, name: &str) -> Option<Measured> {
        let plain = self.all_plain();
        let n_launches = plain.len().min(self.native.len());
        let sum = |times: &[f64]| times.iter().take(n_launches).sum::<f64>();
        let long_enough = self.plain_in_all >= LEAST && sum(&plain) >= COLD.max(SHORT * n_launches as f64);
        long_enough.then(|| Measured {
            name: name.to_owned(),
            plain: sum(&plain),
            n_launches,
            ratio: sum(&plain) / sum(&self.native),
            noise: sum(&self.plain[0]) / sum(&self.plain[1]),
        })
    }
}

/// The smaller one of each pair. Launches that were not made each time are left out.
fn keep_least(kept: &mut Vec<f64>, times: &[f64]) {
    if kept.is_empty() {
        kept.extend_from_slice(times);
    }
    kept.truncate(times.len());
    kept.iter_mut().zip(times).for_each(|(kept, time)| *kept = kept.min(*time));
}

pub(super) fn run(workspace: &Workspace, json: Option<&Path>, arguments: &[String]) -> Result<Outcome> {
    let (mut filter, mut rounds, mut only, mut own) = (String::new(), ROUNDS, None, Vec::new());
    let mut parser = Parser::from_args(arguments);
    while let Some(argument) = parser.next()? {
        match argument {
            Long("all-programs") => {}
            Long("filter") => filter = parser.value()?.string()?,
            Long("rounds") => rounds = parser.value()?.parse()?,
            Long("program") => only = Some(PathBuf::from(parser.value()?)),
            Long("argument") => own.push(parser.value()?.string()?),
            _ => return Err(argument.unexpected().into()),
        }
    }
    let programs = match only {
        Some(file) => {
            // Programs run in a folder of their own.
            let file =
                std::path::absolute(&file).map_err(|error| Failure::new(format!("{}: {error}", file.display())))?;
            let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
            vec![Program { name, file, arguments: own }]
        }
        None => all(workspace, &filter)?,
    };
    let folder = workspace.target_directory.join("bench-programs");
    fs::create_dir_all(&folder).map_err(|error| Failure::new(format!("{}: {error}", folder.display())))?;
    let (mut measured, mut too_short, mut without) = (Vec::new(), Vec::new(), Vec::new());
    for program in &programs {
        let kernels = program.measure(workspace, &folder, FEW, LEAST)?;
        let is_slow = |measured: &Measured| measured.ratio < AGAIN;
        let mut all = kernels.iter().filter(|(_, kernel)| kernel.has_native);
        let again = if all.any(|(name, kernel)| kernel.measured(name).as_ref().is_some_and(is_slow)) {
            program.measure(workspace, &folder, rounds, f64::INFINITY)?
        } else {
            Kernels::new()
        };
        for (name, kernel) in kernels {
            let second = || again.get(&name).and_then(|kernel| kernel.measured(&name));
            match kernel.measured(&name) {
                _ if !kernel.has_native => without.push(name),
                Some(first) if is_slow(&first) => measured.push(second().unwrap_or(first)),
                Some(first) => measured.push(first),
                None => too_short.push(name),
            }
        }
    }
    report(json, measured, &too_short, &without)
}

/// All programs, built for the level.
fn all(workspace: &Workspace, filter: &str) -> Result<Vec<Program>> {
    let built = device_programs::optimised(workspace)?;
    let wanted = built.into_iter().filter(|(name, _)| name.contains(filter) && !LEFT_OUT.contains(&name.as_str()));
    let programs = wanted.map(|(name, file)| {
        let arguments =
            ARGUMENTS.iter().find(|(program, _)| *program == name).map_or(&[][..], |(_, arguments)| arguments);
        Program { name, file, arguments: arguments.iter().map(|argument| (*argument).to_owned()).collect() }
    });
    let programs: Vec<_> = programs.collect();
    if programs.is_empty() { Err(Failure::new(format!("no program matches --filter {filter}"))) } else { Ok(programs) }
}

impl Program {
    /// In at least so many rounds, and in more until each kernel ran for `enough` microseconds with plain entries, or [`LIMIT`] is over.
    fn measure(&self, workspace: &Workspace, folder: &Path, rounds: usize, enough: f64) -> Result<Kernels> {
        println!("  {}", self.name);
        let (mut kernels, start) = (Kernels::new(), Instant::now());
        for round in 0.. {
            let lacks = |kernel: &Kernel| kernel.has_native && kernel.plain_in_all < enough;
            if round >= rounds && (start.elapsed() >= LIMIT || !kernels.values().any(lacks)) {
                break;
            }
            let order = if round % 2 == 0 { [PLAIN, NATIVE] } else { [NATIVE, PLAIN] };
            for code in order {
                for (name, launches) in self.launches(workspace, folder, code)? {
                    let kernel = kernels.entry(name).or_default();
                    kernel.has_native |= launches.has_native;
                    if code == PLAIN {
                        kernel.plain_in_all += launches.times.iter().sum::<f64>();
                        keep_least(&mut kernel.plain[round % 2], &launches.times);
                    } else {
                        keep_least(&mut kernel.native, &launches.times);
                    }
                }
            }
        }
        Ok(kernels)
    }

    /// Runs it once.
    fn launches(&self, workspace: &Workspace, folder: &Path, code: &str) -> Result<BTreeMap<String, Launches>> {
        let trace = folder.join("trace.json");
        let mut command = process::command(workspace, &self.file.clone().into_os_string());
        command.current_dir(folder).args(&self.arguments).env("OXISYCL_TRACE", &trace).env("OXISYCL_HOST_CODE", code);
        command.env("OXISYCL_DEVICE_SELECTOR", "host:*").env("OXISYCL_HOST_THREADS", "1");
        process::run_quietly(&mut command)?.succeeded()?;
        let launches = read_trace(&read(&trace)?)?;
        if code == PLAIN && launches.values().any(|launches| launches.has_native) {
            return Err(Failure::new(format!("{}: plain entries were not chosen", self.name)));
        }
        Ok(launches.into_iter().map(|(name, launches)| (format!("{}: {name}", self.name), launches)).collect())
    }
}

/// The launches of each kernel, which name and place tell from others.
fn read_trace(text: &str) -> Result<BTreeMap<String, Launches>> {
    let trace: Json = text.parse().map_err(|error| Failure::new(format!("the trace is no JSON: {error}")))?;
    let events = trace["traceEvents"].as_array().ok_or_else(|| Failure::new("the trace has no events"))?;
    let mut kernels = BTreeMap::<String, Launches>::new();
    for event in events.iter().filter(|event| event["cat"] == "kernel") {
        let text = |value: &Json| value.as_str().unwrap_or_default().to_owned();
        let name = format!("{} ({})", text(&event["name"]), text(&event["args"]["place"]));
        let launches = kernels.entry(name).or_default();
        launches.times.push(event["dur"].as_f64().ok_or_else(|| Failure::new("a kernel of the trace has no time"))?);
        launches.has_native |= event["args"]["code"].is_string();
    }
    Ok(kernels)
}

/// Prints everything. A kernel below the bar is a failure, unless noise excuses it.
fn report(
    json: Option<&Path>,
    mut measured: Vec<Measured>,
    too_short: &[String],
    without: &[String],
) -> Result<Outcome> {
    measured.sort_by(|a, b| a.ratio.partial_cmp(&b.ratio).unwrap_or(Ordering::Equal));
    println!("\nratio  A/A    us, plain  launches  verdict       kernel");
    for kernel in &measured {
        let Measured { name, plain, n_launches, ratio, noise } = kernel;
        println!("{ratio:<6.3} {noise:<6.3} {plain:<10.1} {n_launches:<9} {:<13} {name}", kernel.verdict());
    }
    for (what, names) in [("too short to measure", too_short), ("without native code", without)] {
        println!("\n{what}: {}", names.len());
        names.iter().for_each(|name| println!("  {name}"));
    }
    let Some(least) = measured.first() else { return Err(Failure::new("no kernel was measured")) };
    let mean = (measured.iter().map(|kernel| kernel.ratio.ln()).sum::<f64>() / measured.len() as f64).exp();
    println!(
        "\nhost.never_slower: {} kernels, smallest ratio {:.3} ({}), geometric mean {mean:.3}; {} too short, {} without native code",
        measured.len(),
        least.ratio,
        least.name,
        too_short.len(),
        without.len()
    );
    if let Some(file) = json {
        let result = |kernel: &Measured| json!({ "name": kernel.name, "value": kernel.plain / kernel.ratio, "unit": "us", "peer": "plain entry", "peer_value": kernel.plain, "ratio": kernel.ratio, "noise": kernel.noise });
        let results: Vec<_> = measured.iter().map(result).collect();
        let text = serde_json::to_string_pretty(&results).map_err(|error| Failure::new(error.to_string()))?;
        fs::write(file, text + "\n").map_err(|error| Failure::new(format!("{}: {error}", file.display())))?;
    }
    let slow = measured.iter().filter(|kernel| kernel.verdict() == Verdict::Missed);
    let slow = slow.map(|kernel| format!("{}: {:.3}", kernel.name, kernel.ratio)).collect();
    Failure::unless_empty(&format!("kernel with a native entry below {BAR} of its plain one"), slow)?;
    Ok(Outcome::Passed(format!("{} kernels", measured.len())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launches_are_read_by_kernel() {
        let trace = r#"{"traceEvents":[{"ph":"M","name":"process_name"},
            {"name":"a","cat":"kernel","dur":2.5,"args":{"place":"x.rs:1:1","code":"x86-64-v3"}},
            {"name":"a","cat":"kernel","dur":1.5,"args":{"place":"x.rs:1:1"}},
            {"name":"a","cat":"kernel","dur":1.0,"args":{"place":"x.rs:2:1"}},
            {"name":"copy","cat":"copy","dur":9.0,"args":{}}]}"#;
        let found = read_trace(trace).unwrap();
        assert_eq!(found.len(), 2);
        assert_eq!(found["a (x.rs:1:1)"], Launches { times: vec![2.5, 1.5], has_native: true });
        assert_eq!(found["a (x.rs:2:1)"], Launches { times: vec![1.0], has_native: false });
        assert!(read_trace("{}").is_err());
    }

    #[test]
    fn the_least_time_of_each_launch_counts() {
        let mut kernel = Kernel { plain_in_all: LEAST, has_native: true, ..Kernel::default() };
        for (round, times) in [[80.0, 40.0], [60.0, 50.0], [90.0, 30.0]].iter().enumerate() {
            keep_least(&mut kernel.plain[round % 2], times);
        }
        // One launch fewer in the second round.
        keep_least(&mut kernel.native, &[50.0, 30.0, 70.0]);
        keep_least(&mut kernel.native, &[40.0, 20.0]);
        let measured = kernel.measured("a").unwrap();
        assert_eq!((measured.plain, measured.n_launches), (90.0, 2));
        assert!((measured.ratio - 1.5).abs() < 1e-9 && (measured.noise - 1.0).abs() < 1e-9);
        kernel.plain_in_all = LEAST - 1.0;
        assert!(kernel.measured("a").is_none(), "it ran for too short a time");
        let with = |times: Vec<f64>| Kernel {
            plain: [times.clone(), times.clone()],
            native: times,
            plain_in_all: LEAST,
            has_native: true,
        };
        assert!(with(vec![1.0; 100]).measured("a").is_none(), "its launches are too short");
        assert!(with(vec![10.0]).measured("a").is_none(), "its code is cold");
        assert!(with(vec![10.0; 2]).measured("a").is_some());
    }
}
