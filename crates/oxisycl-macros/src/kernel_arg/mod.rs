//! `#[derive(KernelArg)]`: from the tokens of a type to what crosses for it, what a kernel gets of it, and the traits.
//!
//! # Type parameters
//!
//! One that is the type of a field stands for an argument. So does one in the type of a field that is a tuple, an array or an option. What crosses has
//! what crosses for it in its place, and the device form what the kernel gets. Kernels so do not depend on what the host passes.
//!
//! All others are *kept*: `T` of `Vec<T>` is the same everywhere. They are `'static`, because what crosses is.
//!
//! # Lifetime parameters
//!
//! They are those of the host, and what crosses has none. The type of a field is named there with `'static` in their place. That
//! is a type of the same name, for which the same crosses: if not, the program does not compile.

mod expand;
mod forms;
mod model;
mod roles;

use proc_macro2::TokenStream;

use crate::derived;

/// The tokens to add after the type, or everything that is wrong with it.
pub(crate) fn derive(input: TokenStream) -> syn::Result<TokenStream> {
    let input = derived::parse(input)?;
    let argument = model::check(input)?;
    Ok(expand::expand(&argument))
}
