//! The examples. All are built, and those that need no argument and end by themselves are run, on the host by plain cargo. The readme's first
//! command is run as it stands there.

use std::fs;

use crate::outcome::{Failure, Outcome, Result};
use crate::process::{self, cargo};
use crate::workspace::{Workspace, read};

pub(crate) const PACKAGE: &str = "oxisycl-examples";
/// Run as smoke tests. What they write goes to a folder below the target directory.
const RUN: &[&str] = &["ls", "tour"];
/// Run as well with kernels that were compiled for devices.
const FIRST: &str = "tour";

/// The features with which cargo builds all examples, as `--features` takes them for several packages.
pub(crate) fn features(workspace: &Workspace) -> Result<String> {
    let features = workspace.require(PACKAGE)?.features.iter().filter(|feature| *feature != "default");
    Ok(features.map(|feature| format!("{PACKAGE}/{feature}")).collect::<Vec<_>>().join(","))
}

/// Builds the examples, and runs those of [`RUN`].
pub(crate) fn run(workspace: &Workspace) -> Result<Outcome> {
    let package = workspace.require(PACKAGE)?;
    let built = package.targets.iter().filter(|target| target.kind == "example").count();
    if built == 0 {
        return Err(Failure::new(format!("package {PACKAGE} has no examples")));
    }
    // As the stage of the tests builds them, which has compiled all of this.
    let mut command = cargo(workspace);
    process::run(command.args(["build", "--workspace", "--examples", "--features", &features(workspace)?]))?;
    let folder = workspace.target_directory.join("examples");
    fs::create_dir_all(&folder).map_err(|error| Failure::new(format!("{}: {error}", folder.display())))?;
    let mut ran = Vec::new();
    for name in RUN {
        let program = workspace.target_directory.join("debug/examples").join(name);
        process::run(process::command(workspace, &program.into_os_string()).current_dir(&folder))?;
        ran.push(*name);
    }
    let readme = read(&workspace.root.join("README.md"))?;
    let line = format!("cargo sycl run --release --example {FIRST}");
    if !readme.lines().any(|found| found.starts_with(&line)) {
        return Err(Failure::new(format!("README.md has no line that begins with `{line}`")));
    }
    let mut command = cargo(workspace);
    command.args(line.split(' ').skip(1)).arg("--").arg("--out").arg(folder.join("first"));
    process::run(&mut command)?;
    ran.push("the readme's first command");
    Ok(Outcome::Passed(format!("{built} built, run: {}", ran.join(", "))))
}
