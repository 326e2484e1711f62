//! What `cargo metadata` says about this workspace, and the files below its root.
//!
//! Invariant: paths handed out for display are relative to the root and use `/`. Reads files; writes none.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use cargo_metadata::{DependencyKind, MetadataCommand};

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
#[derive(Clone, Debug, Default)]
pub(crate) struct Target {
    pub(crate) name: String,
    /// `lib`, `proc-macro`, `bin`, `example`, `test` or `bench`.
    pub(crate) kind: String,
    /// The target's root source file.
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
        let metadata = MetadataCommand::new()
            .no_deps()
            .exec()
            .map_err(|error| Failure::new(format!("`cargo metadata` failed: {error}")))?;
        let mut packages: Vec<Package> = metadata.packages.into_iter().map(Package::from).collect();
        packages.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(Self { root: metadata.workspace_root.into(), target_directory: metadata.target_directory.into(), packages })
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

impl From<cargo_metadata::Package> for Package {
    fn from(package: cargo_metadata::Package) -> Self {
        let normal = |dependency: &cargo_metadata::Dependency| dependency.kind == DependencyKind::Normal;
        Self {
            name: package.name.to_string(),
            directory: package.manifest_path.parent().map(PathBuf::from).unwrap_or_default(),
            // No list: any registry; an empty list: none.
            publish: package.publish.is_none_or(|registries| !registries.is_empty()),
            description: package.description,
            license: package.license,
            repository: package.repository,
            categories: package.categories,
            has_docs_rs: package.metadata["docs"]["rs"].is_object(),
            dependencies: package.dependencies.into_iter().filter(normal).map(|dependency| dependency.name).collect(),
            features: package.features.into_keys().collect(),
            targets: package.targets.into_iter().map(Target::from).collect(),
        }
    }
}

impl From<cargo_metadata::Target> for Target {
    fn from(target: cargo_metadata::Target) -> Self {
        let kind = target.kind.first().map(ToString::to_string).unwrap_or_default();
        Self { name: target.name, kind, source: target.src_path.into() }
    }
}

impl Package {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_sorted_and_keep_only_normal_dependencies() {
        let workspace = Workspace::load().unwrap();
        assert!(workspace.packages.is_sorted_by(|a, b| a.name < b.name));
        let facade = workspace.require("oxisycl").unwrap();
        assert!(facade.publish && facade.has_docs_rs && facade.features.contains("cuda"));
        assert!(facade.dependencies.contains("oxisycl-runtime"));
        assert!(!facade.dependencies.contains("libtest-mimic"), "a development dependency");
        assert_eq!(facade.main_target().unwrap().kind, "lib");
        assert!(facade.target("test", "conformance").is_some() && facade.target("bench", "conformance").is_none());
        assert!(facade.tests_without_harness().unwrap().contains(&"conformance".to_owned()));
        assert_eq!(workspace.require("oxisycl-macros").unwrap().main_target().unwrap().kind, "proc-macro");
    }

    #[test]
    fn an_empty_list_of_registries_means_not_published() {
        let workspace = Workspace::load().unwrap();
        let tasks = workspace.require("xtask").unwrap();
        assert!(!tasks.publish && !tasks.has_docs_rs && tasks.repository.is_none());
        assert_eq!(tasks.main_target().unwrap().kind, "bin");
        assert_eq!(workspace.relative(&tasks.main_target().unwrap().source), "xtask/src/main.rs");
        assert!(workspace.require("nothing").is_err());
    }
}
