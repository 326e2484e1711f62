//! `new`: a package with a kernel, a program that launches it, and a test.
//!
//! The package depends on the OxiSYCL that this tool belongs to. That is the clone that the tool was built from while it exists, else the
//! published crate. Which one it is does not depend on a network.

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
  --oxisycl PATH  The clone of OxiSYCL to use [default: the one that this tool was built from, if any]
  --published     Use the published crate instead of a clone
";

const MAIN: &str = include_str!("new/main.rs.txt");
const LIBRARY: &str = include_str!("new/lib.rs.txt");

pub(crate) fn run(arguments: Vec<OsString>) -> Result<ExitCode> {
    let mut parser = lexopt::Parser::from_args(arguments);
    let (mut path, mut name, mut checkout, mut is_published) = (None, None, None, false);
    while let Some(argument) = parser.next()? {
        match argument {
            Long("name") => name = Some(parser.value()?.string()?),
            Long("oxisycl") => checkout = Some(PathBuf::from(parser.value()?)),
            Long("published") => is_published = true,
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
    let checkout = match checkout {
        Some(_) if is_published => {
            return Err(Failure::new("new: expected --oxisycl or --published, found both"));
        }
        Some(path) => Some(path.canonicalize().map_err(|error| Failure::file(&path, error))?),
        None if is_published => None,
        None => checkout_around(Path::new(env!("CARGO_MANIFEST_DIR"))),
    };
    write(&path, &name, checkout.as_deref())?;
    if let Some(checkout) = &checkout {
        println!("its dependency is the clone of OxiSYCL in {}", checkout.display());
    }
    println!("made {}: `cargo sycl run` in there runs its kernel, `cargo sycl test` tests it", path.display());
    Ok(ExitCode::SUCCESS)
}

/// The clone of OxiSYCL that has this package of the tool, if it is one of this version. A package from a registry stands beside others in
/// folders with versions in their names.
fn checkout_around(package: &Path) -> Option<PathBuf> {
    let root = package.parent()?.parent()?;
    let table = |path: PathBuf| fs::read_to_string(path).ok()?.parse::<toml::Table>().ok();
    let workspace = table(root.join("Cargo.toml"))?;
    let version = workspace.get("workspace")?.get("package")?.get("version")?.as_str()?;
    let facade = table(root.join("crates/oxisycl/Cargo.toml"))?;
    let name = facade.get("package")?.get("name")?.as_str()?;
    (name == "oxisycl" && version == env!("CARGO_PKG_VERSION")).then(|| root.to_owned())
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
    fn the_clone_around_the_tool_is_used_while_it_is_one_of_this_version() {
        let own = checkout_around(Path::new(env!("CARGO_MANIFEST_DIR"))).unwrap();
        assert!(own.join("crates/cargo-sycl").is_dir());
        let scratch = Scratch::new("new-clone");
        let package = scratch.path().join("crates/cargo-sycl");
        assert_eq!(checkout_around(&package), None);
        let facade = scratch.path().join("crates/oxisycl");
        fs::create_dir_all(&facade).unwrap();
        fs::write(facade.join("Cargo.toml"), "[package]\nname = \"oxisycl\"\n").unwrap();
        for (version, is_used) in [(env!("CARGO_PKG_VERSION"), true), ("99.0.0", false)] {
            let workspace = format!("[workspace.package]\nversion = \"{version}\"\n");
            fs::write(scratch.path().join("Cargo.toml"), workspace).unwrap();
            assert_eq!(checkout_around(&package), is_used.then(|| scratch.path().to_owned()), "{version}");
        }
        assert_eq!(checkout_around("/home/u/.cargo/registry/src/index/cargo-sycl-0.1.0".as_ref()), None);
    }

    #[test]
    fn names_that_cargo_refuses_are_refused() {
        for name in ["", "1st", "a b", "..", "a/b"] {
            assert!(check_name(name).is_err(), "{name}");
        }
    }
}
