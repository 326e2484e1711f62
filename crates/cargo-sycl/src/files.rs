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

    /// The bytes with some changes, which follow from the number: bits, extreme numbers, parts that are missing, doubled or added.
    pub(crate) fn damaged(bytes: &[u8], number: u64) -> Vec<u8> {
        let mut state = number;
        let mut next = |end: usize| {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
            ((mixed ^ mixed >> 31) % end.max(1) as u64) as usize
        };
        let mut bytes = bytes.to_vec();
        for _ in 0..=next(3) {
            let (position, length) = (next(bytes.len()), next(20));
            let end = (position + length).min(bytes.len());
            match next(6) {
                0 if position < bytes.len() => bytes[position] ^= 1 << next(8),
                1 if position + 8 <= bytes.len() => {
                    let extremes = [0, 1, u64::MAX, u64::MAX / 2, u64::from(u32::MAX), 1 << 40];
                    bytes[position..position + 8].copy_from_slice(&extremes[next(6)].to_le_bytes());
                }
                2 => bytes.truncate(position),
                3 => drop(bytes.drain(position..end)),
                4 => drop(bytes.splice(position..position, bytes[position..end].to_vec())),
                _ => bytes.insert(position, next(256) as u8),
            }
        }
        bytes
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
