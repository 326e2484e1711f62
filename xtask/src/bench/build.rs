//! `cargo xtask bench build`: what `cargo sycl` takes for an example, beside what plain cargo takes.
//!
//! Both build the same example into folders of their own, first from nothing and then with nothing changed, in turn. Cache and tool of
//! `cargo sycl` are not the user's: the cache is empty at the start of each build from nothing, and building the tool is not counted. The same
//! for a crate of many kernels and two targets: with its dependencies from nothing, and by itself.

mod kernels;

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
/// Builds of the crate of many kernels by itself.
const KERNELS_REPETITIONS: usize = 3;

pub(super) fn run(workspace: &Workspace, json: Option<&Path>, rest: &[String]) -> Result<Outcome> {
    if let Some(argument) = rest.first() {
        return Err(Failure::new(format!("unexpected argument \"{argument}\"")));
    }
    let folder = workspace.target_directory.join("bench-build");
    process::run(cargo(workspace).args(["build", "--quiet", "--profile", "tool", "-p", "cargo-sycl"]))?;
    let tool = workspace.target_directory.join("tool/cargo-sycl");
    let plain = || Builder { workspace, tool: None, folder: folder.join("cargo"), package: None };
    let sycl = || Builder { workspace, tool: Some(&tool), folder: folder.join("cargo-sycl"), package: None };
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
    let many = many_kernels(workspace, &tool, &folder)?;
    let holds = [ratio <= RATIO, extra <= EXTRA];
    println!(
        "build.clean      {ours:.1} s of processors, cargo {theirs:.1} s, ratio {ratio:.2}, bar <= {RATIO}: {}\n\
         build.unchanged  {:.2} s, cargo {:.2} s, {extra:.2} s more, bar <= {EXTRA}: {}",
        verdict(holds[0]),
        unchanged[1],
        unchanged[0],
        verdict(holds[1])
    );
    let kernel_names = ["build.kernels_clean", "build.kernels"];
    let is_held = |[theirs, ours]: [f64; 2]| ours / theirs <= KERNELS_RATIO;
    for (name, [theirs, ours]) in kernel_names.into_iter().zip(many) {
        println!(
            "{name:20} {ours:.1} s of processors for {} kernels and two targets, cargo {theirs:.1} s, ratio {:.2}, bar <= {KERNELS_RATIO}: {}",
            kernels::N_KERNELS,
            ours / theirs,
            verdict(is_held([theirs, ours]))
        );
    }
    if let Some(file) = json {
        let result = |name: &str, [peer_value, value]: [f64; 2], holds: bool| json!({ "name": name, "value": value, "unit": "s", "peer": "cargo", "peer_value": peer_value, "ratio": value / peer_value, "holds": holds });
        let mut results =
            vec![result("build.clean", [theirs, ours], holds[0]), result("build.unchanged", unchanged, holds[1])];
        results.extend(kernel_names.into_iter().zip(many).map(|(name, times)| result(name, times, is_held(times))));
        let text = serde_json::to_string_pretty(&results).map_err(|error| Failure::new(error.to_string()))?;
        fs::write(file, text + "\n").map_err(|error| Failure::new(format!("{}: {error}", file.display())))?;
    }
    if holds == [true; 2] && many.into_iter().all(is_held) {
        Ok(Outcome::passed())
    } else {
        Err(Failure::new("a bar is missed"))
    }
}

/// Seconds of processors of plain cargo and of `cargo sycl`, for the crate of many kernels with its dependencies, and for the crate alone, the
/// least of some builds.
fn many_kernels(workspace: &Workspace, tool: &PathBuf, folder: &Path) -> Result<[[f64; 2]; 2]> {
    let package = folder.join("kernels");
    let source = package.join("src/main.rs");
    let oxisycl = workspace.root.join("crates/oxisycl");
    write(&package.join("Cargo.toml"), &kernels::manifest(&oxisycl.to_string_lossy()))?;
    write(&source, &kernels::source())?;
    // The versions that everything else here is built with.
    write(&package.join("Cargo.lock"), &read(&workspace.root.join("Cargo.lock"))?)?;
    let builder =
        |tool, name: &str| Builder { workspace, tool, folder: folder.join(name), package: Some(package.clone()) };
    let builders = [builder(None, "kernels-cargo"), builder(Some(tool), "kernels-cargo-sycl")];
    let clean = [builders[0].clean()?, builders[1].clean()?];
    let mut alone = [f64::INFINITY; 2];
    for _ in 0..KERNELS_REPETITIONS {
        for (builder, least) in builders.iter().zip(&mut alone) {
            write(&source, &kernels::source())?;
            let _ = fs::remove_dir_all(builder.cache());
            *least = least.min(builder.build()?.0);
        }
    }
    Ok([clean, alone])
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
    /// A package outside the workspace, for two targets, instead of the example.
    package: Option<PathBuf>,
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
                if self.tool.is_some() {
                    build.args(["--targets", "sm_70,spirv"]);
                }
            }
            None => {
                build.args(["-p", "oxisycl-examples", "--example", EXAMPLE]);
            }
        }
        build.env("XDG_CACHE_HOME", self.cache());
        let (start, before) = (Instant::now(), children_seconds()?);
        process::run_quietly(&mut build)?.succeeded()?;
        Ok((children_seconds()? - before, start.elapsed()))
    }
}
