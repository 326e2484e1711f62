//! The programs that stages need beside the Rust toolchain, installed below the target directory.
//!
//! Invariant: nothing outside the target directory is changed. A tool of the right version there, or of any version in `PATH`,
//! is used as it is.

use std::fs;
use std::time::Instant;

use crate::outcome::Result;
use crate::process::{cargo, command, run, run_quietly};
use crate::workspace::Workspace;

/// A program, its version, and what needs it.
#[derive(Debug)]
pub(crate) struct Tool {
    /// The name of its package and of its executable.
    pub(crate) name: &'static str,
    version: &'static str,
    /// Prints its version.
    probe: &'static [&'static str],
    /// The stages that do not run, or only in part, without it.
    pub(crate) stages: &'static [&'static str],
}

/// What each takes to build is in `benches/results/ci-*.md`.
pub(crate) const TOOLS: &[Tool] = &[
    Tool { name: "cargo-nextest", version: "0.9.151", probe: &["nextest", "--version"], stages: &["tests"] },
    Tool { name: "cargo-deny", version: "0.20.2", probe: &["deny", "--version"], stages: &["deny"] },
    Tool { name: "mdbook", version: "0.5.4", probe: &["--version"], stages: &["book"] },
];

impl Tool {
    /// Makes sure that the tool is there; an error says why it is not.
    pub(crate) fn install(&self, workspace: &Workspace) -> Result<()> {
        let root = workspace.tools_directory();
        let installed = root.join("bin").join(format!("{}{}", self.name, std::env::consts::EXE_SUFFIX)).is_file();
        match self.version_found(workspace) {
            Some(found) if !installed || names_version(&found, self.version) => {
                println!("  {found}: used as it is");
                return Ok(());
            }
            _ => {}
        }
        let start = Instant::now();
        let mut command = cargo(workspace);
        command.args(["install", self.name, "--version", self.version, "--locked", "--no-default-features"]);
        command.args(["--force", "--root"]).arg(&root).arg("--target-dir").arg(root.join("build"));
        // They run for seconds: compiling them is what takes time.
        for (variable, value) in [("OPT_LEVEL", "0"), ("LTO", "off"), ("CODEGEN_UNITS", "16"), ("DEBUG", "0")] {
            command.env(format!("CARGO_PROFILE_RELEASE_{variable}"), value);
        }
        let result = run(&mut command);
        // It is not built a second time; what cannot be removed is only in the way.
        let _ = fs::remove_dir_all(root.join("build"));
        println!("  {} {}: {:.0} s", self.name, self.version, start.elapsed().as_secs_f64());
        result
    }

    /// What the tool says of itself, if it can be started.
    fn version_found(&self, workspace: &Workspace) -> Option<String> {
        let program =
            if self.name.starts_with("cargo-") { cargo(workspace) } else { command(workspace, &self.name.into()) };
        let mut program = program;
        let captured = run_quietly(program.args(self.probe)).ok()?.succeeded().ok()?;
        captured.stdout.lines().next().map(str::to_owned)
    }
}

/// Whether a text such as `mdbook v0.5.4` names exactly this version.
fn names_version(text: &str, version: &str) -> bool {
    text.split_whitespace().any(|word| word.trim_start_matches('v') == version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_words() {
        assert!(names_version("mdbook v0.5.4", "0.5.4"));
        assert!(names_version("cargo-nextest 0.9.151 (abc 2026-08-04)", "0.9.151"));
        assert!(!names_version("cargo-deny 0.20.21", "0.20.2"));
    }
}
