//! The device compiler compares paths of items in one module only, `origin`, which knows whose they are.

use proc_macro2::TokenTree;

use super::tokens;
use crate::workspace::File;

const COMPILER: &str = "crates/oxisycl-compiler/src/";
/// The module, and its parts.
const ORIGIN: [&str; 2] = ["crates/oxisycl-compiler/src/origin.rs", "crates/oxisycl-compiler/src/origin/"];
/// Crates whose names are as good as a path.
const CRATES: [&str; 10] = [
    "core",
    "alloc",
    "std",
    "std_detect",
    "compiler_builtins",
    "oxisycl",
    "oxisycl_device",
    "oxisycl_builtins",
    "libm",
    "half",
];

/// Texts with the separator of paths that are no paths of items, and why.
const EXCEPTIONS: [(&str, &str, &str); 5] = [
    ("crates/oxisycl-compiler/src/symbols.rs", "::<", "where the type arguments in any path begin"),
    (
        "crates/oxisycl-compiler/src/passes/panics/mod.rs",
        "called `Option::unwrap()` on a `None` value",
        "a message of the standard library",
    ),
    ("crates/oxisycl-compiler/src/passes/private_atomics.rs", "half", "a type of LLVM"),
    ("crates/oxisycl-compiler/src/llvm/context.rs", "oxisycl", "the name of the program that LLVM parses options of"),
    ("crates/oxisycl-compiler/src/llvm/debug.rs", "oxisycl", "the producer in debug information"),
];

/// Findings for one source.
pub(super) fn check(file: &File) -> Vec<String> {
    let path = file.path.as_str();
    let is_test = path.split('/').any(|part| ["tests", "tests.rs", "golden.rs"].contains(&part));
    if !path.starts_with(COMPILER)
        || !path.ends_with(".rs")
        || is_test
        || ORIGIN.iter().any(|own| path.starts_with(own))
    {
        return Vec::new();
    }
    match tokens::of(&file.text) {
        Ok(tokens) => {
            let mut texts = Vec::new();
            collect(tokens, &mut texts);
            let is_exception = |text: &str| EXCEPTIONS.iter().any(|(file, except, _)| *file == path && *except == text);
            let is_path = |text: &&String| text.contains("::") || CRATES.contains(&text.as_str());
            let found = texts.iter().filter(is_path).filter(|text| !is_exception(text));
            found.map(|text| format!("{path}: \"{text}\" is a path of an item: `origin` compares these")).collect()
        }
        Err(error) => vec![format!("{path}: {error}")],
    }
}

/// All strings.
fn collect(tokens: Vec<TokenTree>, texts: &mut Vec<String>) {
    for token in tokens {
        match token {
            TokenTree::Group(group) => collect(tokens::without_tests(group.stream()), texts),
            TokenTree::Literal(literal) => {
                texts.extend(string(&literal.to_string()).map(str::to_owned));
            }
            _ => {}
        }
    }
}

/// What is between the quotes of a string as it is written: a plain or a raw one, of characters, bytes, or for C.
fn string(literal: &str) -> Option<&str> {
    let quoted = literal.trim_start_matches(['b', 'c', 'r']).trim_matches('#');
    quoted.strip_prefix('"')?.strip_suffix('"')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(path: &str, text: &str) -> Vec<String> {
        check(&File { path: path.to_owned(), text: text.to_owned() })
    }

    #[test]
    fn paths_are_compared_in_one_module() {
        let text = "/// As `core::f32::midpoint`.\nfn a(p: &str) -> bool { matches!(p, \"core::panicking::panic\") || p.ends_with(\"::caller\") }\n\
                    fn b(p: &str) -> bool { p == \"oxisycl_builtins\" || p == \"sin\" }\n\
                    #[cfg(test)]\nmod tests { const C: &str = \"std::rt\"; }\n";
        let found = findings("crates/oxisycl-compiler/src/passes/a.rs", text);
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(found[0].contains("\"core::panicking::panic\" is a path"), "{found:?}");
        for other in [
            "crates/oxisycl-compiler/src/origin.rs",
            "crates/oxisycl-compiler/src/origin/items.rs",
            "crates/oxisycl-compiler/src/passes/a/tests.rs",
            "crates/cargo-sycl/src/main.rs",
        ] {
            assert!(findings(other, text).is_empty(), "{other}");
        }
    }

    #[test]
    fn raw_and_byte_strings_are_strings() {
        let text = "const A: [&str; 4] = [r\"core::a\", r#\"std_detect\"#, r##\"\"#::\"##, \"# compiler_builtins #\"];\n\
                    const B: [&[u8]; 2] = [b\"oxisycl\", br#\"std::b\"#];\nconst C: char = ':';\nconst D: u8 = b':';\n";
        let found = findings("crates/oxisycl-compiler/src/passes/a.rs", text);
        let texts: Vec<&str> = found.iter().filter_map(|finding| finding.split(": ").nth(1)).collect();
        let expected = ["core::a", "std_detect", "\"#::", "oxisycl", "std::b"]
            .map(|text| format!("\"{text}\" is a path of an item"));
        assert_eq!(texts, expected);
    }

    #[test]
    fn exceptions_are_of_one_file_and_have_a_reason() {
        assert!(EXCEPTIONS.iter().all(|(_, _, reason)| !reason.is_empty()));
        let text = "fn a(p: &str) -> bool { p.contains(\"::<\") }";
        assert!(findings("crates/oxisycl-compiler/src/symbols.rs", text).is_empty());
        assert_eq!(findings("crates/oxisycl-compiler/src/passes/a.rs", text).len(), 1);
    }
}
