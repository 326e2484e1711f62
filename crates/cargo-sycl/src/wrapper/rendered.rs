//! Diagnostics as text, in the form in which rustc prints its own.

use std::fmt::Write;

use super::diagnostic::{Diagnostic, Span};

/// Colours of a terminal, as rustc chooses them.
#[derive(Clone, Copy)]
enum Style {
    Error,
    Bold,
    Frame,
}

/// A diagnostic in lines, with an empty line at the end.
pub(super) fn rendered(diagnostic: &Diagnostic, is_coloured: bool) -> String {
    let Diagnostic { level, code, message, spans, children } = diagnostic;
    let paint = |style: Style, text: &str| match (is_coloured, style) {
        (false, _) => text.to_owned(),
        (true, Style::Error) => format!("\x1b[1m\x1b[91m{text}\x1b[0m"),
        (true, Style::Bold) => format!("\x1b[1m{text}\x1b[0m"),
        (true, Style::Frame) => format!("\x1b[1m\x1b[94m{text}\x1b[0m"),
    };
    let code = code.map(|code| format!("[{code}]")).unwrap_or_default();
    let mut text = paint(Style::Error, &format!("{level}{code}"));
    text.push_str(&paint(Style::Bold, &format!(": {message}")));
    text.push('\n');
    let width = spans.iter().map(|span| span.marked.line.to_string().len()).max().unwrap_or_default();
    let bar = paint(Style::Frame, &format!("{:width$} |", ""));
    let mut is_first = true;
    for file in files(spans) {
        let of_file = |span: &&Span| span.marked.file == file;
        let mut spans: Vec<&Span> = spans.iter().filter(of_file).collect();
        let first = spans.iter().find(|span| span.is_primary).unwrap_or(&spans[0]);
        let (arrow, place) = (if is_first { "-->" } else { ":::" }, &first.marked);
        if !is_first {
            let _ = writeln!(text, "{bar}");
        }
        is_first = false;
        let arrow = paint(Style::Frame, &format!("{:width$}{arrow}", ""));
        let _ = writeln!(text, "{arrow} {file}:{}:{}", place.line, place.columns.start + 1);
        spans.retain(|span| span.marked.text.is_some());
        spans.sort_by_key(|span| (span.marked.line, span.marked.columns.start));
        if !spans.is_empty() {
            let _ = writeln!(text, "{bar}");
        }
        let mut last = None;
        for on_line in spans.chunk_by(|a, b| a.marked.line == b.marked.line) {
            let line = on_line[0].marked.line;
            // Lines between are left out, as far as that makes it shorter.
            if last.is_some_and(|last: u32| line > last + 1) {
                text.push_str(&paint(Style::Frame, "..."));
                text.push('\n');
            }
            last = Some(line);
            let number = paint(Style::Frame, &format!("{line:width$} |"));
            let source = on_line[0].marked.text.as_deref().unwrap_or_default().replace('\t', "    ");
            let _ = writeln!(text, "{number} {}", source.trim_end());
            for row in rows(on_line) {
                let row: String = row
                    .into_iter()
                    .map(|(part, is_primary)| match part.trim().is_empty() {
                        true => part,
                        false => paint(if is_primary { Style::Error } else { Style::Frame }, &part),
                    })
                    .collect();
                let _ = writeln!(text, "{bar} {row}");
            }
        }
    }
    if !spans.is_empty() && !children.is_empty() {
        let _ = writeln!(text, "{bar}");
    }
    for (level, message) in children {
        let (equals, level) = (paint(Style::Frame, &format!("{:width$} =", "")), paint(Style::Bold, level));
        let _ = writeln!(text, "{equals} {level}: {message}");
    }
    text.push('\n');
    text
}

/// The files of spans, that of the primary one first.
fn files(spans: &[Span]) -> Vec<&str> {
    let mut files: Vec<&str> = Vec::new();
    for span in spans.iter().filter(|span| span.is_primary).chain(spans) {
        if !files.contains(&span.marked.file.as_str()) {
            files.push(&span.marked.file);
        }
    }
    files
}

/// The rows below a line: the marks with the last label, and the labels of the others below. Each part is one of a primary span, or not.
fn rows(spans: &[&Span]) -> Vec<Vec<(String, bool)>> {
    let before = |span: &Span| {
        let text = span.marked.text.as_deref().unwrap_or_default();
        let width = |letter: char| if letter == '\t' { 4 } else { 1 };
        text.chars().take(span.marked.columns.start).map(width).sum::<usize>()
    };
    let label = |span: &Span| span.label.clone().unwrap_or_default();
    let mut marks = Vec::new();
    let mut end = 0;
    for (idx, span) in spans.iter().enumerate() {
        let start = before(span).max(end);
        let length = span.marked.columns.len().max(1);
        marks.push((" ".repeat(start - end), span.is_primary));
        marks.push((if span.is_primary { "^" } else { "-" }.repeat(length), span.is_primary));
        end = start + length;
        if idx + 1 == spans.len() && span.label.is_some() {
            marks.push((format!(" {}", label(span)), span.is_primary));
        }
    }
    let mut rows = vec![marks];
    let others: Vec<&&Span> = spans[..spans.len() - 1].iter().filter(|span| span.label.is_some()).collect();
    for n_left in (1..=others.len()).rev() {
        let with = |last: &dyn Fn(&Span) -> String| {
            let mut row = Vec::new();
            let mut end = 0;
            for (idx, span) in others[..n_left].iter().enumerate() {
                let start = before(span);
                row.push((" ".repeat(start.saturating_sub(end)), false));
                row.push((if idx + 1 == n_left { last(span) } else { "|".to_owned() }, span.is_primary));
                end = start + 1;
            }
            row
        };
        rows.push(with(&|_| "|".to_owned()));
        rows.push(with(&label));
    }
    rows
}

/// A diagnostic in one line.
pub(super) fn short(diagnostic: &Diagnostic) -> String {
    let place = diagnostic.spans.iter().find(|span| span.is_primary).map(|span| &span.marked);
    let place = place.map(|marked| format!("{}:{}:{}: ", marked.file, marked.line, marked.columns.start + 1));
    let code = diagnostic.code.map(|code| format!("[{code}]")).unwrap_or_default();
    format!("{}{}{code}: {}\n", place.unwrap_or_default(), diagnostic.level, diagnostic.message)
}

#[cfg(test)]
mod tests {
    use super::super::source::Marked;
    use super::*;

    fn span(file: &str, line: u32, text: &str, marked: &str, label: &str, is_primary: bool) -> Span {
        let start = text.find(marked).unwrap();
        let columns = text[..start].chars().count()..text[..start + marked.len()].chars().count();
        let marked = Marked { file: file.to_owned(), line, columns, bytes: 0..0, text: Some(text.to_owned()) };
        Span { marked, is_primary, label: Some(label.to_owned()) }
    }

    fn diagnostic(spans: Vec<Span>) -> Diagnostic {
        let children = vec![("help", "do something else".to_owned()), ("note", "it is so".to_owned())];
        let message = "the kernel captures `name`".to_owned();
        Diagnostic { level: "error", code: Some("oxisycl::host_capture"), message, spans, children }
    }

    #[track_caller]
    fn is_rendered(spans: Vec<Span>, expected: &str) {
        let diagnostic = diagnostic(spans);
        assert_eq!(
            rendered(&diagnostic, false),
            format!("error[oxisycl::host_capture]: the kernel captures `name`\n{expected}")
        );
        // Colours change no letter.
        let coloured = rendered(&diagnostic, true);
        let mut plain = coloured.clone();
        for code in ["\x1b[0m", "\x1b[1m", "\x1b[91m", "\x1b[94m"] {
            plain = plain.replace(code, "");
        }
        assert_eq!(plain, rendered(&diagnostic, false));
        assert!(coloured.contains("\x1b[91m"), "{coloured}");
    }

    #[test]
    fn spans_of_a_file_are_shown_in_their_lines() {
        let launch =
            span("src/main.rs", 10, "    cg.parallel_for(64, move |item| ..", "parallel_for", "launched here", false);
        let variable = span("src/main.rs", 7, "    let name = \"hello\";", "name", "`&str`", true);
        is_rendered(
            vec![variable, launch],
            "  --> src/main.rs:7:9
   |
 7 |     let name = \"hello\";
   |         ^^^^ `&str`
...
10 |     cg.parallel_for(64, move |item| ..
   |        ------------ launched here
   |
   = help: do something else
   = note: it is so

",
        );
    }

    #[test]
    fn several_spans_of_a_line_have_their_labels_below_each_other() {
        let text = "let größe = 1; let b = 2; launch(c)";
        let spans = vec![
            span("a.rs", 1, text, "größe", "first", false),
            span("a.rs", 1, text, "b", "second", true),
            span("a.rs", 1, text, "launch", "third", false),
        ];
        is_rendered(
            spans,
            " --> a.rs:1:20
  |
1 | let größe = 1; let b = 2; launch(c)
  |     -----          ^      ------ third
  |     |              |
  |     |              second
  |     |
  |     first
  |
  = help: do something else
  = note: it is so

",
        );
    }

    #[test]
    fn other_files_come_after_the_first_and_tabs_are_four_spaces() {
        let spans = vec![
            span("b.rs", 2, "\tlaunch(x)", "launch", "launched here", false),
            span("a.rs", 3, "\tlet x = 1;", "x", "`&u8`", true),
        ];
        is_rendered(
            spans,
            " --> a.rs:3:6
  |
3 |     let x = 1;
  |         ^ `&u8`
  |
 ::: b.rs:2:2
  |
2 |     launch(x)
  |     ------ launched here
  |
  = help: do something else
  = note: it is so

",
        );
    }

    #[test]
    fn a_file_that_cannot_be_read_is_named_alone() {
        let mut unread = span("/gone/a.rs", 3, "x", "x", "`&u8`", true);
        unread.marked.text = None;
        let found = rendered(&diagnostic(vec![unread.clone()]), false);
        assert!(found.contains("\n --> /gone/a.rs:3:1\n  |\n  = help: do something else\n"), "{found}");
        assert_eq!(
            short(&diagnostic(vec![unread])),
            "/gone/a.rs:3:1: error[oxisycl::host_capture]: the kernel captures `name`\n"
        );
        assert!(!rendered(&diagnostic(Vec::new()), false).contains('|'));
    }
}
