//! Files that say what a target folder was last built with.
//!
//! Cargo does not know this tool, so it would take outputs of another version or for other targets to be up to date. The wrapper lists a
//! stamp among the sources of each crate with device code. A stamp's name holds what the outputs depend on. When a build is started, all
//! other stamps are removed, and what was built with them is stale. Invariant: a stamp is listed only by outputs that were made with its
//! settings.

use std::fs;
use std::path::{Path, PathBuf};

use crate::failure::{Failure, Result};
use crate::files::write_atomically;
use crate::settings::{HOST_CAPTURE, Settings};

/// The stamp for crates that other crates use: their device code depends on the tool alone.
pub(crate) fn of_library(settings: &Settings) -> PathBuf {
    settings.stamps.join(format!("tool-{}", settings.tool))
}

/// The stamp for what is linked, and contains images.
pub(crate) fn of_linked(settings: &Settings) -> PathBuf {
    settings.stamps.join(format!("link-{}", settings.key()))
}

/// The stamp for crates whose kernels may capture addresses of the host, if the build allows it. Without it they are stale.
pub(crate) fn of_allowed(settings: &Settings) -> Option<PathBuf> {
    settings.allows_host_captures.then(|| settings.stamps.join(format!("allow-{HOST_CAPTURE}")))
}

/// Makes the stamps of a build the only ones.
pub(crate) fn set(settings: &Settings) -> Result<()> {
    let failed = |error| Failure::file(&settings.stamps, error);
    fs::create_dir_all(&settings.stamps).map_err(failed)?;
    let current: Vec<PathBuf> =
        [of_library(settings), of_linked(settings)].into_iter().chain(of_allowed(settings)).collect();
    for entry in fs::read_dir(&settings.stamps).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if !current.contains(&path) {
            // Another build may have removed it first.
            let _ = fs::remove_file(path);
        }
    }
    for stamp in current.iter().filter(|stamp| !stamp.exists()) {
        write_atomically(stamp, b"")?;
        // As old as can be: what lists the stamp is never older than it.
        let old =
            fs::File::options().append(true).open(stamp).and_then(|file| file.set_modified(std::time::UNIX_EPOCH));
        old.map_err(|error| Failure::file(stamp, error))?;
    }
    Ok(())
}

/// Lists a stamp, or another file that the outputs depend on, among the sources in rustc's file of dependencies, if there is one.
pub(crate) fn list(stamp: &Path, dependencies: &Path) -> Result<()> {
    let Ok(text) = fs::read_to_string(dependencies) else { return Ok(()) };
    write_atomically(dependencies, listed(&text, &stamp.to_string_lossy()).as_bytes())
}

/// Each line of the form `output: source source` with one source more.
fn listed(text: &str, stamp: &str) -> String {
    let stamp = stamp.replace(' ', "\\ ");
    let lines = text.lines().map(|line| match line.starts_with('#') || !line.contains(": ") {
        true => format!("{line}\n"),
        false => format!("{line} {stamp}\n"),
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::tests::Scratch;
    use crate::settings::tests::settings;

    #[test]
    fn only_the_stamps_of_the_last_build_are_there() {
        let scratch = Scratch::new("stamps");
        let stamps = scratch.path().join("stamps");
        let first = Settings { stamps: stamps.clone(), ..settings() };
        let second = Settings { targets: vec!["sm_90".to_owned()], ..first.clone() };
        let third = Settings { tool: "u".to_owned(), ..second.clone() };
        let exist = |settings| [of_library(settings).exists(), of_linked(settings).exists()];
        set(&first).unwrap();
        assert_eq!(exist(&first), [true, true]);
        set(&second).unwrap();
        assert_eq!((exist(&first), exist(&second)), ([true, false], [true, true]));
        set(&third).unwrap();
        assert_eq!((exist(&second), exist(&third)), ([false, false], [true, true]));
        assert_eq!(fs::read_dir(&stamps).unwrap().count(), 2);
    }

    #[test]
    fn a_stamp_is_one_more_source_of_each_output() {
        let text = "/t/a.d: src/main.rs\n\n/t/a: src/main.rs src/b.rs\n\nsrc/main.rs:\n# env-dep:A=b: c\n";
        assert_eq!(
            listed(text, "/a b/link-1"),
            "/t/a.d: src/main.rs /a\\ b/link-1\n\n/t/a: src/main.rs src/b.rs /a\\ b/link-1\n\nsrc/main.rs:\n# env-dep:A=b: c\n"
        );
    }
}
