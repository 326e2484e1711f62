//! Reads a function and the options of the attribute on it. Does not judge the function.

use proc_macro2::{Ident, TokenStream};
use syn::meta::ParseNestedMeta;
use syn::parse::{Parse, Parser};
use syn::punctuated::Punctuated;
use syn::{Expr, ItemFn, Path, Token, parenthesized, parse_quote};

use crate::options::name;

/// A function as the user wrote it, with the options of the attribute.
pub(super) struct Input {
    pub(super) function: ItemFn,
    /// The crate that the expansion takes types from.
    pub(super) facade: Path,
    pub(super) stated: Stated,
}

/// What the options state of devices, each with its values in the order in which they stand there. Empty for what they do not state.
#[derive(Default)]
pub(super) struct Stated {
    /// The names of aspects.
    pub(super) aspects: Vec<Ident>,
    /// The extents of a work-group.
    pub(super) group: Vec<Expr>,
    /// The size of a sub-group.
    pub(super) sub_group: Vec<Expr>,
}

pub(super) fn parse(options: TokenStream, function: TokenStream) -> syn::Result<Input> {
    let mut facade: Option<Path> = None;
    let mut stated = Stated::default();
    let read = syn::meta::parser(|option| {
        let is = |name| option.path.is_ident(name);
        if is("device_has") {
            return values("device_has", "aspects", &option, &mut stated.aspects);
        }
        if is("work_group_size") {
            return values("work_group_size", "extents", &option, &mut stated.group);
        }
        if is("sub_group_size") {
            return values("sub_group_size", "a size", &option, &mut stated.sub_group);
        }
        if !is("crate") {
            return Err(option.error(format!(
                "attribute kernel: expected crate = path, device_has(..), work_group_size(..) or sub_group_size(..), found {}",
                name(&option)
            )));
        }
        match facade.replace(option.value()?.call(Path::parse_mod_style)?) {
            None => Ok(()),
            Some(_) => Err(option.error("attribute kernel: expected crate once, found it again")),
        }
    });
    read.parse2(options)?;
    let facade = facade.unwrap_or_else(|| parse_quote!(::oxisycl));
    Ok(Input { function: syn::parse2(function)?, facade, stated })
}

/// Reads the values in the brackets behind an option, which stands there once and has some.
fn values<T: Parse>(option: &str, what: &str, meta: &ParseNestedMeta<'_>, read: &mut Vec<T>) -> syn::Result<()> {
    if !read.is_empty() {
        return Err(meta.error(format!("attribute kernel: expected {option} once, found it again")));
    }
    let content;
    parenthesized!(content in meta.input);
    read.extend(Punctuated::<T, Token![,]>::parse_terminated(&content)?);
    if read.is_empty() {
        return Err(meta.error(format!("attribute kernel: expected {what} in {option}(..), found none")));
    }
    Ok(())
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
        assert_eq!(
            message(quote!(inline)),
            "attribute kernel: expected crate = path, device_has(..), work_group_size(..) or sub_group_size(..), found inline"
        );
        assert_eq!(message(quote!(crate = a, crate = b)), "attribute kernel: expected crate once, found it again");
    }

    #[test]
    fn options_that_state_something_have_values() {
        let stated = |options| parse(options, quote! { fn a(item: Item<1>) {} }).unwrap().stated;
        let options = stated(quote!(sub_group_size(32), device_has(Fp64, Atomic64,), work_group_size(TILE, 2 * 8)));
        let names: Vec<String> = options.aspects.iter().map(Ident::to_string).collect();
        assert_eq!(names, ["Fp64", "Atomic64"]);
        let group: Vec<String> = options.group.iter().map(|extent| extent.to_token_stream().to_string()).collect();
        assert_eq!((group, options.sub_group.len()), (vec!["TILE".to_owned(), "2 * 8".to_owned()], 1));
        let message = |options| facade(options).unwrap_err().to_string();
        assert_eq!(
            message(quote!(device_has(Fp64), device_has(Fp16))),
            "attribute kernel: expected device_has once, found it again"
        );
        assert_eq!(
            message(quote!(work_group_size())),
            "attribute kernel: expected extents in work_group_size(..), found none"
        );
        assert!(facade(quote!(device_has = Fp64)).is_err() && facade(quote!(device_has(a::Fp64))).is_err());
    }

    #[test]
    fn only_functions_are_kernels() {
        assert!(parse(quote!(), quote! { struct A; }).is_err());
    }
}
