//! Reads of images by a sampler that is a constant: nothing of the other samplers is in the code, and nothing is in local memory.

use std::collections::BTreeMap;
use std::process::Command;

use crate::program::{Package, build, functions, succeed};

/// What a kernel has of each kind.
#[derive(Debug, PartialEq)]
struct Counts {
    loads: usize,
    branches: usize,
    remainders: usize,
}

fn counts(code: &str) -> Counts {
    let words = code.lines().map(str::trim).filter(|line| line.ends_with(';')).flat_map(|line| {
        // Behind what it depends on.
        line.split_whitespace().find(|word| !word.starts_with('@') && !word.starts_with('{'))
    });
    let operations: Vec<&str> = words.collect();
    let of = |begin: &str| operations.iter().filter(|operation| operation.starts_with(begin)).count();
    Counts { loads: of("ld.global"), branches: of("bra"), remainders: of("rem") }
}

/// The code of a kernel over a format.
fn code<'a>(functions: &'a BTreeMap<String, String>, kernel: &str, format: &str) -> &'a str {
    let mut found = functions.iter().filter(|(name, _)| name.contains(kernel) && name.contains(format));
    let (Some((_, code)), None) = (found.next(), found.next()) else {
        panic!("not one kernel {kernel} of {format}: {:?}", functions.keys())
    };
    code
}

#[test]
fn a_constant_sampler_leaves_nothing_of_the_others() {
    let built = build("images", &["--release"]);
    assert!(!built.messages.contains("warning"), "{}", built.messages);
    let functions = functions(&built.code);
    for format in ["Rgba8Unorm", "R32Float"] {
        let [resize, rotate, window, chosen] = ["resize", "rotate", "window", "chosen"].map(|kernel| {
            let code = code(&functions, kernel, format);
            assert!(!code.contains(".local") && !code.contains(".f64"), "{kernel} of {format}: {code}");
            counts(code)
        });
        // Four pixels around a place. A border has a branch in front of each.
        for (counts, most_branches) in [(&resize, 4), (&rotate, 8)] {
            let Counts { loads, branches, remainders } = counts;
            assert!(*loads == 4 && *branches <= most_branches && *remainders == 0, "{format}: {counts:?}");
        }
        assert!(window.branches < 30 && window.remainders == 0, "{format}: {window:?}");
        // The same kernel as `resize`, but for where its sampler comes from.
        assert!(chosen.branches > 4 * resize.branches && chosen.remainders > 0, "{format}: {chosen:?}");
    }
}

#[test]
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn images_are_read_in_lanes_with_the_bits_of_plain_code() {
    let package = Package::enter();
    package.sycl(&[
        "build",
        "--release",
        "--targets",
        "host-v3",
        "--lanes",
        "8",
        "--float",
        "strict",
        "--bin",
        "images",
    ]);
    let path = "target/sycl/release/images";
    let (kernels, _) = package.sycl(&["inspect", path]);
    for kernel in ["resize", "rotate", "window"] {
        let n = kernels
            .split("\n  images::")
            .filter(|text| text.starts_with(kernel) && text.contains("in vectors of 8 lanes"));
        assert_eq!(n.count(), 2, "{kernel} of two formats: {kernels}");
    }
    let run = |code: &str| succeed(Command::new(package.folder().join(path)).env("OXISYCL_HOST_CODE", code)).0;
    let plain = run("plain");
    assert_eq!(plain.lines().count(), 8, "{plain}");
    assert_eq!(run("auto"), plain);
}
