//! The examples in native code of the device compiler: they do what they do in plain code.
//!
//! Invariants: each example that needs neither a GPU, files nor arguments succeeds with all settings of the host's code. If it writes the same twice in
//! plain code, it writes that in native code, too. Builds nothing.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::examples;
use crate::outcome::{Failure, Result};
use crate::process::{self, command};
use crate::workspace::Workspace;

/// Examples that are left out. They need a library, or files as arguments.
const LEFT_OUT: &[&str] = &["20_cublas", "resize"];
/// The settings of `OXISYCL_HOST_CODE`, twice the first one: what differs between its runs, such as times, says nothing of code.
const SETTINGS: [&str; 4] = ["plain", "plain", "v3", "auto"];
/// The longest that an example may run.
const LIMIT: Duration = Duration::from_secs(2 * 60);

/// How the standard output with native code is beside that with plain code.
#[derive(Debug, PartialEq)]
enum Output {
    Equal,
    /// Plain code has another one each time.
    Varies,
    /// With these settings it is another one.
    Differs(Vec<&'static str>),
}

/// Runs those among the built programs. Gives the number of examples, and how many of them have equal outputs.
pub(crate) fn run(workspace: &Workspace, built: &BTreeMap<String, PathBuf>) -> Result<[usize; 2]> {
    let folder = workspace.target_directory.join("native-examples");
    fs::create_dir_all(&folder).map_err(|error| Failure::new(format!("{}: {error}", folder.display())))?;
    let targets = &workspace.require(examples::PACKAGE)?.targets;
    let names = targets.iter().filter(|target| target.kind == "example").map(|target| target.name.as_str());
    let (mut n_examples, mut n_equal, mut differing) = (0, 0, Vec::new());
    for name in names.filter(|name| !LEFT_OUT.contains(name)) {
        let program = built.get(&format!("example {name}"));
        let program = program.ok_or_else(|| Failure::new(format!("cargo built no example {name}")))?;
        let outputs = SETTINGS.iter().map(|setting| output(workspace, &folder, program, setting));
        let output = compared(&outputs.collect::<Result<Vec<_>>>()?);
        n_examples += 1;
        let what = match output {
            Output::Equal => {
                n_equal += 1;
                "the same output with all settings".to_owned()
            }
            Output::Varies => "runs with all settings, and its output varies".to_owned(),
            Output::Differs(settings) => {
                let what = format!("another output with {}", settings.join(" and "));
                differing.push(format!("{name}: {what}"));
                what
            }
        };
        println!("  {name}: {what}");
    }
    Failure::unless_empty("example whose output is another one in native code", differing)?;
    Ok([n_examples, n_equal])
}

/// What an example writes with a setting. Failures name it.
fn output(workspace: &Workspace, folder: &Path, program: &Path, setting: &str) -> Result<String> {
    let mut command = command(workspace, &program.as_os_str().to_owned());
    command.current_dir(folder).env("OXISYCL_DEVICE_SELECTOR", "host:*").env("OXISYCL_HOST_CODE", setting);
    let captured = process::run_within(&mut command, LIMIT).and_then(process::Captured::succeeded);
    captured.map(|captured| captured.stdout).map_err(|Failure { message, findings }| Failure {
        message: format!("with OXISYCL_HOST_CODE={setting} {message}"),
        findings,
    })
}

/// Compares outputs, which are in the order of [`SETTINGS`].
fn compared(outputs: &[String]) -> Output {
    let (plain, native) = outputs.split_at(2);
    if plain[0] != plain[1] {
        return Output::Varies;
    }
    let others = native.iter().zip(&SETTINGS[2..]).filter(|(output, _)| **output != plain[0]);
    let others: Vec<_> = others.map(|(_, setting)| *setting).collect();
    if others.is_empty() { Output::Equal } else { Output::Differs(others) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_of_native_code_are_compared_where_plain_code_has_one() {
        let compare = |outputs: [&str; 4]| compared(&outputs.map(str::to_owned));
        assert_eq!(compare(["7", "7", "7", "7"]), Output::Equal);
        assert_eq!(compare(["in 7 ms", "in 8 ms", "in 3 ms", "in 3 ms"]), Output::Varies);
        assert_eq!(compare(["7", "7", "8", "7"]), Output::Differs(vec!["v3"]));
        assert_eq!(compare(["7", "7", "8", "8"]), Output::Differs(vec!["v3", "auto"]));
    }
}
