//! `new`: a package with a kernel, a program that launches it, and a test.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use lexopt::prelude::*;

use crate::failure::{Failure, Result};

const HELP: &str = "\
Makes a package with a kernel and a test

Usage: cargo sycl new PATH [OPTIONS]

  --name NAME     The package's name [default: the last part of the path]
  --oxisycl PATH  A checkout of OxiSYCL to use instead of the published crate
";

const MAIN: &str = include_str!("new/main.rs.txt");
const LIBRARY: &str = include_str!("new/lib.rs.txt");

pub(crate) fn run(arguments: Vec<OsString>) -> Result<ExitCode> {
    let mut parser = lexopt::Parser::from_args(arguments);
    let (mut path, mut name, mut checkout) = (None, None, None);
    while let Some(argument) = parser.next()? {
        match argument {
            Long("name") => name = Some(parser.value()?.string()?),
            Long("oxisycl") => checkout = Some(PathBuf::from(parser.value()?)),
            Long("help") | Short('h') => {
                print!("{HELP}");
                return Ok(ExitCode::SUCCESS);
            }
            Value(value) if path.is_none() => path = Some(PathBuf::from(value)),
            _ => return Err(argument.unexpected().into()),
        }
    }
    let path = path.ok_or_else(|| Failure::new("new: expected the path of the package, found none"))?;
    let name = match name {
        Some(name) => name,
        None => path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
    };
    let checkout = checkout.map(|path| path.canonicalize().map_err(|error| Failure::file(&path, error))).transpose()?;
    write(&path, &name, checkout.as_deref())?;
    println!("made {}: `cargo sycl run` in there runs its kernel, `cargo sycl test` tests it", path.display());
    Ok(ExitCode::SUCCESS)
}

fn write(path: &Path, name: &str, checkout: Option<&Path>) -> Result<()> {
    check_name(name)?;
    let dependency = match checkout {
        Some(checkout) => {
            format!("{{ path = {} }}", super::cargo::literal(&checkout.join("crates/oxisycl").to_string_lossy()))
        }
        None => format!("\"{}\"", env!("CARGO_PKG_VERSION")),
    };
    let manifest = format!(
        "[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[dependencies]\noxisycl = {dependency}\n"
    );
    let sources = path.join("src");
    // Not `create_dir_all`: what is there is the user's.
    let made = fs::create_dir(path).and_then(|()| fs::create_dir(&sources));
    made.map_err(|error| Failure::file(path, error))?;
    let crate_name = name.replace('-', "_");
    for (file, text) in [
        (path.join("Cargo.toml"), manifest.as_str()),
        (path.join(".gitignore"), "/target\n"),
        (sources.join("main.rs"), MAIN.replace("CRATE", &crate_name).as_str()),
        (sources.join("lib.rs"), LIBRARY.replace("CRATE", &crate_name).as_str()),
    ] {
        fs::write(&file, text).map_err(|error| Failure::file(&file, error))?;
    }
    Ok(())
}

fn check_name(name: &str) -> Result<()> {
    let mut letters = name.chars();
    let fits = letters.next().is_some_and(|first| first.is_ascii_alphabetic())
        && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '-' || letter == '_');
    match fits {
        true => Ok(()),
        false => {
            Err(Failure::new(format!("--name: expected letters, digits, - and _, a letter first, found {name:?}")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::tests::Scratch;

    #[test]
    fn a_package_is_whole_and_nothing_is_overwritten() {
        let scratch = Scratch::new("new");
        let path = scratch.path().join("my-app");
        write(&path, "my-app", None).unwrap();
        let manifest: toml::Table = fs::read_to_string(path.join("Cargo.toml")).unwrap().parse().unwrap();
        assert_eq!(manifest["dependencies"]["oxisycl"].as_str(), Some(env!("CARGO_PKG_VERSION")));
        assert!(fs::read_to_string(path.join("src/main.rs")).unwrap().contains("use my_app::"));
        assert!(write(&path, "my-app", None).is_err());
    }

    #[test]
    fn a_checkout_can_stand_for_the_published_crate() {
        let scratch = Scratch::new("new-checkout");
        let path = scratch.path().join("app");
        write(&path, "app", Some("/src/oxisycl".as_ref())).unwrap();
        let manifest: toml::Table = fs::read_to_string(path.join("Cargo.toml")).unwrap().parse().unwrap();
        assert_eq!(manifest["dependencies"]["oxisycl"]["path"].as_str(), Some("/src/oxisycl/crates/oxisycl"));
    }

    #[test]
    fn names_that_cargo_refuses_are_refused() {
        for name in ["", "1st", "a b", "..", "a/b"] {
            assert!(check_name(name).is_err(), "{name}");
        }
    }
}
