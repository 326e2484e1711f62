//! Safe public functions with unsafe code in them, each of which says in `public-unsafe.toml` why any arguments are fine.
//!
//! Looks at tokens: what a macro expands to is seen as it stands in the macro. Lints see to it that what is `pub` can be reached from
//! outside of its crate.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{TokenStream, TokenTree};

use super::tokens::{self, braces, is_punctuation, is_word, without_tests};
use crate::outcome::{Failure, Result};
use crate::workspace::{File, Package, parse_toml};

pub(super) const LIST: &str = "public-unsafe.toml";

/// Findings for functions that the list lacks, and for entries without a function or a reason.
pub(super) fn check(list: &str, packages: &[Package], files: &[File]) -> Result<Vec<String>> {
    let listed = entries(list)?;
    let mut findings = Vec::new();
    let mut found: BTreeSet<(String, String)> = BTreeSet::new();
    for file in files.iter().filter(|file| is_published(&file.path, packages)) {
        match functions(&file.text) {
            Ok(names) => found.extend(names.into_iter().map(|name| (file.path.clone(), name))),
            Err(error) => findings.push(format!("{}: {error}", file.path)),
        }
    }
    for (path, name) in found.iter().filter(|key| !listed.contains_key(*key)) {
        findings.push(format!(
            "{path}: `{name}` is safe and public, with unsafe code in it or a raw pointer in its signature: say in {LIST} why any arguments are fine"
        ));
    }
    for (key, reason) in &listed {
        let (path, name) = key;
        if !found.contains(key) {
            findings.push(format!("{LIST}: {path} has no such function `{name}`"));
        }
        if reason.trim().is_empty() {
            findings.push(format!("{LIST}: {path}: `{name}` has no reason"));
        }
    }
    Ok(findings)
}

/// File and function to reason.
fn entries(list: &str) -> Result<BTreeMap<(String, String), String>> {
    let mut entries = BTreeMap::new();
    for (path, section) in parse_toml(LIST, list)? {
        let section =
            section.as_table().ok_or_else(|| Failure::new(format!("{LIST}: {path} is not a section")))?.clone();
        for (name, reason) in section {
            let reason =
                reason.as_str().ok_or_else(|| Failure::new(format!("{LIST}: {path}: {name} is not a text")))?;
            entries.insert((path.clone(), name), reason.to_owned());
        }
    }
    Ok(entries)
}

/// Whether a file is a source of a library that is published, and no file of tests.
fn is_published(path: &str, packages: &[Package]) -> bool {
    let Some((name, rest)) = path.strip_prefix("crates/").and_then(|path| path.split_once("/src/")) else {
        return false;
    };
    let is_library = |package: &Package| {
        package.publish
            && package.main_target().is_some_and(|target| target.kind == "lib" || target.kind == "proc-macro")
    };
    let is_test = rest.split('/').any(|part| ["tests", "tests.rs"].contains(&part));
    !is_test && path.ends_with(".rs") && packages.iter().any(|package| package.name == name && is_library(package))
}

/// The names of the safe public functions of a source that have unsafe code or a raw pointer.
fn functions(text: &str) -> Result<BTreeSet<String>, String> {
    let mut names = BTreeSet::new();
    visit(&tokens::of(text)?, None, &mut names);
    Ok(names)
}

fn visit(tokens: &[TokenTree], owner: Option<&str>, names: &mut BTreeSet<String>) {
    let mut at = 0;
    while at < tokens.len() {
        if let Some(function) = Function::at(&tokens[at..]) {
            if function.is_safe && (function.has_pointer || function.has_unsafe) {
                names.insert(owner.map_or(function.name.clone(), |owner| format!("{owner}::{}", function.name)));
            }
            at += function.length;
            continue;
        }
        if is_word(&tokens[at], "fn") {
            // A private function: what is in it counts for no item.
            at += item_length(&tokens[at..]);
            continue;
        }
        let owned = is_word(&tokens[at], "impl").then(|| implementation(&tokens[at..])).flatten();
        if let Some((length, name, body)) = owned {
            visit(&without_tests(body), name.as_deref(), names);
            at += length;
            continue;
        }
        if let TokenTree::Group(group) = &tokens[at] {
            visit(&without_tests(group.stream()), owner, names);
        }
        at += 1;
    }
}

/// A public function.
struct Function {
    name: String,
    is_safe: bool,
    has_pointer: bool,
    has_unsafe: bool,
    /// How many tokens it has.
    length: usize,
}

impl Function {
    /// The one that begins here.
    fn at(tokens: &[TokenTree]) -> Option<Self> {
        if !is_word(tokens.first()?, "pub") {
            return None;
        }
        let is_modifier =
            |token: &&TokenTree| ["const", "async", "unsafe"].iter().any(|modifier| is_word(token, modifier));
        let n_modifiers = tokens[1..].iter().take_while(is_modifier).count();
        let start = 1 + n_modifiers;
        if !is_word(tokens.get(start)?, "fn") {
            return None;
        }
        let is_safe = !tokens[1..start].iter().any(|token| is_word(token, "unsafe"));
        let length = start + item_length(&tokens[start..]);
        let item = &tokens[start + 1..length];
        // The name may be a macro's parameter.
        let name: String = item.iter().take(2).map(ToString::to_string).collect();
        let name = if name.starts_with('$') { name } else { item.first()?.to_string() };
        let (signature, body) = match item.split_last() {
            Some((body, signature)) if braces(body).is_some() => (signature, braces(body)),
            _ => (item, None),
        };
        let has_pointer = has_pointer(signature.iter().cloned().collect());
        let has_unsafe = body.is_some_and(has_unsafe);
        Some(Self { name, is_safe, has_pointer, has_unsafe, length })
    }
}

/// How many tokens the item has that ends with a body or a semicolon.
fn item_length(tokens: &[TokenTree]) -> usize {
    let is_end = |token: &TokenTree| is_punctuation(token, ';') || braces(token).is_some();
    tokens.iter().position(is_end).map_or(tokens.len(), |end| end + 1)
}

/// The length of an `impl` block, the name of the type, and what is in it.
fn implementation(tokens: &[TokenTree]) -> Option<(usize, Option<String>, TokenStream)> {
    let end = tokens.iter().position(|token| braces(token).is_some())?;
    let mut depth = 0_usize;
    let mut name = None;
    for (at, token) in tokens[1..end].iter().enumerate() {
        match token {
            _ if is_punctuation(token, '<') => depth += 1,
            // Not that of an arrow.
            _ if is_punctuation(token, '>') && !is_punctuation(&tokens[at], '-') => depth = depth.saturating_sub(1),
            _ if depth > 0 => {}
            _ if is_word(token, "where") => break,
            // What stood before was a trait.
            _ if is_word(token, "for") => name = None,
            TokenTree::Ident(word) => name = Some(word.to_string()),
            _ => {}
        }
    }
    Some((end + 1, name, braces(&tokens[end])?))
}

fn has_unsafe(stream: TokenStream) -> bool {
    stream.into_iter().any(|token| match token {
        TokenTree::Group(group) => has_unsafe(group.stream()),
        token => is_word(&token, "unsafe"),
    })
}

fn has_pointer(stream: TokenStream) -> bool {
    let tokens: Vec<TokenTree> = stream.into_iter().collect();
    let is_pointer =
        |pair: &[TokenTree]| is_punctuation(&pair[0], '*') && (is_word(&pair[1], "const") || is_word(&pair[1], "mut"));
    tokens.windows(2).any(is_pointer)
        || tokens.iter().any(|token| matches!(token, TokenTree::Group(group) if has_pointer(group.stream())))
}

/// Findings for public traits that anybody may implement, whose promises unsafe code relies on.
pub(super) fn check_traits(packages: &[Package], files: &[File]) -> Vec<String> {
    let published: Vec<&File> = files.iter().filter(|file| is_published(&file.path, packages)).collect();
    let open: BTreeSet<String> = published
        .iter()
        .flat_map(|file| tokens::of(&file.text).map(|tokens| open_traits(&tokens)).unwrap_or_default())
        .collect();
    let mut findings = Vec::new();
    for file in &published {
        for (number, line) in file.text.lines().enumerate().filter(|(_, line)| line.trim_start().starts_with("//")) {
            let Some((_, reason)) = line.split_once("SAFETY:") else { continue };
            for name in open.iter().filter(|name| reason.contains(&format!("`{name}`"))) {
                findings.push(format!(
                    "{}:{}: unsafe code relies on `{name}`, a trait that is neither unsafe nor sealed",
                    file.path,
                    number + 1
                ));
            }
        }
    }
    findings
}

/// The page that says of each public trait who may implement it, and what believes its implementations.
pub(super) const REVIEW: &str = "book/src/soundness.md";

/// Findings for public traits of which the review says nothing. Those of inner modules are what seals others.
pub(super) fn check_reviewed(review: &str, packages: &[Package], files: &[File]) -> Vec<String> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let code = review.split('`').skip(1).step_by(2);
    let named: BTreeSet<&str> = code.flat_map(|code| code.split(|c| !is_word(c))).collect();
    let mut findings = Vec::new();
    for file in files.iter().filter(|file| is_published(&file.path, packages)) {
        for line in file.text.lines() {
            let rest = line.strip_prefix("pub unsafe trait ").or_else(|| line.strip_prefix("pub trait "));
            let name = rest.and_then(|rest| rest.split(|c| !is_word(c)).next());
            if let Some(name) = name.filter(|name| *name != "Sealed" && !named.contains(name)) {
                findings.push(format!("{}: {REVIEW} does not say who believes the public trait `{name}`", file.path));
            }
        }
    }
    findings
}

/// The names of public traits that are neither unsafe nor have a supertrait in a module `sealed`.
fn open_traits(tokens: &[TokenTree]) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for (at, token) in tokens.iter().enumerate() {
        if let TokenTree::Group(group) = token {
            names.extend(open_traits(&without_tests(group.stream())));
        }
        let [visibility, keyword, TokenTree::Ident(name), rest @ ..] = &tokens[at..] else { continue };
        if is_word(visibility, "pub") && is_word(keyword, "trait") {
            let head = &rest[..item_length(rest)];
            if !head.iter().any(|token| is_word(token, "sealed")) {
                names.insert(name.to_string());
            }
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        functions(text).expect("tokens").into_iter().collect()
    }

    fn library(name: &str) -> Package {
        let target = crate::workspace::Target { name: name.to_owned(), kind: "lib".to_owned(), ..Default::default() };
        Package { name: name.to_owned(), publish: true, targets: vec![target], ..Package::default() }
    }

    fn file(path: &str, text: &str) -> File {
        File { path: path.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn safe_functions_with_unsafe_code_are_found() {
        assert_eq!(found("pub fn a() { if b { unsafe { c() } } }"), ["a"]);
        assert_eq!(found("pub const fn a() { unsafe { c() } }"), ["a"]);
        assert_eq!(found("mod m { pub fn a() { let f = || unsafe { c() }; } }"), ["a"]);
        assert_eq!(found("macro_rules! m { () => { pub fn $name() { unsafe { c() } } } }"), ["$name"]);
        assert!(found("pub unsafe fn a() { unsafe { c() } }").is_empty());
        assert!(found("pub const unsafe fn a() { unsafe { c() } }").is_empty());
        assert!(found("pub(crate) fn a() { unsafe { c() } } fn d() { unsafe { c() } }").is_empty());
        assert!(found("pub fn a() { c() } #[cfg(test)] mod tests { pub fn a() { unsafe { c() } } }").is_empty());
        assert!(found("/// With `unsafe`.\npub fn a() { c(\"unsafe\") }").is_empty());
    }

    #[test]
    fn raw_pointers_in_signatures_are_found() {
        assert_eq!(found("pub fn a(b: *const u8) {}"), ["a"]);
        assert_eq!(found("pub fn a(b: &mut Option<*mut u8>) -> u8;"), ["a"]);
        assert_eq!(found("pub fn a() -> Option<*mut c_void> { None }"), ["a"]);
        assert!(found("pub fn a(b: u8) -> u8 { let c: *const u8 = d(); b * 2 }").is_empty());
    }

    #[test]
    fn methods_have_the_names_of_their_types() {
        assert_eq!(found("impl<'a, T: Fn(u8) -> u8> View<'a, T> where T: X { pub fn a() { unsafe {} } }"), ["View::a"]);
        assert_eq!(found("impl m::View { pub fn a(f: impl Fn() -> u8) { unsafe {} } pub fn b() {} }"), ["View::a"]);
        assert_eq!(found("impl Buffer<u8> { fn p() { fn q() {} } pub fn a() { unsafe {} } }"), ["Buffer::a"]);
    }

    #[test]
    fn the_list_has_each_function_once_and_no_other() {
        let packages = [library("a")];
        let files = [
            file("crates/a/src/lib.rs", "pub fn listed() { unsafe {} } pub fn new() { unsafe {} }"),
            file("crates/a/src/tests/mod.rs", "pub fn helper() { unsafe {} }"),
            file("crates/a/tests/all.rs", "pub fn helper() { unsafe {} }"),
            file("crates/unpublished/src/lib.rs", "pub fn helper() { unsafe {} }"),
        ];
        let list = "[\"crates/a/src/lib.rs\"]\nlisted = \" \"\ngone = \"because\"\n";
        let findings = check(list, &packages, &files).expect("a list");
        assert_eq!(findings.len(), 3, "{findings:?}");
        assert!(findings[0].starts_with("crates/a/src/lib.rs: `new` is safe and public"), "{findings:?}");
        assert_eq!(findings[1], "public-unsafe.toml: crates/a/src/lib.rs has no such function `gone`");
        assert_eq!(findings[2], "public-unsafe.toml: crates/a/src/lib.rs: `listed` has no reason");
    }

    #[test]
    fn a_public_trait_that_the_review_does_not_name_is_found() {
        let text = "pub trait Named<T> {}\npub unsafe trait Unnamed: Send {}\nmod sealed {\n    pub trait Inner {}\n}\npub trait Sealed {}\n";
        let check = |review| check_reviewed(review, &[library("a")], &[file("crates/a/src/lib.rs", text)]);
        assert_eq!(check("| `a::{Named, Unnamed}` |"), [""; 0]);
        assert_eq!(
            check("`Named`: Unnamed, ``UnnamedOther``"),
            ["crates/a/src/lib.rs: book/src/soundness.md does not say who believes the public trait `Unnamed`"]
        );
    }

    #[test]
    fn unsafe_code_relies_on_no_trait_that_anybody_may_implement() {
        let text = "pub trait Open { fn f(); } pub unsafe trait Promise {} pub trait Closed: sealed::Sealed {}\n\
                    // SAFETY: by the contract of `Promise` and `Closed`.\n// SAFETY: `Open` says so.\n// `Open` is a word.\n";
        let findings = check_traits(&[library("a")], &[file("crates/a/src/lib.rs", text)]);
        assert_eq!(
            findings,
            ["crates/a/src/lib.rs:3: unsafe code relies on `Open`, a trait that is neither unsafe nor sealed"]
        );
    }
}
