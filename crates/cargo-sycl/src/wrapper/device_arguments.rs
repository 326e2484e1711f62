//! The command line of the device pass: the host's, as far as it says what the program is.
//!
//! Invariant: what decides about identity stays: configuration, features, metadata, the kind of crate, overflow checks and debug
//! assertions. So types have the same `TypeId` and captures the same layout in both passes. What decides about optimisation goes: only
//! code that neither rustc nor LLVM has optimised has its barriers where the source has them.

use std::path::{Path, PathBuf};

use super::invocation::{Argument, Extern, Invocation, same_option};

/// Options of code generation that are of the host only.
const DROPPED_CODEGEN: &[&str] = &[
    "ar",
    "codegen-units",
    "debug-assertions",
    "debuginfo",
    "default-linker-libraries",
    "dlltool",
    "embed-bitcode",
    "incremental",
    "instrument-coverage",
    "link-arg",
    "link-args",
    "link-dead-code",
    "link-self-contained",
    "linker",
    "linker-features",
    "linker-flavor",
    "linker-plugin-lto",
    "llvm-args",
    "lto",
    "no-prepopulate-passes",
    "opt-level",
    "overflow-checks",
    "passes",
    "prefer-dynamic",
    "profile-generate",
    "profile-use",
    "remark",
    "rpath",
    "save-temps",
    "split-debuginfo",
    "strip",
];

/// Options about outputs, which the device pass has its own of.
const DROPPED_OPTIONS: &[&str] = &["--crate-type", "--emit", "--out-dir", "-o"];

/// Options about messages, which the device pass shows only if there is no other pass.
const OF_MESSAGES: &[&str] = &["--cap-lints", "--color", "--diagnostic-width", "--error-format", "--json"];

/// Short forms of dropped options.
const DROPPED_FLAGS: &[&str] = &["-g", "-O"];

/// The units that code is compiled in where it can be in several.
const UNITS: u32 = 16;

/// What the device pass of a crate writes.
pub(crate) struct Outputs<'a> {
    /// The folder of what the pass writes.
    pub(crate) folder: &'a Path,
    /// The bitcode.
    pub(crate) bitcode: Bitcode<'a>,
    /// The metadata; none for a program.
    pub(crate) metadata: Option<&'a Path>,
}

/// How a device pass writes bitcode.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bitcode<'a> {
    /// As one file.
    InOne(&'a Path),
    /// As several files in the folder, of which rustc makes those anew that have changed. The pass stands for the host's then: its messages
    /// are the host's, too, and so is the list of sources.
    InUnits {
        /// The list of sources.
        sources: &'a Path,
    },
}

/// The arguments of the device pass. `replace` gives the file that stands for a dependency's there.
pub(crate) fn device_arguments(
    host: &Invocation,
    outputs: &Outputs<'_>,
    mut replace: impl FnMut(&Path) -> Option<PathBuf>,
) -> Vec<String> {
    let mut arguments = Vec::new();
    let mut externs = Vec::new();
    let is_alone = matches!(outputs.bitcode, Bitcode::InUnits { .. });
    for argument in &host.arguments {
        match argument {
            Argument::Other(other) if !DROPPED_FLAGS.contains(&other.as_str()) => arguments.push(other.clone()),
            Argument::Other(_) => {}
            Argument::Option(name, _) if DROPPED_OPTIONS.contains(name) => {}
            Argument::Option(name, _) if OF_MESSAGES.contains(name) && !is_alone => {}
            Argument::Option("-C", value) if is_alone && same_option(codegen_name(value), "incremental") => {
                push(&mut arguments, "-C", value);
            }
            Argument::Option("-C", value) if is_of_host_only(value) => {}
            Argument::Option("--extern", value) => {
                let replaced = replace_extern(value, &mut replace);
                // A library that is both dynamic and static comes twice, and is one file here.
                if !externs.contains(&replaced) {
                    push(&mut arguments, "--extern", &replaced);
                    externs.push(replaced);
                }
            }
            Argument::Option("-L", value) => {
                if let Some(folder) = value.strip_prefix("dependency=") {
                    let device = super::sidecar::device_folder(Path::new(folder));
                    push(&mut arguments, "-L", &format!("dependency={}", device.display()));
                }
                push(&mut arguments, "-L", value);
            }
            Argument::Option(name, value) => push(&mut arguments, name, value),
        }
    }
    if !host.is_test() {
        push(&mut arguments, "--crate-type", if host.is_program() { "bin" } else { "lib" });
    }
    let checks = if is_optimised(host) { "off" } else { "on" };
    let assertions = flag(host, "debug-assertions").unwrap_or(checks);
    push(&mut arguments, "-C", &format!("debug-assertions={assertions}"));
    push(&mut arguments, "-C", &format!("overflow-checks={}", flag(host, "overflow-checks").unwrap_or(assertions)));
    for option in ["opt-level=0", "no-prepopulate-passes", "debuginfo=2"] {
        push(&mut arguments, "-C", option);
    }
    let mut emit = match outputs.bitcode {
        Bitcode::InOne(bitcode) => {
            push(&mut arguments, "-C", "codegen-units=1");
            push(&mut arguments, "--cap-lints", "allow");
            format!("llvm-bc={}", bitcode.display())
        }
        Bitcode::InUnits { sources } => {
            push(&mut arguments, "-C", &format!("codegen-units={UNITS}"));
            format!("llvm-bc,dep-info={}", sources.display())
        }
    };
    if let Some(metadata) = outputs.metadata {
        emit.push_str(&format!(",metadata={}", metadata.display()));
    }
    push(&mut arguments, "--emit", &emit);
    push(&mut arguments, "--out-dir", &outputs.folder.to_string_lossy());
    arguments
}

fn push(arguments: &mut Vec<String>, name: &str, value: &str) {
    arguments.extend([name.to_owned(), value.to_owned()]);
}

fn is_of_host_only(value: &str) -> bool {
    DROPPED_CODEGEN.iter().any(|dropped| same_option(codegen_name(value), dropped))
}

fn codegen_name(value: &str) -> &str {
    value.split('=').next().unwrap_or(value)
}

fn replace_extern(value: &str, replace: &mut impl FnMut(&Path) -> Option<PathBuf>) -> String {
    let Extern { name, path } = Extern::parse(value);
    match path.and_then(|path| replace(&path)) {
        Some(path) => format!("{name}={}", path.display()),
        None => value.to_owned(),
    }
}

/// Whether rustc's default for debug assertions is off in the host pass.
pub(super) fn is_optimised(host: &Invocation) -> bool {
    host.has("-O") || host.codegen("opt-level").is_some_and(|level| level != "0")
}

/// Whether the host pass makes code that says which source lines it is of, and the link keeps that.
pub(super) fn has_lines(host: &Invocation) -> bool {
    let is_off = |value: &str| ["0", "none"].contains(&value);
    let is_made = host.codegen("debuginfo").map_or(host.has("-g"), |value| !is_off(value));
    is_made && host.codegen("strip").is_none_or(|value| value == "none")
}

/// A flag of code generation that the host pass has explicitly.
fn flag<'a>(host: &'a Invocation, name: &str) -> Option<&'a str> {
    // `-C debug-assertions` alone turns it on.
    host.codegen(name).map(|value| if value.is_empty() { "on" } else { value })
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;

    fn rewrite(line: &str) -> Vec<String> {
        let host = Invocation::parse(&line.split_whitespace().map(OsString::from).collect::<Vec<_>>()).unwrap();
        let metadata = (!host.is_program()).then_some(Path::new("/t/oxisycl/liba.rmeta"));
        let outputs =
            Outputs { folder: "/t/oxisycl".as_ref(), bitcode: Bitcode::InOne("/t/oxisycl/a.bc".as_ref()), metadata };
        device_arguments(&host, &outputs, |path| {
            let name = path.to_string_lossy();
            name.contains("kernels").then(|| PathBuf::from("/t/oxisycl/libkernels.rlib"))
        })
    }

    #[test]
    fn a_pass_that_stands_for_the_hosts_has_its_messages_and_its_units() {
        let line = "--crate-name a src/main.rs --error-format=json --json=artifacts -D warnings -C opt-level=3 -C codegen-units=4 \
                    -C incremental=/i --emit=dep-info,link --out-dir /t/deps";
        let arguments: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        let host = Invocation::parse(&arguments).unwrap();
        let bitcode = Bitcode::InUnits { sources: "/t/deps/a.d".as_ref() };
        let outputs = Outputs { folder: "/t/units".as_ref(), bitcode, metadata: None };
        let arguments = device_arguments(&host, &outputs, |_| None).join(" ");
        for part in [
            "--error-format json --json artifacts -D warnings -C incremental=/i",
            "--emit llvm-bc,dep-info=/t/deps/a.d",
            "-C codegen-units=16",
            "--out-dir /t/units",
        ] {
            assert!(arguments.contains(part), "{part}: {arguments}");
        }
        assert_eq!(arguments.matches("codegen-units").count(), 1, "{arguments}");
        assert!(!arguments.contains("--cap-lints") && !arguments.contains("opt-level=3"), "{arguments}");
    }

    /// What stands before the options that every device pass ends with.
    fn kept(line: &str) -> String {
        let arguments = rewrite(line);
        let end = arguments.iter().position(|argument| argument.starts_with("debug-assertions")).unwrap() - 1;
        arguments[..end].join(" ")
    }

    #[test]
    fn what_makes_the_identity_of_types_stays_and_the_rest_goes() {
        for (host, device) in [
            ("--crate-name a src/lib.rs --edition=2024", "--crate-name a src/lib.rs --edition 2024 --crate-type bin"),
            (
                "--crate-type lib -C metadata=1 -C extra-filename=-1",
                "-C metadata=1 -C extra-filename=-1 --crate-type lib",
            ),
            ("--cfg feature=\"x\" --check-cfg cfg(a)", "--cfg feature=\"x\" --check-cfg cfg(a) --crate-type bin"),
            (
                "-C target-cpu=native -Ctarget-feature=+avx",
                "-C target-cpu=native -C target-feature=+avx --crate-type bin",
            ),
            ("-C panic=abort --target x", "-C panic=abort --target x --crate-type bin"),
            ("--test src/lib.rs", "--test src/lib.rs"),
            ("--crate-type lib --test", "--test"),
            ("--crate-type dylib --crate-type rlib", "--crate-type lib"),
            ("--crate-type cdylib,rlib", "--crate-type lib"),
            ("-C opt-level=3 -O -g -C lto=fat -Cstrip=symbols", "--crate-type bin"),
            ("-C codegen-units=16 -C incremental=/i -C linker-plugin-lto", "--crate-type bin"),
            ("-C link-arg=-s -Clink_args=-x -C linker=clang", "--crate-type bin"),
            ("-C embed-bitcode=no -C debuginfo=2 -C split-debuginfo=packed", "--crate-type bin"),
            ("-C instrument-coverage -C profile-use=/p -C save-temps", "--crate-type bin"),
            ("--error-format=json --json=artifacts --diagnostic-width=80 --color always", "--crate-type bin"),
            ("--emit=dep-info,link --out-dir /t/deps --cap-lints warn", "--crate-type bin"),
            ("-D warnings -l static=z", "-D warnings -l static=z --crate-type bin"),
        ] {
            assert_eq!(kept(host), device, "{host}");
        }
    }

    #[test]
    fn native_code_has_lines_where_the_hosts_code_keeps_them() {
        for (host, expected) in [
            ("", false),
            ("-O", false),
            ("-g", true),
            ("-C debuginfo=1", true),
            ("-C debuginfo=line-tables-only", true),
            ("-g -C debuginfo=0", false),
            ("-C debuginfo=none", false),
            ("-C debuginfo=2 -C strip=none", true),
            ("-C debuginfo=2 -C strip=debuginfo", false),
            ("-C debuginfo=2 -C strip=symbols", false),
        ] {
            let arguments: Vec<OsString> = host.split_whitespace().map(OsString::from).collect();
            assert_eq!(has_lines(&Invocation::parse(&arguments).unwrap()), expected, "{host}");
        }
    }

    #[test]
    fn dependencies_with_device_code_are_taken_from_there() {
        assert_eq!(
            kept("--extern kernels=/t/deps/libkernels.rmeta --extern serde=/t/deps/libserde.rmeta --extern proc_macro"),
            "--extern kernels=/t/oxisycl/libkernels.rlib --extern serde=/t/deps/libserde.rmeta --extern proc_macro --crate-type bin"
        );
        assert_eq!(
            kept("-L dependency=/t/deps -L native=/usr/lib"),
            "-L dependency=/t/.oxisycl -L dependency=/t/deps -L native=/usr/lib --crate-type bin"
        );
    }

    #[test]
    fn a_library_in_two_forms_is_one_dependency() {
        assert_eq!(
            kept("--extern kernels=/t/deps/libkernels.so --extern kernels=/t/deps/libkernels.rlib"),
            "--extern kernels=/t/oxisycl/libkernels.rlib --crate-type bin"
        );
    }

    #[test]
    fn checks_are_those_of_the_host_whatever_made_them_so() {
        for (host, assertions, overflow) in [
            ("", "on", "on"),
            ("-C opt-level=0", "on", "on"),
            ("-C opt-level=3", "off", "off"),
            ("-C opt-level=s", "off", "off"),
            ("-O", "off", "off"),
            ("-C opt-level=3 -C debug-assertions=on", "on", "on"),
            ("-C opt-level=3 -C debug-assertions", "on", "on"),
            ("-C opt-level=3 -C overflow-checks=on", "off", "on"),
            ("-C debug-assertions=off -C overflow-checks=yes", "off", "yes"),
        ] {
            let arguments = rewrite(host);
            assert!(arguments.contains(&format!("debug-assertions={assertions}")), "{host}");
            assert!(arguments.contains(&format!("overflow-checks={overflow}")), "{host}");
        }
    }

    #[test]
    fn libraries_give_metadata_and_programs_do_not() {
        let emit = |line| rewrite(line).windows(2).find(|pair| pair[0] == "--emit").unwrap()[1].clone();
        assert_eq!(emit("--crate-type lib"), "llvm-bc=/t/oxisycl/a.bc,metadata=/t/oxisycl/liba.rmeta");
        assert_eq!(emit("--crate-type bin"), "llvm-bc=/t/oxisycl/a.bc");
        assert_eq!(emit("--crate-type lib --test"), "llvm-bc=/t/oxisycl/a.bc");
    }
}
