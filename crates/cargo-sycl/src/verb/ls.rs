//! `ls`: the devices of this machine, and the code that each can run.

use std::ffi::OsString;
use std::process::ExitCode;

use lexopt::prelude::*;
use oxisycl::ImageTarget;
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
            let runs = match device.unusable() {
                Some(reason) => format!("nothing: {reason}"),
                None => runs(device.image_targets()),
            };
            rows.push([mark.to_owned(), selector, device.name().to_owned(), runs]);
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

/// What a program has to contain for its kernels to run on a device that takes these targets, best first.
fn runs(targets: &[ImageTarget]) -> String {
    match targets {
        [] => "the program's own code".to_owned(),
        [only] => format!("images for {only}"),
        // Kernels are made for the least version of SPIR-V that has what they need.
        [least, .., most] if matches!(least, ImageTarget::SpirV { .. }) => {
            format!("images for {least}, or for later ones up to {most}")
        }
        [best, .., least] => format!("images for {best}, or for earlier ones down to {least}"),
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
    fn targets_are_told_from_the_best_to_the_least() {
        let ptx = |sm| ImageTarget::Ptx { sm };
        assert_eq!(runs(&[]), "the program's own code");
        assert_eq!(runs(&[ptx(70)]), "images for sm_70");
        assert_eq!(runs(&[ptx(90), ptx(80), ptx(70)]), "images for sm_90, or for earlier ones down to sm_70");
    }
}
