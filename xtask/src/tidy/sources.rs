use crate::workspace::File;

/// File names that say nothing about their content.
const NAMELESS: &[&str] = &["base.rs", "common.rs", "utils.rs", "misc.rs"];

/// Marks of unfinished work. Written in halves, so that this file does not contain them itself.
const UNFINISHED: &[&str] =
    &[concat!("todo", "!("), concat!("unimplemented", "!("), concat!("#[", "ignore"), concat!("FIX", "ME")];

/// How a test begins to say what it needs of the machine.
const MACHINE_LACKS: &str = concat!("#[", "ignore = \"needs ");

/// The most lines of a Rust file.
const MOST_LINES: usize = 500;

/// Crates whose documentation users read. What they promise stands there in words; the numbers of `requirements.toml` are ours.
const READ_BY_USERS: &[&str] =
    &["crates/oxisycl/src/", "crates/oxisycl-device/src/", "crates/oxisycl-runtime/src/", "crates/oxisycl-types/src/"];

/// Files that stay shorter than others: what shows how much a task takes.
const SHORT: &[(&str, usize)] = &[("crates/oxisycl-backend-testing/tests/toy.rs", 300)];

/// Findings for one Rust source. `paths` are all files, which tell whether the source has a folder of submodules.
pub(super) fn check(file: &File, paths: &[&str]) -> Vec<String> {
    let path = &file.path;
    let mut findings = Vec::new();
    let name = path.rsplit('/').next().unwrap_or(path);
    if NAMELESS.contains(&name) {
        findings.push(format!("{path}: a file is named after its main type, not {name}"));
    }
    let lines = file.text.lines().count();
    if lines > MOST_LINES {
        findings.push(format!("{path}: {lines} lines, at most {MOST_LINES}: which two things is it?"));
    }
    if let Some((_, most)) = SHORT.iter().find(|(short, most)| short == path && lines > *most) {
        findings.push(format!("{path}: {lines} lines, at most {most}: a backend has to provide too much"));
    }
    if has_modules(path, paths) && !file.text.trim_start().starts_with("//!") {
        findings.push(format!("{path}: a file with modules below it opens with `//!`"));
    }
    for (number, line) in file.text.lines().enumerate() {
        // A test may lack something that not every machine has; the reason says what.
        let line = line.replace(MACHINE_LACKS, "");
        for mark in UNFINISHED.iter().filter(|mark| line.contains(**mark)) {
            findings.push(format!("{path}:{}: unfinished work: {mark}", number + 1));
        }
    }
    findings
}

/// Findings for numbers of requirements in documentation that users read.
pub(super) fn check_numbers(file: &File) -> Vec<String> {
    let is_read = READ_BY_USERS.iter().any(|folder| file.path.starts_with(folder));
    if !is_read || file.path.contains("/tests/") || file.path.ends_with("tests.rs") {
        return Vec::new();
    }
    let is_documentation = |line: &str| ["///", "//!"].iter().any(|mark| line.trim_start().starts_with(mark));
    let lines = file.text.lines().enumerate().filter(|(_, line)| is_documentation(line));
    let found = lines.filter_map(|(number, line)| {
        let found = line.split(|c: char| !c.is_alphanumeric() && c != '-').find(|word| is_number(word))?;
        Some(format!("{}:{}: {found} tells users nothing: say it in words", file.path, number + 1))
    });
    found.collect()
}

/// Whether a word is the number of a requirement, as `S-R5`.
fn is_number(word: &str) -> bool {
    let Some(rest) = word.strip_prefix("S-") else { return false };
    let mut letters = rest.chars();
    letters.next().is_some_and(|c| c.is_ascii_uppercase())
        && letters.clone().next().is_some()
        && letters.all(|c| c.is_ascii_digit())
}

/// Findings for exceptions of files that do not exist.
pub(super) fn check_exceptions(paths: &[&str]) -> Vec<String> {
    let gone = SHORT.iter().filter(|(path, _)| !paths.contains(path));
    gone.map(|(path, _)| format!("{path}: no such file: remove the row of SHORT in xtask/src/tidy/sources.rs"))
        .collect()
}

/// Findings for tab characters in any text file.
pub(super) fn check_tabs(file: &File) -> Vec<String> {
    let lines = file.text.lines().enumerate().filter(|(_, line)| line.contains('\t'));
    lines.map(|(number, _)| format!("{}:{}: a tab character", file.path, number + 1)).collect()
}

/// A finding if the root file of a crate does not forbid unsafe code.
pub(super) fn check_forbids_unsafe(path: &str, text: &str) -> Option<String> {
    let forbids = text.lines().any(|line| line.trim() == "#![forbid(unsafe_code)]");
    (!forbids).then(|| format!("{path}: lacks #![forbid(unsafe_code)]"))
}

/// Whether a source is the root of a crate or of a folder of modules.
fn has_modules(path: &str, paths: &[&str]) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let folder = format!("{}/", path.trim_end_matches(".rs"));
    ["lib.rs", "main.rs", "mod.rs"].contains(&name)
        || paths.iter().any(|other| other.starts_with(&folder) && other.ends_with(".rs"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_requirements_stay_out_of_documentation_that_users_read() {
        let file = |path: &str, text: &str| File { path: path.to_owned(), text: text.to_owned() };
        let text = "/// Stays there (S-R5, S-R6).\n// S-R5\n/// S-expressions, S-R, S-300\n";
        let found = check_numbers(&file("crates/oxisycl/src/a.rs", text));
        assert_eq!(found, ["crates/oxisycl/src/a.rs:1: S-R5 tells users nothing: say it in words"]);
        assert!(check_numbers(&file("crates/oxisycl/tests/a.rs", text)).is_empty());
        assert!(check_numbers(&file("crates/oxisycl-runtime/src/graph/tests/a.rs", text)).is_empty());
    }

    fn file(path: &str, text: &str) -> File {
        File { path: path.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn a_plain_file_needs_no_module_documentation() {
        assert!(
            check(&file("a/src/range.rs", "struct Range;\n"), &["a/src/range.rs", "a/src/range_map.rs"]).is_empty()
        );
    }

    #[test]
    fn roots_of_crates_and_of_folders_open_with_documentation() {
        assert!(check(&file("a/src/lib.rs", "\n//! Doc.\n"), &[]).is_empty());
        for path in ["a/src/lib.rs", "a/src/main.rs", "a/src/state/mod.rs"] {
            assert_eq!(check(&file(path, "mod b;\n"), &[]).len(), 1, "{path}");
        }
        assert_eq!(check(&file("a/src/state.rs", "mod b;\n"), &["a/src/state/b.rs"]).len(), 1);
    }

    #[test]
    fn file_names_that_say_nothing_are_refused() {
        for name in NAMELESS {
            assert_eq!(check(&file(&format!("a/src/{name}"), ""), &[]).len(), 1);
        }
        assert!(check(&file("a/src/database.rs", ""), &[]).is_empty());
    }

    #[test]
    fn unfinished_work_is_found_with_its_line() {
        for mark in UNFINISHED {
            let findings = check(&file("a.rs", &format!("fn a() {{\n    {mark})\n}}\n")), &[]);
            assert_eq!(findings, [format!("a.rs:2: unfinished work: {mark}")]);
        }
        assert!(check(&file("a.rs", "// it has to do with a todo list\n"), &[]).is_empty());
        let lacks = format!("{MACHINE_LACKS}an OpenCL driver\"]\nfn a() {{}}\n");
        assert!(check(&file("a.rs", &lacks), &[]).is_empty());
        assert_eq!(check(&file("a.rs", &lacks.replace("needs", "fails")), &[]).len(), 1);
    }

    #[test]
    fn long_files_are_refused_but_for_listed_ones() {
        let of = |path: &str, lines: usize| check(&file(path, &"//! x\n".repeat(lines)), &[]);
        assert!(of("a.rs", 500).is_empty());
        assert_eq!(of("a.rs", 501), ["a.rs: 501 lines, at most 500: which two things is it?"]);
    }

    #[test]
    fn a_device_on_lanes_is_short() {
        let (toy, most) = SHORT[0];
        assert!(check(&file(toy, &"//! x\n".repeat(most)), &[]).is_empty());
        let findings = check(&file(toy, &"//! x\n".repeat(most + 1)), &[]);
        assert_eq!(findings, [format!("{toy}: {} lines, at most {most}: a backend has to provide too much", most + 1)]);
    }

    #[test]
    fn exceptions_are_of_files_that_are_there() {
        let paths: Vec<&str> = SHORT.iter().map(|(path, _)| *path).collect();
        assert!(check_exceptions(&paths).is_empty());
        assert_eq!(check_exceptions(&paths[1..]).len(), 1);
    }

    #[test]
    fn tabs_are_found_in_any_text() {
        assert_eq!(check_tabs(&file("a.md", "one\n\ttwo\n")), ["a.md:2: a tab character"]);
        assert!(check_tabs(&file("a.md", "one two\n")).is_empty());
    }

    #[test]
    fn forbidding_unsafe_code_is_a_line_of_its_own() {
        assert_eq!(check_forbids_unsafe("l.rs", "//! Doc.\n#![forbid(unsafe_code)]\n"), None);
        assert!(check_forbids_unsafe("l.rs", "// #![forbid(unsafe_code)]\n").is_some());
    }
}
