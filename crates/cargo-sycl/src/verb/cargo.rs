//! The cargo that builds, and what it says about the workspace.
//!
//! Reads cargo's configuration only for what cargo does not tell: the compiler and its wrapper. Does not change it.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::{Failure, Result};

/// Cargo, as the user has it in this folder.
pub(crate) struct Cargo {
    program: PathBuf,
    /// `--manifest-path` and `--config`, as the user gave them.
    configuration: Vec<OsString>,
    directory: PathBuf,
}

/// The folders of this tool's builds.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct TargetFolders {
    /// For what users want to have.
    pub(crate) target: PathBuf,
    /// For what is between, if cargo is configured to keep that apart.
    pub(crate) build: Option<PathBuf>,
}

impl Cargo {
    /// The cargo that started this tool, or else the first in `PATH`.
    pub(crate) fn here(configuration: Vec<OsString>) -> Result<Self> {
        let directory = env::current_dir().map_err(|error| Failure::file(".".as_ref(), error))?;
        let program = env::var_os("CARGO").map_or_else(|| PathBuf::from("cargo"), PathBuf::from);
        Ok(Self { program, configuration, directory })
    }

    pub(crate) fn program(&self) -> &Path {
        &self.program
    }

    /// Cargo, in an environment in which nothing says that another cargo started this tool.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        for (name, _) in env::vars_os() {
            if set_by_cargo_run(&name.to_string_lossy()) {
                command.env_remove(name);
            }
        }
        command
    }

    /// Where this tool builds: `sycl` below cargo's own folder, or below the one that the user names.
    pub(crate) fn target_folders(&self, named: Option<&Path>) -> Result<TargetFolders> {
        let mut command = self.command();
        command.args(["metadata", "--no-deps", "--format-version", "1"]).args(&self.configuration);
        let output = command.output().map_err(|error| Failure::start(&self.program, error))?;
        if !output.status.success() {
            let message = String::from_utf8_lossy(&output.stderr).into_owned();
            return Err(Failure::new(message.trim_start_matches("error: ").trim_end()));
        }
        let metadata: serde_json::Value = serde_json::from_slice(&output.stdout)
            .map_err(|error| Failure::new(format!("cargo metadata is not what was expected: {error}")))?;
        let folder = |name: &str| metadata.get(name).and_then(|path| path.as_str()).map(PathBuf::from);
        let target = folder("target_directory").ok_or_else(|| Failure::new("cargo metadata names no target folder"))?;
        Ok(TargetFolders::below(named.unwrap_or(&target), folder("build_directory").filter(|build| *build != target)))
    }

    /// The compiler that cargo will use.
    pub(crate) fn rustc(&self) -> PathBuf {
        self.tool("RUSTC", "rustc").unwrap_or_else(|| PathBuf::from("rustc"))
    }

    /// A wrapper of the user's around the compiler.
    pub(crate) fn wrapper(&self) -> Option<PathBuf> {
        // A wrapper that is this tool would call itself.
        let other = |path: &PathBuf| path.file_stem().is_some_and(|name| name != "cargo-sycl");
        self.tool("RUSTC_WRAPPER", "rustc-wrapper").filter(other)
    }

    /// A program that cargo finds by a variable or by its configuration; nothing if the nearest of them is empty.
    fn tool(&self, variable: &str, key: &str) -> Option<PathBuf> {
        let of_configuration = format!("CARGO_BUILD_{}", key.to_uppercase().replace('-', "_"));
        let found = env::var_os(variable)
            .or_else(|| env::var_os(of_configuration))
            .map(PathBuf::from)
            .or_else(|| configuration_files(&self.directory).into_iter().find_map(|file| configured(&file, key)));
        found.filter(|path| !path.as_os_str().is_empty())
    }
}

impl TargetFolders {
    /// Folders of this name in them.
    pub(crate) fn within(self, name: &str) -> Self {
        Self { target: self.target.join(name), build: self.build.map(|build| build.join(name)) }
    }

    fn below(target: &Path, build: Option<PathBuf>) -> Self {
        Self { target: target.join("sycl"), build: build.map(|build| build.join("sycl")) }
    }
}

/// A TOML text with this content.
pub(crate) fn literal(text: &str) -> String {
    // JSON's escapes are among TOML's.
    serde_json::Value::from(text).to_string()
}

/// The files of cargo's configuration, the nearest first.
fn configuration_files(directory: &Path) -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = directory.ancestors().map(|folder| folder.join(".cargo")).collect();
    let home = env::var_os("CARGO_HOME").map(PathBuf::from);
    folders.extend(home.or_else(|| env::var_os("HOME").map(|home| Path::new(&home).join(".cargo"))));
    let files = folders.iter().flat_map(|folder| [folder.join("config"), folder.join("config.toml")]);
    files.filter(|file| file.is_file()).collect()
}

/// A program of the table `build`. What cannot be read, cargo reports.
fn configured(file: &Path, key: &str) -> Option<PathBuf> {
    let table: toml::Table = fs::read_to_string(file).ok()?.parse().ok()?;
    let program = table.get("build")?.get(key)?.as_str()?;
    if program.contains('/') {
        // Relative to the folder that has the folder `.cargo`.
        return Some(file.parent()?.parent()?.join(program));
    }
    Some(PathBuf::from(program))
}

fn set_by_cargo_run(name: &str) -> bool {
    name.starts_with("CARGO_PKG_")
        || ["CARGO_MANIFEST_DIR", "CARGO_MANIFEST_PATH", "CARGO_BIN_NAME", "CARGO_CRATE_NAME", "CARGO_PRIMARY_PACKAGE"]
            .contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::tests::Scratch;

    #[test]
    fn the_folder_is_below_cargos() {
        let folders = TargetFolders::below("/w/target".as_ref(), None);
        assert_eq!(folders, TargetFolders { target: "/w/target/sycl".into(), build: None });
        let apart = TargetFolders::below("/w/target".as_ref(), Some("/b".into()));
        assert_eq!(apart.build, Some("/b/sycl".into()));
    }

    #[test]
    fn the_nearest_configuration_wins() {
        let scratch = Scratch::new("configuration");
        let inner = scratch.path().join("a/b");
        for (folder, text) in [
            (scratch.path().to_owned(), "[build]\nrustc-wrapper = \"sccache\"\nrustc = \"tools/rustc\"\n"),
            (inner.clone(), "[build]\nrustc-wrapper = \"\"\n"),
        ] {
            fs::create_dir_all(folder.join(".cargo")).unwrap();
            fs::write(folder.join(".cargo/config.toml"), text).unwrap();
        }
        let find =
            |directory: &Path, key| configuration_files(directory).into_iter().find_map(|file| configured(&file, key));
        assert_eq!(find(&inner, "rustc-wrapper"), Some(PathBuf::new()));
        assert_eq!(find(&scratch.path().join("a"), "rustc-wrapper"), Some("sccache".into()));
        assert_eq!(find(&inner, "rustc"), Some(scratch.path().join("tools/rustc")));
    }

    #[test]
    fn literals_are_toml() {
        for text in ["/a b/c", "{\"a\":\"b\\\\c\"}", "ä\n\u{1}"] {
            let table: toml::Table = format!("a = {}", literal(text)).parse().unwrap();
            assert_eq!(table["a"].as_str(), Some(text));
        }
    }
}
