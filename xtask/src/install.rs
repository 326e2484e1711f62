//! The packages as users get them: `cargo install cargo-sycl` from a registry, then a new package that is built and run.
//!
//! The registry is a folder with our packages and the versions of `Cargo.lock` of everything else, in the place of crates.io. Invariant:
//! after the packages are made, nothing of the repository is used, neither its sources nor its configuration of cargo. The user's package
//! lies where no workspace is around it. What is built is not optimised, for the time that it takes.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::dockerfile::{self, Step};
use crate::opencl;
use crate::outcome::{Failure, Outcome, Result};
use crate::package::{empty, pack};
use crate::process::{self, Captured, cargo, command};
use crate::workspace::{Workspace, path_text};

/// The folder below the target folder in which the registry and the installed tool are.
const FOLDER: &str = "install-stage";

/// Cargo's configuration in the user's folder.
const CONFIGURATION: &str = ".cargo/config.toml";

/// What the program of a new package prints, after the device's name.
const OUTPUT: &str = " scaled 1000000 numbers, the last is 1999998\n";

/// Installs the tool, and does with it what the book's first lines say.
pub(crate) fn run(workspace: &Workspace) -> Result<Outcome> {
    let folder = workspace.target_directory.join(FOLDER);
    let packages = pack(workspace, &folder, &["--no-verify"])?;
    let registry = registry(workspace, &folder, &packages)?;
    let user = User::new(&folder, &registry)?;
    user.install(workspace)?;
    user.build_and_run(workspace)?;
    user.leave()?;
    Ok(Outcome::Passed(format!("{} packages", packages.len())))
}

/// A folder that stands for crates.io.
fn registry(workspace: &Workspace, folder: &Path, packages: &[PathBuf]) -> Result<PathBuf> {
    let registry = folder.join("registry");
    process::run_for_output(cargo(workspace).args(["vendor", "--quiet", "--locked"]).arg(&registry))?.succeeded()?;
    for package in packages {
        process::run(command(workspace, &OsString::from("tar")).arg("-xzf").arg(package).arg("-C").arg(&registry))?;
        let name = package.file_stem().unwrap_or_default();
        write(&registry.join(name).join(".cargo-checksum.json"), r#"{"files":{},"package":null}"#)?;
    }
    Ok(registry)
}

/// A user who has a toolchain, crates.io, and nothing else.
struct User {
    /// Where the tool is installed.
    root: PathBuf,
    /// What `cargo install` builds.
    target: PathBuf,
    /// The user's own folder, outside of the repository.
    home: PathBuf,
}

impl User {
    fn new(folder: &Path, registry: &Path) -> Result<Self> {
        let home = env::temp_dir().join(format!("oxisycl-install-{}", std::process::id()));
        empty(&home)?;
        fs::create_dir(home.join(".cargo")).map_err(|error| Failure::new(format!("{}: {error}", home.display())))?;
        let replaced = format!(
            "[source.crates-io]\nreplace-with = \"packages\"\n\n[source.packages]\ndirectory = {:?}\n\n[net]\noffline = true\n",
            path_text(registry)?
        );
        write(&home.join(CONFIGURATION), &replaced)?;
        Ok(Self { root: folder.join("root"), target: folder.join("target"), home })
    }

    /// Cargo in a folder of the user's, with the installed tool in `PATH`.
    fn cargo(&self, workspace: &Workspace, folder: &Path, arguments: &[&str]) -> Result<Command> {
        let mut path = vec![self.root.join("bin")];
        path.extend(env::split_paths(&env::var_os("PATH").unwrap_or_default()));
        let path = env::join_paths(path).map_err(|error| Failure::new(format!("PATH: {error}")))?;
        let mut command = cargo(workspace);
        command.args(arguments).current_dir(folder).env("PATH", path);
        // Images that other builds left behind would not be compiled.
        command.env("XDG_CACHE_HOME", self.home.join("cache"));
        for name in ["CARGO_TARGET_DIR", "CARGO_BUILD_TARGET_DIR", "RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS"] {
            command.env_remove(name);
        }
        Ok(command)
    }

    fn install(&self, workspace: &Workspace) -> Result<()> {
        // `cargo install` does not read the configuration of the folder that it is called in.
        let (root, configuration) = (path_text(&self.root)?, self.home.join(CONFIGURATION));
        let arguments = ["install", "cargo-sycl", "--debug", "--root", root, "--config", path_text(&configuration)?];
        let mut command = self.cargo(workspace, &self.home, &arguments)?;
        process::run(command.env("CARGO_TARGET_DIR", &self.target).env("CARGO_PROFILE_DEV_DEBUG", "0"))
    }

    /// A new package, with device code and then without.
    fn build_and_run(&self, workspace: &Workspace) -> Result<()> {
        let package = self.home.join("my-app");
        let in_package = |arguments: &[&str]| -> Result<Captured> {
            process::run_captured(&mut self.cargo(workspace, &package, arguments)?)?.succeeded()
        };
        process::run(&mut self.cargo(workspace, &self.home, &["sycl", "new", "my-app"])?)?;
        expect(&in_package(&["sycl", "run"])?.stdout, OUTPUT)?;
        let built = in_package(&["sycl", "inspect", "target/sycl/debug/my-app"])?.stdout;
        expect(&built, "sm_70: 1 kernel, ")?;
        expect(&built, "spirv1.2: 1 kernel, ")?;
        expect(&built, "  my_app::scaled::")?;
        expect(&in_package(&["sycl", "test"])?.stdout, "1 passed")?;
        expect(&in_package(&["run"])?.stdout, OUTPUT)?;
        expect(&in_package(&["sycl", "inspect", "target/debug/my-app"])?.stdout, "no device code")?;
        expect(&in_package(&["sycl", "doctor"])?.stdout, "ok  toolchain")?;
        self.test_as_in_a_container(workspace, &package)
    }

    /// What the book's Dockerfile runs.
    fn test_as_in_a_container(&self, workspace: &Workspace, package: &Path) -> Result<()> {
        for step in dockerfile::steps(&workspace.read(dockerfile::PATH)?)? {
            match step {
                Step::Elsewhere { line, reason } => {
                    println!("  {}: `{line}` does not run here: {reason}", dockerfile::PATH)
                }
                Step::Cargo { variables, arguments } => {
                    let on_opencl = variables.iter().any(|(_, value)| value.starts_with("opencl"));
                    if on_opencl && opencl::environment(workspace).is_none() {
                        println!("  {}: no test on OpenCL: {} is missing", dockerfile::PATH, opencl::NAME);
                        continue;
                    }
                    let mut command = self.cargo(workspace, package, &arguments)?;
                    let tested = process::run_captured(command.envs(variables))?.succeeded()?;
                    expect(&tested.stdout, "1 passed")?;
                }
            }
        }
        Ok(())
    }

    /// Removes what is outside of the target folder. After a failure it stays, to be looked at.
    fn leave(self) -> Result<()> {
        fs::remove_dir_all(&self.home).map_err(|error| Failure::new(format!("{}: {error}", self.home.display())))
    }
}

fn expect(output: &str, part: &str) -> Result<()> {
    if output.contains(part) { Ok(()) } else { Err(Failure::new(format!("expected {part:?} in {output:?}"))) }
}

fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).map_err(|error| Failure::new(format!("{}: {error}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_in_an_output_is_named() {
        assert_eq!(expect("CPU scaled 1000000 numbers, the last is 1999998\n", OUTPUT), Ok(()));
        let failure = expect("no device code", "1 kernel").unwrap_err();
        assert_eq!(failure.message, "expected \"1 kernel\" in \"no device code\"");
    }
}
