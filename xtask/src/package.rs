//! `cargo xtask package`: what would be uploaded to the registry, for every published crate.
//!
//! All crates are packaged in one call: cargo then resolves the dependencies among them, none of which the registry has,
//! from the packages themselves. Invariant: what is built is what is packaged now, whatever earlier calls left behind. Does not
//! use the packages; [`install`](crate::install) does.

use std::path::{Path, PathBuf};

use crate::outcome::{Failure, Outcome, Result, has_flag};
use crate::process::{self, cargo};
use crate::workspace::{Workspace, path_text};

/// The folder below the target folder in which packages are made and built.
const FOLDER: &str = "package-stage";

/// `cargo xtask package [--no-verify]`.
pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<Outcome> {
    if has_flag(arguments, "no-verify")? { package(workspace, &["--no-verify"]) } else { verified(workspace) }
}

/// Packages, and builds what was packaged: a file that a crate needs but does not contain is found only so.
pub(crate) fn verified(workspace: &Workspace) -> Result<Outcome> {
    package(workspace, &[])
}

fn package(workspace: &Workspace, options: &[&str]) -> Result<Outcome> {
    let packages = pack(workspace, &workspace.target_directory.join(FOLDER), options)?;
    Ok(Outcome::Passed(format!("{} packages", packages.len())))
}

/// Packages every published crate with a target folder of its own, which is emptied first. Cargo takes the crates that a package depends on
/// for those of a registry, whose sources never change. So it would otherwise reuse what it built of them before. Gives the packages.
pub(crate) fn pack(workspace: &Workspace, folder: &Path, options: &[&str]) -> Result<Vec<PathBuf>> {
    empty(folder)?;
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    if let Some(home) = home.or_else(|| Some(std::env::home_dir()?.join(".cargo"))) {
        forget_earlier_packages(&home.join("registry"), workspace)?;
    }
    let mut command = cargo(workspace);
    command.args(["package", "--workspace", "--allow-dirty", "--target-dir", path_text(folder)?]).args(options);
    for package in workspace.packages.iter().filter(|package| !package.publish) {
        command.args(["--exclude", &package.name]);
    }
    // What is built here is not debugged.
    process::run(command.env("CARGO_PROFILE_DEV_DEBUG", "0"))?;
    let mut packages = entries(&folder.join("package"));
    packages.retain(|path| path.extension().is_some_and(|extension| extension == "crate"));
    packages.sort();
    let published = workspace.packages.iter().filter(|package| package.publish).count();
    if packages.len() != published {
        return Err(Failure::new(format!("{} packages were made, {published} expected", packages.len())));
    }
    Ok(packages)
}

/// Makes a folder that has nothing in it.
pub(crate) fn empty(folder: &Path) -> Result<()> {
    let removed = if folder.exists() { std::fs::remove_dir_all(folder) } else { Ok(()) };
    let made = removed.and_then(|()| std::fs::create_dir_all(folder));
    made.map_err(|error| Failure::new(format!("{}: {error}", folder.display())))
}

/// Removes what cargo kept of our crates from earlier calls. It resolves the crates from a registry in the target folder, and unpacks
/// them once per path of that folder and version. A later call with the same path and version would be given the old sources.
fn forget_earlier_packages(registry: &Path, workspace: &Workspace) -> Result<()> {
    for kind in ["src", "cache"] {
        // Registries without a host, such as the one in the target folder, have a name that begins so.
        let folders = entries(&registry.join(kind)).into_iter().filter(|folder| file_name(folder).starts_with('-'));
        for path in folders.flat_map(|folder| entries(&folder)) {
            let is_ours = workspace.packages.iter().any(|package| {
                let rest = file_name(&path).strip_prefix(&format!("{}-", package.name)).map(str::to_owned);
                rest.is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()))
            });
            if is_ours {
                let removed = if path.is_dir() { std::fs::remove_dir_all(&path) } else { std::fs::remove_file(&path) };
                removed.map_err(|error| Failure::new(format!("{}: {error}", path.display())))?;
            }
        }
    }
    Ok(())
}

/// The entries of a folder; none if it cannot be read.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_emptied_and_made() {
        let folder = std::env::temp_dir().join(format!("xtask-package-{}", std::process::id()));
        for _ in 0..2 {
            empty(&folder).unwrap();
            assert_eq!(entries(&folder), Vec::<PathBuf>::new());
            std::fs::create_dir_all(folder.join("debug/.fingerprint")).unwrap();
        }
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(entries(&folder), Vec::<PathBuf>::new());
    }
}
