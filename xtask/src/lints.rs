//! Lock files, formatting, lints, and the lints again for every feature of the facade alone, for none of them and for all.

use crate::crates;
use crate::device_programs;
use crate::examples;
use crate::outcome::{Outcome, Result};
use crate::process::{cargo, run};
use crate::workspace::Workspace;

/// The crate that users name; its features are the features of the project.
const FACADE: &str = "oxisycl";

/// Whether each lock file is what its manifests ask for. A dependency of a member also changes the lock file of the package that is a
/// workspace of its own. Every command that builds that package says `--locked`.
pub(crate) fn locks(workspace: &Workspace) -> Result<Outcome> {
    for folder in [workspace.root.clone(), workspace.root.join(crates::FOLDER)] {
        let manifest = folder.join("Cargo.toml");
        run(cargo(workspace).args(["update", "--workspace", "--locked", "--manifest-path"]).arg(manifest))?;
    }
    Ok(Outcome::passed())
}

/// `cargo fmt --check` over all crates, and over the package that is a workspace of its own.
pub(crate) fn fmt(workspace: &Workspace) -> Result<Outcome> {
    run(cargo(workspace).args(["fmt", "--all", "--check"]))?;
    let apart = workspace.root.join(crates::FOLDER).join("Cargo.toml");
    run(cargo(workspace).args(["fmt", "--check", "--manifest-path"]).arg(apart))?;
    Ok(Outcome::passed())
}

/// Clippy over everything that the default features build, and all examples, warnings denied.
pub(crate) fn clippy(workspace: &Workspace) -> Result<Outcome> {
    let mut command = cargo(workspace);
    command.args(["clippy", "--workspace", "--all-targets", "--features", &examples::features(workspace)?]);
    run(command.args(["--", "-D", "warnings"]))?;
    // They are not among all targets, since they run with the device code that another stage builds.
    let mut command = cargo(workspace);
    command.args(["clippy", "--workspace", "--features", &examples::features(workspace)?]);
    command.args(device_programs::BARE_TESTS.iter().flat_map(|(_, test)| ["--test", test]));
    run(command.args(["--", "-D", "warnings"]))?;
    Ok(Outcome::passed())
}

/// The facade with no feature, with each alone and with all. Clippy is a check that also denies warnings, such as imports that
/// only some feature uses.
pub(crate) fn features(workspace: &Workspace) -> Result<Outcome> {
    let facade = workspace.require(FACADE)?;
    let check = |features: &[&str]| {
        let mut command = cargo(workspace);
        run(command.args(["clippy", "-p", FACADE]).args(features).args(["--", "-D", "warnings"]))
    };
    check(&["--no-default-features"])?;
    let features = facade.features.iter().filter(|feature| *feature != "default");
    for feature in features.clone() {
        check(&["--no-default-features", "--features", feature])?;
    }
    check(&["--all-features"])?;
    Ok(Outcome::Passed(format!("{} features alone, none, all", features.count())))
}
