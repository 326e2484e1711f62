use serde_json::json;

/// Tells the user something in the form in which rustc would, so that cargo counts it, repeats it when nothing changed, and editors
/// understand it.
pub(crate) struct Reporter {
    json: bool,
}

impl Reporter {
    pub(crate) fn new(json: bool) -> Self {
        Self { json }
    }

    /// A warning about the crate.
    pub(crate) fn warning(&self, message: &str) {
        eprintln!("{}", self.line("warning", message));
    }

    /// Something about the crate that is no warning: cargo does not count it, and no setting makes an error of it.
    pub(crate) fn note(&self, message: &str) {
        eprintln!("{}", self.line("note", message));
    }

    fn line(&self, level: &str, message: &str) -> String {
        if !self.json {
            return format!("{level}: {message}\n");
        }
        json!({
            "$message_type": "diagnostic",
            "message": message,
            "code": null,
            "level": level,
            "spans": [],
            "children": [],
            "rendered": format!("{level}: {message}\n\n"),
        })
        .to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_has_one_line_for_cargo_and_is_plain_for_people() {
        let line = Reporter::new(true).line("warning", "kernel \"k\" cannot run on sm_70:\nwhy");
        assert_eq!(line.lines().count(), 1);
        let value: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!(value["level"], "warning");
        assert!(value["rendered"].as_str().unwrap().starts_with("warning: kernel \"k\""));
        assert_eq!(Reporter::new(false).line("warning", "text"), "warning: text\n");
    }
}
