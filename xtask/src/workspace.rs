//! What `cargo metadata` says about this workspace, and the files below its root.
//!
//! Invariant: paths handed out for display are relative to the root and use `/`. Reads files; writes none.

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::outcome::{Failure, Result};

/// The workspace this program belongs to.
#[derive(Debug)]
pub(crate) struct Workspace {
    /// The folder of the root manifest.
    pub(crate) root: PathBuf,
    /// Where cargo puts build outputs.
    pub(crate) target_directory: PathBuf,
    /// The members, in the order of their names.
    pub(crate) packages: Vec<Package>,
}

/// One member of the workspace.
#[derive(Clone, Debug, Default)]
pub(crate) struct Package {
    pub(crate) name: String,
    /// The folder of its manifest.
    pub(crate) directory: PathBuf,
    /// Whether it may be published at all.
    pub(crate) publish: bool,
    pub(crate) description: Option<String>,
    pub(crate) license: Option<String>,
    pub(crate) repository: Option<String>,
    pub(crate) categories: Vec<String>,
    /// Whether it has a `package.metadata.docs.rs` table.
    pub(crate) has_docs_rs: bool,
    /// Names of its normal dependencies (neither development nor build).
    pub(crate) dependencies: BTreeSet<String>,
    pub(crate) features: BTreeSet<String>,
    pub(crate) targets: Vec<Target>,
}

/// One library, binary, example, test or benchmark of a package.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) name: String,
    /// `lib`, `proc-macro`, `bin`, `example`, `test` or `bench`.
    pub(crate) kind: String,
    /// Its root source file.
    pub(crate) source: PathBuf,
}

/// A source or document of the workspace.
#[derive(Debug)]
pub(crate) struct File {
    /// Relative to the root, with `/`.
    pub(crate) path: String,
    pub(crate) text: String,
}

impl Workspace {
    /// Asks cargo about the workspace around the current folder.
    pub(crate) fn load() -> Result<Self> {
        let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let output = Command::new(cargo)
            .args(["metadata", "--format-version", "1", "--no-deps"])
            .output()
            .map_err(|error| Failure::new(format!("cargo could not be started: {error}")))?;
        if !output.status.success() {
            let reason = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            return Err(Failure::new(format!("`cargo metadata` failed: {reason}")));
        }
        Self::from_metadata(&String::from_utf8_lossy(&output.stdout))
    }

    /// The workspace that the output of `cargo metadata --format-version 1` describes.
    pub(crate) fn from_metadata(json: &str) -> Result<Self> {
        let metadata: Value =
            json.parse().map_err(|error| Failure::new(format!("`cargo metadata` wrote no JSON: {error}")))?;
        let mut packages: Vec<Package> =
            metadata["packages"].as_array().into_iter().flatten().map(Package::from_metadata).collect();
        packages.sort_by(|a, b| a.name.cmp(&b.name));
        let workspace = Self {
            root: text(&metadata["workspace_root"]).unwrap_or_default().into(),
            target_directory: text(&metadata["target_directory"]).unwrap_or_default().into(),
            packages,
        };
        if workspace.root.as_os_str().is_empty() || workspace.packages.is_empty() {
            return Err(Failure::new("`cargo metadata` names no workspace root or no packages"));
        }
        Ok(workspace)
    }

    /// Where `cargo xtask test` installs the tools it needs.
    pub(crate) fn tools_directory(&self) -> PathBuf {
        self.target_directory.join("tools")
    }

    /// The member with a name.
    pub(crate) fn package(&self, name: &str) -> Option<&Package> {
        self.packages.iter().find(|package| package.name == name)
    }

    /// The member with a name; without it a failure that says what for.
    pub(crate) fn require(&self, name: &str) -> Result<&Package> {
        self.package(name).ok_or_else(|| Failure::new(format!("the workspace has no package \"{name}\"")))
    }

    /// Reads a file below the root.
    pub(crate) fn read(&self, path: &str) -> Result<String> {
        fs::read_to_string(self.root.join(path)).map_err(|error| Failure::new(format!("{path}: {error}")))
    }

    /// All text files of the repository with one of the extensions, without build outputs, in the order of their paths.
    pub(crate) fn files(&self, extensions: &[&str]) -> Result<Vec<File>> {
        let mut paths = Vec::new();
        collect(&self.root, &mut paths)?;
        let outputs = self.root.join("target");
        paths.retain(|path| {
            !path.starts_with(&outputs) && path.extension().is_some_and(|e| extensions.iter().any(|x| e == *x))
        });
        let mut files = Vec::new();
        for path in paths {
            files.push(File { path: self.relative(&path), text: read(&path)? });
        }
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(files)
    }

    /// A path as it is shown: relative to the root, with `/`.
    pub(crate) fn relative(&self, path: &Path) -> String {
        let parts = path.strip_prefix(&self.root).unwrap_or(path).components();
        parts.map(|part| part.as_os_str().to_string_lossy()).collect::<Vec<_>>().join("/")
    }
}

impl Package {
    fn from_metadata(package: &Value) -> Self {
        let manifest = PathBuf::from(text(&package["manifest_path"]).unwrap_or_default());
        let dependencies = package["dependencies"].as_array().into_iter().flatten();
        Self {
            name: text(&package["name"]).unwrap_or_default(),
            directory: manifest.parent().unwrap_or(Path::new("")).to_owned(),
            // `null`: any registry; an empty list: none.
            publish: package["publish"].as_array().is_none_or(|registries| !registries.is_empty()),
            description: text(&package["description"]),
            license: text(&package["license"]),
            repository: text(&package["repository"]),
            categories: texts(&package["categories"]),
            has_docs_rs: package["metadata"]["docs"]["rs"].is_object(),
            dependencies: dependencies
                .filter(|dependency| dependency["kind"].is_null())
                .filter_map(|dependency| text(&dependency["name"]))
                .collect(),
            features: package["features"].as_object().into_iter().flat_map(|map| map.keys().cloned()).collect(),
            targets: package["targets"].as_array().into_iter().flatten().map(Target::from_metadata).collect(),
        }
    }

    /// The target of one of the kinds with a name.
    pub(crate) fn target(&self, kind: &str, name: &str) -> Option<&Target> {
        self.targets.iter().find(|target| target.kind == kind && target.name == name)
    }

    /// The library or procedural macro, or the binary of a package without one.
    pub(crate) fn main_target(&self) -> Option<&Target> {
        let of = |kinds: &[&str]| self.targets.iter().find(|target| kinds.contains(&target.kind.as_str()));
        of(&["lib", "proc-macro"]).or_else(|| of(&["bin"]))
    }

    /// The text of its manifest.
    pub(crate) fn manifest(&self) -> Result<String> {
        read(&self.directory.join("Cargo.toml"))
    }

    /// Names of its tests that bring their own `main` (`harness = false`).
    pub(crate) fn tests_without_harness(&self) -> Result<Vec<String>> {
        let manifest = parse_toml(&format!("the manifest of {}", self.name), &self.manifest()?)?;
        let tests = manifest.get("test").and_then(toml::Value::as_array).into_iter().flatten();
        let bare = tests.filter(|test| test.get("harness").and_then(toml::Value::as_bool) == Some(false));
        Ok(bare.filter_map(|test| test.get("name")?.as_str().map(str::to_owned)).collect())
    }
}

impl Target {
    fn from_metadata(target: &Value) -> Self {
        Self {
            name: text(&target["name"]).unwrap_or_default(),
            kind: texts(&target["kind"]).into_iter().next().unwrap_or_default(),
            source: text(&target["src_path"]).unwrap_or_default().into(),
        }
    }
}

/// A TOML document, or a failure that names it and the line.
pub(crate) fn parse_toml(what: &str, text: &str) -> Result<toml::Table> {
    text.parse().map_err(|error| Failure::new(format!("{what}: {error}").trim().to_owned()))
}

/// Reads a file by its full path.
pub(crate) fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).map_err(|error| Failure::new(format!("{}: {error}", path.display())))
}

/// A path as text, which arguments and cargo's messages are.
pub(crate) fn path_text(path: &Path) -> Result<&str> {
    path.to_str().ok_or_else(|| Failure::new(format!("{}: the path is not Unicode", path.display())))
}

/// All files below a folder, without version control and without build outputs, which cargo tags as a cache.
pub(crate) fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let failure = |error| Failure::new(format!("{}: {error}", folder.display()));
    for entry in fs::read_dir(folder).map_err(failure)? {
        let path = entry.map_err(failure)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if !path.is_dir() {
            files.push(path);
        } else if name != ".git" && !path.join("CACHEDIR.TAG").exists() {
            collect(&path, files)?;
        }
    }
    Ok(())
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const METADATA: &str = r#"{
        "workspace_root": "/w", "target_directory": "/w/target",
        "packages": [
            {"name": "b", "manifest_path": "/w/b/Cargo.toml", "publish": [], "description": null, "license": "MIT",
             "repository": "r", "categories": [], "metadata": null, "dependencies": [],
             "targets": [{"name": "b", "kind": ["bin"], "src_path": "/w/b/src/main.rs"}]},
            {"name": "a", "manifest_path": "/w/a/Cargo.toml", "publish": null, "description": "d", "license": "MIT",
             "repository": "r", "categories": ["science"], "metadata": {"docs": {"rs": {"all-features": true}}},
             "dependencies": [{"name": "x", "kind": null}, {"name": "y", "kind": "dev"}, {"name": "z", "kind": "build"}],
             "targets": [{"name": "t", "kind": ["test"], "src_path": "/w/a/tests/t.rs"},
                         {"name": "a", "kind": ["lib"], "src_path": "/w/a/src/lib.rs"}]}
        ]
    }"#;

    #[test]
    fn packages_are_sorted_and_keep_only_normal_dependencies() {
        let workspace = Workspace::from_metadata(METADATA).unwrap();
        assert_eq!(workspace.packages.iter().map(|p| p.name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
        let a = workspace.package("a").unwrap();
        assert_eq!(a.dependencies, BTreeSet::from(["x".to_owned()]));
        assert!(a.publish && a.has_docs_rs);
        assert_eq!(a.main_target().unwrap().kind, "lib");
        assert!(a.target("test", "t").is_some() && a.target("bench", "t").is_none());
    }

    #[test]
    fn an_empty_list_of_registries_means_not_published() {
        let workspace = Workspace::from_metadata(METADATA).unwrap();
        let b = workspace.require("b").unwrap();
        assert!(!b.publish && !b.has_docs_rs && b.description.is_none());
        assert_eq!(b.main_target().unwrap().kind, "bin");
        assert!(workspace.require("c").is_err());
    }

    #[test]
    fn metadata_of_nothing_is_a_failure() {
        assert!(Workspace::from_metadata("{}").is_err());
        assert!(Workspace::from_metadata("error: no manifest").is_err());
    }

    #[test]
    fn shown_paths_are_relative_to_the_root() {
        let workspace = Workspace::from_metadata(METADATA).unwrap();
        assert_eq!(workspace.relative(Path::new("/w/a/src/lib.rs")), "a/src/lib.rs");
    }
}
