//! `cargo xtask bench build`: what `cargo sycl` takes for an example, beside what plain cargo takes.
//!
//! Both build the same example into folders of their own, first from nothing and then with nothing changed, in turn. Cache and tool of
//! `cargo sycl` are not the user's: the cache is empty at the start of each build from nothing, and building the tool is not counted.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::outcome::{Failure, Outcome, Result};
use crate::process::{self, cargo, command};
use crate::workspace::Workspace;

const EXAMPLE: &str = "tour";
/// Builds with nothing changed.
const REPETITIONS: usize = 5;
/// The most processor time from nothing, as a ratio.
const RATIO: f64 = 2.0;
/// The most time beyond plain cargo's with nothing changed, in seconds.
const EXTRA: f64 = 0.5;

pub(super) fn run(workspace: &Workspace, json: Option<&Path>, rest: &[&String]) -> Result<Outcome> {
    if let Some(argument) = rest.first() {
        return Err(Failure::new(format!("unexpected argument \"{argument}\"")));
    }
    let folder = workspace.target_directory.join("bench-build");
    process::run(cargo(workspace).args(["build", "--quiet", "--release", "-p", "cargo-sycl"]))?;
    let tool = workspace.target_directory.join("release/cargo-sycl");
    let plain = || Builder { workspace, tool: None, folder: folder.join("cargo") };
    let sycl = || Builder { workspace, tool: Some(&tool), folder: folder.join("cargo-sycl") };
    let [theirs, ours] = [plain().clean()?, sycl().clean()?];
    let mut unchanged = [f64::INFINITY; 2];
    for _ in 0..REPETITIONS {
        for (builder, least) in [plain(), sycl()].iter().zip(&mut unchanged) {
            *least = least.min(builder.build()?.1.as_secs_f64());
        }
    }
    let ratio = ours / theirs;
    let extra = unchanged[1] - unchanged[0];
    let verdict = |holds: bool| if holds { "holds" } else { "MISSED" };
    let holds = [ratio <= RATIO, extra <= EXTRA];
    println!(
        "build.clean      {ours:.1} s of processors, cargo {theirs:.1} s, ratio {ratio:.2}, bar <= {RATIO}: {}\n\
         build.unchanged  {:.2} s, cargo {:.2} s, {extra:.2} s more, bar <= {EXTRA}: {}",
        verdict(holds[0]),
        unchanged[1],
        unchanged[0],
        verdict(holds[1])
    );
    if let Some(file) = json {
        let result = |name: &str, [peer_value, value]: [f64; 2], holds: bool| json!({ "name": name, "value": value, "unit": "s", "peer": "cargo", "peer_value": peer_value, "ratio": value / peer_value, "holds": holds });
        let results = [result("build.clean", [theirs, ours], holds[0]), result("build.unchanged", unchanged, holds[1])];
        let text = serde_json::to_string_pretty(&results).map_err(|error| Failure::new(error.to_string()))?;
        fs::write(file, text + "\n").map_err(|error| Failure::new(format!("{}: {error}", file.display())))?;
    }
    if holds == [true; 2] { Ok(Outcome::passed()) } else { Err(Failure::new("a bar is missed")) }
}

/// Builds the example into a folder.
struct Builder<'a> {
    workspace: &'a Workspace,
    /// `cargo sycl`, or plain cargo.
    tool: Option<&'a PathBuf>,
    folder: PathBuf,
}

impl Builder<'_> {
    /// Seconds of processors, of all processes, for a build without anything there.
    fn clean(&self) -> Result<f64> {
        if self.folder.exists() {
            let failure = |error| Failure::new(format!("{}: {error}", self.folder.display()));
            fs::remove_dir_all(&self.folder).map_err(failure)?;
        }
        Ok(self.build()?.0)
    }

    /// Seconds of processors, and the time.
    fn build(&self) -> Result<(f64, Duration)> {
        let mut build = match self.tool {
            Some(tool) => {
                let mut build = command(self.workspace, &tool.as_os_str().to_owned());
                build.args(["sycl", "build"]);
                build
            }
            None => {
                let mut build = cargo(self.workspace);
                build.arg("build");
                build
            }
        };
        build.args(["--quiet", "--release", "-p", "oxisycl", "--example", EXAMPLE, "--target-dir"]).arg(&self.folder);
        // The cache of images is in there.
        build.env("XDG_CACHE_HOME", self.folder.join("cache"));
        let (start, before) = (Instant::now(), children_seconds()?);
        process::run_quietly(&mut build)?.succeeded()?;
        Ok((children_seconds()? - before, start.elapsed()))
    }
}

/// Seconds of processors that ended children of this process have used, and theirs.
fn children_seconds() -> Result<f64> {
    /// Of a second; the same on all Linux systems.
    const TICKS: f64 = 100.0;
    let stat = fs::read_to_string("/proc/self/stat");
    let stat = stat.map_err(|error| Failure::new(format!("/proc/self/stat: {error}; this benchmark needs Linux")))?;
    parse_children(&stat)
        .map(|ticks| ticks as f64 / TICKS)
        .ok_or_else(|| Failure::new("/proc/self/stat has another form"))
}

/// The sum of `cutime` and `cstime`.
fn parse_children(stat: &str) -> Option<u64> {
    // The second field is a name in parentheses, which may hold anything.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(13);
    Some(fields.next()?.parse::<u64>().ok()? + fields.next()?.parse::<u64>().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_time_of_children_is_read_behind_any_name() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194304 90 5000 0 3 11 12 130 14 20 0 1 0 100 200 300\n";
        assert_eq!(parse_children(stat), Some(144));
        assert_eq!(parse_children("7 (x) S 1"), None);
    }

    #[test]
    fn a_child_that_works_is_seen() {
        let before = children_seconds().unwrap();
        let mut work = std::process::Command::new("sh");
        process::run_quietly(work.args(["-c", "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done"])).unwrap();
        assert!(children_seconds().unwrap() > before);
    }
}
