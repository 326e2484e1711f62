//! `cargo xtask bench`: one benchmark of the facade or of builds, and the check of the results it writes. What follows the name goes to the
//! benchmark, `--filter SUBSTR` and `--rounds N` among it.

mod build;
mod programs;
#[cfg(test)]
mod quoted;
#[cfg(test)]
mod shared;
#[path = "../../benches/verdict.rs"]
#[cfg_attr(not(test), expect(dead_code, reason = "each kernel has a bar"))]
mod verdict;

use std::env;
use std::path::PathBuf;

use lexopt::Parser;
use lexopt::prelude::*;
use serde_json::Value as Json;

use crate::nvcc;
use crate::opencl;
use crate::outcome::{Failure, Outcome, Result};
use crate::process::{self, cargo};
use crate::workspace::{Workspace, read};

/// What every result states.
const KEYS: &[&str] = &["name", "value", "unit", "peer", "peer_value", "ratio"];

/// The benchmarks whose kernels are compiled by `cargo sycl`, with its arguments.
const DEVICES: &[(&str, &[&str])] = &[
    ("gpu", &["--targets", "sm_70,sm_80"]),
    ("host", &["--targets", "host-v3", "--lanes", "auto"]),
    ("images", &["--targets", "sm_70,host-v3", "--lanes", "8"]),
    ("opencl", &["--targets", "spirv"]),
];

/// The benchmarks with a peer in CUDA C++, `reference.cu` in their folder.
const WITH_REFERENCE: &[&str] = &["gpu", "images"];

/// The argument of the benchmark `host` for programs that plain cargo builds.
const PLAIN: &str = "--plain";

/// Arguments of the benchmark `host` by which it measures whole programs, or one of them.
const WHOLE_PROGRAMS: &[&str] = &["--all-programs", "--program"];

/// Arguments that take the place of those in [`DEVICES`]: the number of lanes, and the level of native code.
const CHOSEN: [&str; 2] = ["--lanes", "--targets"];

/// Variables with the number of threads on each side of the benchmarks `host` and `images`. One thread's time says most on a machine that
/// others use. The last one is for the OpenCL driver that set-up installs.
const THREADS: [&str; 3] = ["OXISYCL_HOST_THREADS", "RAYON_NUM_THREADS", "DPCPP_CPU_NUM_CUS"];

/// `cargo xtask bench NAME [--json FILE] [ARGUMENTS]`.
pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<Outcome> {
    let Some((name, rest)) = arguments.split_first().filter(|(name, _)| !name.starts_with('-')) else {
        return Err(Failure::new("the name of a benchmark is missing"));
    };
    let (file, mut rest) = json_file(rest)?;
    if name == "build" {
        return build::run(workspace, file.as_deref(), &rest);
    }
    if name == "host" && rest.iter().any(|argument| WHOLE_PROGRAMS.contains(&argument.as_str())) {
        return programs::run(workspace, file.as_deref(), &rest);
    }
    let mut command = cargo(workspace);
    let of_devices = targets(name, &mut rest)?;
    // The driver that set-up installs, unless another one was chosen.
    if matches!(name.as_str(), "groups" | "host" | "opencl")
        && env::var_os(opencl::VENDORS).is_none()
        && let Some((variables, _)) = opencl::environment(workspace)
    {
        command.envs(variables);
    }
    if matches!(name.as_str(), "host" | "images") {
        command.envs(THREADS.into_iter().filter(|name| env::var_os(name).is_none()).map(|name| (name, "1")));
    }
    if of_devices.is_some() {
        command.arg("sycl");
    }
    command.args(["bench", "-p", "oxisycl", "--bench", name]);
    command.args(of_devices.iter().flatten()).arg("--");
    if let Some(file) = &file {
        command.arg("--json").arg(file);
    }
    if WITH_REFERENCE.contains(&name.as_str()) && !rest.iter().any(|argument| argument == "--reference") {
        let program = workspace.target_directory.join(format!("{name}-reference"));
        match nvcc::compile(&workspace.root.join("benches").join(name).join("reference.cu"), &program) {
            Some(mut compiler) => {
                process::run(&mut compiler)?;
                command.arg("--reference").arg(program);
            }
            None => println!("there is no nvcc: the figures have no peer"),
        }
    }
    process::run(command.args(rest))?;
    match file {
        Some(file) => Ok(Outcome::Passed(format!("{} results", check(&read(&file)?)?))),
        None => Ok(Outcome::passed()),
    }
}

/// The arguments of `cargo sycl`, if that builds the benchmark. Those of [`CHOSEN`] are taken out of the benchmark's own.
fn targets(name: &str, arguments: &mut Vec<String>) -> Result<Option<Vec<String>>> {
    let is_plain = arguments.iter().any(|argument| argument == PLAIN);
    let Some((_, targets)) = DEVICES.iter().find(|(device, _)| *device == name && !is_plain) else { return Ok(None) };
    let mut targets: Vec<String> = targets.iter().map(|argument| (*argument).to_owned()).collect();
    for chosen in CHOSEN {
        let find = |arguments: &[String]| arguments.iter().position(|argument| argument == chosen);
        if let (Some(own), Some(asked)) = (find(&targets), find(arguments)) {
            if asked + 1 == arguments.len() {
                return Err(Failure::new(format!("{chosen} needs a value")));
            }
            targets[own + 1] = arguments.drain(asked..asked + 2).next_back().unwrap_or_default();
        }
    }
    Ok(Some(targets))
}

/// The file after `--json`, and the other arguments. Made absolute, because cargo starts a benchmark in its package's folder.
fn json_file(arguments: &[String]) -> Result<(Option<PathBuf>, Vec<String>)> {
    let mut file = None;
    let mut rest = Vec::new();
    let mut parser = Parser::from_args(arguments);
    while let Some(argument) = parser.next()? {
        match argument {
            Long("json") => {
                let path = PathBuf::from(parser.value()?);
                let absolute = std::path::absolute(&path);
                file = Some(absolute.map_err(|error| Failure::new(format!("{}: {error}", path.display())))?);
            }
            Long(name) => {
                let name = format!("--{name}");
                rest.push(name);
                if let Some(value) = parser.optional_value() {
                    rest.push(value.string()?);
                }
            }
            Value(value) => rest.push(value.string()?),
            Short(_) => return Err(argument.unexpected().into()),
        }
    }
    Ok((file, rest))
}

/// The number of results in a file; each must have every key, and there must be one.
fn check(json: &str) -> Result<usize> {
    let value: Json = json.parse().map_err(|error| Failure::new(format!("the results are no JSON: {error}")))?;
    let results = value.as_array().ok_or_else(|| Failure::new("the results are no list"))?;
    for (position, result) in results.iter().enumerate() {
        if let Some(key) = KEYS.iter().find(|key| result.get(**key).is_none()) {
            return Err(Failure::new(format!("result {}: no \"{key}\"", position + 1)));
        }
    }
    if results.is_empty() { Err(Failure::new("the benchmark wrote no results")) } else { Ok(results.len()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_becomes_absolute_and_the_rest_is_passed_on() {
        let arguments = ["--json", "out.json", "submit", "--rounds", "3", "--filter=copy"].map(str::to_owned);
        let (file, rest) = json_file(&arguments).unwrap();
        assert!(file.unwrap().is_absolute());
        assert_eq!(rest, ["submit", "--rounds", "3", "--filter", "copy"]);
        assert!(json_file(&arguments[..1]).is_err());
    }

    #[test]
    fn cargo_sycl_builds_what_has_code_of_its_compiler() {
        let of = |name: &str, arguments: &[&str]| {
            let mut rest: Vec<String> = arguments.iter().map(|argument| (*argument).to_owned()).collect();
            let targets = targets(name, &mut rest).map_err(|failure| failure.message)?;
            Ok::<_, String>((targets.map(|targets| targets.join(" ")), rest.join(" ")))
        };
        let some = |targets: &str, rest: &str| Ok((Some(targets.to_owned()), rest.to_owned()));
        assert_eq!(of("gpu", &[]), some("--targets sm_70,sm_80", ""));
        assert_eq!(of("host", &["--rounds", "3"]), some("--targets host-v3 --lanes auto", "--rounds 3"));
        assert_eq!(of("host", &["--lanes", "8", "--seed", "1"]), some("--targets host-v3 --lanes 8", "--seed 1"));
        let v4 = ["--rounds", "9", "--targets", "host-v4", "--lanes", "16"];
        assert_eq!(of("host", &v4), some("--targets host-v4 --lanes 16", "--rounds 9"));
        assert_eq!(of("host", &["--seed", "1", PLAIN]), Ok((None, format!("--seed 1 {PLAIN}"))));
        assert_eq!(of("host", &["--lanes"]), Err("--lanes needs a value".to_owned()));
        assert_eq!(of("images", &[]), some("--targets sm_70,host-v3 --lanes 8", ""));
        assert_eq!(of("runtime", &[]), Ok((None, String::new())));
    }

    #[test]
    fn results_are_complete_or_refused() {
        let good = r#"[{"name": "a", "value": 1.0, "unit": "us", "peer": null, "peer_value": null, "ratio": null}]"#;
        assert_eq!(check(good), Ok(1));
        assert_eq!(check(&good.replace("\"unit\"", "\"units\"")).unwrap_err().message, "result 1: no \"unit\"");
        for wrong in ["[]", "{}", "not json", "[1]"] {
            assert!(check(wrong).is_err(), "{wrong}");
        }
    }
}
