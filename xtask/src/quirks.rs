//! The stage `quirks`: whether the faults are still there that code works around.
//!
//! Reads the tables of the book's page, which a test of each crate holds against the source. Each reproducer runs twice, in a process of
//! its own with a time limit. It must pass, and must not pass with its quirk switched off. Does not decide which driver a quirk is for at
//! run time.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use crate::counts::Counts;
use crate::examples;
use crate::opencl;
use crate::outcome::{Failure, Outcome, Result};
use crate::process::{cargo, command, run_for_output, run_within};
use crate::workspace::{Workspace, read};

const PAGE: &str = "book/src/quirks.md";
/// Names of quirks that a test leaves the remedies of out.
const VARIABLE: &str = "OXISYCL_TEST_QUIRKS_OFF";
/// How long one run of a reproducer may take. The longest ones take 12 s.
const LIMIT: Duration = Duration::from_secs(60);
/// How many processors a reproducer sees: with more, a driver has the threads that it lacks on small machines.
const N_PROCESSORS: usize = 2;

/// A row of the page.
#[derive(Debug, PartialEq, Eq)]
struct Row {
    package: String,
    name: String,
    driver: String,
    /// A test's name, or the reason why there is none.
    reproducer: Result<String, String>,
}

/// Runs the reproducers of all quirks whose driver is here.
pub(crate) fn run(workspace: &Workspace) -> Result<Outcome> {
    let rows = rows(&read(&workspace.root.join(PAGE))?)?;
    if opencl::environment(workspace).is_none() {
        return Ok(Outcome::Skipped(format!("{} is not installed", opencl::NAME)));
    }
    let programs = programs(workspace)?;
    let processors = std::fs::read_to_string("/proc/self/status").ok().and_then(|status| few_processors(&status));
    let (mut n_shown, mut findings) = (0, Vec::new());
    for row in &rows {
        let test = match &row.reproducer {
            Ok(test) if is_here(&row.driver) => test,
            Ok(_) => {
                println!("  {}: not run, not here: {}", row.name, row.driver);
                continue;
            }
            Err(reason) => {
                println!("  {}: not run, {reason}", row.name);
                continue;
            }
        };
        let program = programs.get(&row.package.replace('-', "_"));
        let program = program.ok_or_else(|| Failure::new(format!("cargo built no tests of {}", row.package)))?;
        let is_passed = |off: &str| passes(workspace, program, (row, test), processors.as_deref(), off);
        // Not the driver's fault, if it fails anyway.
        if !is_passed("")? {
            findings.push(format!("{}: {test} fails with the remedy, too", row.name));
        } else if is_passed(&row.name).unwrap_or(false) {
            findings.push(format!("{}: {test} passes without the remedy: which version repaired it?", row.name));
        } else {
            println!("  {}: still there", row.name);
            n_shown += 1;
        }
    }
    Failure::unless_empty("wrong quirk", findings)?;
    Ok(Outcome::Passed(format!("{n_shown} of {} quirks shown", rows.len())))
}

/// Whether a driver can be run here: LLVM comes with Rust, Intel's driver is installed, and a processor is there.
fn is_here(driver: &str) -> bool {
    match driver {
        "LLVM" | "Intel OpenCL CPU" | "any OpenCL CPU" => true,
        "Intel OpenCL CPU (AVX-512)" => has_avx512(),
        _ => false,
    }
}

/// Whether the driver compiles for AVX-512 here.
fn has_avx512() -> bool {
    #[cfg(target_arch = "x86_64")]
    return std::arch::is_x86_feature_detected!("avx512f");
    #[cfg(not(target_arch = "x86_64"))]
    false
}

/// Runs one reproducer. `Err` if it did not end.
fn passes(
    workspace: &Workspace,
    program: &Path,
    (row, test): (&Row, &str),
    processors: Option<&str>,
    off: &str,
) -> Result<bool> {
    let mut words: Vec<OsString> = Vec::new();
    if let Some(processors) = processors {
        words.extend(["taskset", "-c", processors].map(OsString::from));
    }
    words.push(program.into());
    let mut run = command(workspace, &words[0]);
    run.args(&words[1..]).args([test, "--include-ignored", "--test-threads=1"]);
    // Tests look for files of their own from here.
    let folder = workspace.root.join("crates").join(&row.package);
    run.env(VARIABLE, off).env("RUST_BACKTRACE", "0").env("CARGO_MANIFEST_DIR", &folder).current_dir(folder);
    let captured = run_within(&mut run, LIMIT)?;
    let Counts { passed, failed, .. } = Counts::of_cargo_test(&captured.stdout);
    match passed + failed {
        1 => Ok(passed == 1 && captured.success),
        // The process was aborted in the middle.
        0 if !captured.success && captured.stdout.contains("running 1 test") => Ok(false),
        n => Err(Failure::new(format!("{}: {n} tests are called \"{test}\", not one", row.package))),
    }
}

/// The programs of the crates' unit tests by the names of their libraries. Those of the stage `tests`, if it ran.
fn programs(workspace: &Workspace) -> Result<BTreeMap<String, PathBuf>> {
    let mut command = cargo(workspace);
    command.args(["test", "--workspace", "--lib", "--no-run", "--message-format", "json-render-diagnostics"]);
    command.args(["--features", &examples::features(workspace)?]);
    let messages = run_for_output(&mut command)?.succeeded()?.stdout;
    let program = |line: &str| {
        let message: Value = line.parse().ok()?;
        let path = message["executable"].as_str()?;
        Some((message["target"]["name"].as_str()?.to_owned(), PathBuf::from(path)))
    };
    Ok(messages.lines().filter_map(program).collect())
}

/// The first of the processors that a process may use, if it may use more: as `taskset` takes them.
fn few_processors(status: &str) -> Option<String> {
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?.trim();
    let mut allowed: Vec<u32> = Vec::new();
    for part in list.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        allowed.extend(first..=last);
    }
    let first: Vec<_> = allowed.iter().take(N_PROCESSORS).map(u32::to_string).collect();
    (allowed.len() > N_PROCESSORS).then(|| first.join(","))
}

/// The rows of all tables, each below a heading that names its crate.
fn rows(page: &str) -> Result<Vec<Row>> {
    let unquoted = |cell: &str| cell.strip_prefix('`')?.strip_suffix('`').map(str::to_owned);
    let (mut package, mut rows) = (None, Vec::new());
    for line in page.lines() {
        if let Some(heading) = line.strip_prefix("## ") {
            package = heading.split_once('`').and_then(|(_, rest)| rest.split_once('`')).map(|(name, _)| name);
        }
        let Some(cells) = line.strip_prefix("| `") else { continue };
        let cells: Vec<_> = cells.trim_end_matches(" |").split(" | ").collect();
        let (Some(package), [name, driver, _, _, _, reproducer]) = (package, &cells[..]) else {
            return Err(Failure::new(format!("{PAGE}: \"{line}\" is no row of a crate's table")));
        };
        let reproducer = unquoted(reproducer).ok_or_else(|| reproducer.trim_start_matches("none: ").to_owned());
        let (name, driver) = (name.trim_end_matches('`').to_owned(), (*driver).to_owned());
        rows.push(Row { package: package.to_owned(), name, driver, reproducer });
    }
    if rows.is_empty() { Err(Failure::new(format!("{PAGE}: there are no quirks"))) } else { Ok(rows) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_belong_to_the_crate_of_their_heading() {
        let page = "## A (`a-b`)\n\n| quirk | driver |\n|---|---|\n| `x` | LLVM | 2 | It fails. | do (`f.rs`) | `it_works` |\n\
                    ## C (`c`)\n| `y` | D | 1 | It fails. | do | none: it is rare |\n";
        let row = |package: &str, name: &str, driver: &str, reproducer: Result<&str, &str>| Row {
            package: package.to_owned(),
            name: name.to_owned(),
            driver: driver.to_owned(),
            reproducer: reproducer.map(str::to_owned).map_err(str::to_owned),
        };
        let expected = [row("a-b", "x", "LLVM", Ok("it_works")), row("c", "y", "D", Err("it is rare"))];
        assert_eq!(rows(page).unwrap(), expected);
        assert!(rows("## A\n| `x` | y |\n").is_err() && rows("# A\n").is_err());
    }

    #[test]
    fn drivers_of_the_page_are_known() {
        assert!(is_here("LLVM") && !is_here("NVIDIA CUDA"));
        assert_eq!(is_here("Intel OpenCL CPU (AVX-512)"), has_avx512());
    }

    #[test]
    fn large_machines_are_used_in_part() {
        let of = |list: &str| few_processors(&format!("Name:\tx\nCpus_allowed_list:\t{list}\n"));
        assert_eq!(of("0-7").as_deref(), Some("0,1"));
        assert_eq!(of("3,5-6").as_deref(), Some("3,5"));
        assert_eq!((of("0-1"), of("4"), few_processors("")), (None, None, None));
    }
}
