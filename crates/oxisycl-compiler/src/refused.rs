//! Why a target cannot run a kernel. The kernel is then reported with the reason, and the build goes on.

use crate::llvm::Value;

/// A construct that a target cannot run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Refused {
    /// For the user.
    pub(crate) reason: String,
    /// The symbol of the function that holds the construct, if it is known.
    pub(crate) function: Option<String>,
}

impl Refused {
    pub(crate) fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), function: None }
    }

    /// Adds where the construct is, unless that is known more closely.
    pub(crate) fn within(mut self, function: Value<'_>) -> Self {
        self.function.get_or_insert_with(|| function.name().to_owned());
        self
    }
}
