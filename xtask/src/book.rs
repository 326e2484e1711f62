//! `cargo xtask book`: builds the book, and compiles and runs its Rust snippets.
//!
//! The snippets become the documentation tests of a generated crate that depends on the facade, as a reader's crate does. A snippet
//! marked `ignore` or `text` is not compiled. Line numbers in error messages are those of the chapter.

use std::fs;
use std::path::Path;

use crate::counts::Counts;
use crate::outcome::{Failure, Outcome, Result};
use crate::process::{self, cargo, command, run_captured, succeeds};
use crate::suites::count;
use crate::workspace::{File, Workspace};

/// Builds the book if mdbook is installed; tests the snippets in any case.
pub(crate) fn run(workspace: &Workspace) -> Result<Outcome> {
    let mdbook = succeeds(command(workspace, &"mdbook".into()).arg("--version"));
    if mdbook {
        let output = workspace.target_directory.join("book");
        process::run(command(workspace, &"mdbook".into()).args(["build", "book", "--dest-dir"]).arg(output))?;
    }
    let snippets = format!("{} snippets passed", test_snippets(workspace)?);
    Ok(match mdbook {
        true => Outcome::Passed(snippets),
        false => Outcome::Skipped(format!("mdbook is not installed (`cargo xtask test` does it); {snippets}")),
    })
}

/// Generates the crate of snippets and runs its documentation tests; returns how many passed.
fn test_snippets(workspace: &Workspace) -> Result<u64> {
    let chapters = workspace.files(&["md"])?;
    let chapters: Vec<&File> = chapters.iter().filter(|file| file.path.starts_with("book/src/")).collect();
    let folder = workspace.target_directory.join("book-snippets");
    let expected = generate(workspace, &chapters, &folder)
        .map_err(|error| Failure::new(format!("{}: {error}", folder.display())))?;
    if expected == 0 {
        return Err(Failure::new("book/src has no Rust snippets"));
    }
    let mut command = cargo(workspace);
    command.args(["test", "--doc", "--manifest-path"]).arg(folder.join("Cargo.toml"));
    command.env("CARGO_TARGET_DIR", &workspace.target_directory);
    Ok(count(run_captured(&mut command)?, Counts::of_cargo_test, expected)?.passed)
}

/// Writes the crate; returns the number of snippets in it.
fn generate(workspace: &Workspace, chapters: &[&File], folder: &Path) -> std::io::Result<u64> {
    let source = folder.join("src");
    if source.exists() {
        fs::remove_dir_all(&source)?;
    }
    fs::create_dir_all(&source)?;
    let mut lib = String::from("//! Snippets of the book.\n");
    let mut total = 0;
    for chapter in chapters {
        let (text, snippets) = only_snippets(&chapter.text);
        if snippets == 0 {
            continue;
        }
        total += snippets;
        let path = chapter.path.trim_start_matches("book/src/");
        let module = path.trim_end_matches(".md").replace(|c: char| !c.is_ascii_alphanumeric(), "_").to_lowercase();
        fs::write(source.join(format!("{module}.md")), text)?;
        lib.push_str(&format!("#[doc = include_str!(\"{module}.md\")]\npub mod chapter_{module} {{}}\n"));
    }
    fs::write(source.join("lib.rs"), lib)?;
    fs::write(folder.join("Cargo.toml"), manifest(&workspace.root))?;
    // The same versions as everywhere else in the repository.
    fs::copy(workspace.root.join("Cargo.lock"), folder.join("Cargo.lock"))?;
    Ok(total)
}

fn manifest(root: &Path) -> String {
    let facade = root.join("crates/oxisycl").to_string_lossy().replace('\\', "/");
    let features = ["glam", "half", "image", "nalgebra", "ndarray", "num-complex"];
    format!(
        "[package]\nname = \"book-snippets\"\nversion = \"0.0.0\"\nedition = \"2024\"\npublish = false\n\n\
         [dependencies]\noxisycl = {{ path = \"{facade}\", features = {features:?} }}\n\
         bytemuck = {{ version = \"1\", features = [\"derive\"] }}\nhalf = \"2\"\nnum-complex = \"0.4\"\nglam = \"0.30\"\n\
         image = {{ version = \"0.25\", default-features = false }}\nnalgebra = \"0.35\"\nndarray = \"0.17\"\n\
         futures = \"0.3\"\ntokio = {{ version = \"1\", features = [\"rt\", \"macros\"] }}\n\n[workspace]\n"
    )
}

/// A chapter in which every line outside a Rust snippet is empty, and the number of snippets.
fn only_snippets(chapter: &str) -> (String, u64) {
    let mut text = String::new();
    let mut snippets = 0;
    let mut fence: Option<Fence> = None;
    for line in chapter.lines() {
        let trimmed = line.trim_start();
        let shown = match &fence {
            Some(open) => {
                let kept = open.kept;
                if open.is_closed_by(trimmed) {
                    fence = None;
                }
                kept
            }
            None => {
                fence = Fence::opened_by(trimmed);
                let kept = fence.as_ref().is_some_and(|fence| fence.kept);
                snippets += u64::from(kept);
                kept
            }
        };
        if shown {
            text.push_str(line);
        }
        text.push('\n');
    }
    (text, snippets)
}

/// A fenced block that has begun.
struct Fence {
    /// The backticks or tildes, at least three.
    marks: String,
    /// Whether it is a Rust snippet to compile.
    kept: bool,
}

impl Fence {
    fn opened_by(line: &str) -> Option<Self> {
        let mark = line.chars().next().filter(|c| *c == '`' || *c == '~')?;
        let marks: String = line.chars().take_while(|c| *c == mark).collect();
        let words: Vec<&str> = line[marks.len()..].split([',', ' ']).map(str::trim).collect();
        let kept = words[0] == "rust" && !words.iter().any(|word| *word == "ignore" || *word == "text");
        (marks.len() >= 3).then_some(Self { marks, kept })
    }

    fn is_closed_by(&self, line: &str) -> bool {
        line.starts_with(&self.marks) && line.trim_end().trim_start_matches(&self.marks[..1]).is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_rust_blocks_remain_and_keep_their_lines() {
        let chapter = "# Title\n\n```rust\nlet a = 1;\n```\n\ntext\n```sh\ncargo run\n```\n```rust,no_run\nb();\n```\n";
        let (text, snippets) = only_snippets(chapter);
        assert_eq!(snippets, 2);
        assert_eq!(text, "\n\n```rust\nlet a = 1;\n```\n\n\n\n\n\n```rust,no_run\nb();\n```\n");
        assert_eq!(text.lines().count(), chapter.lines().count());
    }

    #[test]
    fn marked_unmarked_and_other_blocks_are_left_out() {
        for opening in ["```rust,ignore", "```rust, text", "```text", "```", "```rustc", "~~~toml", "``rust"] {
            let (text, snippets) = only_snippets(&format!("{opening}\nx\n```\n"));
            assert_eq!((text.trim(), snippets), ("", 0), "{opening}");
        }
    }

    #[test]
    fn a_block_ends_only_at_its_own_kind_of_fence() {
        let (text, snippets) = only_snippets("````md\n```rust\nx\n```\n````\n~~~rust\ny\n~~~\n");
        assert_eq!((text.trim(), snippets), ("~~~rust\ny\n~~~", 1));
    }

    #[test]
    fn the_generated_manifest_is_valid_and_stands_alone() {
        let manifest = crate::workspace::parse_toml("manifest", &manifest(Path::new("/w"))).unwrap();
        assert_eq!(manifest["dependencies"]["oxisycl"]["path"].as_str(), Some("/w/crates/oxisycl"));
        assert!(manifest.contains_key("workspace"));
    }
}
