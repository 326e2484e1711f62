use std::collections::HashMap;
use std::path::{Path, PathBuf};

use crate::outcome::Result;
use crate::workspace::{File, Package, Workspace, collect, read};

/// Looks up test names in the sources of the targets they belong to.
pub(crate) struct Finder<'a> {
    workspace: &'a Workspace,
    /// Sources by root file, read once.
    sources: HashMap<PathBuf, Vec<File>>,
}

/// The parts of a test's name as it is listed.
#[derive(Debug, PartialEq, Eq)]
struct Reference<'a> {
    package: &'a str,
    /// The integration test; `None` for the package's unit tests.
    target: Option<&'a str>,
    name: &'a str,
}

impl<'a> Finder<'a> {
    pub(crate) fn new(workspace: &'a Workspace) -> Self {
        Self { workspace, sources: HashMap::new() }
    }

    /// `Ok(Ok(()))` if the test exists, `Ok(Err(problem))` if not, `Err` if sources could not be read.
    pub(crate) fn find(&mut self, test: &str) -> Result<Result<(), String>> {
        let Some(reference) = Reference::parse(test) else {
            return Ok(Err("expected `package name` or `package::target name`".to_owned()));
        };
        let Some(package) = self.workspace.package(reference.package) else {
            return Ok(Err(format!("no package \"{}\"", reference.package)));
        };
        let target = match reference.target {
            Some(name) => package.target("test", name),
            None => package.main_target(),
        };
        let Some(target) = target else {
            return Ok(Err(format!("package \"{}\" has no such target", reference.package)));
        };
        if reference.name.ends_with(".rs") {
            let exists = package.directory.join(reference.name).is_file();
            return Ok(if exists { Ok(()) } else { Err("no such file in the package".to_owned()) });
        }
        // A target with its own `main` lists its tests itself; with the harness a test carries the attribute.
        let bare = match reference.target {
            Some(name) => package.tests_without_harness()?.iter().any(|bare| bare == name),
            None => false,
        };
        let sources = self.sources(package, &target.source)?;
        let found = sources.iter().any(|file| contains_test(file, reference.name, bare));
        Ok(if found { Ok(()) } else { Err("no such test in the sources of its target".to_owned()) })
    }

    /// The sources of the target with the given root file; paths are relative to its folder.
    fn sources(&mut self, package: &Package, root: &Path) -> Result<&Vec<File>> {
        if !self.sources.contains_key(root) {
            let folder = root.parent().unwrap_or(&package.directory);
            let mut paths = Vec::new();
            if is_folder_root(root) {
                collect(folder, &mut paths)?;
            } else {
                paths.push(root.to_owned());
                if root.with_extension("").is_dir() {
                    collect(&root.with_extension(""), &mut paths)?;
                }
            }
            paths.retain(|path| path.extension().is_some_and(|extension| extension == "rs"));
            let mut files = Vec::new();
            for path in paths {
                let shown = path.strip_prefix(folder).unwrap_or(&path).to_string_lossy().replace('\\', "/");
                files.push(File { path: shown, text: read(&path)? });
            }
            self.sources.insert(root.to_owned(), files);
        }
        Ok(&self.sources[root])
    }
}

impl<'a> Reference<'a> {
    fn parse(test: &'a str) -> Option<Self> {
        let (binary, name) = test.split_once(' ')?;
        let (package, target) = match binary.split_once("::") {
            Some((package, target)) => (package, Some(target)),
            None => (binary, None),
        };
        let empty = package.is_empty() || target.is_some_and(str::is_empty) || name.is_empty();
        (!empty && !name.contains(char::is_whitespace)).then_some(Self { package, target, name })
    }
}

/// Whether all files of a root's folder belong to its target.
fn is_folder_root(root: &Path) -> bool {
    root.file_name().is_some_and(|name| name == "lib.rs" || name == "main.rs")
}

/// Whether a file defines the test `area::name`: as a literal of that text, or as a function `name` in module `area`.
fn contains_test(file: &File, name: &str, bare: bool) -> bool {
    if bare && file.text.contains(&format!("\"{name}\"")) {
        return true;
    }
    let mut modules: Vec<&str> = name.split("::").collect();
    let function = modules.pop().unwrap_or(name);
    let in_module = |module: &&str| {
        let mut parts = file.path.split('/').map(|part| part.trim_end_matches(".rs"));
        parts.any(|part| part == *module) || declares(&file.text, "mod ", module)
    };
    if !modules.iter().all(in_module) {
        return false;
    }
    let lines: Vec<&str> = file.text.lines().collect();
    let positions = lines.iter().enumerate().filter(|(_, line)| declares(line, "fn ", function));
    positions.map(|(position, _)| position).any(|position| bare || has_test_attribute(&lines[..position]))
}

/// Whether a text contains a keyword followed by exactly this identifier.
fn declares(text: &str, keyword: &str, identifier: &str) -> bool {
    text.match_indices(keyword).any(|(start, _)| {
        let before = text[..start].chars().next_back();
        let Some(rest) = text[start + keyword.len()..].strip_prefix(identifier) else {
            return false;
        };
        let is_part = |c: char| c.is_alphanumeric() || c == '_';
        !rest.starts_with(is_part) && !before.is_some_and(is_part)
    })
}

/// Whether the attributes and comments directly above a function contain `#[test]`.
fn has_test_attribute(above: &[&str]) -> bool {
    let attributes = above.iter().rev().map(|line| line.trim());
    attributes
        .take_while(|line| line.starts_with("#[") || line.starts_with("//"))
        .any(|line| line.starts_with("#[test]"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str =
        "mod inner {\n    #[test]\n    // why\n    #[should_panic]\n    fn works() {}\n}\nfn helper() {}\n";

    fn file(path: &str, text: &str) -> File {
        File { path: path.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn references_name_a_package_a_target_and_a_test() {
        let unit = Reference { package: "oxisycl-types", target: None, name: "id::tests::adds" };
        assert_eq!(Reference::parse("oxisycl-types id::tests::adds"), Some(unit));
        let integration = Reference { package: "oxisycl", target: Some("conformance"), name: "buffer::a" };
        assert_eq!(Reference::parse("oxisycl::conformance buffer::a"), Some(integration));
        for wrong in ["", "buffer::a", "oxisycl ", "oxisycl::  a", "oxisycl a b", "::t a"] {
            assert_eq!(Reference::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_unit_test_needs_the_attribute_and_its_modules() {
        let source = file("region.rs", SOURCE);
        assert!(contains_test(&source, "region::inner::works", false));
        assert!(contains_test(&source, "works", false));
        assert!(!contains_test(&source, "other::works", false));
        assert!(!contains_test(&source, "region::helper", false));
        assert!(!contains_test(&source, "region::work", false));
    }

    #[test]
    fn a_suite_with_its_own_main_names_tests_by_function_or_by_text() {
        let functions = file("buffer.rs", "pub fn keeps_size(device: &Device) {}\n");
        assert!(contains_test(&functions, "buffer::keeps_size", true));
        assert!(!contains_test(&functions, "accessor::keeps_size", true));
        let list = file("main.rs", "Test { name: \"buffer::keeps_size\", run: keeps }");
        assert!(contains_test(&list, "buffer::keeps_size", true));
        assert!(!contains_test(&list, "buffer::keeps", true));
        assert!(!contains_test(&list, "buffer::keeps_size", false));
    }

    #[test]
    fn this_very_test_is_found_in_the_workspace() {
        let workspace = Workspace::load().unwrap();
        let mut finder = Finder::new(&workspace);
        let name = "xtask requirements::find::tests::this_very_test_is_found_in_the_workspace";
        assert_eq!(finder.find(name), Ok(Ok(())));
        assert!(finder.find("xtask requirements::find::tests::this_one_is_not").unwrap().is_err());
        assert!(finder.find("no-such-package a").unwrap().is_err());
        assert!(finder.find("xtask::no_such_target a").unwrap().is_err());
        assert_eq!(finder.find("xtask src/requirements/find.rs"), Ok(Ok(())));
        assert!(finder.find("xtask src/missing.rs").unwrap().is_err());
    }
}
