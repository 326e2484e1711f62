//! `cargo xtask validate`: the stages that must pass before a change is merged, in order, with the time each takes, of the clock and of processors.
//!
//! Invariant: a failing stage does not keep the others from running, and any failure makes the whole run fail.
//! Under `CI` what children write goes into a log for each stage, below `logs` in the target directory. Viewers of a run may keep only its
//! first 8000 characters, so a stage's failures stand where the stage ends, and each is short.

use std::env;
use std::time::{Duration, Instant};

use lexopt::Parser;
use lexopt::prelude::{Long, ValueExt};

use crate::outcome::{Failure, Outcome, Result};
use crate::process;
use crate::processor_time::children_seconds;
use crate::text::shortened;
use crate::workspace::Workspace;
use crate::{
    book, conformance, crates, deny, disk, docs, examples, install, lints, loom, msrv, native_suites, opencl_suites,
    package, ptx, quirks, requirements, suites, tidy, tools,
};

/// One step of the validation.
struct Stage {
    name: &'static str,
    run: fn(&Workspace) -> Result<Outcome>,
    /// Folders below the target directory that no later stage reads. They go under `CI` where the disk has little room.
    leaves: &'static [&'static str],
    /// Runs what fails in it once more itself, so that the stage is not repeated as a whole.
    repeats: bool,
    /// The latest minute of the run at which it begins under `CI`, where a run that takes too long counts for nothing.
    latest: Option<u64>,
}

const fn stage(name: &'static str, run: fn(&Workspace) -> Result<Outcome>) -> Stage {
    Stage { name, run, leaves: &[], repeats: false, latest: None }
}

impl Stage {
    const fn leaving(self, leaves: &'static [&'static str]) -> Self {
        Self { leaves, ..self }
    }

    const fn repeating(self) -> Self {
        Self { repeats: true, ..self }
    }

    /// Left out, with a line that says so, if this minute is over.
    const fn until(self, minute: u64) -> Self {
        Self { latest: Some(minute), ..self }
    }

    fn is_late(&self, elapsed: Duration) -> bool {
        self.latest.is_some_and(|minute| elapsed > Duration::from_secs(60 * minute))
    }
}

/// Cheap stages first: what they find needs no long wait.
const STAGES: &[Stage] = &[
    stage("fmt", lints::fmt),
    stage("tidy", tidy::run),
    stage("locks", lints::locks),
    stage("msrv", msrv::run),
    stage("requirements", requirements::run),
    stage("clippy", lints::clippy),
    stage("tests", suites::tests).leaving(&["tmp", "tests"]).repeating(),
    stage("doc-tests", suites::doc_tests),
    stage("quirks", quirks::run),
    stage("conformance-host", conformance::host),
    stage("conformance-simulated", conformance::simulated),
    stage("conformance-apart", conformance::apart),
    stage("suites-host", opencl_suites::on_host),
    stage("opencl", opencl_suites::run),
    stage("crates", crates::few),
    stage("examples", examples::run),
    stage("ptx", ptx::run).leaving(&["spirv", "ptx", "ptx-crates"]),
    stage("docs", docs::run),
    stage("book", book::run),
    stage("loom", loom::run),
    // Each ends before the 80th minute of a slow machine.
    stage("conformance-opencl", opencl_suites::conformance).until(70),
    stage("deny", deny::run).until(76),
    stage("math", opencl_suites::math).until(64),
    stage("native", native_suites::run).leaving(&["sycl/release"]).until(64),
    stage("features", lints::features).until(66),
    stage("release", suites::release).leaving(&["release"]).until(68),
    stage("package", package::verified).leaving(&["package-stage"]).until(69),
    stage("install", install::run).leaving(&["install-stage"]).until(70),
    stage("builds", suites::builds).repeating().until(58),
];

/// Which stages run, and what becomes of one that cannot.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Options {
    only: Option<Vec<String>>,
    skip: Vec<String>,
    /// A stage that cannot run on this machine is a failure. On from the start where `CI` is set.
    pub(crate) strict: bool,
    /// The output of stages goes into logs. On where `CI` is set.
    logged: bool,
    /// Tools are installed where they are missing. Those of stages that may be left out come with the stage.
    pub(crate) installs: bool,
}

/// How one stage ended.
struct Report {
    name: &'static str,
    seconds: f64,
    /// Seconds of processors, where the system tells them.
    processor_seconds: Option<f64>,
    /// Gigabytes that it left free on the disk.
    free: Option<f64>,
    /// Why it was repeated.
    at_first: Option<Failure>,
    result: Result<Outcome>,
}

/// A stage that fails under `CI` is run once more if the repetition can end before this time. A fault of the machine passes then, and one
/// of ours stays. What failed at first is printed in any case. The stage `tests` repeats single tests: as a whole it would take too long.
const LATEST_REPETITION: Duration = Duration::from_secs(60 * 60);

impl Options {
    /// Reads `--only A,B`, `--skip A,B` and one flag of the verb; says whether that flag is there.
    pub(crate) fn parse(arguments: &[String], flag: &str) -> Result<(Self, bool)> {
        let is_ci = is_set(env::var("CI").ok().as_deref());
        let mut options = Self { strict: is_ci, logged: is_ci, ..Self::default() };
        let mut is_flagged = false;
        let mut parser = Parser::from_args(arguments);
        while let Some(argument) = parser.next()? {
            match argument {
                Long("only") => {
                    options.only.get_or_insert_default().extend(stage_names(&parser.value()?.string()?)?);
                }
                Long("skip") => options.skip.extend(stage_names(&parser.value()?.string()?)?),
                Long(name) if name == flag => is_flagged = true,
                _ => return Err(argument.unexpected().into()),
            }
        }
        Ok((options, is_flagged))
    }

    /// Starts the log of a stage, if stages have logs.
    pub(crate) fn start_log(&self, workspace: &Workspace, stage: &str) -> Result<()> {
        if !self.logged {
            return Ok(());
        }
        process::log_into(&workspace.target_directory.join("logs").join(format!("{stage}.log")))
    }

    /// What is shown of a failure: all, or its most telling lines if its log has the rest.
    fn shown(&self, failure: &Failure) -> String {
        if self.logged { failure.brief(BRIEF_FINDINGS) } else { failure.to_string() }
    }

    /// Installs what a stage needs that may be left out. A stage without its tool says itself that it does not run.
    fn set_up(&self, workspace: &Workspace, stage: &Stage) {
        let is_its = |tool: &&tools::Tool| tool.stages.contains(&stage.name);
        if !self.installs || stage.latest.is_none() {
            return;
        }
        for tool in tools::TOOLS.iter().filter(is_its) {
            if let Err(failure) = tool.install(workspace) {
                println!("  {failure}");
            }
        }
    }

    /// Whether a stage is to run.
    pub(crate) fn selects(&self, stage: &str) -> bool {
        self.only.as_ref().is_none_or(|only| only.iter().any(|name| name == stage))
            && !self.skip.iter().any(|name| name == stage)
    }
}

/// What is said of a stage that CI leaves out.
fn too_late(stage: &Stage) -> String {
    let (minute, name) = (stage.latest.unwrap_or_default(), stage.name);
    format!("more than {minute} minutes were over; `cargo xtask validate --only {name}` runs it")
}

/// Whether a stage may be left out where it is late.
pub(crate) fn may_be_late(name: &str) -> bool {
    STAGES.iter().any(|stage| stage.name == name && stage.latest.is_some())
}

/// `cargo xtask validate`.
pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<Outcome> {
    let (options, is_list) = Options::parse(arguments, "list")?;
    if is_list {
        STAGES.iter().for_each(|stage| println!("{}", stage.name));
        return Ok(Outcome::passed());
    }
    run_stages(workspace, &options)
}

/// Runs the selected stages and prints the table.
pub(crate) fn run_stages(workspace: &Workspace, options: &Options) -> Result<Outcome> {
    let mut reports = Vec::new();
    // What ended before the first stage is what the set-up took.
    let set_up = children_seconds().ok();
    let begin = Instant::now();
    for stage in STAGES.iter().filter(|stage| options.selects(stage.name)) {
        println!("==> {}", stage.name);
        options.start_log(workspace, stage.name)?;
        let (start, before) = (Instant::now(), children_seconds().ok());
        let is_late = options.logged && stage.is_late(begin.elapsed());
        let start_stage = || {
            options.set_up(workspace, stage);
            (stage.run)(workspace)
        };
        let mut result = if is_late { Ok(Outcome::Late(too_late(stage))) } else { start_stage() };
        let mut at_first = None;
        let is_early = begin.elapsed() + start.elapsed() < LATEST_REPETITION;
        if options.logged && result.is_err() && !stage.repeats && is_early {
            options.start_log(workspace, &format!("{}-again", stage.name))?;
            at_first = std::mem::replace(&mut result, (stage.run)(workspace)).err();
        }
        let processor_seconds = before.and_then(|before| Some(children_seconds().ok()? - before));
        let seconds = start.elapsed().as_secs_f64();
        let free = disk::free_gigabytes(&workspace.target_directory);
        if let (Err(failure), Some(complaint)) = (&mut result, disk::complaint(free)) {
            failure.findings.push(complaint);
        }
        // Not before the disk was looked at: a failure may be its fault.
        if options.logged {
            disk::make_room(&workspace.target_directory, stage.leaves);
        }
        let report = Report { name: stage.name, seconds, processor_seconds, free, at_first, result };
        // At once: a viewer may keep the beginning of the output alone.
        if let Some(failure) = report.at_first.as_ref().filter(|failure| report.result.as_ref().err() != Some(failure))
        {
            println!("before it was repeated:\n{}", options.shown(failure));
        }
        if let Err(failure) = &report.result {
            println!("{}", options.shown(failure));
        }
        println!("<== {}\n", report.line());
        reports.push(report);
    }
    println!("{:<24} {:>8} {:>10} {:>8}  result", "stage", "seconds", "processor", "GB free");
    println!("{:<24} {:>8} {:>10}", "set-up", "", shown(set_up));
    // Each row stands above already, and under CI the whole should stay short.
    for report in reports.iter().filter(|report| !options.logged || !report.is_clean()) {
        println!("{}", report.line());
    }
    println!("{:<24} {:>8} {:>10}", "all", "", shown(children_seconds().ok()));
    summary(&reports, options.strict)
}

/// How many findings of a failure are shown where the whole should stay short.
const BRIEF_FINDINGS: usize = 16;
/// The most characters of a row's message.
const LONGEST_MESSAGE: usize = 100;

/// A number, if it is known.
fn shown(number: Option<f64>) -> String {
    number.map_or("-".to_owned(), |number| format!("{number:.1}"))
}

impl Report {
    /// Passed at the first attempt.
    fn is_clean(&self) -> bool {
        matches!(self.result, Ok(Outcome::Passed(_))) && self.at_first.is_none()
    }

    /// The stage's row in the table.
    fn line(&self) -> String {
        let result = match &self.result {
            Ok(Outcome::Passed(note)) if note.is_empty() => "passed".to_owned(),
            Ok(Outcome::Passed(note)) => format!("passed ({note})"),
            Ok(Outcome::Skipped(reason)) => format!("did not run: {reason}"),
            Ok(Outcome::Late(reason)) => format!("NOT RUN: {reason}"),
            Err(failure) => {
                let message = failure.message.lines().next().unwrap_or_default();
                format!("FAILED: {}", shortened(message, LONGEST_MESSAGE))
            }
        };
        let flaky = if self.at_first.is_some() && self.result.is_ok() { "FLAKY, repeated: " } else { "" };
        let (processor, free) = (shown(self.processor_seconds), shown(self.free));
        format!("{:<24} {:>8.1} {processor:>10} {free:>8}  {flaky}{result}", self.name, self.seconds)
    }
}

/// The result of the whole run; failing stages are named last.
fn summary(reports: &[Report], strict: bool) -> Result<Outcome> {
    let seconds: f64 = reports.iter().map(|report| report.seconds).sum();
    let names = |is: fn(&Result<Outcome>) -> bool| -> Vec<&str> {
        reports.iter().filter(|report| is(&report.result)).map(|report| report.name).collect()
    };
    let failed = names(Result::is_err);
    let skipped = names(|result| matches!(result, Ok(Outcome::Skipped(_))));
    let late = names(|result| matches!(result, Ok(Outcome::Late(_))));
    let mut problems = Vec::new();
    if reports.is_empty() {
        problems.push("no stage ran".to_owned());
    }
    if strict && !skipped.is_empty() {
        problems.push(format!("did not run, which CI and --install do not allow: {}", skipped.join(", ")));
    }
    if !failed.is_empty() {
        problems.push(format!("failed: {}", failed.join(", ")));
    }
    if !problems.is_empty() {
        return Err(Failure::new(format!("{:.0} seconds; {}", seconds, problems.join("; "))));
    }
    let mut note = format!("{} stages, {seconds:.0} seconds", reports.len());
    if !late.is_empty() {
        note.push_str(&format!("; NOT RUN, for want of time: {}", late.join(", ")));
    }
    if !skipped.is_empty() {
        note.push_str(&format!("; did not run: {}", skipped.join(", ")));
    }
    Ok(Outcome::Passed(note))
}

/// Whether a variable such as `CI` says yes.
fn is_set(value: Option<&str>) -> bool {
    value.is_some_and(|value| !["", "0", "false"].contains(&value))
}

/// The names in a list with commas; each must be a stage.
fn stage_names(list: &str) -> Result<Vec<String>> {
    let names = list.split(',').map(str::trim).filter(|name| !name.is_empty());
    let checked = names.map(|name| match STAGES.iter().any(|stage| stage.name == name) {
        true => Ok(name.to_owned()),
        false => {
            let known: Vec<&str> = STAGES.iter().map(|stage| stage.name).collect();
            Err(Failure::new(format!("unknown stage \"{name}\" (stages: {})", known.join(", "))))
        }
    });
    checked.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> Result<(Options, bool)> {
        let arguments: Vec<String> = arguments.iter().map(|&argument| argument.to_owned()).collect();
        Options::parse(&arguments, "install")
    }

    fn report(name: &'static str, result: Result<Outcome>) -> Report {
        Report { name, seconds: 1.5, processor_seconds: Some(2.0), free: Some(70.25), at_first: None, result }
    }

    #[test]
    fn every_stage_runs_unless_some_are_chosen_or_left_out() {
        let (all, _) = parse(&[]).unwrap();
        assert!(STAGES.iter().all(|stage| all.selects(stage.name)));
        let (some, _) = parse(&["--only", "fmt,tidy", "--only=docs", "--skip", "tidy"]).unwrap();
        let chosen: Vec<&str> = STAGES.iter().map(|stage| stage.name).filter(|name| some.selects(name)).collect();
        assert_eq!(chosen, ["fmt", "docs"]);
    }

    #[test]
    fn wrong_stage_names_are_refused_with_the_right_ones() {
        let failure = parse(&["--only", "fmt,test"]).unwrap_err();
        assert!(failure.message.starts_with("unknown stage \"test\" (stages: fmt, tidy"), "{failure}");
        assert!(parse(&["--skip"]).is_err());
    }

    #[test]
    fn a_verb_has_a_flag_of_its_own_and_others_are_refused() {
        assert!(parse(&["--install", "--skip", "fmt"]).unwrap().1 && !parse(&[]).unwrap().1);
        assert!(parse(&["--list"]).is_err() && parse(&["fmt"]).is_err() && parse(&["--install=x"]).is_err());
    }

    #[test]
    fn stage_names_are_unique() {
        for (position, stage) in STAGES.iter().enumerate() {
            assert!(STAGES[..position].iter().all(|other| other.name != stage.name), "{}", stage.name);
        }
    }

    #[test]
    fn only_the_last_stages_may_be_left_out_where_they_are_late() {
        let late: Vec<_> = STAGES.iter().filter(|stage| stage.latest.is_some()).map(|stage| stage.name).collect();
        assert_eq!(
            late,
            ["conformance-opencl", "deny", "math", "native", "features", "release", "package", "install", "builds"]
        );
        assert!(STAGES.iter().map(|stage| stage.name).collect::<Vec<_>>().ends_with(&late));
        let builds = STAGES.last().unwrap();
        assert_eq!([50, 58, 59].map(|minute| builds.is_late(Duration::from_secs(60 * minute))), [false, false, true]);
        assert!(!STAGES[0].is_late(Duration::from_secs(1_000_000)));
        assert!(too_late(builds).starts_with("more than 58 minutes"));
        let reports = [report("fmt", Ok(Outcome::passed())), report("builds", Ok(Outcome::Late("why".to_owned())))];
        assert!(reports[1].line().ends_with("  NOT RUN: why") && !reports[1].is_clean());
        let expected = "2 stages, 3 seconds; NOT RUN, for want of time: builds";
        assert_eq!(summary(&reports, true), Ok(Outcome::Passed(expected.to_owned())));
    }

    #[test]
    fn ci_is_on_unless_it_is_switched_off() {
        assert!(is_set(Some("1")) && is_set(Some("true")));
        assert!(!is_set(None) && !is_set(Some("")) && !is_set(Some("false")) && !is_set(Some("0")));
    }

    #[test]
    fn failing_stages_are_named_last() {
        let reports = [
            report("fmt", Ok(Outcome::passed())),
            report("clippy", Err(Failure::new("x"))),
            report("docs", Err(Failure::new("y"))),
        ];
        assert_eq!(summary(&reports, false).unwrap_err().message, "4 seconds; failed: clippy, docs");
    }

    #[test]
    fn a_stage_that_cannot_run_fails_only_a_strict_run() {
        let reports = [report("fmt", Ok(Outcome::passed())), report("deny", Ok(Outcome::Skipped("why".to_owned())))];
        let lenient = summary(&reports, false);
        assert_eq!(lenient, Ok(Outcome::Passed("2 stages, 3 seconds; did not run: deny".to_owned())));
        assert!(summary(&reports, true).unwrap_err().message.ends_with("deny"));
    }

    #[test]
    fn a_run_of_nothing_fails() {
        assert!(summary(&[], false).is_err());
    }

    #[test]
    fn rows_of_the_table_show_notes_and_first_lines() {
        let row = report("fmt", Ok(Outcome::Passed("3 files".to_owned()))).line();
        assert_eq!(row, "fmt                           1.5        2.0     70.2  passed (3 files)");
        assert!(report("fmt", Err(Failure::new("one\ntwo"))).line().ends_with("FAILED: one"));
        let repeated = Report { at_first: Some(Failure::new("x")), ..report("loom", Ok(Outcome::passed())) };
        assert!(repeated.line().ends_with("  FLAKY, repeated: passed"));
    }
}
