//! Files that other processes read at the same time: written whole or not at all.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::failure::{Failure, Result};

/// Replaces a file by one with these bytes, in one step.
pub(crate) fn write_atomically(path: &Path, bytes: &[u8]) -> Result<()> {
    let temporary = temporary_name(path);
    let written = fs::write(&temporary, bytes).and_then(|()| fs::rename(&temporary, path));
    written.map_err(|error| {
        // Nothing is left behind; the first error is the one to report.
        let _ = fs::remove_file(&temporary);
        Failure::file(path, error)
    })
}

/// A name beside a file that no other process and no other thread uses.
pub(crate) fn temporary_name(path: &Path) -> PathBuf {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    path.with_file_name(format!(".{name}.{}.{count}", std::process::id()))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A folder for one test, removed with it.
    pub(crate) struct Scratch(PathBuf);

    impl Scratch {
        pub(crate) fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("cargo-sycl-{name}-{}", std::process::id()));
            fs::create_dir_all(&path).unwrap();
            Self(path)
        }

        pub(crate) fn path(&self) -> &Path {
            &self.0
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_file_is_replaced_and_nothing_is_left_beside_it() {
        let scratch = Scratch::new("files");
        let path = scratch.path().join("file");
        write_atomically(&path, b"old").unwrap();
        write_atomically(&path, b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 1);
        let missing = scratch.path().join("no/file");
        assert!(write_atomically(&missing, b"").is_err());
    }
}
