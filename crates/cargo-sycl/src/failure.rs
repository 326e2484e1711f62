use std::fmt;
use std::io;
use std::path::Path;

/// Why the tool gave up: one message for the user, which says what to do where there is something.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Failure {
    message: String,
}

pub(crate) type Result<T, E = Failure> = std::result::Result<T, E>;

impl Failure {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into() }
    }

    /// Something about a file or folder failed.
    pub(crate) fn file(path: &Path, error: io::Error) -> Self {
        Self::new(format!("{}: {error}", path.display()))
    }

    /// A program could not be started.
    pub(crate) fn start(program: &Path, error: io::Error) -> Self {
        Self::new(format!("{}: could not be started: {error}", program.display()))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<oxisycl_compiler::CompileError> for Failure {
    fn from(error: oxisycl_compiler::CompileError) -> Self {
        Self::new(error.to_string())
    }
}

impl From<lexopt::Error> for Failure {
    fn from(error: lexopt::Error) -> Self {
        Self::new(error.to_string())
    }
}
