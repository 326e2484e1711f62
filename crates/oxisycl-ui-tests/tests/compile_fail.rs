//! Programs that must not compile, with their messages, and programs that must.
//!
//! Each program of `ui` is one misuse in safe code. If it compiled, it would be a data race, a use after free or an invalid value. The
//! messages are those of the least Rust version that the crates support; `TRYBUILD=overwrite` writes them anew.

/// A program that must pass. With one in the set, trybuild builds all programs instead of checking them. Some errors need that: the one for
/// zero-sized elements, for example, is found when a generic function is instantiated.
const BUILT: &str = "tests/ui/pass/bare_item.rs";

#[test]
fn compile_fail() {
    let programs = trybuild::TestCases::new();
    programs.pass(BUILT);
    programs.compile_fail("tests/ui/*.rs");
}

#[test]
fn compile_pass() {
    trybuild::TestCases::new().pass("tests/ui/pass/*.rs");
}
