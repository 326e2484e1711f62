use std::ffi::OsString;
use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::process::ExitCode;

use lexopt::prelude::*;

use super::cargo::Cargo;
use crate::compile::ImageCache;
use crate::failure::{Failure, Result};

const HELP: &str = "\
Removes what `cargo sycl` has built

Usage: cargo sycl clean [OPTIONS]

  --target-dir DIR       Cargo's target folder
  --manifest-path PATH   The package
  --cache                Also the compiled images that all builds of this user share
";

/// Removes this tool's folder below the target folder.
pub(crate) fn run(arguments: Vec<OsString>) -> Result<ExitCode> {
    let mut parser = lexopt::Parser::from_args(arguments);
    let mut target_dir = None;
    let mut configuration = Vec::new();
    let mut cache = false;
    while let Some(argument) = parser.next()? {
        match argument {
            Long("target-dir") => target_dir = Some(PathBuf::from(parser.value()?)),
            Long("manifest-path") => configuration.extend(["--manifest-path".into(), parser.value()?]),
            Long("cache") => cache = true,
            Long("help") | Short('h') => {
                print!("{HELP}");
                return Ok(ExitCode::SUCCESS);
            }
            _ => return Err(argument.unexpected().into()),
        }
    }
    let folders = Cargo::here(configuration)?.target_folders(target_dir.as_deref())?;
    let cache = cache.then(ImageCache::open).flatten().map(|cache| cache.path().to_owned());
    for folder in [Some(folders.target), folders.build, cache].into_iter().flatten() {
        match fs::remove_dir_all(&folder) {
            Ok(()) => println!("removed {}", folder.display()),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(Failure::file(&folder, error)),
        }
    }
    Ok(ExitCode::SUCCESS)
}
