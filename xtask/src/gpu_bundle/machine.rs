//! What a result says about where it comes from: GPU, driver and date.
//!
//! Asks `nvidia-smi`, which comes with the driver, and else the driver's files below `/proc`. Loads no library.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::outcome::{Failure, Result};

/// The machine of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Machine {
    /// The names of its GPUs, separated by commas.
    pub(crate) gpu: String,
    /// The version of their driver.
    pub(crate) driver: String,
    /// When, as `2026-11-22T04:05:06Z`.
    pub(crate) date: String,
}

impl Machine {
    /// This machine now.
    ///
    /// # Errors
    /// If no NVIDIA GPU is found: then there is nothing to test.
    pub(crate) fn here() -> Result<Self> {
        let mut query = Command::new("nvidia-smi");
        let output = output_of(query.args(["--query-gpu=name,driver_version", "--format=csv,noheader"]));
        let found = output.as_deref().and_then(from_query).or_else(|| from_files(Path::new("/proc/driver/nvidia")));
        let (gpu, driver) = found.ok_or_else(|| {
            Failure::new("there is no NVIDIA GPU: neither nvidia-smi nor /proc/driver/nvidia tells of one")
        })?;
        Ok(Self { gpu, driver, date: date(SystemTime::now()) })
    }
}

fn output_of(command: &mut Command) -> Option<String> {
    let output = command.output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Names and driver from lines of the form `name, version`.
fn from_query(text: &str) -> Option<(String, String)> {
    let lines: Vec<(&str, &str)> = text.lines().filter_map(|line| line.split_once(", ")).collect();
    let names: Vec<&str> = lines.iter().map(|(name, _)| name.trim()).collect();
    Some((names.join(", "), lines.first()?.1.trim().to_owned()))
}

/// GPU names and driver version, from the files of the kernel's driver.
fn from_files(folder: &Path) -> Option<(String, String)> {
    let mut gpus: Vec<_> = fs::read_dir(folder.join("gpus")).ok()?.flatten().map(|entry| entry.path()).collect();
    gpus.sort();
    let model = |gpu: &Path| {
        let text = fs::read_to_string(gpu.join("information")).ok()?;
        Some(text.lines().find_map(|line| line.strip_prefix("Model:"))?.trim().to_owned())
    };
    let names: Vec<String> = gpus.iter().filter_map(|gpu| model(gpu)).collect();
    let version = fs::read_to_string(folder.join("version")).ok()?;
    let is_version = |word: &&str| word.contains('.') && word.starts_with(|first: char| first.is_ascii_digit());
    let driver = version.split_whitespace().find(is_version)?.to_owned();
    (!names.is_empty()).then(|| (names.join(", "), driver))
}

/// A time in UTC; of times before 1970 the beginning of that year.
fn date(time: SystemTime) -> String {
    let seconds = time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let (mut days, of_day) = (seconds / 86_400, seconds % 86_400);
    let mut year = 1970;
    let is_leap = |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    while days >= 365 + u64::from(is_leap(year)) {
        days -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let mut month = 1;
    for length in [31, 28 + u64::from(is_leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    format!("{year}-{month:02}-{:02}T{hour:02}:{minute:02}:{second:02}Z", days + 1)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn all_gpus_are_named() {
        let found = from_query("NVIDIA H200, 580.159.04\nNVIDIA H200, 580.159.04\n");
        assert_eq!(found, Some(("NVIDIA H200, NVIDIA H200".to_owned(), "580.159.04".to_owned())));
        assert_eq!(from_query("No devices were found\n"), None);
    }

    #[test]
    fn the_kernels_files_tell_it_without_nvidia_smi() {
        let folder = std::env::temp_dir().join(format!("xtask-machine-{}", std::process::id()));
        fs::create_dir_all(folder.join("gpus/0000:1b:00.0")).unwrap();
        assert_eq!(from_files(&folder), None);
        let version =
            "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159.04  Fri Aug 1 2026\nGCC version: 12.3.0\n";
        fs::write(folder.join("version"), version).unwrap();
        fs::write(folder.join("gpus/0000:1b:00.0/information"), "Model: \t\t NVIDIA H200\nIRQ: 12\n").unwrap();
        let found = from_files(&folder);
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(found, Some(("NVIDIA H200".to_owned(), "580.159.04".to_owned())));
    }

    #[test]
    fn dates_are_of_the_calendar() {
        for (seconds, expected) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_735_689_599, "2024-12-31T23:59:59Z"),
            (1_795_320_306, "2026-11-22T04:05:06Z"),
        ] {
            assert_eq!(date(UNIX_EPOCH + Duration::from_secs(seconds)), expected);
        }
    }
}
