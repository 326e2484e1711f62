//! The room that is left on the disk of the target directory, and what goes when there is little.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::process;

/// Below this many gigabytes a failure is laid to the disk.
const LITTLE: f64 = 1.0;

/// Below this many gigabytes, what no later stage reads is deleted. All stages together take more than 15.
const ENOUGH: f64 = 30.0;

/// Deletes folders of the target directory if its disk has little room. What cannot be deleted stays: room may be there all the same.
pub(crate) fn make_room(target: &Path, folders: &[&str]) {
    if free_gigabytes(target).is_some_and(|free| free < ENOUGH) {
        remove(target, folders);
    }
}

fn remove(target: &Path, folders: &[&str]) {
    for folder in folders {
        let _ = fs::remove_dir_all(target.join(folder));
    }
}

/// Gigabytes (10^9 bytes) that are free where a folder lies, if `df` tells.
pub(crate) fn free_gigabytes(folder: &Path) -> Option<f64> {
    let printed = process::run_quietly(Command::new("df").arg("-Pk").arg(folder)).ok()?;
    parse(&printed.stdout)
}

/// What a failure gets to say of the disk, if little is left.
pub(crate) fn complaint(free: Option<f64>) -> Option<String> {
    let free = free.filter(|free| *free < LITTLE)?;
    Some(format!("the disk is full: {free:.1} GB are left"))
}

/// The fourth column of the second line, in units of 1024 bytes.
fn parse(printed: &str) -> Option<f64> {
    let kibibytes: u64 = printed.lines().nth(1)?.split_whitespace().nth(3)?.parse().ok()?;
    Some(kibibytes as f64 * 1024.0 / 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_read() {
        let printed = "Filesystem 1024-blocks     Used Available Capacity Mounted on\n/dev/vda   263112772 12000000  82000000  13% /\n";
        assert_eq!(parse(printed), Some(83.968));
        assert_eq!(parse("Filesystem\n"), None);
        assert!(free_gigabytes(Path::new("/")).is_some());
    }

    #[test]
    fn folders_go_with_what_is_in_them_and_others_stay() {
        let target = std::env::temp_dir().join(format!("oxisycl-disk-{}", std::process::id()));
        for folder in ["a/b", "c"] {
            fs::create_dir_all(target.join(folder)).unwrap();
        }
        remove(&target, &["a", "not-there"]);
        assert!(!target.join("a").exists() && target.join("c").exists());
        fs::remove_dir_all(target).unwrap();
    }

    #[test]
    fn a_full_disk_is_named() {
        assert_eq!(complaint(Some(0.04)).as_deref(), Some("the disk is full: 0.0 GB are left"));
        assert_eq!((complaint(Some(5.0)), complaint(None)), (None, None));
    }
}
