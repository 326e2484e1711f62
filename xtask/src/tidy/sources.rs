use crate::workspace::File;

/// File names that say nothing about their content.
const NAMELESS: &[&str] = &["base.rs", "common.rs", "utils.rs", "misc.rs"];

/// Marks of unfinished work. Written in halves, so that this file does not contain them itself.
const UNFINISHED: &[&str] =
    &[concat!("todo", "!("), concat!("unimplemented", "!("), concat!("#[", "ignore"), concat!("FIX", "ME")];

/// How a test begins to say what it needs of the machine.
const MACHINE_LACKS: &str = concat!("#[", "ignore = \"needs ");

const MOST_LINES: usize = 800;
const MANY_LINES: usize = 500;

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
        findings.push(format!("{path}: {lines} lines, at most {MOST_LINES}"));
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

/// A warning for a source that is long, but not too long.
pub(super) fn long_file(file: &File) -> Option<String> {
    let lines = file.text.lines().count();
    (MANY_LINES < lines && lines <= MOST_LINES)
        .then(|| format!("{}: {lines} lines: which two things is it?", file.path))
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
    fn long_files_are_warned_of_and_too_long_ones_refused() {
        let of = |lines: usize| file("a.rs", &"x\n".repeat(lines));
        assert_eq!((check(&of(500), &[]).len(), long_file(&of(500)).is_some()), (0, false));
        assert_eq!((check(&of(501), &[]).len(), long_file(&of(501)).is_some()), (0, true));
        assert_eq!((check(&of(800), &[]).len(), long_file(&of(800)).is_some()), (0, true));
        assert_eq!((check(&of(801), &[]).len(), long_file(&of(801)).is_some()), (1, false));
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
