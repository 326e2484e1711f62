//! The options in `#[oxisycl(..)]` attributes. A type has those of all derives on it, so that each derive reads them all.

use proc_macro2::Ident;
use syn::ext::IdentExt;
use syn::meta::ParseNestedMeta;
use syn::{Attribute, Path, parse_quote};

/// The options of all attributes.
pub(crate) struct Options {
    /// The crate that expansions take the traits from.
    pub(crate) facade: Path,
    /// Whether the type is no argument of kernels by being device copyable.
    pub(crate) is_element_only: bool,
    /// What the kernel gets.
    pub(crate) device: Device,
}

/// What the kernel gets of an argument.
#[derive(PartialEq, Debug)]
pub(crate) enum Device {
    /// A type with a name that is made of that of the type.
    Derived,
    /// A type of this name.
    Named(Ident),
    /// The type itself.
    Own,
    /// What the type says by `Decompose`.
    ByHand,
}

/// Options as far as they have been read.
#[derive(Default)]
struct Read {
    facade: Option<Path>,
    element_only: Option<()>,
    device: Option<Device>,
}

impl Options {
    pub(crate) fn of(attributes: &[Attribute]) -> syn::Result<Self> {
        let mut read = Read::default();
        for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("oxisycl")) {
            attribute.parse_nested_meta(|option| read.add(&option))?;
        }
        Ok(Self {
            facade: read.facade.unwrap_or_else(|| parse_quote!(::oxisycl)),
            is_element_only: read.element_only.is_some(),
            device: read.device.unwrap_or(Device::Derived),
        })
    }
}

impl Read {
    fn add(&mut self, option: &ParseNestedMeta<'_>) -> syn::Result<()> {
        let name = name(option);
        let is_first = match &*name {
            "crate" => {
                let path = option.value()?.call(Path::parse_mod_style)?;
                self.facade.replace(path).is_none()
            }
            "element_only" => self.element_only.replace(()).is_none(),
            "by_hand" => self.device.replace(Device::ByHand).is_none(),
            "device" => {
                let name = option.value()?.call(Ident::parse_any)?;
                let device = if name == "Self" { Device::Own } else { Device::Named(name) };
                self.device.replace(device).is_none()
            }
            _ => {
                return Err(option.error(format!(
                    "attribute oxisycl: expected crate = path, element_only, device = Name, device = Self or by_hand, found {name}"
                )));
            }
        };
        if is_first {
            return Ok(());
        }
        let option_s = if let "device" | "by_hand" = &*name { "device or by_hand" } else { &name };
        Err(option.error(format!("attribute oxisycl: expected {option_s} once, found it again")))
    }
}

/// The option's path as text, without the spaces that printed tokens have.
pub(crate) fn name(option: &ParseNestedMeta<'_>) -> String {
    let segments: Vec<String> = option.path.segments.iter().map(|segment| segment.ident.to_string()).collect();
    segments.join("::")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proc_macro2::TokenStream;
    use quote::{ToTokens, format_ident, quote};

    fn options(tokens: TokenStream) -> syn::Result<Options> {
        let item: syn::DeriveInput = syn::parse2(quote! { #tokens struct A(u8); }).unwrap();
        Options::of(&item.attrs)
    }

    fn facade(tokens: TokenStream) -> String {
        options(tokens).unwrap().facade.into_token_stream().to_string()
    }

    fn device(tokens: TokenStream) -> Device {
        options(tokens).unwrap().device
    }

    fn message(tokens: TokenStream) -> String {
        options(tokens).err().unwrap().to_string()
    }

    #[test]
    fn the_facade_is_the_default_crate() {
        assert_eq!(facade(quote!()), ":: oxisycl");
        assert_eq!(facade(quote! { #[oxisycl(element_only)] }), ":: oxisycl");
    }

    #[test]
    fn another_crate_is_named_by_a_path() {
        assert_eq!(facade(quote! { #[oxisycl(crate = ::oxisycl_device)] }), ":: oxisycl_device");
        assert_eq!(facade(quote! { #[oxisycl(crate = crate::sycl)] }), "crate :: sycl");
        assert_eq!(facade(quote! { #[oxisycl(crate = crate,)] }), "crate");
    }

    #[test]
    fn options_say_what_the_kernel_gets() {
        assert_eq!(device(quote! { #[oxisycl(crate = ::a)] }), Device::Derived);
        assert_eq!(device(quote! { #[oxisycl(device = B)] }), Device::Named(format_ident!("B")));
        assert_eq!(device(quote! { #[oxisycl(device = Self, element_only)] }), Device::Own);
        assert_eq!(device(quote! { #[oxisycl(by_hand)] #[oxisycl(crate = ::a)] }), Device::ByHand);
    }

    #[test]
    fn attributes_of_others_are_left_alone() {
        assert_eq!(facade(quote! { #[serde(rename = "b")] #[doc = "oxisycl"] }), ":: oxisycl");
    }

    #[test]
    fn unknown_options_are_named() {
        let expected =
            "attribute oxisycl: expected crate = path, element_only, device = Name, device = Self or by_hand, found";
        assert_eq!(message(quote! { #[oxisycl(krate = ::a)] }), format!("{expected} krate"));
        assert_eq!(message(quote! { #[oxisycl(a::b)] }), format!("{expected} a::b"));
    }

    #[test]
    fn each_option_is_said_once() {
        let twice = |option| format!("attribute oxisycl: expected {option} once, found it again");
        assert_eq!(message(quote! { #[oxisycl(crate = ::a, crate = ::b)] }), twice("crate"));
        assert_eq!(message(quote! { #[oxisycl(crate = ::a)] #[oxisycl(crate = ::b)] }), twice("crate"));
        assert_eq!(message(quote! { #[oxisycl(element_only, element_only)] }), twice("element_only"));
        assert_eq!(message(quote! { #[oxisycl(device = B, device = C)] }), twice("device or by_hand"));
        assert_eq!(message(quote! { #[oxisycl(device = Self, by_hand)] }), twice("device or by_hand"));
    }

    #[test]
    fn malformed_options_are_errors() {
        for attribute in [
            quote! { #[oxisycl] },
            quote! { #[oxisycl = "a"] },
            quote! { #[oxisycl(crate)] },
            quote! { #[oxisycl(crate =)] },
            quote! { #[oxisycl(crate = "a")] },
            quote! { #[oxisycl(crate = a<u8>)] },
            quote! { #[oxisycl(device)] },
            quote! { #[oxisycl(device =)] },
            quote! { #[oxisycl(device = "B")] },
            quote! { #[oxisycl(device = a::B)] },
            quote! { #[oxisycl(by_hand = B)] },
        ] {
            assert!(options(attribute).is_err());
        }
    }
}
