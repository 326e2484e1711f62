//! Messages about a crate, in the form of rustc's own. So cargo counts them and repeats them when nothing changed, and editors understand
//! them.

use serde_json::{Value, json};

use super::invocation::Invocation;
use super::rendered::{rendered, short};
use super::source::Marked;

/// A message about places in a crate's sources.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Diagnostic {
    pub(super) level: &'static str,
    pub(super) code: Option<&'static str>,
    pub(super) message: String,
    pub(super) spans: Vec<Span>,
    /// Levels and texts of what belongs to it.
    pub(super) children: Vec<(&'static str, String)>,
}

/// A place with what is to say of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Span {
    pub(super) marked: Marked,
    /// Whether this is where the mistake is.
    pub(super) is_primary: bool,
    pub(super) label: Option<String>,
}

impl Diagnostic {
    /// A message without a place.
    fn plain(level: &'static str, message: &str) -> Self {
        Self { level, code: None, message: message.to_owned(), spans: Vec::new(), children: Vec::new() }
    }
}

/// Writes messages to standard error.
pub(crate) struct Reporter {
    form: Form,
    is_coloured: bool,
    is_short: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Text,
    Json,
}

impl Reporter {
    /// One that writes what the command line asks rustc for.
    pub(crate) fn new(invocation: &Invocation) -> Self {
        let json: Vec<&str> = invocation.values("--json").flat_map(|parts| parts.split(',')).collect();
        let format = invocation.values("--error-format").next_back();
        Self {
            form: if invocation.wants_json() { Form::Json } else { Form::Text },
            is_coloured: json.contains(&"diagnostic-rendered-ansi")
                || invocation.values("--color").next_back() == Some("always"),
            is_short: json.contains(&"diagnostic-short") || format == Some("short"),
        }
    }

    /// A warning about the crate.
    pub(crate) fn warning(&self, message: &str) {
        self.plain("warning", message);
    }

    /// Something about the crate that is no warning: cargo does not count it, and no setting makes an error of it.
    pub(crate) fn note(&self, message: &str) {
        self.plain("note", message);
    }

    /// Errors, and how many there are. Nothing is written if there are none.
    pub(super) fn errors(&self, errors: &[Diagnostic]) {
        errors.iter().for_each(|error| eprint!("{}", self.text(error)));
        let message = match errors.len() {
            0 => return,
            1 => "aborting due to 1 previous error".to_owned(),
            n => format!("aborting due to {n} previous errors"),
        };
        eprint!("{}", self.text(&Diagnostic::plain("error", &message)));
    }

    fn plain(&self, level: &'static str, message: &str) {
        eprint!("{}", self.text(&Diagnostic::plain(level, message)));
    }

    fn text(&self, diagnostic: &Diagnostic) -> String {
        // Colours only where there are places: cargo shows all others of this tool without.
        let is_coloured = self.is_coloured && !diagnostic.spans.is_empty();
        let rendered = if self.is_short { short(diagnostic) } else { rendered(diagnostic, is_coloured) };
        if self.form == Form::Text {
            return rendered;
        }
        let Diagnostic { level, code, message, spans, children } = diagnostic;
        let child = |(level, message): &(&str, String)| json!({ "message": message, "code": null, "level": level, "spans": [], "children": [], "rendered": null });
        let value = json!({
            "$message_type": "diagnostic",
            "message": message,
            "code": code.map(|code| json!({ "code": code, "explanation": null })),
            "level": level,
            "spans": spans.iter().map(span).collect::<Vec<_>>(),
            "children": children.iter().map(child).collect::<Vec<_>>(),
            "rendered": rendered,
        });
        format!("{value}\n")
    }
}

/// A span as rustc describes it, with columns from 1 of which the last one is not marked.
fn span(span: &Span) -> Value {
    let Span { marked: Marked { file, line, columns, bytes, text }, is_primary, label } = span;
    let (start, end) = (columns.start + 1, columns.end + 1);
    let text = text.iter().map(|text| json!({ "text": text, "highlight_start": start, "highlight_end": end }));
    json!({
        "file_name": file,
        "byte_start": bytes.start,
        "byte_end": bytes.end,
        "line_start": line,
        "line_end": line,
        "column_start": start,
        "column_end": end,
        "is_primary": is_primary,
        "text": text.collect::<Vec<_>>(),
        "label": label,
        "suggested_replacement": null,
        "suggestion_applicability": null,
        "expansion": null,
    })
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;

    fn reporter(line: &str) -> Reporter {
        let arguments: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        Reporter::new(&Invocation::parse(&arguments).unwrap())
    }

    #[test]
    fn a_message_has_one_line_for_cargo_and_is_plain_for_people() {
        let message = Diagnostic::plain("warning", "kernel \"k\" cannot run on sm_70:\nwhy");
        let line = reporter("--error-format=json --json=artifacts").text(&message);
        assert_eq!(line.lines().count(), 1);
        let value: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(value["level"], "warning");
        assert_eq!(value["rendered"], "warning: kernel \"k\" cannot run on sm_70:\nwhy\n\n");
        assert_eq!(reporter("").text(&Diagnostic::plain("warning", "text")), "warning: text\n\n");
    }

    #[test]
    fn places_are_described_as_rustc_describes_them() {
        let text = Some("let größe = 1;".to_owned());
        let marked = Marked { file: "src/main.rs".to_owned(), line: 3, columns: 4..9, bytes: 30..37, text };
        let spans = vec![Span { marked, is_primary: true, label: Some("`&u8`".to_owned()) }];
        let children = vec![("help", "capture the value".to_owned())];
        let (code, message) = (Some("oxisycl::host_capture"), "the kernel captures `größe`".to_owned());
        let error = Diagnostic { level: "error", code, message, spans, children };
        let value = |line| serde_json::from_str::<Value>(&reporter(line).text(&error)).unwrap();
        let plain = value("--error-format=json");
        let expected = json!({
            "file_name": "src/main.rs", "byte_start": 30, "byte_end": 37, "line_start": 3, "line_end": 3,
            "column_start": 5, "column_end": 10, "is_primary": true, "label": "`&u8`",
            "text": [{ "text": "let größe = 1;", "highlight_start": 5, "highlight_end": 10 }],
            "suggested_replacement": null, "suggestion_applicability": null, "expansion": null,
        });
        assert_eq!((&plain["spans"][0], &plain["code"]["code"]), (&expected, &json!("oxisycl::host_capture")));
        assert_eq!((&plain["children"][0]["level"], &plain["children"][0]["spans"]), (&json!("help"), &json!([])));
        assert_eq!(plain["rendered"], reporter("").text(&error));
        // What cargo asks for: colours for a terminal, and a line for `--message-format short`.
        let coloured = value("--error-format=json --json=diagnostic-rendered-ansi,artifacts");
        assert_eq!(coloured["rendered"], reporter("--color always").text(&error));
        assert!(coloured["rendered"].as_str().unwrap().contains("\x1b["));
        let short = "src/main.rs:3:5: error[oxisycl::host_capture]: the kernel captures `größe`\n";
        assert_eq!(value("--error-format=json --json=diagnostic-short")["rendered"], short);
        assert_eq!(reporter("--error-format=short").text(&error), short);
    }
}
