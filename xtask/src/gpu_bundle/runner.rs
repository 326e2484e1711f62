//! Runs parts of a bundle on the machine where it was unpacked, and writes what came of it.
//!
//! This is the program in the bundle, so it needs no workspace, no cargo and no shell. Invariant: a part of which nothing is known to
//! have passed has failed, and a part ends at its limit whatever it does. The results are written after each part, so that those of
//! earlier ones are there when a machine is taken away.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use lexopt::Parser;
use lexopt::prelude::{Long, ValueExt};
use serde_json::{Value, json};

use super::machine::Machine;
use super::part::{BATCHING_FORCED, Counting, LIMIT, PARTS, Part, Tally};
use super::{MANIFEST, RESULTS, packed, reference_of};
use crate::outcome::{Failure, Outcome, Result};
use crate::workspace::{path_text, read};
use crate::{nvcc, process};

/// How much of a log is in the results.
const TAIL_LINES: usize = 60;
const TAIL_CHARS: usize = 8_000;

/// What to run, and where to.
#[derive(Debug, PartialEq, Eq)]
struct Options {
    bundle: PathBuf,
    parts: Vec<String>,
    out: PathBuf,
    limit: Duration,
    /// Only figures whose names contain this.
    filter: Option<String>,
    is_list: bool,
}

/// How one part ended.
struct Report {
    /// The part's name, and `.batching` if small kernels were launched together whatever the device did.
    name: String,
    tally: Tally,
    seconds: f64,
    /// `passed`, or why not, in one line.
    verdict: String,
    log: String,
}

/// `gpu-run BUNDLE [--list] [--part NAME] [--out FOLDER] [--limit SECONDS] [--filter SUBSTR]`.
pub(crate) fn run(arguments: &[String]) -> Result<Outcome> {
    let options = Options::parse(arguments)?;
    if options.is_list {
        PARTS.iter().for_each(|part| println!("{:12}  {}", part.name, part.what));
        return Ok(Outcome::passed());
    }
    let parts = chosen(PARTS, &options.parts)?;
    if options.filter.is_some() {
        have_figures(&parts)?;
    }
    run_parts(&parts, &options, &Machine::here()?)
}

impl Options {
    fn parse(arguments: &[String]) -> Result<Self> {
        let mut bundle = None;
        let out = PathBuf::from("gpu-results");
        let mut options =
            Self { bundle: PathBuf::new(), parts: Vec::new(), out, limit: LIMIT, filter: None, is_list: false };
        let mut parser = Parser::from_args(arguments);
        while let Some(argument) = parser.next()? {
            match argument {
                Long("list") => options.is_list = true,
                Long("part") => options.parts.extend(parser.value()?.string()?.split(',').map(str::to_owned)),
                Long("out") => options.out = PathBuf::from(parser.value()?),
                Long("filter") => options.filter = Some(parser.value()?.string()?),
                Long("limit") => options.limit = Duration::from_secs(parser.value()?.parse()?),
                lexopt::Arg::Value(folder) if bundle.is_none() && !folder.is_empty() => bundle = Some(folder),
                _ => return Err(argument.unexpected().into()),
            }
        }
        options.bundle = bundle.ok_or_else(|| Failure::new("gpu-run: expected the folder of a bundle"))?.into();
        Ok(options)
    }
}

/// The parts of these names, in the order of the table; all without a name.
fn chosen<'a>(parts: &'a [Part], names: &[String]) -> Result<Vec<&'a Part>> {
    if let Some(unknown) = names.iter().find(|name| parts.iter().all(|part| part.name != **name)) {
        let known: Vec<&str> = parts.iter().map(|part| part.name).collect();
        return Err(Failure::new(format!("unknown part \"{unknown}\" (parts: {})", known.join(", "))));
    }
    let is_chosen = |part: &&Part| names.is_empty() || names.iter().any(|name| name == part.name);
    Ok(parts.iter().filter(is_chosen).collect())
}

/// Refuses parts that have nothing to choose figures from.
fn have_figures(parts: &[&Part]) -> Result<()> {
    match parts.iter().find(|part| part.counting != Counting::Figures) {
        Some(part) => Err(Failure::new(format!("--filter chooses figures, and part {} has none", part.name))),
        None => Ok(()),
    }
}

fn run_parts(parts: &[&Part], options: &Options, machine: &Machine) -> Result<Outcome> {
    let failure = |path: &Path, error: std::io::Error| Failure::new(format!("{}: {error}", path.display()));
    fs::create_dir_all(&options.out).map_err(|error| failure(&options.out, error))?;
    // Programs run in that folder, so that what they leave behind is there.
    let out = options.out.canonicalize().map_err(|error| failure(&options.out, error))?;
    let bundle = options.bundle.canonicalize().map_err(|error| failure(&options.bundle, error))?;
    let manifest: Value = read(&bundle.join(MANIFEST))?
        .parse()
        .map_err(|error| Failure::new(format!("{MANIFEST} of the bundle is no JSON: {error}")))?;
    println!("{}, driver {}", machine.gpu, machine.driver);
    let (mut results, mut failed) = (Vec::new(), Vec::new());
    let runs = parts.iter().flat_map(|part| [Some((part, false)), part.is_repeated.then_some((part, true))]);
    for (part, is_batching_forced) in runs.flatten() {
        let name = if is_batching_forced { format!("{}.batching", part.name) } else { part.name.to_owned() };
        println!("==> {name}: {}", part.what);
        let environment = is_batching_forced.then_some(BATCHING_FORCED);
        let report = run_part(part, name, environment, (&bundle, &out), options)?;
        println!("<== {}", report.line());
        if report.verdict != "passed" {
            failed.push(report.name.clone());
        }
        results.push(report.to_json(machine, &manifest["commit"]));
        let path = out.join(RESULTS);
        let text = serde_json::to_string_pretty(&results).map_err(|error| Failure::new(error.to_string()))?;
        fs::write(&path, text + "\n").map_err(|error| failure(&path, error))?;
    }
    match failed.as_slice() {
        [] => Ok(Outcome::Passed(format!("{} parts, {}", results.len(), out.join(RESULTS).display()))),
        _ => Err(Failure::new(format!("failed: {}; see {}", failed.join(", "), out.join(RESULTS).display()))),
    }
}

/// Runs one part; an error of the part is its report.
fn run_part(
    part: &Part,
    name: String,
    environment: Option<(&str, &str)>,
    (bundle, out): (&Path, &Path),
    options: &Options,
) -> Result<Report> {
    let log = out.join(format!("{name}.log"));
    let file = File::create(&log).map_err(|error| Failure::new(format!("{}: {error}", log.display())))?;
    let start = Instant::now();
    let ended = prepare(part, bundle, out, &file).and_then(|mut command| {
        command.envs(environment);
        command.args(options.filter.iter().flat_map(|filter| ["--filter", filter]));
        wait(&mut command, &file, options.limit)
    });
    let seconds = start.elapsed().as_secs_f64();
    let output = String::from_utf8_lossy(&fs::read(&log).unwrap_or_default()).into_owned();
    let success = matches!(ended, Ok(Some(status)) if status.success());
    let tally = part.counting.tally(&output, success);
    let verdict = match ended {
        Err(failure) => failure.message,
        Ok(None) => format!("ended at its limit of {} s", options.limit.as_secs()),
        Ok(Some(_)) if tally.failed > 0 => format!("{} failed", tally.failed),
        Ok(Some(status)) if !status.success() => status.to_string(),
        Ok(Some(_)) if tally.passed == 0 => "nothing passed".to_owned(),
        Ok(Some(_)) => "passed".to_owned(),
    };
    Ok(Report { name, tally, seconds, verdict, log: tail(&output) })
}

/// The command of a part, with what it needs beside it built.
fn prepare(part: &Part, bundle: &Path, out: &Path, log: &File) -> Result<Command> {
    let mut command = Command::new(packed::unpack(bundle, part.name, out)?);
    command.current_dir(out).args(part.arguments_for(path_text(out)?));
    if let Some(benchmark) = part.reference {
        match reference(benchmark, bundle, out, log)? {
            Some(reference) => {
                command.arg("--reference").arg(reference);
            }
            None => println!("    there is no nvcc: the figures have no peer"),
        }
    }
    Ok(command)
}

/// The benchmark's peer, built here; `None` without a compiler.
fn reference(benchmark: &str, bundle: &Path, out: &Path, log: &File) -> Result<Option<PathBuf>> {
    let program = out.join(format!("{benchmark}-reference"));
    let Some(mut command) = nvcc::compile(&bundle.join(reference_of(benchmark)), &program) else { return Ok(None) };
    match wait(&mut command, log, LIMIT)? {
        Some(status) if status.success() => Ok(Some(program)),
        _ => Err(Failure::new("nvcc did not build the reference")),
    }
}

/// Runs a command to its end, or to the limit; then `None`. Both of its streams go to the log.
fn wait(command: &mut Command, log: &File, limit: Duration) -> Result<Option<ExitStatus>> {
    let program = command.get_program().to_string_lossy().into_owned();
    let failure = |error: std::io::Error| Failure::new(format!("{program}: {error}"));
    let stream = || log.try_clone().map(Stdio::from).map_err(failure);
    // A group of its own: what it has started ends with it.
    let mut child =
        command.process_group(0).stdin(Stdio::null()).stdout(stream()?).stderr(stream()?).spawn().map_err(failure)?;
    process::wait_within(&mut child, limit).map_err(failure)
}

/// The last lines of a log.
fn tail(log: &str) -> String {
    let start = log.char_indices().rev().nth(TAIL_CHARS - 1).map_or(0, |(position, _)| position);
    let lines: Vec<&str> = log[start..].lines().collect();
    lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
}

impl Report {
    fn line(&self) -> String {
        let Tally { passed, failed, skipped } = self.tally;
        let Self { name, verdict, .. } = self;
        format!("{name:22} {:7.1} s  {passed} passed, {failed} failed, {skipped} skipped: {verdict}", self.seconds)
    }

    fn to_json(&self, machine: &Machine, commit: &Value) -> Value {
        json!({
            "name": self.name,
            "result": self.verdict,
            "passed": self.tally.passed,
            "failed": self.tally.failed,
            "skipped": self.tally.skipped,
            "seconds": (self.seconds * 10.0).round() / 10.0,
            "gpu": machine.gpu,
            "driver": machine.driver,
            "date": machine.date,
            "commit": commit,
            "log": self.log,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A bundle of shell scripts.
    struct Bundle(PathBuf);

    impl Bundle {
        fn new(name: &str, programs: &[(&str, &str)]) -> Self {
            let folder = std::env::temp_dir().join(format!("xtask-bundle-{name}-{}", std::process::id()));
            fs::create_dir_all(folder.join("bin")).unwrap();
            fs::write(folder.join(MANIFEST), "{\"commit\": \"abc\"}").unwrap();
            for (program, script) in programs {
                let path = folder.join(program);
                fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
                packed::pack(&path, &folder, program).unwrap();
            }
            Self(folder)
        }

        fn run(&self, parts: &[Part], limit: Duration) -> (Result<Outcome>, Vec<Value>) {
            self.run_filtered(parts, limit, None)
        }

        fn run_filtered(
            &self,
            parts: &[Part],
            limit: Duration,
            filter: Option<String>,
        ) -> (Result<Outcome>, Vec<Value>) {
            let (bundle, out) = (self.0.clone(), self.0.join("out"));
            let options = Options { bundle, parts: Vec::new(), out: out.clone(), limit, filter, is_list: false };
            let machine = Machine { gpu: "G".to_owned(), driver: "1.2".to_owned(), date: "today".to_owned() };
            let outcome = run_parts(&parts.iter().collect::<Vec<_>>(), &options, &machine);
            let results: Value = read(&out.join(RESULTS)).unwrap().parse().unwrap();
            (outcome, results.as_array().unwrap().clone())
        }
    }

    impl Drop for Bundle {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn part(name: &'static str, counting: Counting) -> Part {
        let arguments = &["--out", "{out}"];
        Part { name, counting, reference: None, is_repeated: false, arguments, ..PARTS[0] }
    }

    #[test]
    fn results_say_what_came_of_each_part_and_where() {
        let suite =
            "echo 'test cuda a::b ... ignored (one device)'; echo 'test result: ok. 12 passed; 0 failed; 1 ignored'";
        let failing = "echo oh >&2; echo 'test result: FAILED. 3 passed; 1 failed'; exit 1";
        let writing = "pwd > \"$2/where\"";
        let bundle = Bundle::new("results", &[("good", suite), ("bad", failing), ("writing", writing)]);
        let parts = [
            part("good", Counting::Conformance),
            part("bad", Counting::Conformance),
            part("writing", Counting::Saying("")),
            part("missing", Counting::Saying("")),
        ];
        let (outcome, results) = bundle.run(&parts, LIMIT);
        let message = outcome.unwrap_err().message;
        assert!(message.starts_with("failed: bad, missing; see "), "{message}");
        let [good, bad, writing, missing] = &results[..] else { panic!("{results:?}") };
        for (key, expected) in [
            ("name", json!("good")),
            ("result", json!("passed")),
            ("passed", json!(12)),
            ("failed", json!(0)),
            ("skipped", json!(1)),
            ("gpu", json!("G")),
            ("driver", json!("1.2")),
            ("date", json!("today")),
            ("commit", json!("abc")),
            ("log", json!("test cuda a::b ... ignored (one device)\ntest result: ok. 12 passed; 0 failed; 1 ignored")),
        ] {
            assert_eq!(good[key], expected, "{key}");
        }
        assert!(good["seconds"].is_f64());
        assert_eq!((&bad["result"], &bad["failed"]), (&json!("1 failed"), &json!(1)));
        assert_eq!(bad["log"], "oh\ntest result: FAILED. 3 passed; 1 failed");
        assert_eq!(writing["result"], "passed");
        assert!(bundle.0.join("out/where").is_file(), "the folder of the results is passed on");
        assert!(missing["result"].as_str().unwrap().contains("bin/missing"), "{missing}");
    }

    #[test]
    fn a_filter_reaches_the_benchmark_and_is_refused_for_other_parts() {
        let script = "[ \"$3 $4\" = '--filter two words' ] && echo 'gpu.a 1 us holds'";
        let bundle = Bundle::new("filter", &[("figures", script)]);
        let figures = part("figures", Counting::Figures);
        let (outcome, results) = bundle.run_filtered(&[figures], LIMIT, Some("two words".to_owned()));
        assert!(outcome.is_ok(), "{results:?}");
        assert_eq!(results[0]["passed"], 1);
        assert!(bundle.run(&[figures], LIMIT).0.is_err());
        assert!(have_figures(&[&figures]).is_ok());
        let message = have_figures(&[&figures, &part("suite", Counting::Harness)]).unwrap_err().message;
        assert_eq!(message, "--filter chooses figures, and part suite has none");
    }

    #[test]
    fn a_suite_runs_a_second_time_with_batching_forced_on() {
        let script = "[ \"$OXISYCL_BATCHING\" = always ] && n=2 || n=1; echo \"test result: ok. $n passed; 0 failed\"";
        let bundle = Bundle::new("repeated", &[("suite", script)]);
        let suite = Part { is_repeated: true, ..part("suite", Counting::Conformance) };
        let (outcome, results) = bundle.run(&[suite], LIMIT);
        assert!(outcome.is_ok(), "{results:?}");
        let seen: Vec<_> = results.iter().map(|result| (&result["name"], &result["passed"])).collect();
        assert_eq!(seen, [(&json!("suite"), &json!(1)), (&json!("suite.batching"), &json!(2))]);
    }

    #[test]
    fn a_part_in_which_nothing_passed_has_failed() {
        let bundle = Bundle::new(
            "nothing",
            &[("empty", "exit 0"), ("crash", "echo 'test result: ok. 1 passed; 0 failed'; exit 3")],
        );
        let parts = [part("empty", Counting::Conformance), part("crash", Counting::Conformance)];
        let (outcome, results) = bundle.run(&parts, LIMIT);
        assert!(outcome.is_err());
        assert_eq!(results[0]["result"], "nothing passed");
        assert_eq!(results[1]["result"], "exit status: 3");
    }

    #[test]
    fn a_part_ends_at_its_limit_with_all_that_it_started() {
        let bundle = Bundle::new("limit", &[("endless", "echo started; sleep 600 & echo $! > child; wait")]);
        let start = Instant::now();
        let (_, results) = bundle.run(&[part("endless", Counting::Saying(""))], Duration::from_secs(1));
        assert!(start.elapsed() < Duration::from_secs(60));
        assert_eq!(results[0]["result"], "ended at its limit of 1 s");
        assert_eq!(results[0]["log"], "started");
        let child = read(&bundle.0.join("out/child")).unwrap();
        // Ended, or ended and not yet waited for by the process that inherited it. The signal may take a moment.
        let state = || fs::read_to_string(format!("/proc/{}/stat", child.trim())).unwrap_or_default();
        let has_ended = |state: &str| state.is_empty() || state.contains(") Z ");
        while !has_ended(&state()) {
            assert!(start.elapsed() < Duration::from_secs(60), "{}", state());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    #[test]
    fn parts_are_chosen_by_name_and_unknown_ones_refused() {
        let names = |list: &[&str]| list.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
        let of = |list: &[&str]| chosen(PARTS, &names(list)).map(|parts| parts.iter().map(|p| p.name).collect());
        assert_eq!(of(&[]), Ok(PARTS.iter().map(|part| part.name).collect::<Vec<_>>()));
        assert_eq!(of(&["tour", "conformance"]), Ok(vec!["conformance", "tour"]));
        assert!(of(&["none"]).unwrap_err().message.contains("conformance, "));
    }

    #[test]
    fn the_command_line_is_read_or_refused() {
        let parse = |line: &str| Options::parse(&line.split(' ').map(str::to_owned).collect::<Vec<_>>());
        let options = parse("/b --part tour,backend --out /o --limit 9 --filter copy").unwrap();
        assert_eq!(options.filter.as_deref(), Some("copy"));
        assert_eq!((options.bundle, options.out), ("/b".into(), "/o".into()));
        assert_eq!((options.parts, options.limit.as_secs()), (vec!["tour".to_owned(), "backend".to_owned()], 9));
        for line in ["", "--list", "/b --part", "/b --limit soon", "/b --filter", "/b tour"] {
            assert!(parse(line).is_err(), "{line}");
        }
    }

    #[test]
    fn only_the_end_of_a_long_log_is_kept() {
        let log: String = (0..1000).map(|line| format!("line {line}\n")).collect();
        let kept = tail(&log);
        assert!(kept.starts_with("line 940\n") && kept.ends_with("line 999"), "{kept}");
        assert_eq!(tail(&"ä".repeat(TAIL_CHARS + 5)).chars().count(), TAIL_CHARS);
        assert_eq!(tail(""), "");
    }
}
