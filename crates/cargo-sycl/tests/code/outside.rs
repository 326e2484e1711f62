//! Kernels that call other crates: one with the name of a published crate, one that was compiled without OxiSYCL, and one outside the
//! workspace. Kernels that several crates launch.

use std::path::Path;
use std::process::Command;

use crate::program::{Built, build, functions, kernel, succeed};

/// The code of the kernel that runs a function of the program.
fn code_of(built: &Built, function: &str) -> String {
    kernel(&functions(&built.code), function)
}

#[test]
fn a_users_crate_with_the_name_of_a_published_one_keeps_its_functions() {
    let built = build("borrowed", &["--package", "borrower"]);
    assert!(!built.messages.contains("warning"), "{}", built.messages);
    assert!(built.kernels.starts_with("sm_70: 3 kernels"), "{}", built.kernels);
    let has_constants = |function: &str, constants: &[&str]| {
        let code = code_of(&built, function);
        assert!(constants.iter().all(|constant| code.contains(constant)), "{function}: {code}");
        assert!(!code.contains("sqrt"), "{function}: {code}");
    };
    has_constants("reference", &["4000"]);
    has_constants("number", &["0f42220000"]);
    has_constants("enumeration", &["0d4044400000000000"]);
}

#[test]
fn kernels_use_private_tables_of_other_crates_and_what_these_remember_of_the_processor() {
    let built = build("outside", &["--release"]);
    assert!(!built.messages.contains("warning"), "{}", built.messages);
    assert!(built.kernels.starts_with("sm_70: 3 kernels"), "{}", built.kernels);
    // The letters themselves.
    assert!(built.code.contains("122, 121, 120, 119, 118"), "{}", built.code);
    // A device has none of the optional instructions.
    let (hash, mixed) = (code_of(&built, "hash"), code_of(&built, "mixed"));
    let has = |code: &str, constant: u32| code.contains(&constant.to_string());
    assert!(has(&hash, 0x4545_6767) && !has(&hash, 0x0101_2323), "{hash}");
    assert!(has(&mixed, 0x3333_4444) && !has(&mixed, 0x1111_2222), "{mixed}");
}

#[test]
fn places_in_packages_outside_the_workspace_are_named_with_their_folder() {
    let built = build("elsewhere", &["--package", "elsewhere"]);
    let apart = Path::new(env!("CARGO_TARGET_TMPDIR")).join("apart/src/lib.rs");
    let apart = apart.to_str().unwrap();
    let warning = built.messages.lines().find(|line| line.contains("the foreign function `getpid`")).unwrap();
    assert!(warning.ends_with(&format!(" -> apart::process -> getpid at {apart}:11:18)")), "{warning}");
    assert!(built.kernels.contains(&format!("\n    {apart}:20\n")), "{}", built.kernels);
}

#[test]
fn a_kernel_function_that_two_crates_launch_is_one_kernel_for_each_type() {
    for profile in [&[][..], &["--release"]] {
        let built = build("caller", &[&["--package", "caller"], profile].concat());
        assert!(!built.messages.contains("warning"), "{}", built.messages);
        assert!(built.kernels.starts_with("sm_70: 2 kernels"), "{profile:?}: {}", built.kernels);
        let of = |element: &str| built.kernels.matches(&format!("functions::scaled::closure<{element}>")).count();
        assert_eq!((of("f32"), of("u64")), (1, 1), "{profile:?}: {}", built.kernels);
        // Several places launch it, so that none is named.
        assert!(!built.kernels.contains("launched at"), "{profile:?}: {}", built.kernels);
        let output = succeed(&mut Command::new(&built.binary)).0;
        assert_eq!(output, "[2.0, 6.0] [25.0, 36.0] [147, 192]\n", "{profile:?}");
    }
}
