//! Sentences of comments, of the book and of contributors' documents are at most [`MOST_WORDS`] long, those of READMEs at most
//! [`MOST_WORDS_OF_README`].
//!
//! Counts the words of each sentence in Markdown, and in comments that begin a line. Code blocks do not count, and a code span is one word.
//! Each cell of a table and each item of a list is a text of its own. Results of benchmarks do not count.
//!
//! Also refuses some words in whole files, with their messages.

use crate::workspace::File;

/// The most words of a sentence in a comment, in the book, and in documents for contributors.
const MOST_WORDS: usize = 25;
/// The most words of a sentence in a README.
const MOST_WORDS_OF_README: usize = 35;

/// Documents beside the book that the rule holds for.
const DOCUMENTS: [&str; 5] = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "examples/README.md"];

/// Words that hide the subject or the verb of a sentence: the code object and the field's verb stand there instead.
const REFUSED: [&str; 7] = ["nobody", "somebody", "whoever", "is told", "are told", "lets go", "let go"];
/// Files and folders where the words are refused. Others still have them.
const WITHOUT_REFUSED: [&str; 21] = [
    "CHANGELOG.md",
    "book/src/",
    "crates/cargo-sycl/src/",
    "crates/oxisycl-backend/src/",
    "crates/oxisycl-backend-cuda/src/",
    "crates/oxisycl-backend-host/src/",
    "crates/oxisycl-backend-opencl/src/",
    "crates/oxisycl-backend-testing/src/",
    "crates/oxisycl-builtins/",
    "crates/oxisycl-cache/",
    "crates/oxisycl-compiler/src/",
    "crates/oxisycl-device/src/",
    "crates/oxisycl-image/src/",
    "crates/oxisycl-kernel-suite/",
    "crates/oxisycl-macros/src/",
    "crates/oxisycl-runtime/src/",
    "crates/oxisycl-types/src/",
    "crates/oxisycl/src/",
    "examples/",
    "public-unsafe.toml",
    "xtask/src/",
];
/// Has the words themselves.
const WITH_WORDS: &str = "xtask/src/tidy/sentences.rs";

/// A long sentence.
#[derive(Debug, PartialEq, Eq)]
struct Long {
    line: usize,
    n_words: usize,
    begin: String,
}

/// Findings for all files.
pub(super) fn check(files: &[File]) -> Vec<String> {
    let of_sentences = files.iter().filter(|file| has_rule(&file.path)).flat_map(check_one);
    of_sentences.chain(files.iter().flat_map(check_words)).collect()
}

/// Findings for words of [`REFUSED`].
fn check_words(file: &File) -> Vec<String> {
    let path = &file.path;
    if path == WITH_WORDS || !WITHOUT_REFUSED.iter().any(|folder| path.starts_with(folder)) {
        return Vec::new();
    }
    let found = file.text.lines().enumerate().filter_map(|(number, line)| {
        let line = line.to_lowercase();
        let word = REFUSED.iter().find(|word| has_word(&line, word))?;
        Some(format!("{path}:{}: \"{word}\": name what acts, and say what it does", number + 1))
    });
    found.collect()
}

/// Whether a line has a word as a whole. Names of tests have underscores around it, and do not count.
fn has_word(line: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(at, _)| {
        !line[..at].chars().next_back().is_some_and(is_part)
            && !line[at + word.len()..].chars().next().is_some_and(is_part)
    })
}

fn check_one(file: &File) -> Vec<String> {
    let path = &file.path;
    let lines = if path.ends_with(".rs") { comments(&file.text) } else { numbered(&file.text) };
    let most = if path.ends_with("README.md") { MOST_WORDS_OF_README } else { MOST_WORDS };
    let long = long_sentences(&lines, most).into_iter().map(|Long { line, n_words, begin }| {
        format!("{path}:{line}: a sentence of {n_words} words, at most {most}: {begin} ..")
    });
    long.chain(check_numbers(file)).collect()
}

/// Findings for numbers of requirements in published documentation. Readers do not have the list of these numbers.
fn check_numbers(file: &File) -> Vec<String> {
    let path = &file.path;
    if !is_published(path) {
        return Vec::new();
    }
    let lines = numbered(&file.text).into_iter().filter(|(_, line)| {
        let text = documentation(line);
        text.is_some_and(|text| text.split_whitespace().any(has_requirement))
    });
    lines.map(|(line, _)| format!("{path}:{line}: documentation with the number of a requirement")).collect()
}

/// Whether a source's documentation is published: the sources of the crates, without their tests.
fn is_published(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    let is_test = parts.iter().any(|part| ["tests", "tests.rs"].contains(part));
    matches!(parts.as_slice(), ["crates", _, "src", ..]) && path.ends_with(".rs") && !is_test
}

/// Whether a word has a number such as `S-R13`.
fn has_requirement(word: &str) -> bool {
    word.match_indices("S-").any(|(at, _)| {
        let mut letters = word[at + 2..].chars();
        word[..at].chars().all(|letter| !letter.is_alphanumeric())
            && letters.next().is_some_and(|letter| letter.is_ascii_uppercase())
            && letters.next().is_some_and(|letter| letter.is_ascii_digit())
    })
}

/// Whether the rule holds for a file.
fn has_rule(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    match parts.as_slice() {
        _ if path.ends_with(".rs") || DOCUMENTS.contains(&path) => true,
        ["book", "src", ..] => path.ends_with(".md"),
        ["crates", _, "README.md"] => true,
        _ => false,
    }
}

/// The lines of a text with their numbers.
fn numbered(text: &str) -> Vec<(usize, &str)> {
    text.lines().enumerate().map(|(number, line)| (number + 1, line)).collect()
}

/// The comments in a source that begin a line. Other lines are empty ones, which end a paragraph, and so does another kind of comment.
fn comments(text: &str) -> Vec<(usize, &str)> {
    let mut lines = Vec::new();
    let mut was_documentation = false;
    for (number, line) in numbered(text) {
        let documentation = documentation(line);
        if documentation.is_some() != was_documentation {
            lines.push((number, ""));
        }
        was_documentation = documentation.is_some();
        let comment = documentation.or_else(|| line.trim_start().strip_prefix("//"));
        lines.push((number, comment.unwrap_or("")));
    }
    lines
}

/// The text of a line of documentation; `None` for other lines.
fn documentation(line: &str) -> Option<&str> {
    ["///", "//!"].iter().find_map(|mark| line.trim_start().strip_prefix(mark))
}

/// The sentences above the limit. A paragraph ends at an empty line, a heading, an item of a list or a row of a table.
fn long_sentences(lines: &[(usize, &str)], most: usize) -> Vec<Long> {
    let mut long = Vec::new();
    let mut sentence = Sentence::default();
    let mut fence = None;
    for &(number, line) in lines {
        let line = line.trim();
        let mark = ["```", "~~~"].into_iter().find(|mark| line.starts_with(mark));
        if mark.is_some() && (fence.is_none() || mark == fence) {
            long.extend(sentence.end(most));
            fence = if fence.is_some() { None } else { mark };
            continue;
        }
        if fence.is_some() {
            continue;
        }
        let is_row = line.starts_with('|');
        if line.is_empty() || is_row || begins_paragraph(line) {
            long.extend(sentence.end(most));
        }
        let cells: Vec<&str> = if is_row { cells(line) } else { vec![line] };
        for cell in cells {
            for word in words(cell) {
                sentence.add(number, &word);
                if ends_sentence(&word) {
                    long.extend(sentence.end(most));
                }
            }
            if is_row {
                long.extend(sentence.end(most));
            }
        }
        if line.starts_with('#') {
            long.extend(sentence.end(most));
        }
    }
    long.extend(sentence.end(most));
    long
}

/// Headings, quotations and items of lists.
fn begins_paragraph(line: &str) -> bool {
    let is_numbered = line.split_once(['.', ')']).is_some_and(|(number, rest)| {
        !number.is_empty() && number.chars().all(|c| c.is_ascii_digit()) && rest.starts_with(' ')
    });
    is_numbered || ["# ", "## ", "### ", "#### ", "- ", "* ", "+ ", "> "].iter().any(|mark| line.starts_with(mark))
}

/// The cells of a table's row. A bar in a code span is text.
fn cells(line: &str) -> Vec<&str> {
    let (mut cells, mut start, mut is_code) = (Vec::new(), 0, false);
    for (position, character) in line.char_indices() {
        match character {
            '`' => is_code = !is_code,
            '|' if !is_code && !line[..position].ends_with('\\') => {
                cells.push(&line[start..position]);
                start = position + 1;
            }
            _ => {}
        }
    }
    cells.push(&line[start..]);
    cells
}

/// The words of a text. A code span is one word, and so is a link's text with its address.
fn words(text: &str) -> Vec<String> {
    let (mut words, mut word) = (Vec::new(), String::new());
    let (mut is_code, mut depth) = (false, 0_u32);
    for character in text.chars() {
        match character {
            '`' => is_code = !is_code,
            '(' if !is_code && word.ends_with(']') => depth += 1,
            ')' if !is_code && depth > 0 => depth -= 1,
            c if c.is_whitespace() && !is_code && depth == 0 => {
                words.push(std::mem::take(&mut word));
                continue;
            }
            _ => {}
        }
        word.push(character);
    }
    words.push(word);
    words.retain(|word| word.contains(|c: char| c.is_alphanumeric()));
    words
}

/// Whether a sentence ends with this word. Abbreviations and points within code do not end one.
fn ends_sentence(word: &str) -> bool {
    let bare = word.trim_end_matches(['"', '\'', ')', ']', '*', '_']);
    let is_abbreviation = ["e.g.", "i.e.", "etc.", "cf.", ".."].iter().any(|known| bare.ends_with(known));
    bare.ends_with(['.', '?', '!']) && !is_abbreviation
}

/// The words since the last end of a sentence.
#[derive(Default)]
struct Sentence {
    line: usize,
    n_words: usize,
    begin: Vec<String>,
}

impl Sentence {
    fn add(&mut self, line: usize, word: &str) {
        if self.n_words == 0 {
            self.line = line;
        }
        self.n_words += 1;
        if self.begin.len() < 6 {
            self.begin.push(word.to_owned());
        }
    }

    fn end(&mut self, most: usize) -> Option<Long> {
        let Self { line, n_words, begin } = std::mem::take(self);
        (n_words > most).then(|| Long { line, n_words, begin: begin.join(" ") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(n_words: usize) -> String {
        format!("{} end.", vec!["word"; n_words - 1].join(" "))
    }

    fn lengths(text: &str) -> Vec<(usize, usize)> {
        long_sentences(&numbered(text), MOST_WORDS).into_iter().map(|long| (long.line, long.n_words)).collect()
    }

    #[test]
    fn a_sentence_may_span_lines_and_ends_at_its_point() {
        assert_eq!(lengths(&format!("{} {}", of(25), of(25))), []);
        assert_eq!(lengths(&format!("Short.\n{}", of(26).replacen(' ', "\n", 3))), [(2, 26)]);
        assert_eq!(lengths(&of(26).replacen("word ", "word (e.g. ", 1)), [(1, 27)]);
    }

    #[test]
    fn paragraphs_items_and_cells_are_texts_of_their_own() {
        let half = vec!["word"; 20].join(" ");
        for between in ["\n\n", "\n- ", "\n# ", "\n1. ", "\n```text\nx\n```\n"] {
            assert_eq!(lengths(&format!("{half}{between}{half}")), [], "{between:?}");
        }
        assert_eq!(lengths(&format!("| {half} | {half} |\n| {half} `a | b` {half} | x |")), [(2, 41)]);
        assert_eq!(lengths(&format!("{half}\n{half}")), [(1, 40)]);
    }

    #[test]
    fn code_and_addresses_of_links_are_no_words() {
        assert_eq!(lengths(&format!("```\n{}\n```\n", of(50))), []);
        assert_eq!(words("a `b c d` [e f](g h) - k"), ["a", "`b c d`", "[e", "f](g h)", "k"]);
        assert!(ends_sentence("`a.b`.") && ends_sentence("(end.)") && !ends_sentence("`a.b`") && !ends_sentence(".."));
    }

    #[test]
    fn comments_count_that_begin_a_line() {
        let found = |text: &str| {
            let long = long_sentences(&comments(text), MOST_WORDS);
            long.into_iter().map(|long| long.line).collect::<Vec<_>>()
        };
        let long = of(30);
        let text =
            format!("//! {long}\n// {long}\nfn a() {{\n    /// {}\n    /// {}\n}}\n", &long[..100], &long[101..]);
        assert_eq!(found(&text), [1, 2, 4]);
        let half = vec!["word"; 15].join(" ");
        assert_eq!(found(&format!("// {half}\n// {half}\n")), [1]);
        let apart = format!("/// {half}\n// {half}\nlet a = 1; // {long}\n// {half}\n");
        assert!(found(&apart).is_empty());
    }

    #[test]
    fn the_rule_holds_for_sources_and_documents_and_not_for_logs() {
        let with_rule =
            ["crates/a/src/b/c.rs", "crates/a/tests/b.rs", "crates/a/README.md", "book/src/x.md", "README.md"];
        for one in with_rule.into_iter().chain(["CHANGELOG.md"]) {
            assert!(has_rule(one), "{one}");
        }
        for other in ["benches/LOG.md", "crates/a/tests/b.toml"] {
            assert!(!has_rule(other), "{other}");
        }
        let long_in = |path: &str, text: String| !check(&[File { path: path.to_owned(), text }]).is_empty();
        assert!(long_in("book/src/x.md", of(26)) && !long_in("book/src/x.md", of(25)));
        assert!(long_in("xtask/src/a.rs", format!("// {}", of(26))));
        assert!(!long_in("xtask/src/a.rs", format!("// {}", of(25))));
        assert!(long_in("README.md", of(36)) && !long_in("README.md", of(35)));
    }

    #[test]
    fn words_without_a_subject_are_refused_where_the_folder_is_clean() {
        let found = |path: &str, text: &str| check(&[File { path: path.to_owned(), text: text.to_owned() }]);
        let text = "fn a() {\n    // Nobody waits; what is told.\n}\n/// Whoever calls.\nfn of_nobody_known() {}\nlet gone = 1;\n";
        let path = "crates/oxisycl-compiler/src/a.rs";
        let expected =
            |line: usize, word: &str| format!("{path}:{line}: \"{word}\": name what acts, and say what it does");
        assert_eq!(found(path, text), [expected(2, "nobody"), expected(4, "whoever")]);
        assert_eq!(found("benches/a.rs", text), [""; 0]);
        assert_eq!(found(WITH_WORDS, text), [""; 0]);
        assert_eq!(found("book/src/a.md", "The queue lets go.\n").len(), 1);
    }

    #[test]
    fn public_documentation_has_no_numbers_of_requirements() {
        let found = |path: &str, text: &str| check(&[File { path: path.to_owned(), text: text.to_owned() }]).len();
        let text = "/// The contract (S-F2).\n//! Memory, S-R13\n";
        assert_eq!(found("crates/a/src/b.rs", text), 2);
        assert_eq!(found("crates/a/src/tests/b.rs", text) + found("crates/a/tests/b.rs", text), 0);
        assert_eq!(found("crates/a/src/b.rs", "// S-R13\n/// Of S-shape, US-R1 and S-r1.\n"), 0);
    }
}
