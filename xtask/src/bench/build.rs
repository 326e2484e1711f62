//! `cargo xtask bench build`: what `cargo sycl` takes for an example, beside what plain cargo takes.
//!
//! Both build the same example into folders of their own, first from nothing and then with nothing changed, in turn. Cache and tool of
//! `cargo sycl` are not the user's. The cache is empty at the start of each build from nothing, and building the tool is not counted. The
//! same for a crate of many kernels and two targets: with its dependencies from nothing, and by itself. A last build of it is for a level of
//! the host's processors alone.
//!
//! Noise is how far apart two neighbouring builds of plain cargo are, the median of all neighbours. What is built once has none that is known,
//! and its bar holds or is missed.

mod kernels;

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::outcome::{Failure, Outcome, Result};
use crate::process::{self, cargo, command};
use crate::processor_time::children_seconds;
use crate::workspace::{Workspace, read};

const EXAMPLE: &str = "tour";
/// Builds with nothing changed.
const REPETITIONS: usize = 5;
/// The most processor time from nothing, as a ratio.
const RATIO: f64 = 2.0;
/// The most time beyond plain cargo's with nothing changed, in seconds.
const EXTRA: f64 = 0.5;
/// The most processor time for a crate of many kernels, as a ratio.
const KERNELS_RATIO: f64 = 2.5;
/// The most processor time that native code of a kernel for a level takes, in seconds.
const LEVEL: f64 = 0.25;
const OF_DEVICES: &str = "sm_70,spirv";
const OF_LEVEL: &str = "host-v3";
/// Builds of the crate of many kernels by itself.
const KERNELS_REPETITIONS: usize = 3;

pub(super) fn run(workspace: &Workspace, json: Option<&Path>, rest: &[String]) -> Result<Outcome> {
    if let Some(argument) = rest.first() {
        return Err(Failure::new(format!("unexpected argument \"{argument}\"")));
    }
    let folder = workspace.target_directory.join("bench-build");
    process::run(cargo(workspace).args(["build", "--quiet", "--profile", "tool", "-p", "cargo-sycl"]))?;
    let tool = workspace.target_directory.join("tool/cargo-sycl");
    let plain = || Builder { workspace, tool: None, folder: folder.join("cargo"), package: None, targets: None };
    let sycl =
        || Builder { workspace, tool: Some(&tool), folder: folder.join("cargo-sycl"), package: None, targets: None };
    let [theirs, ours] = [plain().clean()?, sycl().clean()?];
    let mut unchanged = [Vec::new(), Vec::new()];
    for _ in 0..REPETITIONS {
        for (builder, times) in [plain(), sycl()].iter().zip(&mut unchanged) {
            times.push(builder.build()?.1.as_secs_f64());
        }
    }
    let differences = unchanged[0].windows(2).map(|pair| (pair[1] - pair[0]).abs());
    let noise = median(differences.collect());
    let unchanged = unchanged.map(|times| least(&times));
    let ratio = ours / theirs;
    let extra = unchanged[1] - unchanged[0];
    let ManyKernels { of_devices: many, of_level } = many_kernels(workspace, &tool, &folder)?;
    let level = Verdict::of(of_level, LEVEL, 0.0);
    let verdicts = [Verdict::of(ratio, RATIO, 0.0), Verdict::of(extra, EXTRA, noise)];
    println!(
        "build.clean      {ours:.1} s of processors, cargo {theirs:.1} s, ratio {ratio:.2}, bar <= {RATIO}: {}\n\
         build.unchanged  {:.2} s, cargo {:.2} s, {extra:.2} s more, bar <= {EXTRA}: {}",
        verdicts[0], unchanged[1], unchanged[0], verdicts[1]
    );
    let kernel_names = ["build.kernels_clean", "build.kernels"];
    for (name, ([theirs, ours], verdict)) in kernel_names.into_iter().zip(many) {
        println!(
            "{name:20} {ours:.1} s of processors for {} kernels and two targets, cargo {theirs:.1} s, ratio {:.2}, bar <= {KERNELS_RATIO}: {verdict}",
            kernels::N_KERNELS,
            ours / theirs,
        );
    }
    println!("build.level          {of_level:.2} s of processors for a kernel and {OF_LEVEL}, bar <= {LEVEL}: {level}");
    if let Some(file) = json {
        let result = |name: &str, [peer_value, value]: [f64; 2], verdict: Verdict| json!({ "name": name, "value": value, "unit": "s", "peer": "cargo", "peer_value": peer_value, "ratio": value / peer_value, "verdict": verdict.to_string() });
        let mut results =
            vec![result("build.clean", [theirs, ours], verdicts[0]), result("build.unchanged", unchanged, verdicts[1])];
        let of_many = kernel_names.into_iter().zip(many);
        results.extend(of_many.map(|(name, (times, verdict))| result(name, times, verdict)));
        results.push(json!({ "name": "build.level", "value": of_level, "unit": "s", "peer": "bar", "peer_value": LEVEL, "ratio": of_level / LEVEL, "verdict": level.to_string() }));
        let text = serde_json::to_string_pretty(&results).map_err(|error| Failure::new(error.to_string()))?;
        fs::write(file, text + "\n").map_err(|error| Failure::new(format!("{}: {error}", file.display())))?;
    }
    if verdicts
        .into_iter()
        .chain(many.map(|(_, verdict)| verdict))
        .chain([level])
        .any(|verdict| verdict == Verdict::Missed)
    {
        return Err(Failure::new("a bar is missed"));
    }
    Ok(Outcome::passed())
}

/// Whether a bar holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Holds,
    WithinNoise,
    Missed,
}

impl Verdict {
    /// Of a value that is to be at most `bar`, in the unit of both; `noise` excuses as much.
    fn of(value: f64, bar: f64, noise: f64) -> Self {
        match value - bar {
            excess if excess <= 0.0 => Self::Holds,
            excess if excess <= noise => Self::WithinNoise,
            _ => Self::Missed,
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Holds => "holds",
            Self::WithinNoise => "within noise",
            Self::Missed => "MISSED",
        })
    }
}

fn least(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}

/// Zero if there are no values.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

/// What a crate of many kernels takes, in seconds of processors.
struct ManyKernels {
    /// By plain cargo and by `cargo sycl`, the least of some builds, each with whether the bar holds. First with the crate's dependencies, then
    /// alone.
    of_devices: [([f64; 2], Verdict); 2],
    /// Native code for a level, of a kernel.
    of_level: f64,
}

fn many_kernels(workspace: &Workspace, tool: &PathBuf, folder: &Path) -> Result<ManyKernels> {
    let package = folder.join("kernels");
    let source = package.join("src/main.rs");
    let oxisycl = workspace.root.join("crates/oxisycl");
    write(&package.join("Cargo.toml"), &kernels::manifest(&oxisycl.to_string_lossy()))?;
    write(&source, &kernels::source())?;
    // The versions that everything else here is built with.
    write(&package.join("Cargo.lock"), &read(&workspace.root.join("Cargo.lock"))?)?;
    let builder = |tool, name: &str, targets| Builder {
        workspace,
        tool,
        folder: folder.join(name),
        package: Some(package.clone()),
        targets,
    };
    let of_devices = builder(Some(tool), "kernels-cargo-sycl", Some(OF_DEVICES));
    let builders = [builder(None, "kernels-cargo", None), of_devices];
    let clean = [builders[0].clean()?, builders[1].clean()?];
    let of_level = builder(Some(tool), "kernels-cargo-sycl", Some(OF_LEVEL));
    let (mut alone, mut level) = ([Vec::new(), Vec::new()], Vec::new());
    for _ in 0..KERNELS_REPETITIONS {
        for (builder, times) in builders.iter().zip(&mut alone) {
            write(&source, &kernels::source())?;
            let _ = fs::remove_dir_all(builder.cache());
            times.push(builder.build()?.0);
        }
        write(&source, &kernels::source())?;
        let _ = fs::remove_dir_all(of_level.cache());
        level.push(of_level.build()?.0);
    }
    let quotients = alone[0].windows(2).map(|pair| (pair[1] / pair[0]).max(pair[0] / pair[1]));
    // What the bar may be multiplied by.
    let noise = median(quotients.collect()).max(1.0);
    let alone = alone.map(|times| least(&times));
    let verdict =
        |[theirs, ours]: [f64; 2], noise: f64| Verdict::of(ours / theirs, KERNELS_RATIO, KERNELS_RATIO * (noise - 1.0));
    let of_level = (least(&level) - alone[0]) / kernels::N_KERNELS as f64;
    Ok(ManyKernels { of_devices: [(clean, verdict(clean, 1.0)), (alone, verdict(alone, noise))], of_level })
}

fn write(path: &Path, text: &str) -> Result<()> {
    let folder = path.parent().unwrap_or(path);
    let written = fs::create_dir_all(folder).and_then(|()| fs::write(path, text));
    written.map_err(|error| Failure::new(format!("{}: {error}", path.display())))
}

/// Builds the example, or a package, into a folder.
struct Builder<'a> {
    workspace: &'a Workspace,
    /// `cargo sycl`, or plain cargo.
    tool: Option<&'a PathBuf>,
    folder: PathBuf,
    /// A package outside the workspace instead of the example.
    package: Option<PathBuf>,
    /// Other targets than those of a build that names none.
    targets: Option<&'a str>,
}

impl Builder<'_> {
    /// The cache of images.
    fn cache(&self) -> PathBuf {
        self.folder.join("cache")
    }

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
        build.args(["--quiet", "--release", "--target-dir"]).arg(&self.folder);
        match &self.package {
            Some(package) => {
                build.arg("--manifest-path").arg(package.join("Cargo.toml"));
            }
            None => {
                build.args(["-p", "oxisycl-examples", "--example", EXAMPLE]);
            }
        }
        build.args(self.targets.iter().flat_map(|targets| ["--targets", targets]));
        build.env("XDG_CACHE_HOME", self.cache());
        let (start, before) = (Instant::now(), children_seconds()?);
        process::run_quietly(&mut build)?.succeeded()?;
        Ok((children_seconds()? - before, start.elapsed()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_that_is_missed_by_less_than_the_noise_does_not_hold() {
        let verdicts = [0.5, 0.5001, 0.52, 0.53].map(|value| Verdict::of(value, 0.5, 0.021));
        assert_eq!(verdicts, [Verdict::Holds, Verdict::WithinNoise, Verdict::WithinNoise, Verdict::Missed]);
        assert_eq!(Verdict::of(0.5001, 0.5, 0.0), Verdict::Missed, "without noise");
        assert_eq!(Verdict::of(f64::NAN, 0.5, 1.0), Verdict::Missed, "no value");
        assert_eq!((median(vec![3.0, 1.0, 2.0]), median(Vec::new()), least(&[2.0, 1.0])), (2.0, 0.0, 1.0));
    }
}
