//! What derives read: a type and the options on it. Does not judge the type.

use proc_macro2::TokenStream;
use syn::DeriveInput;

use crate::options::Options;

/// A type as the user wrote it.
pub(crate) struct Derived {
    pub(crate) item: DeriveInput,
    pub(crate) options: Options,
}

pub(crate) fn parse(tokens: TokenStream) -> syn::Result<Derived> {
    let item: DeriveInput = syn::parse2(tokens)?;
    let options = Options::of(&item.attrs)?;
    Ok(Derived { item, options })
}
