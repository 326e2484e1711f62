//! The assembler of NVIDIA's GPUs, in a folder below the target directory. It needs no GPU.
//!
//! Invariant: nothing outside the target directory is changed, and what is installed is the file that the tests passed with.

use std::fs;
use std::path::PathBuf;
use std::time::Instant;

use crate::outcome::{Failure, Result};
use crate::process::{command, run, succeeds};
use crate::workspace::Workspace;

/// Of Python's package index: the last version that knows the oldest processor that images are made for. 120 MB on disk with its Python, 9 s.
const PACKAGE: &str = "nvidia-cuda-nvcc-cu12==12.9.86";
/// The hash of the package's file for Linux on x86-64.
const HASH: &str = "sha256:5d6a0d32fdc7ea39917c20065614ae93add6f577d840233237ff08e9a38f58f0";
const IN_PACKAGE: &str = "nvidia/cuda_nvcc/bin/ptxas";

/// The assembler's name in messages.
pub(crate) const NAME: &str = "ptxas";
/// The stages that do not run, or leave something out, without it.
pub(crate) const STAGES: &[&str] = &["ptx", "crates"];

fn folder(workspace: &Workspace) -> PathBuf {
    workspace.tools_directory().join("ptxas")
}

/// What is pinned; written last, so that it is there if everything is.
fn requirements(workspace: &Workspace) -> PathBuf {
    folder(workspace).join("requirements.txt")
}

fn pinned() -> String {
    format!("{PACKAGE} --hash={HASH}\n")
}

fn installed(workspace: &Workspace) -> Option<PathBuf> {
    let is_pinned = fs::read_to_string(requirements(workspace)).is_ok_and(|text| text == pinned());
    is_pinned.then(|| folder(workspace).join("packages").join(IN_PACKAGE)).filter(|path| path.is_file())
}

/// The assembler: the installed one, else the one in `PATH`.
pub(crate) fn find(workspace: &Workspace) -> Option<PathBuf> {
    installed(workspace).or_else(|| {
        let works = succeeds(command(workspace, &NAME.into()).arg("--version"));
        works.then(|| PathBuf::from(NAME))
    })
}

/// Makes sure that it is there; an error says why it is not.
pub(crate) fn install(workspace: &Workspace) -> Result<()> {
    if installed(workspace).is_some() {
        println!("  {NAME}: used as it is");
        return Ok(());
    }
    let start = Instant::now();
    let folder = folder(workspace);
    let failed = |error: std::io::Error| Failure::new(format!("{}: {error}", folder.display()));
    if folder.exists() {
        fs::remove_dir_all(&folder).map_err(failed)?;
    }
    run(command(workspace, &"python3".into()).args(["-m", "venv"]).arg(folder.join("python")))?;
    let wanted = folder.join("wanted.txt");
    fs::write(&wanted, pinned()).map_err(failed)?;
    let mut pip = command(workspace, &folder.join("python/bin/pip").into_os_string());
    pip.args(["install", "--quiet", "--disable-pip-version-check", "--no-deps", "--require-hashes", "--target"]);
    run(pip.arg(folder.join("packages")).arg("-r").arg(&wanted))?;
    fs::rename(&wanted, requirements(workspace)).map_err(failed)?;
    println!("  {NAME}: {:.0} s", start.elapsed().as_secs_f64());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_and_hash_are_pinned() {
        let text = pinned();
        let (package, hash) = text.trim().split_once(" --hash=sha256:").expect("a version and a hash");
        assert!(package.split_once("==").is_some_and(|(_, version)| version.split('.').count() == 3), "{text}");
        assert!(hash.len() == 64 && hash.chars().all(|digit| digit.is_ascii_hexdigit()), "{text}");
    }
}
