//! `ls`: the devices of this machine, and the code that each can run.

use std::ffi::OsString;
use std::process::ExitCode;

use lexopt::prelude::*;
use oxisycl::BackendKind;
use oxisycl::prelude::{Device, Platform};

use crate::failure::{Failure, Result};

const HELP: &str = "\
Lists the devices of this machine, and the code that each can run

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
    let mut rows = Vec::new();
    for platform in Platform::all().map_err(failed)? {
        for device in platform.devices() {
            let mark = if Some(&device) == default.as_ref() { "*" } else { " " };
            let selector = device.selector().unwrap_or("-").to_owned();
            rows.push([mark.to_owned(), selector, device.name().to_owned(), runs(platform.backend()).to_owned()]);
        }
    }
    if rows.is_empty() {
        println!("no visible device");
    } else {
        print!("{}", table(&rows));
        println!("* the default device");
    }
    Ok(ExitCode::SUCCESS)
}

/// What a program has to contain for its kernels to run on such a device.
fn runs(backend: BackendKind) -> &'static str {
    match backend {
        BackendKind::Host | BackendKind::Simulated => "the program's own code",
        BackendKind::Cuda => "sm_70 images, and others up to its compute capability",
        _ => "no images of this version of cargo sycl",
    }
}

/// Rows in columns; the last is as long as it is.
fn table(rows: &[[String; 4]]) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let (selectors, names) = (width(1), width(2));
    let line = |[mark, selector, name, runs]: &[String; 4]| {
        format!("{mark} {selector:selectors$}  {name:names$}  runs {runs}\n")
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_text() {
        let row = |texts: [&str; 4]| texts.map(str::to_owned);
        let rows = [row(["*", "host:0", "CPU", "native"]), row([" ", "simulated:1", "Device", "all"])];
        assert_eq!(table(&rows), "* host:0       CPU     runs native\n  simulated:1  Device  runs all\n");
    }

    #[test]
    fn the_host_device_needs_no_image() {
        assert_eq!(runs(BackendKind::Host), "the program's own code");
    }
}
