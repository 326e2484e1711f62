//! Captured addresses of the host are errors of `cargo sycl build` and `check`. `kernels/captures.rs` has one in each kernel, and the errors
//! are in `kernels/captures.stderr`. `BLESS=1` writes them anew.

use std::process::{Command, Output};
use std::{env, fs};

use serde_json::Value;

use crate::program::{Package, sources, succeed};

const PROGRAM: &str = "captures";
/// What the errors are called.
const CODE: &str = "oxisycl::host_capture";

/// Runs a command, which has to fail; gives standard output and standard error.
fn fail(command: &mut Command) -> (String, String) {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let [stdout, stderr] = [stdout, stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    assert!(!status.success(), "{command:?} succeeded\n{stdout}\n{stderr}");
    (stdout, stderr)
}

/// The messages without those of cargo about its progress.
fn without_progress(messages: &str) -> String {
    let is_progress = |line: &&str| {
        ["Adding ", "Blocking ", "Compiling ", "Device code ", "Finished ", "Locking ", "warning: build failed"]
            .iter()
            .any(|start| line.trim_start().starts_with(start))
    };
    messages.lines().filter(|line| !is_progress(line)).map(|line| format!("{line}\n")).collect()
}

/// The program's source.
fn source() -> String {
    fs::read_to_string(sources().join(format!("{PROGRAM}.rs"))).unwrap()
}

/// The tokens of a comment ` // A -> B` at the end of a line.
fn twin(line: &str) -> Option<(&str, &str, &str)> {
    let (code, comment) = line.split_once(" // ")?;
    let (bad, good) = comment.split_once(" -> ")?;
    assert!(!bad.contains(' ') && !good.contains(' '), "one token: {comment}");
    Some((code, bad, good))
}

/// The diagnostics of this tool among cargo's messages in JSON.
fn errors(messages: &str) -> Vec<Value> {
    let messages = messages.lines().map(|line| serde_json::from_str::<Value>(line).expect("cargo writes JSON"));
    let messages = messages.filter(|message| message["reason"] == "compiler-message");
    messages.map(|message| message["message"].clone()).filter(|message| message["code"]["code"] == CODE).collect()
}

#[test]
fn captured_addresses_of_the_host_are_errors_with_the_variable_and_legal_twins_are_none() {
    let package = Package::enter();
    let n_refused = source().lines().filter_map(twin).count();
    assert!(n_refused >= 20, "{n_refused}");

    // As text, in the form of rustc's own.
    package.touch(PROGRAM);
    let (_, messages) = fail(&mut package.command(&["check", "--bin", PROGRAM]));
    let found = without_progress(&messages);
    let file = sources().join(format!("{PROGRAM}.stderr"));
    if env::var_os("BLESS").is_some() {
        fs::write(&file, &found).unwrap();
    }
    assert!(found == fs::read_to_string(&file).unwrap_or_default(), "found:\n{found}");
    assert_eq!(found.matches(&format!("error[{CODE}]: ")).count(), n_refused, "{found}");
    assert!(found.contains(&format!("due to {n_refused} previous errors")), "cargo counts them: {found}");

    // A build says the same, also if nothing has changed since: nothing was made.
    let binary = package.folder().join("target/sycl/debug").join(PROGRAM);
    // What an earlier run of this test has left.
    let _ = fs::remove_file(&binary);
    for _ in 0..2 {
        let (_, messages) = fail(&mut package.command(&["build", "--bin", PROGRAM]));
        assert!(without_progress(&messages) == found, "{messages}");
    }
    assert!(!binary.exists());

    // For editors: the marked text is the variable.
    let (json, _) = fail(&mut package.command(&["check", "--bin", PROGRAM, "--message-format=json"]));
    let errors = errors(&json);
    assert_eq!(errors.len(), n_refused);
    let text = source();
    let mut marked_lines = Vec::new();
    for error in &errors {
        let spans = error["spans"].as_array().unwrap();
        let primary: Vec<&Value> = spans.iter().filter(|span| span["is_primary"] == true).collect();
        let [span] = primary[..] else { panic!("one primary span: {error:#}") };
        let number = |key: &str| span[key].as_u64().unwrap() as usize;
        let marked = &text[number("byte_start")..number("byte_end")];
        assert_eq!(span["file_name"], "src/bin/captures.rs");
        let line = text.lines().nth(number("line_start") - 1).unwrap();
        let columns = line.chars().skip(number("column_start") - 1);
        let by_columns: String = columns.take(number("column_end") - number("column_start")).collect();
        assert_eq!(by_columns, marked, "lines and bytes agree");
        let message = error["message"].as_str().unwrap();
        let path = message.split('`').nth(1).unwrap();
        let is_named_kernel = path == "limit" && marked.starts_with("fn run(");
        let variable = path.split(['.', '[']).next().unwrap();
        assert!(marked == variable || is_named_kernel, "{path} is not {marked}");
        assert!(error["rendered"].as_str().unwrap().starts_with(&format!("error[{CODE}]: {message}\n")));
        // What the crate `rustfix` needs of a diagnostic, and of a span.
        assert!(error["children"].is_array() && error["level"] == "error" && error["code"].is_object(), "{error:#}");
        let needed = ["text", "suggested_replacement", "suggestion_applicability", "expansion", "label"];
        assert!(needed.iter().all(|key| span.get(key).is_some()), "{span:#}");
        marked_lines.push(number("line_start"));
    }
    marked_lines.sort_unstable();
    marked_lines.dedup();
    assert_eq!(marked_lines.len(), n_refused, "each has a variable of its own");

    // With one other token in each kernel, there is nothing to say.
    let legal: String = source()
        .lines()
        .map(|line| match twin(line) {
            Some((code, bad, good)) => {
                let code = code.rsplitn(2, bad).collect::<Vec<_>>();
                let [after, before] = code[..] else { panic!("no token {bad}: {line}") };
                format!("{before}{good}{after}\n")
            }
            None => format!("{line}\n"),
        })
        .collect();
    package.write_program("captures_twins", &legal);
    for verb in ["check", "build"] {
        let (_, messages) = package.sycl(&[verb, "--bin", "captures_twins", "--targets", "sm_70"]);
        assert!(!messages.contains("warning") && !messages.contains("error"), "{messages}");
    }
    let twins = package.folder().join("target/sycl/debug/captures_twins");
    let (kernels, _) = package.sycl(&["inspect", twins.to_str().unwrap()]);
    assert!(!kernels.contains("cannot run") && kernels.starts_with("sm_70: "), "{kernels}");

    // A kernel for the host alone is one again.
    let (_, messages) = package.sycl(&["build", "--bin", PROGRAM, "--targets", "sm_70", "--allow", "host_capture"]);
    let allowed = messages.matches("cannot run on sm_70: its capture `").count();
    assert!(allowed > 0 && allowed <= n_refused && !messages.contains("error"), "{messages}");
    let (kernels, _) = package.sycl(&["inspect", binary.to_str().unwrap()]);
    assert_eq!(kernels.matches("cannot run: ").count(), allowed, "{kernels}");
    succeed(Command::new(&binary).env("OXISYCL_DEVICE_SELECTOR", "host:*"));
    // But not for the next build.
    let (_, messages) = fail(&mut package.command(&["build", "--bin", PROGRAM]));
    assert!(without_progress(&messages) == found, "{messages}");
    let (_, messages) = fail(&mut package.command(&["build", "--bin", PROGRAM, "--allow", "host"]));
    assert_eq!(messages, "error: --allow: expected \"host_capture\", found \"host\"\n");
}

/// Values of sixty types that may cross, each captured by a kernel of its own.
#[test]
fn captures_of_sixty_types_that_may_cross_are_no_errors() {
    let integers = ["u8", "u16", "u32", "u64", "u128", "usize", "i8", "i16", "i32", "i64", "i128", "isize"];
    let mut values: Vec<String> = integers.iter().map(|name| format!("1{name}")).collect();
    values.extend(integers.iter().map(|name| format!("[2{name}; 3]")));
    values.extend(integers.iter().map(|name| format!("(1u8, Some(3{name}))")));
    values.extend(integers.iter().map(|name| format!("std::num::Wrapping(4{name})")));
    values.extend(
        [
            "1.0f32",
            "1.0f64",
            "'c'",
            "true",
            "()",
            "[[1.0f32; 2]; 2]",
            "Shape::Disc(1.0)",
            "Shape::Box { width: 1.0, sides: [1; 4] }",
            "Generic(Generic(1u8))",
            "std::num::NonZeroU32::MIN",
            "std::cmp::Ordering::Less",
            "Some(Some(Shape::Empty))",
            "Range::from([1, 2])",
            "u32::swap_bytes",
            "|x: u32| x + 1",
            "{ let inner = 1u16; move |x: u32| x + u32::from(inner) }",
            "std::marker::PhantomData::<&'static str>",
            "\"a text\".len()",
        ]
        .map(str::to_owned),
    );
    assert!(values.len() >= 60, "{}", values.len());
    let kernels: String = values
        .iter()
        .map(|value| {
            format!("    let value = {value};\n    update(&buffer, move |x| x ^ size_of_val(&value) as u32)?;\n")
        })
        .collect();
    let program = format!(
        "#![allow(dead_code)]\nuse oxisycl::prelude::*;\n\
         #[derive(Clone, Copy)]\nenum Shape {{ Empty, Disc(f32), Box {{ width: f32, sides: [u8; 4] }} }}\n\
         #[derive(Clone, Copy)]\nstruct Generic<T>(T);\n\
         fn update(buffer: &Buffer<u32, 1>, f: impl Fn(u32) -> u32 + Copy + Send + Sync + 'static) -> oxisycl::Result {{\n    \
         Queue::builder().build()?.parallel_for_with(64, buffer.update(), move |item, data| data.update(item, f)).map(drop)\n}}\n\
         fn main() -> oxisycl::Result {{\n    let buffer = Buffer::from_vec(vec![1; 64])?;\n{kernels}    Ok(())\n}}\n"
    );
    let package = Package::enter();
    package.write_program("captures_legal", &program);
    let (_, messages) = package.sycl(&["check", "--bin", "captures_legal"]);
    assert!(!messages.contains("warning") && !messages.contains("error"), "{messages}");
}
