//! Reads a function and the options of the attribute on it. Does not judge the function.

use proc_macro2::TokenStream;
use syn::parse::Parser;
use syn::{ItemFn, Path, parse_quote};

use crate::options::name;

/// A function as the user wrote it, with the options of the attribute.
pub(super) struct Input {
    pub(super) function: ItemFn,
    /// The crate that the expansion takes types from.
    pub(super) facade: Path,
}

pub(super) fn parse(options: TokenStream, function: TokenStream) -> syn::Result<Input> {
    let mut facade: Option<Path> = None;
    let read = syn::meta::parser(|option| {
        if !option.path.is_ident("crate") {
            return Err(option.error(format!("attribute kernel: expected crate = path, found {}", name(&option))));
        }
        match facade.replace(option.value()?.call(Path::parse_mod_style)?) {
            None => Ok(()),
            Some(_) => Err(option.error("attribute kernel: expected crate once, found it again")),
        }
    });
    read.parse2(options)?;
    let facade = facade.unwrap_or_else(|| parse_quote!(::oxisycl));
    Ok(Input { function: syn::parse2(function)?, facade })
}

#[cfg(test)]
mod tests {
    use super::*;
    use quote::{ToTokens, quote};

    fn facade(options: TokenStream) -> syn::Result<String> {
        let input = parse(options, quote! { fn a(item: Item<1>) {} })?;
        Ok(input.facade.into_token_stream().to_string())
    }

    #[test]
    fn the_facade_is_the_default_crate() {
        assert_eq!(facade(quote!()).unwrap(), ":: oxisycl");
        assert_eq!(facade(quote!(crate = crate::sycl)).unwrap(), "crate :: sycl");
    }

    #[test]
    fn other_options_are_errors() {
        let message = |options| facade(options).unwrap_err().to_string();
        assert_eq!(message(quote!(inline)), "attribute kernel: expected crate = path, found inline");
        assert_eq!(message(quote!(crate = a, crate = b)), "attribute kernel: expected crate once, found it again");
    }

    #[test]
    fn only_functions_are_kernels() {
        assert!(parse(quote!(), quote! { struct A; }).is_err());
    }
}
