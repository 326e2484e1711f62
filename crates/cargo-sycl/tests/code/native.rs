//! Native code for a level of the host's processors: a program that has it does what it does without.

use std::process::Command;

use crate::program::{Package, succeed};

const PROGRAM: &str = "native";
/// What the symbol of a kernel's native code begins with.
const SYMBOL: &str = "__oxisycl_native_v3_k1_native_failing_";
/// The kernels that have native code, by the functions that launch them.
const HAVE: [&str; 6] = ["failing", "fused", "groups", "library", "outside", "plane"];

/// The output of the program, and the backtrace of its panics.
fn run(package: &Package, profile: &str, code: &str) -> (String, String) {
    let program = package.folder().join("target/sycl").join(profile).join(PROGRAM);
    let mut command = Command::new(program);
    command.env("OXISYCL_HOST_CODE", code).env("RUST_BACKTRACE", "1");
    succeed(&mut command)
}

#[test]
fn native_code_computes_and_panics_as_the_programs_own() {
    let package = Package::enter();
    for profile in ["release", "debug"] {
        package.touch(PROGRAM);
        let optimised: &[&str] = if profile == "release" { &["--release"] } else { &[] };
        let (_, messages) = package.sycl(&[&["build", "--targets", "host-v3", "--bin", PROGRAM], optimised].concat());
        let note = "note: 2 kernels have no image for host:x86_64-unknown-linux-gnu+x86-64-v3: native::counted::{{closure}}, \
                    native::remembered::{{closure}}; `cargo sycl inspect PROGRAM` shows why";
        assert!(messages.contains(note), "{messages}");
        let path = format!("target/sycl/{profile}/{PROGRAM}");
        let (kernels, _) = package.sycl(&["inspect", &path]);
        assert!(kernels.starts_with("host:x86_64-unknown-linux-gnu+x86-64-v3: 6 kernels, native code\n"), "{kernels}");
        for text in HAVE.map(|function| format!("\n  native::{function}::")).iter().map(String::as_str).chain([
            "alone: it uses the static `native::COUNT`, which exists once",
            "alone: it uses the thread-local variable `native::LAST",
        ]) {
            assert!(kernels.contains(text), "{text}: {kernels}");
        }

        let (output, panics) = run(&package, profile, "plain");
        assert!(output.contains("\ncounted 1000\n"), "{output}");
        assert!(output.contains("panicked in work-item [500] at ") && output.contains("500 has 3 digits"), "{output}");
        assert!(output.contains("index [1000] is outside the accessor's range [1000], in buffer "), "{output}");
        assert!(panics.contains("500 has 3 digits") && !panics.contains(SYMBOL), "{panics}");
        if !std::arch::is_x86_feature_detected!("avx2") {
            println!("native code was not run: the processor has no AVX2");
            continue;
        }
        for code in ["auto", "v3"] {
            let (native, panics) = run(&package, profile, code);
            assert_eq!(native, output, "{profile} {code}");
            assert!(panics.contains(SYMBOL), "it unwinds through native code: {panics}");
        }
    }
}
