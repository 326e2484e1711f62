//! The error type of the public interface: a SYCL error code, a message, and what caused it.

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;

use oxisycl_backend::{BackendError, CommandFailure, FailureKind, Operation};
use oxisycl_types::ErrorCode;

/// What went wrong, by SYCL's categories (SYCL 2020 section 4.13). Cheap to clone.
#[derive(Clone)]
pub struct Error(Arc<Inner>);

struct Inner {
    code: ErrorCode,
    message: String,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

/// `std::result::Result` with [`Error`].
pub type Result<T = (), E = Error> = std::result::Result<T, E>;

impl Error {
    /// An error without a cause. `message` is lower case without a full stop and names object, expectation and finding.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self(Arc::new(Inner { code, message: message.into(), source: None }))
    }

    /// An error with a cause.
    pub fn with_source(
        code: ErrorCode,
        message: impl Into<String>,
        source: impl Into<Box<dyn StdError + Send + Sync>>,
    ) -> Self {
        Self(Arc::new(Inner { code, message: message.into(), source: Some(source.into()) }))
    }

    /// Shorthand for an error with code [`ErrorCode::Invalid`].
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::Invalid, message)
    }

    /// SYCL's category of the error.
    pub fn code(&self) -> ErrorCode {
        self.0.code
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl fmt::Debug for Error {
    /// Code, message and all causes on one line, since this is what `main` prints for an `Err`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} error: {}", self.0.code, self.0.message)?;
        let mut source = self.source();
        while let Some(cause) = source {
            write!(f, ": caused by: {cause}")?;
            source = cause.source();
        }
        Ok(())
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source.as_deref().map(|source| source as &(dyn StdError + 'static))
    }
}

fn backend_code(error: &BackendError) -> ErrorCode {
    match error {
        BackendError::OutOfMemory { .. } | BackendError::InjectedFault { operation: Operation::Allocate, .. } => {
            ErrorCode::MemoryAllocation
        }
        BackendError::UnsupportedUsm { .. } | BackendError::Unsupported { .. } => ErrorCode::FeatureNotSupported,
        BackendError::Handle { .. } => ErrorCode::Invalid,
        _ => ErrorCode::Runtime,
    }
}

impl From<BackendError> for Error {
    fn from(error: BackendError) -> Self {
        // The text is all there is: as a source it would only say the same again.
        Self::new(backend_code(&error), error.to_string())
    }
}

impl From<&CommandFailure> for Error {
    fn from(failure: &CommandFailure) -> Self {
        let code = match failure.root().kind() {
            FailureKind::Device(error) => backend_code(error),
            FailureKind::Refused { code, .. } => *code,
            _ => ErrorCode::Kernel,
        };
        match failure.kind() {
            FailureKind::Dependency(cause) => Self::with_source(code, failure.to_string(), Error::from(cause)),
            _ => Self::new(code, failure.to_string()),
        }
    }
}
