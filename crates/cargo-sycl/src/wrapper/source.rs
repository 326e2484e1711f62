//! Places in the user's sources, as messages need them: a line, and what is marked in it.
//!
//! Lines and columns come from debug information and from the program, and the source may have changed since or be elsewhere. So nothing
//! here fails: a place that cannot be read has no text.

use std::fs;
use std::ops::Range;

use crate::compile::captures::Spot;

/// A part of a line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Marked {
    pub(super) file: String,
    /// The line, from 1.
    pub(super) line: u32,
    /// The marked characters of the line, from 0.
    pub(super) columns: Range<usize>,
    /// The marked bytes of the file.
    pub(super) bytes: Range<usize>,
    /// The line; `None` if the file cannot be read or is shorter.
    pub(super) text: Option<String>,
}

impl Marked {
    /// The identifier that begins at a place whose column counts bytes. `None` if there is none.
    pub(super) fn identifier(spot: &Spot) -> Option<Self> {
        let line = Line::read(spot)?;
        let start = (spot.column as usize).checked_sub(1)?;
        let length = identifier_length(line.text.get(start..)?);
        (length > 0).then(|| line.marked(spot, start..start + length))
    }

    /// The identifier that begins at a place whose column counts characters, or else the character there.
    pub(super) fn token(spot: &Spot) -> Self {
        let Some(line) = Line::read(spot) else { return Self::unread(spot) };
        let n_before = (spot.column as usize).saturating_sub(1);
        let start = line.text.char_indices().nth(n_before).map_or(line.text.len(), |(start, _)| start);
        let rest = &line.text[start..];
        let first = rest.chars().next().map_or(0, char::len_utf8);
        let end = start + identifier_length(rest).max(first);
        line.marked(spot, start..end)
    }

    /// The whole line, without the spaces around it.
    pub(super) fn whole_line(spot: &Spot) -> Self {
        let Some(line) = Line::read(spot) else { return Self::unread(spot) };
        let end = line.text.trim_end().len();
        let start = (line.text.len() - line.text.trim_start().len()).min(end);
        line.marked(spot, start..end)
    }

    fn unread(spot: &Spot) -> Self {
        let start = (spot.column as usize).saturating_sub(1);
        Self { file: spot.file.clone(), line: spot.line, columns: start..start, bytes: 0..0, text: None }
    }

    /// The marked text.
    pub(super) fn marked_text(&self) -> Option<String> {
        let text = self.text.as_ref()?;
        Some(text.chars().skip(self.columns.start).take(self.columns.len()).collect())
    }
}

/// A line of a file.
struct Line {
    text: String,
    /// Where it begins in the file.
    start: usize,
}

impl Line {
    fn read(spot: &Spot) -> Option<Self> {
        let source = fs::read_to_string(&spot.file).ok()?;
        let n_before = (spot.line as usize).checked_sub(1)?;
        // The mark at the beginning of a file is no part of its first line.
        let begin = if source.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
        let mut start = begin;
        let lines = source[begin..].split_inclusive('\n');
        for (idx, line) in lines.enumerate() {
            if idx == n_before {
                return Some(Self { text: line.trim_end_matches(['\r', '\n']).to_owned(), start });
            }
            start += line.len();
        }
        None
    }

    /// A part of the line, whose bytes are the range.
    fn marked(self, spot: &Spot, range: Range<usize>) -> Marked {
        let before = self.text[..range.start].chars().count();
        let columns = before..before + self.text[range.clone()].chars().count();
        let bytes = self.start + range.start..self.start + range.end;
        Marked { file: spot.file.clone(), line: spot.line, columns, bytes, text: Some(self.text) }
    }
}

/// The length in bytes of the identifier that a text begins with; 0 if it begins with none.
fn identifier_length(text: &str) -> usize {
    let raw = if text.starts_with("r#") { 2 } else { 0 };
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
    let name = text[raw..].find(|letter| !is_part(letter)).unwrap_or(text.len() - raw);
    let begins = text[raw..].starts_with(|letter: char| is_part(letter) && !letter.is_numeric());
    if begins { raw + name } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::tests::Scratch;

    /// A file with this text, and places in it.
    fn with_source(name: &str, source: &[u8], test: impl Fn(&dyn Fn(u32, u32) -> Spot)) {
        let scratch = Scratch::new(&format!("source-{name}"));
        let file = scratch.path().join("main.rs");
        fs::write(&file, source).unwrap();
        let file = file.to_str().unwrap().to_owned();
        test(&|line, column| Spot { file: file.clone(), line, column });
    }

    #[test]
    fn what_is_marked_is_known_in_characters_and_in_bytes() {
        let source = "fn f() {}\r\n\tlet größe = 1;\n  let r#type = größe;";
        with_source("known", source.as_bytes(), |spot| {
            for (line, column, text, columns) in [
                (1, 1, "fn", 0..2),
                (2, 6, "größe", 5..10),
                // Bytes before the identifier are counted, not characters.
                (3, 7, "r#type", 6..12),
                (3, 16, "größe", 15..20),
            ] {
                let marked = Marked::identifier(&spot(line, column)).unwrap();
                assert_eq!((marked.marked_text().as_deref(), &marked.columns), (Some(text), &columns));
                assert_eq!(&source[marked.bytes], text);
            }
            assert_eq!(Marked::token(&spot(2, 12)).marked_text().as_deref(), Some("="), "a character is marked alone");
            let line = Marked::whole_line(&spot(3, 1));
            assert_eq!(line.marked_text().as_deref(), Some("let r#type = größe;"));
        });
        // The first line does not begin with the mark.
        with_source("mark", "\u{feff}let a;".as_bytes(), |spot| {
            let marked = Marked::identifier(&spot(1, 5)).unwrap();
            assert_eq!((marked.marked_text().as_deref(), marked.bytes), (Some("a"), 7..8));
        });
    }

    #[test]
    fn places_that_are_not_in_the_file_have_no_text() {
        with_source("not", b"ab\n\n 1x", |spot| {
            for (line, column) in [(0, 0), (0, 1), (1, 0), (1, 3), (1, 4), (2, 1), (3, 2), (4, 1), (u32::MAX, u32::MAX)]
            {
                assert_eq!(Marked::identifier(&spot(line, column)), None, "{line}:{column}");
                for marked in [Marked::token(&spot(line, column)), Marked::whole_line(&spot(line, column))] {
                    assert!(marked.columns.start <= marked.columns.end, "{line}:{column}");
                }
            }
            assert_eq!(Marked::token(&spot(9, 4)).text, None);
            assert_eq!(Marked::token(&Spot { file: "/none".to_owned(), line: 1, column: 5 }).columns, 4..4);
        });
        with_source("bytes", b"let \xff = 1;", |spot| assert_eq!(Marked::identifier(&spot(1, 1)), None));
        // A column within a letter.
        with_source("letter", "größe".as_bytes(), |spot| assert_eq!(Marked::identifier(&spot(1, 4)), None));
    }
}
