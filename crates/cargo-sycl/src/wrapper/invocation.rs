//! What a command line asks rustc to do.
//!
//! Owns the reading of rustc's options, in every spelling that rustc takes. Does not decide what happens to them.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use crate::failure::{Failure, Result};

/// Options of rustc with a value, by their canonical name, in the spellings `--name value` and `--name=value`.
const LONG: &[(&str, &str)] = &[
    ("--codegen", "-C"),
    ("--allow", "-A"),
    ("--warn", "-W"),
    ("--force-warn", "--force-warn"),
    ("--deny", "-D"),
    ("--forbid", "-F"),
    ("--cap-lints", "--cap-lints"),
    ("--cfg", "--cfg"),
    ("--check-cfg", "--check-cfg"),
    ("--color", "--color"),
    ("--crate-name", "--crate-name"),
    ("--crate-type", "--crate-type"),
    ("--diagnostic-width", "--diagnostic-width"),
    ("--edition", "--edition"),
    ("--emit", "--emit"),
    ("--env-set", "--env-set"),
    ("--error-format", "--error-format"),
    ("--explain", "--explain"),
    ("--extern", "--extern"),
    ("--json", "--json"),
    ("--out-dir", "--out-dir"),
    ("--print", "--print"),
    ("--remap-path-prefix", "--remap-path-prefix"),
    ("--remap-path-scope", "--remap-path-scope"),
    ("--sysroot", "--sysroot"),
    ("--target", "--target"),
];

/// Options of one letter with a value, which may follow at once or as the next argument.
const SHORT: &[&str] = &["-A", "-C", "-D", "-F", "-L", "-W", "-Z", "-l", "-o"];

/// One option, or one argument that is none.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Argument {
    /// An option with its value.
    Option(&'static str, String),
    /// Anything else, such as the source file, `--test` or `-g`.
    Other(String),
}

/// A crate that the command line names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Extern {
    /// The name, with the options that may stand before it, as in `noprelude:core`.
    pub(crate) name: String,
    /// The crate's file, unless rustc is to search for it.
    pub(crate) path: Option<PathBuf>,
}

/// A command line of rustc.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Invocation {
    /// The arguments, in their order.
    pub(crate) arguments: Vec<Argument>,
}

impl Invocation {
    /// Reads the arguments that follow the compiler's path; `@file` stands for the lines of the file.
    ///
    /// # Errors
    /// If an argument is not Unicode, or such a file cannot be read.
    pub(crate) fn parse(arguments: &[OsString]) -> Result<Self> {
        let mut plain = Vec::new();
        for argument in arguments {
            let Some(argument) = argument.to_str() else {
                return Err(Failure::new(format!("rustc's argument {argument:?} is not Unicode")));
            };
            match argument.strip_prefix('@') {
                Some(path) => {
                    let text = fs::read_to_string(path).map_err(|error| Failure::file(path.as_ref(), error))?;
                    plain.extend(text.lines().map(str::to_owned));
                }
                None => plain.push(argument.to_owned()),
            }
        }
        Ok(Self { arguments: read(plain) })
    }

    /// The values of an option, in their order.
    pub(crate) fn values<'a>(&'a self, option: &'a str) -> impl DoubleEndedIterator<Item = &'a str> {
        self.arguments.iter().filter_map(move |argument| match argument {
            Argument::Option(name, value) if *name == option => Some(value.as_str()),
            _ => None,
        })
    }

    /// The last value of an option of code generation; empty if it has none.
    pub(crate) fn codegen(&self, option: &str) -> Option<&str> {
        self.values("-C").rev().find_map(|value| {
            let (name, value) = value.split_once('=').unwrap_or((value, ""));
            same_option(name, option).then_some(value)
        })
    }

    /// Whether an argument without a value is there.
    pub(crate) fn has(&self, flag: &str) -> bool {
        self.arguments.iter().any(|argument| matches!(argument, Argument::Other(other) if other == flag))
    }

    /// The name of the crate.
    pub(crate) fn crate_name(&self) -> Option<&str> {
        self.values("--crate-name").next_back()
    }

    /// The types of the crate; `bin` is rustc's default.
    pub(crate) fn crate_types(&self) -> Vec<&str> {
        let types: Vec<&str> = self.values("--crate-type").flat_map(|types| types.split(',')).collect();
        if types.is_empty() { vec!["bin"] } else { types }
    }

    /// Whether it is built as a test.
    pub(crate) fn is_test(&self) -> bool {
        self.has("--test")
    }

    /// Whether it is a program, not a library: part of what makes the identity of its types.
    pub(crate) fn is_program(&self) -> bool {
        self.is_test() || self.crate_types().contains(&"bin")
    }

    /// Whether the linker makes something of it that can be started or loaded.
    pub(crate) fn is_linked(&self) -> bool {
        self.is_program() || self.crate_types().iter().any(|kind| ["dylib", "cdylib"].contains(kind))
    }

    /// Whether cargo compiles a crate of the program with it: not a macro, a build script, a probe or a check.
    pub(crate) fn compiles_crate(&self) -> bool {
        let named = self.crate_name().is_some_and(|name| name != "___" && !self.is_build_script(name));
        let links = self.values("--emit").flat_map(|kinds| kinds.split(',')).any(|kind| kind == "link");
        named
            && links
            && self.codegen("metadata").is_some()
            && self.values("--print").next().is_none()
            && !self.crate_types().contains(&"proc-macro")
            && !self.has("-")
            && self.out_dir().is_some()
    }

    /// Whether it is a package's build script. A program of the user's may have the same name, and is in another folder.
    fn is_build_script(&self, name: &str) -> bool {
        let folder = self.out_dir().and_then(Path::file_name);
        name.starts_with("build_script_") && !folder.is_some_and(|folder| folder == "deps" || folder == "examples")
    }

    /// The folder for the outputs.
    pub(crate) fn out_dir(&self) -> Option<&Path> {
        self.values("--out-dir").next_back().map(Path::new)
    }

    /// The name of the outputs without prefix and extension.
    pub(crate) fn stem(&self) -> String {
        let name = self.crate_name().unwrap_or_default().replace('-', "_");
        format!("{name}{}", self.codegen("extra-filename").unwrap_or_default())
    }

    /// The crates that it may use.
    pub(crate) fn externs(&self) -> impl Iterator<Item = Extern> {
        self.values("--extern").map(Extern::parse)
    }

    /// Whether lints of the crate are no errors, since the user cannot change it.
    pub(crate) fn caps_lints(&self) -> bool {
        self.values("--cap-lints").next_back().is_some_and(|cap| ["allow", "warn"].contains(&cap))
    }

    /// Whether messages are wanted as JSON, as cargo does.
    pub(crate) fn wants_json(&self) -> bool {
        self.values("--error-format").next_back() == Some("json")
    }
}

impl Extern {
    pub(crate) fn parse(value: &str) -> Self {
        match value.split_once('=') {
            Some((name, path)) => Self { name: name.to_owned(), path: Some(PathBuf::from(path)) },
            None => Self { name: value.to_owned(), path: None },
        }
    }
}

/// Options of code generation may be spelled with `_` for `-`.
pub(crate) fn same_option(left: &str, right: &str) -> bool {
    left.replace('_', "-") == right
}

fn read(plain: Vec<String>) -> Vec<Argument> {
    let mut arguments = Vec::with_capacity(plain.len());
    let mut plain = plain.into_iter();
    while let Some(argument) = plain.next() {
        arguments.push(match recognise(&argument) {
            Some((name, Some(value))) => Argument::Option(name, value.to_owned()),
            Some((name, None)) => match plain.next() {
                Some(value) => Argument::Option(name, value),
                None => Argument::Other(argument),
            },
            None => Argument::Other(argument),
        });
    }
    arguments
}

/// The canonical name of an option, and its value if it stands in the same argument.
fn recognise(argument: &str) -> Option<(&'static str, Option<&str>)> {
    if argument.starts_with("--") {
        let (spelled, value) = match argument.split_once('=') {
            Some((spelled, value)) => (spelled, Some(value)),
            None => (argument, None),
        };
        return LONG.iter().find(|(long, _)| *long == spelled).map(|(_, name)| (*name, value));
    }
    let name = SHORT.iter().find(|short| argument.starts_with(**short))?;
    let value = argument[2..].strip_prefix('=').unwrap_or(&argument[2..]);
    Some((name, (!value.is_empty()).then_some(value)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Invocation {
        Invocation::parse(&line.split_whitespace().map(OsString::from).collect::<Vec<_>>()).unwrap()
    }

    fn option(name: &'static str, value: &str) -> Argument {
        Argument::Option(name, value.to_owned())
    }

    #[test]
    fn every_spelling_of_an_option_is_read_as_the_same() {
        for (line, expected) in [
            ("-C opt-level=3", option("-C", "opt-level=3")),
            ("-Copt-level=3", option("-C", "opt-level=3")),
            ("--codegen opt-level=3", option("-C", "opt-level=3")),
            ("--codegen=opt-level=3", option("-C", "opt-level=3")),
            ("--emit=link,dep-info", option("--emit", "link,dep-info")),
            ("--emit link,dep-info", option("--emit", "link,dep-info")),
            ("-L dependency=/a", option("-L", "dependency=/a")),
            ("-Ldependency=/a", option("-L", "dependency=/a")),
            ("--extern noprelude:a=/b", option("--extern", "noprelude:a=/b")),
            ("--deny=warnings", option("-D", "warnings")),
            ("-Dwarnings", option("-D", "warnings")),
            ("-g", Argument::Other("-g".to_owned())),
            ("--test", Argument::Other("--test".to_owned())),
            ("src/main.rs", Argument::Other("src/main.rs".to_owned())),
            ("-C", Argument::Other("-C".to_owned())),
        ] {
            assert_eq!(parse(line).arguments, [expected], "{line}");
        }
    }

    #[test]
    fn the_last_option_of_code_generation_wins() {
        assert_eq!(parse("-C opt-level=0 -Copt_level=s").codegen("opt-level"), Some("s"));
        assert_eq!(parse("-C prefer-dynamic").codegen("prefer-dynamic"), Some(""));
        assert_eq!(parse("-C lto").codegen("opt-level"), None);
    }

    #[test]
    fn only_crates_of_the_program_are_compiled() {
        const CARGO: &str =
            "--crate-name app src/main.rs --crate-type bin -C metadata=1 -C extra-filename=-1 --out-dir /t";
        for (line, expected) in [
            (format!("{CARGO} --emit=dep-info,link"), true),
            (format!("{CARGO} --emit=dep-info,metadata,link"), true),
            (format!("{CARGO} --emit asm --emit link"), true),
            (format!("{CARGO} --emit=dep-info,metadata"), false),
            (format!("{CARGO} --emit=dep-info,link --print native-static-libs"), false),
            (format!("{CARGO} --emit=dep-info,link").replace("bin", "proc-macro"), false),
            (format!("{CARGO} --emit=dep-info,link").replace("app", "build_script_build"), false),
            (format!("{CARGO}/build/app-1 --emit=link").replace("app ", "build_script_main "), false),
            (format!("{CARGO}/debug/deps --emit=link").replace("app ", "build_script_build "), true),
            (format!("{CARGO}/debug/examples --emit=link").replace("app ", "build_script_build "), true),
            (format!("{CARGO} --emit=dep-info,link").replace("-C metadata=1", ""), false),
            ("-vV".to_owned(), false),
            ("- --crate-name ___ --print=file-names --crate-type bin".to_owned(), false),
            ("--crate-name probe --crate-type=lib --out-dir /t --emit=link -".to_owned(), false),
        ] {
            assert_eq!(parse(&line).compiles_crate(), expected, "{line}");
        }
    }

    #[test]
    fn what_is_linked_is_known_from_types_and_test() {
        for (line, program, linked) in [
            ("--crate-type bin", true, true),
            ("", true, true),
            ("--crate-type lib", false, false),
            ("--crate-type lib --test", true, true),
            ("--crate-type rlib --crate-type cdylib", false, true),
            ("--crate-type rlib,dylib", false, true),
            ("--crate-type staticlib", false, false),
        ] {
            let invocation = parse(line);
            assert_eq!((invocation.is_program(), invocation.is_linked()), (program, linked), "{line}");
        }
    }

    #[test]
    fn lints_of_foreign_crates_are_capped() {
        for (line, expected) in [
            ("--cap-lints allow", true),
            ("--cap-lints=warn", true),
            ("--cap-lints deny", false),
            ("--cap-lints allow --cap-lints forbid", false),
            ("", false),
        ] {
            assert_eq!(parse(line).caps_lints(), expected, "{line}");
        }
    }

    #[test]
    fn outputs_are_named_as_rustc_names_them() {
        assert_eq!(parse("--crate-name a-b -C extra-filename=-12").stem(), "a_b-12");
        assert_eq!(parse("--crate-name a").stem(), "a");
    }

    #[test]
    fn arguments_of_a_file_are_read() {
        let path = std::env::temp_dir().join(format!("cargo-sycl-arguments-{}", std::process::id()));
        fs::write(&path, "--crate-name\nwith space\n").unwrap();
        let invocation = Invocation::parse(&[format!("@{}", path.display()).into()]).unwrap();
        fs::remove_file(&path).unwrap();
        assert_eq!(invocation.crate_name(), Some("with space"));
    }
}
