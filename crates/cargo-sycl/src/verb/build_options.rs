use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use crate::failure::{Failure, Result};
use crate::settings::{parse_allowed, parse_float, parse_lanes, parse_target};

/// What is compiled for if the user does not say: each kind of device that a backend runs images on, in its oldest form.
pub(crate) const DEFAULT_TARGETS: &str = "sm_70,spirv";
/// The level of the host's processors that optimised programs have native code for, if the user does not say.
pub(crate) const DEFAULT_LEVEL: &str = "host-v3";

/// The arguments of a build: this tool's own, those of cargo that it has to know, and all of cargo's.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct BuildOptions {
    /// `--targets`, or those of a build that names none.
    pub(crate) targets: Vec<String>,
    /// Whether there was a `--targets`.
    pub(crate) are_targets_named: bool,
    /// `--float`.
    pub(crate) float: String,
    /// `--lanes`, if it is given.
    pub(crate) lanes: Option<String>,
    /// `--dump`, absolute.
    pub(crate) dump: Option<PathBuf>,
    /// `--time-passes`.
    pub(crate) time_passes: bool,
    /// `--allow host_capture`.
    pub(crate) allows_host_captures: bool,
    /// `--target-dir`, which is replaced.
    pub(crate) target_dir: Option<PathBuf>,
    /// Whether help is wanted.
    pub(crate) help: bool,
    /// Arguments that decide which workspace is meant and how it is configured.
    pub(crate) configuration: Vec<OsString>,
    /// What cargo gets.
    pub(crate) cargo: Vec<OsString>,
}

impl BuildOptions {
    /// Reads the arguments that follow the verb.
    ///
    /// # Errors
    /// If a value is missing, or names no target or policy of this tool.
    pub(crate) fn parse(arguments: Vec<OsString>) -> Result<Self> {
        let mut options = Self {
            targets: Vec::new(),
            are_targets_named: false,
            float: "contract".to_owned(),
            lanes: None,
            dump: None,
            time_passes: false,
            allows_host_captures: false,
            target_dir: None,
            help: false,
            configuration: Vec::new(),
            cargo: Vec::new(),
        };
        let mut targets = None;
        let mut arguments = arguments.into_iter();
        while let Some(argument) = arguments.next() {
            if argument == "--" {
                // The rest is the program's.
                options.cargo.push(argument);
                options.cargo.extend(arguments);
                break;
            }
            let (name, inline) = split(&argument);
            let mut value = || {
                let missing = || Failure::new(format!("{name}: expected a value, found the end of the arguments"));
                inline.clone().or_else(|| arguments.next()).ok_or_else(missing)
            };
            match name.as_str() {
                "--targets" => targets = Some(text(&name, value()?)?),
                "--float" => options.float = text(&name, value()?)?,
                "--lanes" => {
                    let lanes = text(&name, value()?)?;
                    parse_lanes(&lanes)?;
                    options.lanes = Some(lanes);
                }
                "--dump" => options.dump = Some(absolute(value()?)?),
                "--time-passes" => options.time_passes = true,
                "--allow" => {
                    let failed = |failure| Failure::new(format!("--allow: {failure}"));
                    parse_allowed(&text(&name, value()?)?).map_err(failed)?;
                    options.allows_host_captures = true;
                }
                "--target-dir" => options.target_dir = Some(absolute(value()?)?),
                "--manifest-path" | "--config" => {
                    let pair = [OsString::from(&name), value()?];
                    options.configuration.extend_from_slice(&pair);
                    options.cargo.extend(pair);
                }
                "--help" | "-h" => options.help = true,
                _ => options.cargo.push(argument),
            }
        }
        options.are_targets_named = targets.is_some();
        options.targets = match targets {
            Some(targets) => parse_targets(&targets)?,
            None => parse_targets(&format!("{DEFAULT_TARGETS},{DEFAULT_LEVEL}"))?,
        };
        parse_float(&options.float)?;
        Ok(options)
    }
}

/// The targets of a list, each once, in the order of the list.
fn parse_targets(list: &str) -> Result<Vec<String>> {
    let mut targets = Vec::new();
    for target in list.split(',').map(str::trim).filter(|target| !target.is_empty()) {
        let target = parse_target(target)?.to_string();
        if !targets.contains(&target) {
            targets.push(target);
        }
    }
    if targets.is_empty() {
        return Err(Failure::new("--targets: expected at least one target, found none"));
    }
    Ok(targets)
}

/// The name of an option, and the value after `=`.
fn split(argument: &OsStr) -> (String, Option<OsString>) {
    match argument.to_str().and_then(|text| text.split_once('=')) {
        Some((name, value)) if name.starts_with("--") => (name.to_owned(), Some(value.into())),
        _ => (argument.to_string_lossy().into_owned(), None),
    }
}

fn text(name: &str, value: OsString) -> Result<String> {
    value.into_string().map_err(|value| Failure::new(format!("{name}: {value:?} is not Unicode")))
}

fn absolute(path: OsString) -> Result<PathBuf> {
    std::path::absolute(&path).map_err(|error| Failure::file(path.as_ref(), error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<BuildOptions> {
        BuildOptions::parse(line.split_whitespace().map(OsString::from).collect())
    }

    fn cargo(line: &str) -> String {
        parse(line).unwrap().cargo.join(" ".as_ref()).into_string().unwrap()
    }

    #[test]
    fn cargo_gets_what_is_not_of_this_tool() {
        for (line, expected) in [
            ("--release --targets sm_80 --example tour", "--release --example tour"),
            ("--targets=sm_80,sm_90 -p app", "-p app"),
            ("--target-dir /t --target x86_64-unknown-linux-gnu", "--target x86_64-unknown-linux-gnu"),
            ("--manifest-path=a/Cargo.toml", "--manifest-path a/Cargo.toml"),
            ("--release -- --targets x --help", "--release -- --targets x --help"),
            ("--features=a --float fast --time-passes --lanes 8", "--features=a"),
        ] {
            assert_eq!(cargo(line), expected, "{line}");
        }
    }

    #[test]
    fn values_are_read_and_have_defaults() {
        let defaults = parse("").unwrap();
        assert_eq!(
            (defaults.targets.join(","), defaults.float.as_str()),
            ("sm_70,spirv1.2,host:x86_64-unknown-linux-gnu+x86-64-v3".to_owned(), "contract")
        );
        assert!(!defaults.time_passes && parse("--time-passes").unwrap().time_passes);
        let lanes = |line: &str| parse(line).unwrap().lanes;
        let expected = [None, Some("32".to_owned()), Some("auto".to_owned())];
        assert_eq!([defaults.lanes, lanes("--lanes=32"), lanes("--lanes auto")], expected);
        assert!(!defaults.allows_host_captures && parse("--allow host_capture").unwrap().allows_host_captures);
        assert!(!defaults.are_targets_named && parse("--targets sm_70,spirv").unwrap().are_targets_named);
        let options = parse("--targets sm_90,sm_80,sm_90 --float=strict --target-dir /t --dump /d --help").unwrap();
        assert_eq!(options.targets, ["sm_90", "sm_80"]);
        assert_eq!(options.float, "strict");
        assert_eq!((options.target_dir, options.dump), (Some("/t".into()), Some("/d".into())));
        assert!(options.help);
        assert_eq!(parse("--config a=1 --config=b=2").unwrap().configuration, ["--config", "a=1", "--config", "b=2"]);
    }

    #[test]
    fn what_cannot_be_is_refused_before_anything_is_built() {
        for line in [
            "--targets",
            "--targets ,",
            "--targets sm_60",
            "--targets cuda",
            "--float exact",
            "--lanes 3",
            "--lanes all",
            "--lanes=64",
            "--lanes",
            "--dump",
            "--allow",
            "--allow host_captures",
            "--allow=",
        ] {
            let error = parse(line).unwrap_err().to_string();
            assert!(error.starts_with("--"), "{line}: {error}");
        }
    }
}
