//! Attribute macros below a derive run after it, and may give the type other fields.
//!
//! Such a macro has to be a crate of its own, so that the test calls the compiler itself.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const SWAP: &str = "
    use proc_macro::TokenStream;
    #[proc_macro_attribute]
    pub fn swap(new: TokenStream, _old: TokenStream) -> TokenStream { new }";

/// A program whose type `Element` is written as the first text, and becomes the second one.
fn program(seen: &str, real: &str) -> String {
    format!(
        "pub unsafe trait DeviceCopyable: Copy + 'static {{}}
        unsafe impl DeviceCopyable for u64 {{}}
        #[derive(Clone, Copy, oxisycl_macros::DeviceCopyable)]
        #[oxisycl(crate = crate, element_only)]
        #[swap::swap({real})]
        {seen}
        fn main() {{}}"
    )
}

/// The macros as cargo has built them for this test.
fn macros() -> PathBuf {
    let own = std::env::current_exe().expect("the test's own path");
    let folder = own.parent().expect("its folder");
    let entries = std::fs::read_dir(folder).expect("it can be read").flatten().map(|entry| entry.path());
    let is_macros = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        name.contains("oxisycl_macros-") && name.ends_with(std::env::consts::DLL_SUFFIX)
    };
    let newest = entries.filter(is_macros).max_by_key(|path| path.metadata().and_then(|data| data.modified()).ok());
    newest.expect("cargo has built the macros")
}

fn rustc(folder: &Path, name: &str, source: &str, arguments: &[&str]) -> Output {
    let file = folder.join(format!("{name}.rs"));
    std::fs::write(&file, source).expect("a source");
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    let mut command = Command::new(rustc);
    command.args(["--edition=2024", "--crate-name", name, "--out-dir"]).arg(folder).args(arguments).arg(&file);
    command.arg("--extern").arg(format!("oxisycl_macros={}", macros().display()));
    command.arg("-L").arg(folder).output().expect("rustc runs")
}

#[test]
fn the_fields_that_a_type_really_has_are_checked() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("attribute_below");
    std::fs::create_dir_all(&folder).expect("a folder");
    let made = rustc(&folder, "swap", SWAP, &["--crate-type=proc-macro", "--extern=proc_macro"]);
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let arguments = ["--crate-type=bin", "--emit=metadata", "--extern=swap"];
    let compile = |name, seen, real| rustc(&folder, name, &program(seen, real), &arguments);

    let same = compile("same", "struct Element(u64, u64);", "struct Element(u64, u64);");
    assert!(same.status.success(), "{}", String::from_utf8_lossy(&same.stderr));
    for (name, seen, real) in [
        ("other_types", "struct Element(u64, u64);", "struct Element(&'static u64, fn(u64) -> u64);"),
        ("more_fields", "struct Element(u64);", "struct Element(u64, &'static u64);"),
        ("named", "struct Element { a: u64 }", "struct Element { a: &'static u64 }"),
        ("variants", "enum Element { A(u64), B }", "enum Element { A(u64), B, C(&'static u64) }"),
        ("in_variants", "enum Element { A(u64), B }", "enum Element { A(&'static u64), B }"),
    ] {
        let refused = compile(name, seen, real);
        assert!(!refused.status.success(), "{name} compiles");
    }
}
