//! What runs on every device knows no vendor: the code of these crates names neither companies nor their drivers.
//!
//! Where one device differs from others, its backend says so by data of the contract. Names of formats, such as PTX, are no names of vendors.

use proc_macro2::TokenTree;

use super::tokens;
use crate::workspace::File;

/// The portable crates.
const CRATES: [&str; 4] = ["oxisycl-backend", "oxisycl-device", "oxisycl-runtime", "oxisycl-types"];

/// Vendors, their drivers and their devices.
const VENDORS: [&str; 19] = [
    "adreno", "amd", "amdgcn", "apple", "arm", "cuda", "geforce", "hip", "intel", "mali", "mesa", "nvidia", "nvptx",
    "pocl", "qualcomm", "radeon", "rocm", "rusticl", "tesla",
];

/// Files that may use a name, and why.
const EXCEPTIONS: [(&str, &str, &str); 2] = [
    ("crates/oxisycl-types/src/backend_kind.rs", "cuda", "the list of backends, with the names that users write"),
    ("crates/oxisycl-runtime/src/selector/parse.rs", "cuda", "the backends that a selector may name"),
];

/// Findings for one source.
pub(super) fn check(file: &File) -> Vec<String> {
    let path = file.path.as_str();
    let parts: Vec<&str> = path.split('/').collect();
    let ["crates", name, "src", rest @ ..] = parts.as_slice() else { return Vec::new() };
    if !CRATES.contains(name) || rest.iter().any(|part| ["tests", "tests.rs"].contains(part)) {
        return Vec::new();
    }
    match tokens::of(&file.text) {
        Ok(tokens) => {
            let mut found = Vec::new();
            collect(tokens, &mut found);
            let is_exception = |word: &str| EXCEPTIONS.iter().any(|(file, except, _)| *file == path && *except == word);
            let found = found.into_iter().filter(|(word, _)| !is_exception(word));
            found.map(|(word, text)| format!("{path}: `{text}` names the vendor or driver \"{word}\"")).collect()
        }
        Err(error) => vec![format!("{path}: {error}")],
    }
}

/// The vendors in names and literals, each with the token that it is in.
fn collect(tokens: Vec<TokenTree>, found: &mut Vec<(String, String)>) {
    for token in tokens {
        let text = match token {
            TokenTree::Group(group) => {
                collect(tokens::without_tests(group.stream()), found);
                continue;
            }
            TokenTree::Punct(_) => continue,
            TokenTree::Ident(name) => name.to_string(),
            TokenTree::Literal(literal) => literal.to_string(),
        };
        let words = words(&text).into_iter().filter(|word| VENDORS.contains(&word.as_str()));
        found.extend(words.map(|word| (word, text.clone())));
    }
}

/// The words of a text or a name, in lower case. Another word begins behind what is no letter, and with a capital behind a small letter.
fn words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut is_behind_small = false;
    for letter in text.chars() {
        if !letter.is_alphabetic() || is_behind_small && letter.is_uppercase() {
            words.push(String::new());
        }
        is_behind_small = letter.is_lowercase();
        if letter.is_alphabetic() {
            words.last_mut().into_iter().for_each(|word| word.extend(letter.to_lowercase()));
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(path: &str, text: &str) -> Vec<String> {
        check(&File { path: path.to_owned(), text: text.to_owned() })
    }

    #[test]
    fn code_of_portable_crates_names_no_vendor() {
        let text = "/// As NVIDIA's driver does.\n// Not on Intel.\nfn is_nvidia(name: &str) -> bool { name.starts_with(\"Intel(R)\") }\n\
                    fn f(kind: BackendKind) -> bool { kind == BackendKind::Cuda && PoclVersion::new() }\nfn g() { h(b\"amd64\") }\n\
                    #[cfg(test)]\nmod tests { const C: &str = \"rusticl\"; }\n";
        for name in CRATES {
            let found = findings(&format!("crates/{name}/src/a.rs"), text);
            let words: Vec<&str> = found.iter().filter_map(|finding| finding.rsplit('"').nth(1)).collect();
            assert_eq!(words, ["nvidia", "intel", "cuda", "pocl", "amd"], "{found:?}");
        }
        let message = "crates/oxisycl-types/src/a.rs: `is_nvidia` names the vendor or driver \"nvidia\"";
        assert_eq!(findings("crates/oxisycl-types/src/a.rs", "fn is_nvidia() {}"), [message]);
        for other in [
            "crates/oxisycl-backend-cuda/src/a.rs",
            "crates/oxisycl-runtime/src/a/tests.rs",
            "crates/oxisycl-runtime/tests/a.rs",
        ] {
            assert_eq!(findings(other, text), [""; 0], "{other}");
        }
    }

    #[test]
    fn a_name_within_a_word_is_none() {
        let text = "fn damaged(armed: Elements, charm: &str, ship: Hipster) -> &str { \"a tamed mesaic\" }";
        assert_eq!(findings("crates/oxisycl-device/src/a.rs", text), [""; 0]);
    }

    #[test]
    fn exceptions_are_of_one_file_and_have_a_reason() {
        assert!(EXCEPTIONS.iter().all(|(_, word, reason)| VENDORS.contains(word) && !reason.is_empty()));
        let text = "const A: [BackendKind; 2] = [BackendKind::Cuda, BackendKind::Mesa];";
        assert_eq!(findings("crates/oxisycl-runtime/src/selector/parse.rs", text).len(), 1);
        assert_eq!(findings("crates/oxisycl-runtime/src/selector.rs", text).len(), 2);
    }
}
