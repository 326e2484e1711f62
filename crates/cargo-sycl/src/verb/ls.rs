//! `ls`: the devices of this machine, and the code that each can run.

use std::env;
use std::ffi::OsString;
use std::process::ExitCode;

use lexopt::prelude::*;
use oxisycl::prelude::{Device, Platform};
use oxisycl::{DeviceInfo, ImageTarget};

use crate::failure::{Failure, Result};

const HELP: &str = "\
Lists the devices of this machine, and the code that each can run. Where
OXISYCL_DEVICE_SELECTOR is set, the devices that it hides follow

Usage: cargo sycl ls
";

pub(crate) fn run(arguments: Vec<OsString>) -> Result<ExitCode> {
    let mut parser = lexopt::Parser::from_args(arguments);
    match parser.next()? {
        None => {}
        Some(Long("help") | Short('h')) => {
            print!("{HELP}");
            return Ok(ExitCode::SUCCESS);
        }
        Some(other) => return Err(other.unexpected().into()),
    }
    let failed = |error: oxisycl::Error| Failure::new(error.to_string());
    let default = Device::default().ok();
    let (mut rows, mut details) = (Vec::new(), Vec::new());
    let platforms = Platform::all().map_err(failed)?;
    for platform in &platforms {
        for device in platform.devices() {
            let mark = if Some(&device) == default.as_ref() { "*" } else { " " };
            let selector = device.selector().unwrap_or("-").to_owned();
            let runs = match device.unusable() {
                Some(reason) => format!("nothing: {reason}"),
                None => runs(device.image_targets(), device.native_levels()),
            };
            rows.push([mark.to_owned(), selector, device.name().to_owned(), runs]);
            details.push(described(device.info()));
        }
    }
    if rows.is_empty() {
        println!("no visible device; `cargo sycl doctor` says why a device is missing");
    } else {
        for (row, detail) in table(&rows).iter().zip(&details) {
            print!("{row}{detail}");
        }
        println!("* the default device");
    }
    if let Some(value) = env::var_os(VARIABLE) {
        let devices = platforms.iter().flat_map(Platform::hidden_devices);
        let devices: Vec<_> = devices.map(|(selector, info)| (selector, info.name.as_str())).collect();
        print!("{}", hidden(&value.to_string_lossy(), &devices));
    }
    Ok(ExitCode::SUCCESS)
}

/// What chooses the visible devices.
const VARIABLE: &str = "OXISYCL_DEVICE_SELECTOR";
/// Columns in front of what belongs to a device.
const INDENT: &str = "    ";
/// Columns of a terminal, to which lines are wrapped.
const WIDTH: usize = 80;

/// What the variable hides: the devices by what names them in it, and their names.
fn hidden(value: &str, devices: &[(&str, &str)]) -> String {
    let what = match devices.len() {
        0 => "nothing".to_owned(),
        1 => "1 device:".to_owned(),
        n => format!("{n} devices:"),
    };
    let longest = devices.iter().map(|(selector, _)| selector.len()).max().unwrap_or(0);
    let row = |(selector, name): &(&str, &str)| format!("  {selector:longest$}  {name}\n");
    format!("{VARIABLE}=\"{value}\" hides {what}\n{}", devices.iter().map(row).collect::<String>())
}

/// A device's memory, compute units and aspects, in lines of their own.
fn described(info: &DeviceInfo) -> String {
    let memory = size(info.global_mem_size);
    let units = match info.max_compute_units {
        1 => "1 compute unit".to_owned(),
        n => format!("{n} compute units"),
    };
    let mut text = format!("{INDENT}{memory} of memory, {units}; aspects:");
    let mut column = text.len();
    for aspect in &info.aspects {
        let name = aspect.name();
        if column + 1 + name.len() > WIDTH {
            text.push_str(&format!("\n{INDENT}{INDENT}"));
            column = 2 * INDENT.len();
        } else {
            text.push(' ');
            column += 1;
        }
        text.push_str(name);
        column += name.len();
    }
    text.push('\n');
    text
}

/// Bytes in the largest unit that keeps them at least one.
fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let unit = (bytes.max(1).ilog2() / 10).min(4) as usize;
    format!("{:.1} {}", bytes as f64 / (1_u64 << (10 * unit)) as f64, UNITS[unit])
}

/// What a program has to contain for its kernels to run on a device that takes these targets, best first. A device without targets runs native
/// code, also that of the device compiler for some levels.
fn runs(targets: &[ImageTarget], levels: &[ImageTarget]) -> String {
    match targets {
        [] => match levels {
            [best, _, ..] => format!("the program's own code and images up to {best}"),
            [only] => format!("the program's own code and images for {only}"),
            [] => "the program's own code".to_owned(),
        },
        [only] => format!("images for {only}"),
        // Kernels are made for the least version of SPIR-V that has what they need.
        [least, .., most] if matches!(least, ImageTarget::SpirV { .. }) => {
            format!("images for {least}, or for later ones up to {most}")
        }
        [best, .., least] => format!("images for {best}, or for earlier ones down to {least}"),
    }
}

/// Rows in columns; the last is as long as it is, in a line of its own where it would not fit.
fn table(rows: &[[String; 4]]) -> Vec<String> {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let (selectors, names) = (width(1), width(2));
    let line = |[mark, selector, name, runs]: &[String; 4]| {
        let device = format!("{mark} {selector:selectors$}  {name:names$}");
        let line = format!("{device}  runs {runs}\n");
        if line.trim_end().chars().count() <= WIDTH {
            line
        } else {
            format!("{}\n{INDENT}runs {runs}\n", device.trim_end())
        }
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use oxisycl::HostLevel;

    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_text() {
        let row = |texts: [&str; 4]| texts.map(str::to_owned);
        let rows = [row(["*", "host:0", "CPU", "native"]), row([" ", "simulated:1", "Device", "all"])];
        assert_eq!(table(&rows), ["* host:0       CPU     runs native\n", "  simulated:1  Device  runs all\n"]);
        let rows = [row(["*", "cuda:0", "GPU", &"x".repeat(60)]), row([" ", "cuda:1", "GPU", &"x".repeat(61)])];
        let beyond = format!("  cuda:1  GPU\n    runs {}\n", "x".repeat(61));
        assert_eq!(table(&rows), [format!("* cuda:0  GPU  runs {}\n", "x".repeat(60)), beyond]);
    }

    #[test]
    fn memory_units_and_aspects_are_told_in_lines_of_limited_length() {
        let device = Device::default().expect("the host device");
        let text = described(device.info());
        let first = format!(
            "{INDENT}{} of memory, {} compute units; aspects: ",
            size(device.info().global_mem_size),
            device.info().max_compute_units
        );
        assert!(text.starts_with(&first) && text.lines().all(|line| line.len() <= WIDTH), "{text}");
        let words: Vec<&str> = text.split_whitespace().collect();
        assert!(device.info().aspects.iter().all(|aspect| words.contains(&aspect.name())), "{text}");
        assert_eq!([size(0), size(1536), size(139 << 30)], ["0.0 B", "1.5 KiB", "139.0 GiB"]);
    }

    #[test]
    fn hidden_devices_are_told_with_the_variable_and_its_value() {
        assert_eq!(hidden("*:*", &[]), "OXISYCL_DEVICE_SELECTOR=\"*:*\" hides nothing\n");
        let devices = [("host:0", "CPU"), ("simulated:0", "Device")];
        assert_eq!(
            hidden("cuda:gpu", &devices),
            "OXISYCL_DEVICE_SELECTOR=\"cuda:gpu\" hides 2 devices:\n  host:0       CPU\n  simulated:0  Device\n"
        );
        assert!(hidden("host:*", &devices[1..]).ends_with(" hides 1 device:\n  simulated:0  Device\n"));
    }

    #[test]
    fn targets_are_told_from_the_best_to_the_least() {
        let ptx = |sm| ImageTarget::Ptx { sm };
        assert_eq!(runs(&[], &[]), "the program's own code");
        assert_eq!(runs(&[ptx(70)], &[]), "images for sm_70");
        assert_eq!(runs(&[ptx(90), ptx(80), ptx(70)], &[]), "images for sm_90, or for earlier ones down to sm_70");
        let host = |level| ImageTarget::Host { triple: "t".to_owned(), level };
        let levels = [host(Some(HostLevel::V4)), host(Some(HostLevel::V3)), host(None)];
        assert_eq!(runs(&[], &levels), "the program's own code and images up to host:t+x86-64-v4");
        assert_eq!(runs(&[], &levels[2..]), "the program's own code and images for host:t");
    }
}
