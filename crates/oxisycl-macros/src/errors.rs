//! Everything that is wrong with what a macro is about, so that the user sees all of it at once.

use proc_macro2::Span;
use syn::Error;

/// Collects errors.
#[derive(Default)]
pub(crate) struct Errors(Option<Error>);

impl Errors {
    pub(crate) fn push(&mut self, span: Span, message: String) {
        let error = Error::new(span, message);
        match &mut self.0 {
            None => self.0 = Some(error),
            Some(errors) => errors.combine(error),
        }
    }

    /// The value if nothing is wrong.
    pub(crate) fn or<T>(self, value: T) -> syn::Result<T> {
        match self.0 {
            None => Ok(value),
            Some(errors) => Err(errors),
        }
    }
}
