//! `#[kernel]`: from a function whose parameters are what kernels get to one that takes arguments, and gives a call of the kernel.
//!
//! Three items have the function's name between them. The function takes the arguments. A type without values is a place for the code, as its function
//! `body`, and for a function that makes the closure. What the function returns depends on the types of arguments, the closure does not: it is made by a
//! function that does not know them. Kernels are so the same for all arguments of which they get the same.

mod expand;
mod model;
mod parse;

use proc_macro2::TokenStream;

/// The items that take the place of the function, or everything that is wrong with it.
pub(crate) fn attribute(options: TokenStream, function: TokenStream) -> syn::Result<TokenStream> {
    let input = parse::parse(options, function)?;
    let kernel = model::check(input)?;
    Ok(expand::expand(&kernel))
}
