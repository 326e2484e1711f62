//! Captured addresses of the host in the crates of a workspace, and what `cargo sycl check` leaves.

use std::fs;

use crate::project::{Project, compiled, fail, succeed};

const ERROR: &str = "error[oxisycl::host_capture]: the kernel captures `limit`, an address of the host's memory";
const WARNING: &str = "cannot run on sm_70: its capture `";

/// What was checked is no program, and nothing of it is where programs are.
pub(crate) fn checking_makes_no_device_code(project: &Project) {
    let check = ["check", "--package", "app", "--package", "shared"];
    succeed(&mut project.sycl(&check));
    let debug = project.root.join("target/sycl/check/debug");
    assert_eq!(fs::metadata(debug.join("app")).unwrap().len(), 0);
    assert_eq!(fs::metadata(debug.join("libshared.so")).unwrap().len(), 0);
    assert!(!project.root.join("target/sycl/debug").exists());
    let objects = fs::read_dir(debug.join(".oxisycl")).unwrap();
    let objects = objects.filter(|entry| entry.as_ref().unwrap().path().extension().is_some_and(|name| name == "o"));
    assert_eq!(objects.count(), 0);
    // What has not changed is not checked again.
    let (_, messages) = succeed(&mut project.sycl(&check));
    assert!(compiled(&messages).is_empty(), "{messages}");
    // Errors and warnings of the language are there, once each, and a warning again when nothing has changed.
    let main = fs::read_to_string(project.root.join("app/src/main.rs")).unwrap();
    project.write("app/src/main.rs", &format!("{main}\nfn unused() {{}}\n"));
    for n_compiled in [1, 0] {
        let (_, messages) = succeed(&mut project.sycl(&check));
        let found = (messages.matches("function `unused` is never used").count(), compiled(&messages).len());
        assert_eq!(found, (1, n_compiled), "{messages}");
    }
    project.write("app/src/main.rs", "fn main() { let x: u32 = \"text\"; }");
    let messages = fail(&mut project.sycl(&check));
    assert_eq!(messages.matches("mismatched types").count(), 1, "{messages}");
    project.write("app/src/main.rs", &main);
}

/// A crate answers for the kernels that it makes, those of generic code of another crate among them, and is told once.
pub(crate) fn errors_are_those_of_the_crate_that_makes_the_kernel(project: &Project) {
    let read = |path: &str| fs::read_to_string(project.root.join(path)).unwrap();
    let (library, manifest, main) = (read("kernels/src/lib.rs"), read("kernels/Cargo.toml"), read("app/src/main.rs"));
    let bounded = |visible: &str, function: &str| {
        format!(
            "{visible}fn {function}(numbers: Vec<f32>) -> Vec<f32> {{\n    let limit: &'static f32 = &7.0;\n    \
             kernels::mapped(numbers, move |x| x.min(*limit))\n}}\n"
        )
    };
    let build = ["build", "--package", "app", "--bin", "app"];

    // The library's kernel is an error of the library, whoever needs it.
    project.write(
        "kernels/src/lib.rs",
        &format!("{library}extern crate self as kernels;\n{}", bounded("pub ", "bounded")),
    );
    for command in [
        &build[..],
        &["build", "--package", "kernels"],
        &["check", "--package", "kernels"],
        &["check", "--package", "app"],
    ] {
        let messages = fail(&mut project.sycl(command));
        assert_eq!(messages.matches(ERROR).count(), 1, "{command:?}: {messages}");
        assert!(messages.contains("could not compile `kernels` (lib) due to 1 previous error"), "{messages}");
        assert!(messages.contains("--> kernels/src/lib.rs:") && messages.contains("^^^^^ `&f32`"), "{messages}");
    }
    // Plain cargo makes a program for the host.
    succeed(&mut project.cargo(&["check", "--package", "kernels"]));
    // Its manifest can allow it, and then it is a kernel that no device runs.
    let allowing = |list: &str| format!("{manifest}[package.metadata.oxisycl]\nallow = {list}\n");
    project.write("kernels/Cargo.toml", &allowing("[\"host_capture\"]"));
    project.write("app/src/main.rs", &main.replace("fn main() {", "fn main() {\n    kernels::bounded(vec![]);"));
    let (_, messages) = succeed(&mut project.sycl(&build));
    assert!(messages.contains(WARNING) && !messages.contains(ERROR), "{messages}");
    project.write("kernels/Cargo.toml", &allowing("[\"host_captures\"]"));
    let messages = fail(&mut project.sycl(&build));
    let expected =
        "kernels/Cargo.toml: package.metadata.oxisycl.allow: expected \"host_capture\", found \"host_captures\"";
    assert!(messages.contains(expected), "{messages}");
    project.write("kernels/Cargo.toml", &manifest);
    let messages = fail(&mut project.sycl(&build));
    assert_eq!(messages.matches(ERROR).count(), 1, "{messages}");
    // So can the build, for all crates, and for itself alone.
    let (_, messages) = succeed(project.sycl(&build).args(["--allow", "host_capture"]));
    assert!(messages.contains(WARNING) && !messages.contains(ERROR), "{messages}");
    let messages = fail(&mut project.sycl(&build));
    assert_eq!(messages.matches(ERROR).count(), 1, "{messages}");
    project.write("kernels/src/lib.rs", &library);

    // The library's generic launch makes a kernel of the program.
    let program = main.replace("fn main() {", "fn main() {\n    bounded(vec![]);");
    project.write("app/src/main.rs", &format!("{program}\n{}", bounded("", "bounded")));
    for command in [&build[..], &["check", "--package", "app", "--bin", "app"]] {
        let messages = fail(&mut project.sycl(command));
        assert_eq!(messages.matches(ERROR).count(), 1, "{messages}");
        assert!(messages.contains("could not compile `app` (bin \"app\") due to 1 previous error"), "{messages}");
        assert!(
            messages.contains("--> app/src/main.rs:") && messages.contains("::: kernels/src/lib.rs:"),
            "{messages}"
        );
    }
    project.write("app/src/main.rs", &main);
    succeed(&mut project.sycl(&build));
}

/// A user cannot change such a crate.
pub(crate) fn a_crate_of_a_registry_has_none(project: &Project) {
    let path = "vendored/lent/src/lib.rs";
    let source = fs::read_to_string(project.root.join(path)).unwrap();
    let capturing = source
        .replace("let n = numbers.len();", "let n = numbers.len();\n    let half: &'static f32 = &2.0;")
        .replace("x / 2.0", "x / *half");
    assert_ne!(capturing, source);
    for (source, n_warnings) in [(&capturing, 1), (&source, 0)] {
        project.write(path, source);
        // Cargo does not look at the sources of such a crate.
        for entry in fs::read_dir(project.root.join("target/sycl/debug/.fingerprint")).unwrap() {
            let folder = entry.unwrap();
            if folder.file_name().to_str().unwrap().starts_with("lent-") {
                fs::remove_dir_all(folder.path()).unwrap();
            }
        }
        let (_, messages) = succeed(&mut project.sycl(&["build", "--package", "app", "--bin", "app"]));
        assert_eq!(messages.matches(WARNING).count(), n_warnings, "{messages}");
        assert!(compiled(&messages).contains(&"lent"), "{messages}");
    }
}
