//! Decides which types can be arguments, as far as their tokens tell, and keeps what the expansion needs.
//!
//! Invariant: an [`Argument`] with parts is a struct or an enum. One that is taken apart by hand has no lifetime parameters.

use std::collections::BTreeSet;

use proc_macro2::Ident;
use quote::format_ident;
use syn::{Attribute, Data, Expr, Field, Fields, Generics, Path, Visibility};

use super::roles::Roles;
use crate::derived::Derived;
use crate::errors::Errors;
use crate::options::{Device, Options};

/// A type that may implement the traits if its fields do.
pub(super) struct Argument {
    /// The type's name.
    pub(super) ident: Ident,
    /// Who sees it.
    pub(super) vis: Visibility,
    /// The type's generic parameters, as the user wrote them.
    pub(super) generics: Generics,
    /// The crate that the expansion takes the traits from.
    pub(super) facade: Path,
    /// What it is taken apart into; none if it says so itself.
    pub(super) parts: Option<Parts>,
}

/// What a type consists of.
pub(super) struct Parts {
    /// A struct is one shape without a name of its own; an enum has one for each variant.
    pub(super) shapes: Vec<Shape>,
    pub(super) is_enum: bool,
    /// `repr` of an enum, which its discriminants may need.
    pub(super) repr: Vec<Attribute>,
    /// The name of the device form; none if it is the type itself.
    pub(super) device: Option<Ident>,
    /// The names of the lifetime parameters, without quotes.
    pub(super) lifetimes: BTreeSet<Ident>,
    pub(super) roles: Roles,
}

/// The fields of a struct or of a variant.
pub(super) struct Shape {
    pub(super) variant: Option<Ident>,
    pub(super) docs: Vec<Attribute>,
    pub(super) discriminant: Option<Expr>,
    pub(super) fields: Fields,
}

pub(super) fn check(input: Derived) -> syn::Result<Argument> {
    let Derived { item, options: Options { facade, device, .. } } = input;
    let (ident, vis, generics) = (item.ident, item.vis, item.generics);
    let mut errors = Errors::default();
    let device = match device {
        Device::ByHand => {
            for parameter in generics.lifetimes() {
                let lifetime = &parameter.lifetime;
                errors.push(
                    lifetime.span(),
                    format!(
                        "argument type {ident}: expected a type that is 'static, found lifetime parameter {lifetime}"
                    ),
                );
            }
            return errors.or(Argument { ident, vis, generics, facade, parts: None });
        }
        Device::Derived => Some(format_ident!("{ident}OnDevice")),
        Device::Named(name) => Some(name),
        Device::Own => None,
    };
    let is_enum = matches!(item.data, Data::Enum(_));
    let shapes = match item.data {
        Data::Struct(data) => {
            vec![Shape { variant: None, docs: Vec::new(), discriminant: None, fields: data.fields }]
        }
        Data::Enum(data) => data
            .variants
            .into_iter()
            .map(|variant| Shape {
                variant: Some(variant.ident),
                docs: docs(&variant.attrs),
                discriminant: variant.discriminant.map(|(_, value)| value),
                fields: variant.fields,
            })
            .collect(),
        Data::Union(data) => {
            errors.push(
                data.union_token.span,
                format!("argument type {ident}: expected a struct or an enum, found a union"),
            );
            Vec::new()
        }
    };
    let fields = || shapes.iter().flat_map(|shape| &shape.fields);
    for attribute in fields().flat_map(|field| &field.attrs).filter(|attribute| attribute.path().is_ident("oxisycl")) {
        errors.push(
            attribute.pound_token.span,
            format!("argument type {ident}: expected attribute oxisycl on the type, found it on a field"),
        );
    }
    let roles = Roles::of(&generics, fields().map(|field| &field.ty));
    let lifetimes = generics.lifetimes().map(|parameter| parameter.lifetime.ident.clone()).collect();
    let repr = item.attrs.into_iter().filter(|attribute| is_enum && attribute.path().is_ident("repr")).collect();
    let parts = Parts { shapes, is_enum, repr, device, lifetimes, roles };
    errors.or(Argument { ident, vis, generics, facade, parts: Some(parts) })
}

impl Parts {
    /// All fields, of all variants, in order.
    pub(super) fn fields(&self) -> impl Iterator<Item = &Field> {
        self.shapes.iter().flat_map(|shape| &shape.fields)
    }
}

/// The comments among the attributes.
pub(super) fn docs(attributes: &[Attribute]) -> Vec<Attribute> {
    attributes.iter().filter(|attribute| attribute.path().is_ident("doc")).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::derived::parse;
    use proc_macro2::TokenStream;
    use quote::quote;

    fn argument(tokens: TokenStream) -> Argument {
        check(parse(tokens).unwrap()).unwrap()
    }

    fn messages(tokens: TokenStream) -> Vec<String> {
        let error = check(parse(tokens).unwrap()).err().unwrap();
        error.into_iter().map(|error| error.to_string()).collect()
    }

    #[test]
    fn fields_of_all_variants_are_collected_in_order() {
        let parts = |tokens| argument(tokens).parts.unwrap();
        assert_eq!(parts(quote! { struct A; }).fields().count(), 0);
        assert_eq!(parts(quote! { struct A { a: u8, b: u16 } }).fields().count(), 2);
        let parts = parts(quote! { enum A { B, C(u8, u16), D { e: f64 } } });
        let sizes: Vec<usize> = parts.shapes.iter().map(|shape| shape.fields.len()).collect();
        assert_eq!(sizes, [0, 2, 1]);
    }

    #[test]
    fn the_device_form_has_a_name_or_is_the_type() {
        let device = |tokens| argument(tokens).parts.unwrap().device.map(|name| name.to_string());
        assert_eq!(device(quote! { struct A; }).unwrap(), "AOnDevice");
        assert_eq!(device(quote! { #[oxisycl(device = B)] struct A; }).unwrap(), "B");
        assert_eq!(device(quote! { #[oxisycl(device = Self)] struct A; }), None);
    }

    #[test]
    fn unions_are_refused() {
        let message = "argument type Bits: expected a struct or an enum, found a union";
        assert_eq!(messages(quote! { union Bits { a: u32, b: f32 } }), [message]);
    }

    #[test]
    fn what_is_taken_apart_by_hand_may_be_anything_without_lifetimes() {
        assert!(argument(quote! { #[oxisycl(by_hand)] union A { a: u32, b: f32 } }).parts.is_none());
        assert_eq!(
            messages(quote! { #[oxisycl(by_hand)] struct A<'a, 'b>(&'a u8, &'b u8); }),
            [
                "argument type A: expected a type that is 'static, found lifetime parameter 'a",
                "argument type A: expected a type that is 'static, found lifetime parameter 'b",
            ]
        );
    }

    #[test]
    fn fields_have_no_options() {
        assert_eq!(
            messages(quote! { struct A { #[oxisycl(device = Self)] a: u8, #[serde(skip)] b: u8 } }),
            ["argument type A: expected attribute oxisycl on the type, found it on a field"]
        );
    }
}
