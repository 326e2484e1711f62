//! Programs that must not compile, with their messages, and programs that must.
//!
//! Each program of `ui` is one misuse in safe code that would be a data race, a use after free or an invalid value if it compiled.
//! The messages are those of the least Rust version that the crates support; `TRYBUILD=overwrite` writes them anew.

/// One of these makes trybuild build the programs instead of checking them, which some refusals need: those of zero-sized
/// elements, for example, are found when a generic function gets its types.
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
