//! Reads a type and the `#[oxisycl(..)]` attributes on it. Does not judge the type.

use proc_macro2::TokenStream;
use syn::meta::ParseNestedMeta;
use syn::{Attribute, DeriveInput, Path, parse_quote};

/// A type as the user wrote it, with the options of the derive.
pub(super) struct Input {
    /// The type.
    pub(super) item: DeriveInput,
    /// The crate that the expansion takes the trait from.
    pub(super) facade: Path,
    /// Whether the type is no argument of kernels by itself.
    pub(super) is_element_only: bool,
}

/// The options of all attributes.
#[derive(Default)]
struct Options {
    facade: Option<Path>,
    is_element_only: bool,
}

pub(super) fn parse(tokens: TokenStream) -> syn::Result<Input> {
    let item: DeriveInput = syn::parse2(tokens)?;
    let mut options = Options::default();
    for attribute in item.attrs.iter().filter(|attribute| attribute.path().is_ident("oxisycl")) {
        parse_attribute(attribute, &mut options)?;
    }
    let Options { facade, is_element_only } = options;
    let facade = facade.unwrap_or_else(|| parse_quote!(::oxisycl));
    Ok(Input { item, facade, is_element_only })
}

fn parse_attribute(attribute: &Attribute, options: &mut Options) -> syn::Result<()> {
    attribute.parse_nested_meta(|option| {
        if option.path.is_ident("element_only") {
            options.is_element_only = true;
            return Ok(());
        }
        if !option.path.is_ident("crate") {
            let found = name(&option);
            return Err(
                option.error(format!("attribute oxisycl: expected crate = path or element_only, found {found}"))
            );
        }
        let path = option.value()?.call(Path::parse_mod_style)?;
        match options.facade.replace(path) {
            None => Ok(()),
            Some(_) => Err(option.error("attribute oxisycl: expected crate once, found it again")),
        }
    })
}

/// The option's path as text, without the spaces that printed tokens have.
fn name(option: &ParseNestedMeta<'_>) -> String {
    let segments: Vec<String> = option.path.segments.iter().map(|segment| segment.ident.to_string()).collect();
    segments.join("::")
}

#[cfg(test)]
mod tests {
    use super::*;
    use quote::{ToTokens, quote};

    fn facade(tokens: TokenStream) -> String {
        parse(tokens).unwrap().facade.into_token_stream().to_string()
    }

    fn message(tokens: TokenStream) -> String {
        parse(tokens).err().unwrap().to_string()
    }

    #[test]
    fn the_facade_is_the_default_crate() {
        assert_eq!(
            facade(quote!(
                struct A(u8);
            )),
            ":: oxisycl"
        );
    }

    #[test]
    fn another_crate_is_named_by_a_path() {
        assert_eq!(
            facade(quote!(
                #[oxisycl(crate = ::oxisycl_device)]
                struct A(u8);
            )),
            ":: oxisycl_device"
        );
        assert_eq!(
            facade(quote!(
                #[oxisycl(crate = crate::sycl)]
                struct A(u8);
            )),
            "crate :: sycl"
        );
        assert_eq!(
            facade(quote!(
                #[oxisycl(crate = crate,)]
                struct A(u8);
            )),
            "crate"
        );
    }

    #[test]
    fn attributes_of_others_are_left_alone() {
        assert_eq!(
            facade(quote!(
                #[serde(rename = "b")]
                #[doc = "oxisycl"]
                struct A(u8);
            )),
            ":: oxisycl"
        );
    }

    #[test]
    fn unknown_options_are_named() {
        assert_eq!(
            message(quote!(
                #[oxisycl(krate = ::a)]
                struct A(u8);
            )),
            "attribute oxisycl: expected crate = path or element_only, found krate"
        );
        assert_eq!(
            message(quote!(
                #[oxisycl(a::b)]
                struct A(u8);
            )),
            "attribute oxisycl: expected crate = path or element_only, found a::b"
        );
    }

    #[test]
    fn the_crate_is_named_once() {
        assert_eq!(
            message(quote!(
                #[oxisycl(crate = ::a, crate = ::b)]
                struct A(u8);
            )),
            "attribute oxisycl: expected crate once, found it again"
        );
        assert_eq!(
            message(quote!(
                #[oxisycl(crate = ::a)]
                #[oxisycl(crate = ::b)]
                struct A(u8);
            )),
            "attribute oxisycl: expected crate once, found it again"
        );
    }

    #[test]
    fn malformed_options_are_errors() {
        for tokens in [
            quote!(
                #[oxisycl]
                struct A(u8);
            ),
            quote!(
                #[oxisycl = "a"]
                struct A(u8);
            ),
            quote!(
                #[oxisycl(crate)]
                struct A(u8);
            ),
            quote!(
                #[oxisycl(crate =)]
                struct A(u8);
            ),
            quote!(
                #[oxisycl(crate = "a")]
                struct A(u8);
            ),
            quote!(
                #[oxisycl(crate = a<u8>)]
                struct A(u8);
            ),
            quote!(
                fn not_a_type() {}
            ),
        ] {
            assert!(parse(tokens).is_err());
        }
    }
}
