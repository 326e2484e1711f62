//! The reason why a target cannot run a kernel. The kernel is then reported with the reason, and the build goes on.

use crate::llvm::{Attribute, Context, Value};

/// The attribute of functions that a pass left as they are because of a limit. LLVM ignores it. Its text has the value found and the limit.
const LIMIT: &str = "oxisycl-limit";

/// Sets the attribute on functions that exceed a limit of a pass, for the target that refuses them.
pub(crate) fn note_limit<'c>(context: &'c Context, functions: &[Value<'c>], limit: &str) {
    functions.iter().for_each(|function| {
        function.add_attribute(Attribute::FUNCTION, Attribute::text(context, LIMIT, limit));
    });
}

/// The limit that a function exceeds, from the attribute.
pub(crate) fn noted_limit(function: Value<'_>) -> Option<String> {
    function.text_attribute(Attribute::FUNCTION, LIMIT)
}

/// A construct that a target cannot run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Refused {
    /// The reason, for the user.
    pub(crate) reason: String,
    /// The symbol of the function that holds the construct, if it is known.
    pub(crate) function: Option<String>,
}

impl Refused {
    pub(crate) fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), function: None }
    }

    /// Adds the function with the construct, unless it is known already.
    pub(crate) fn within(mut self, function: Value<'_>) -> Self {
        self.function.get_or_insert_with(|| function.name().to_owned());
        self
    }
}
