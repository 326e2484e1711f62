//! `#[derive(DeviceCopyable)]`: from the tokens of a type to an implementation of the trait.

mod expand;
mod model;

use proc_macro2::TokenStream;

use crate::derived;

/// The tokens to add after the type, or everything that is wrong with it.
pub(crate) fn derive(input: TokenStream) -> syn::Result<TokenStream> {
    let input = derived::parse(input)?;
    let element = model::check(input)?;
    Ok(expand::expand(&element))
}
