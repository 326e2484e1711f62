//! Finds the programs in `examples`, built, for tests that run them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

/// The examples that need a feature.
const WITH_FEATURES: &[&str] = &[
    "08_ndarray",
    "09_nalgebra",
    "10_image",
    "11_half",
    "12_num_complex",
    "13_glam",
    "21_ray_march",
    "22_optical_flow",
    "resize",
];

/// The built example of that name, beside the test's own program. Cargo builds it with the tests of the whole
/// workspace; for a single package or test it is built here.
pub(crate) fn built(name: &str) -> PathBuf {
    let own = std::env::current_exe().expect("the test's own path");
    let profile = own.ancestors().nth(2).expect("a folder of the profile");
    let program = profile.join("examples").join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let sources = newest(&root.join("crates")).max(newest(&root.join("examples")));
    if changed(&program).is_none_or(|built| Some(built) < sources) {
        build(name, profile);
    }
    assert!(program.exists(), "{} was not built", program.display());
    program
}

/// A command that runs the program without the settings of the test's own environment.
pub(crate) fn command(program: &Path) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("OXISYCL_") {
            command.env_remove(name);
        }
    }
    command
}

fn changed(path: &Path) -> Option<SystemTime> {
    path.metadata().and_then(|metadata| metadata.modified()).ok()
}

/// When a source in the folder was last changed, tests aside.
fn newest(folder: &Path) -> Option<SystemTime> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let sources = entries.filter(|path| !path.ends_with("tests")).filter_map(|path| match path.is_dir() {
        true => newest(&path),
        false => path.extension().is_some_and(|extension| extension == "rs").then(|| changed(&path))?,
    });
    sources.max()
}

/// Builds an example with the settings of the test: profile, target and folder are those of `target/[triple/]profile`.
fn build(name: &str, profile: &Path) {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| env!("CARGO").to_owned());
    let last = |path: &Path| path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
    let profile_name = match last(profile).as_str() {
        "debug" => "dev".to_owned(),
        other => other.to_owned(),
    };
    let parent = profile.parent().expect("a target folder");
    let mut command = Command::new(cargo);
    command.args(["build", "--quiet", "--example", name, "--profile", &profile_name]);
    // Examples with types of other crates need features. One build with all serves for all.
    if WITH_FEATURES.contains(&name) {
        command.arg("--all-features");
    }
    command.args(["--manifest-path", concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/Cargo.toml")]);
    // With an explicit target there is one more folder.
    let has_triple = parent.parent().is_some_and(|folder| folder.join("CACHEDIR.TAG").exists());
    match has_triple {
        true => command.args(["--target", &last(parent)]).arg("--target-dir").arg(parent.parent().unwrap_or(parent)),
        false => command.arg("--target-dir").arg(parent),
    };
    assert!(command.status().expect("cargo starts").success(), "cargo could not build the example {name}");
}
