//! What went wrong, in one line.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::Path;

/// A message for the user: lower case, one line, naming the object and the reason.
#[derive(Debug)]
pub(crate) struct Failure {
    message: String,
    exit_code: u8,
}

impl Failure {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: one_line(&message.into()), exit_code: 1 }
    }

    /// The command line is wrong.
    pub(crate) fn usage(message: impl fmt::Display) -> Self {
        Self { exit_code: 2, ..Self::new(format!("{message} (--help says more)")) }
    }

    /// An operation on a file failed.
    pub(crate) fn io(what: &str, path: &Path, error: &io::Error) -> Self {
        Self::with_path(what, path, &io_reason(error))
    }

    pub(crate) fn with_path(what: &str, path: &Path, reason: &str) -> Self {
        Self::new(format!("{what} \"{}\": {}", path.display(), lower_case(reason)))
    }

    /// Standard output cannot be written.
    pub(crate) fn output(error: &io::Error) -> Self {
        Self::new(format!("cannot write to standard output: {}", lower_case(&io_reason(error))))
    }

    pub(crate) fn exit_code(&self) -> u8 {
        self.exit_code
    }
}

impl From<oxisycl::Error> for Failure {
    fn from(error: oxisycl::Error) -> Self {
        let mut message = first_line(&error);
        let mut cause = error.source();
        while let Some(error) = cause {
            // Most messages name their cause themselves.
            let reason = first_line(error);
            if !message.contains(&reason) {
                message = format!("{message}: {reason}");
            }
            cause = error.source();
        }
        Self::new(message)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// Why an operation failed, in the words of this program where the system's are clumsy.
pub(crate) fn io_reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "there is no such file or folder".to_owned(),
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        io::ErrorKind::IsADirectory => "it is a folder".to_owned(),
        io::ErrorKind::NotADirectory => "a part of the path is not a folder".to_owned(),
        io::ErrorKind::AlreadyExists => "there is a file of that name".to_owned(),
        io::ErrorKind::UnexpectedEof => "the file ends too early".to_owned(),
        _ => error.to_string(),
    }
}

/// Some messages explain more below their first line.
fn first_line(error: &dyn Error) -> String {
    error.to_string().lines().next().unwrap_or_default().to_owned()
}

/// A message in one line, without a full stop.
pub(crate) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").trim_end_matches('.').to_owned()
}

fn lower_case(text: &str) -> String {
    let mut letters = text.chars();
    match letters.next() {
        // An abbreviation such as "PNG" stays.
        Some(first) if !letters.clone().next().is_some_and(char::is_uppercase) => {
            first.to_lowercase().chain(letters).collect()
        }
        _ => text.to_owned(),
    }
}
