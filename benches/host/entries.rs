//! The native entries of kernels beside their plain ones: `host.never_slower`.
//!
//! Both are in one program, and a variable says which of them it runs. So the program starts itself twice, once for each entry, and lets the two
//! processes take turns. Each of them comes to the same cases in the same order. From its standard input it reads how often it runs a case, and
//! tells the processor time. That goes on until it reads that the case has ended.
//!
//! Each measurement is of so many runs that they take 2 ms. A case that is below [`AGAIN`] is measured a second time, in more rounds.
//!
//! Where two processes of the same entry differ by more than the bar allows, each measurement has a process of its own: [`ANEW`].

use std::error::Error;
use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use oxisycl::observe::{self, Counters};
use oxisycl::prelude::*;
use oxisycl::{HostLevel, ImageTarget};

use crate::arguments::Options;
use crate::processor::times;
use crate::protocol::{self, Bar, Measured, Rounds};

/// The argument of the processes of one entry.
pub(crate) const ARGUMENT: &str = "--entry";
/// The setting that chooses among the entries of kernels.
const CODE: &str = "OXISYCL_HOST_CODE";
/// The least speed of a native entry, of its plain one's.
const BAR: f64 = 0.95;
/// What is below that is measured again.
const AGAIN: f64 = 0.97;
/// Cases that lanes cannot help, whose bar is [`AGAIN`].
const WITHOUT_GAIN: &[&str] = &["host.spmv", "plain.histogram"];
/// Cases with bars of their own: one that lanes have to help, and launches, which may take 1.03 of the time.
const OWN_BARS: &[(&str, f64)] = &[("host.gemm.scoped", 1.2), ("host.launch", 1.0 / 1.03)];
/// Cases so short that it matters where a process has its memory.
const ANEW: &[&str] = &["host.launch"];
/// Runs of a process of its own before its measurement.
const FIRST_RUNS: usize = 20;
/// The rounds of the first measurement.
const FEW: usize = 5;
/// The least time of a measurement, in seconds.
const LEAST: f64 = 2e-3;
/// What ends a case.
const END: &str = "end";

/// What a process of one entry does for a case. `check` makes what the results are compared with afterwards.
pub(crate) fn serve(name: &str, run: &mut dyn FnMut(), check: &mut dyn FnMut()) {
    println!("{name}");
    for line in io::stdin().lines() {
        let line = line.expect("the other process is there");
        let Ok(n_runs) = line.parse::<usize>() else { break };
        let before = observe::counters();
        let took = times(|| (0..n_runs).for_each(|_| run())).processor;
        let Counters { kernels, native_kernels, .. } = observe::counters() - before;
        println!("{took} {kernels} {native_kernels}");
    }
    check();
}

/// A process that runs one entry of all kernels.
struct Entry {
    code: String,
    process: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

/// What a process tells of some runs.
struct Told {
    processor: f64,
    kernels: u64,
    native_kernels: u64,
}

type Result<T> = std::result::Result<T, Box<dyn Error>>;

impl Entry {
    /// Starts a process for the cases whose names have that in them.
    fn start(code: &str, filter: &str, seed: u64) -> Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args([ARGUMENT, "--seed", &seed.to_string(), "--filter", filter]);
        command.env(CODE, code).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn()?;
        let (Some(to), Some(from)) = (process.stdin.take(), process.stdout.take()) else {
            return Err("a process has no pipes".into());
        };
        Ok(Self { code: code.to_owned(), process, to, from: BufReader::new(from) })
    }

    /// The next line; `None` after the last.
    fn line(&mut self) -> Result<Option<String>> {
        let mut line = String::new();
        let n = self.from.read_line(&mut line)?;
        Ok((n > 0).then(|| line.trim_end().to_owned()))
    }

    fn run(&mut self, n_runs: usize) -> Result<Told> {
        writeln!(self.to, "{n_runs}")?;
        let line = self.line()?.ok_or_else(|| format!("the process of {} has ended", self.code))?;
        let parts: Vec<&str> = line.split(' ').collect();
        let [processor, kernels, native_kernels] = parts[..] else { return Err(format!("read {line:?}").into()) };
        Ok(Told { processor: processor.parse()?, kernels: kernels.parse()?, native_kernels: native_kernels.parse()? })
    }

    /// How often the case runs in a second of processor time.
    fn rate(&mut self, n_runs: usize) -> f64 {
        let mut took = || self.run(n_runs).map(|told| told.processor).expect("the process runs");
        n_runs as f64 / protocol::least(&mut took)
    }

    /// How often a case runs in a second of processor time, in a process of its own.
    fn rate_anew(code: &str, name: &str, n_runs: usize, seed: u64) -> Result<f64> {
        let mut entry = Self::start(code, name, seed)?;
        match entry.line()? {
            Some(first) if first == name => {}
            other => return Err(format!("a process is at {other:?}, not at {name}").into()),
        }
        entry.run(FIRST_RUNS)?;
        let rate = entry.rate(n_runs);
        entry.end_case()?;
        entry.end()?;
        Ok(rate)
    }

    fn end_case(&mut self) -> Result<()> {
        Ok(writeln!(self.to, "{END}")?)
    }

    /// Waits for the process.
    fn end(mut self) -> Result<()> {
        drop(self.to);
        let status = self.process.wait()?;
        if status.success() { Ok(()) } else { Err(format!("the process of {}: {status}", self.code).into()) }
    }
}

/// Whether the processor has a level that there is native code for.
fn has_level(host: &Device) -> bool {
    let is_level = |target: &ImageTarget| matches!(target, ImageTarget::Host { level: Some(_), .. });
    host.native_levels().iter().any(is_level)
}

/// What there is to do where no case has a result.
pub(crate) const NOTHING: &str =
    "no kernel has native code: build with `cargo sycl bench --targets host-v3`, and see --filter";

/// Measures all cases. What had no native code is printed and is no result.
pub(crate) fn run(host: &Device, options: &Options, seed: u64) -> Result<Vec<Measured>> {
    if !has_level(host) {
        return Err(format!("the processor has not all of {}", HostLevel::V3).into());
    }
    // Of the level that the user wants, or of the best one that the program has code for.
    let code = std::env::var(CODE).unwrap_or_else(|_| "auto".to_owned());
    let start = |code: &str| Entry::start(code, &options.filter, seed);
    let (mut plain, mut native) = (start("plain")?, start(&code)?);
    let mut results = Vec::new();
    while let Some(name) = plain.line()? {
        let other = native.line()?.unwrap_or_default();
        if other != name {
            return Err(format!("one process is at {name}, the other one at {other}").into());
        }
        // The first runs write to memory that the system has not provided yet.
        plain.run(1)?;
        native.run(1)?;
        let (of_plain, of_native) = (plain.run(1)?, native.run(1)?);
        if of_plain.native_kernels > 0 {
            return Err(format!("{name}: the plain entry was not chosen").into());
        }
        if of_native.native_kernels == 0 {
            eprintln!("  {name}: no kernel has native code");
        } else {
            let n_runs = (LEAST / of_plain.processor.min(of_native.processor)).ceil().max(1.0) as usize;
            let own = OWN_BARS.iter().find(|(case, _)| *case == name).map(|(_, bar)| *bar);
            let bar = own.unwrap_or(if WITHOUT_GAIN.contains(&name.as_str()) { AGAIN } else { BAR });
            let is_anew = ANEW.contains(&name.as_str());
            let anew = |code: &str| Entry::rate_anew(code, &name, n_runs, seed).expect("the process runs");
            let mut measure = |n_rounds| {
                let rounds = match is_anew {
                    true => Rounds::run(n_rounds, None, || anew(&code), || anew("plain")),
                    false => Rounds::run(n_rounds, None, || native.rate(n_runs), || plain.rate(n_runs)),
                };
                rounds.measured(&name, "runs/s", "plain entry").bar(Bar::RatioAtLeast(bar))
            };
            let first = measure(if is_anew { options.rounds } else { FEW.min(options.rounds) });
            let measured = if !is_anew && ratio(&first) < bar.max(AGAIN) { measure(options.rounds) } else { first };
            let Told { kernels, native_kernels, .. } = of_native;
            let measured = measured.beside(format!("{native_kernels} of {kernels}"));
            measured.print();
            results.push(measured);
        }
        plain.end_case()?;
        native.end_case()?;
    }
    plain.end()?;
    native.end()?;
    Ok(results)
}

fn ratio(measured: &Measured) -> f64 {
    measured.peer.as_ref().map_or(f64::NAN, |peer| peer.ratio.median)
}

/// The table, the smallest ratio, and the mean. Whether all bars hold.
pub(crate) fn print(results: &[Measured]) -> bool {
    if results.is_empty() {
        return true;
    }
    let all_hold = protocol::print_table(results, "native launches");
    let least = results.iter().min_by(|a, b| ratio(a).total_cmp(&ratio(b)));
    let mean = (results.iter().map(|measured| ratio(measured).ln()).sum::<f64>() / results.len() as f64).exp();
    if let Some(least) = least {
        println!(
            "host.never_slower: smallest ratio {:.3} ({}), geometric mean {mean:.3} of {} cases",
            ratio(least),
            least.name,
            results.len()
        );
    }
    all_hold
}
