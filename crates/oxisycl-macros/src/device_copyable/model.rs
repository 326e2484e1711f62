//! Decides which types can be elements, as far as their tokens tell, and keeps what the expansion needs.
//!
//! Invariant: an [`Element`] is a struct or an enum with at least one field or two variants, without lifetime parameters.

use proc_macro2::Ident;
use syn::spanned::Spanned;
use syn::{Data, DataEnum, Fields, Generics, Member, Path, Type};

use crate::derived::Derived;
use crate::errors::Errors;
use crate::options::Options;

/// A type that may implement the trait if its fields do.
pub(super) struct Element {
    /// The type's name.
    pub(super) ident: Ident,
    /// The type's generic parameters, as the user wrote them; only types and constants.
    pub(super) generics: Generics,
    /// The types of all fields of all variants, in order.
    pub(super) fields: Vec<Type>,
    /// A struct is one shape without a name of its own; an enum has one for each variant.
    pub(super) shapes: Vec<Shape>,
    /// The crate that the expansion takes the trait from.
    pub(super) facade: Path,
    /// Whether the type is no argument of kernels by itself.
    pub(super) is_element_only: bool,
}

/// The fields of a struct or of a variant.
pub(super) struct Shape {
    pub(super) variant: Option<Ident>,
    pub(super) members: Vec<Member>,
}

pub(super) fn check(input: Derived) -> syn::Result<Element> {
    let Derived { item, options: Options { facade, is_element_only, .. } } = input;
    let ident = item.ident;
    let mut errors = Errors::default();
    for parameter in item.generics.lifetimes() {
        let lifetime = &parameter.lifetime;
        errors.push(
            lifetime.span(),
            format!("element type {ident}: expected a type that is 'static, found lifetime parameter {lifetime}"),
        );
    }
    let shapes = shapes(&item.data);
    let fields = match item.data {
        Data::Struct(data) => {
            let fields = types(data.fields);
            if fields.is_empty() {
                errors.push(
                    ident.span(),
                    format!("element type {ident}: expected a struct with fields, found one of size zero"),
                );
            }
            fields
        }
        Data::Enum(data) => check_enum(&ident, data, &mut errors),
        Data::Union(data) => {
            errors.push(
                data.union_token.span(),
                format!("element type {ident}: expected a struct or an enum, found a union"),
            );
            Vec::new()
        }
    };
    errors.or(Element { ident, generics: item.generics, fields, shapes, facade, is_element_only })
}

fn check_enum(ident: &Ident, data: DataEnum, errors: &mut Errors) -> Vec<Type> {
    let n_variants = data.variants.len();
    let fields: Vec<Type> = data.variants.into_iter().flat_map(|variant| types(variant.fields)).collect();
    match n_variants {
        0 => errors.push(
            ident.span(),
            format!("element type {ident}: expected an enum with variants, found one without, which has no values"),
        ),
        1 if fields.is_empty() => errors.push(
            ident.span(),
            format!("element type {ident}: expected an enum with fields or several variants, found one of size zero"),
        ),
        _ => {}
    }
    fields
}

fn shapes(data: &Data) -> Vec<Shape> {
    let shape = |variant: Option<&Ident>, fields: &Fields| Shape {
        variant: variant.cloned(),
        members: fields.members().collect(),
    };
    match data {
        Data::Struct(data) => vec![shape(None, &data.fields)],
        Data::Enum(data) => data.variants.iter().map(|variant| shape(Some(&variant.ident), &variant.fields)).collect(),
        Data::Union(_) => Vec::new(),
    }
}

fn types(fields: Fields) -> Vec<Type> {
    fields.into_iter().map(|field| field.ty).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::derived::parse;
    use proc_macro2::TokenStream;
    use quote::{ToTokens, quote};

    fn fields(tokens: TokenStream) -> Vec<String> {
        let element = check(parse(tokens).unwrap()).unwrap();
        element.fields.iter().map(|field| field.to_token_stream().to_string()).collect()
    }

    fn messages(tokens: TokenStream) -> Vec<String> {
        let error = check(parse(tokens).unwrap()).err().unwrap();
        error.into_iter().map(|error| error.to_string()).collect()
    }

    #[test]
    fn fields_of_structs_are_collected_in_order() {
        assert_eq!(
            fields(quote!(
                struct A {
                    a: f32,
                    b: [u8; 4],
                }
            )),
            ["f32", "[u8 ; 4]"]
        );
        assert_eq!(
            fields(quote!(
                struct A(u16, pub i64);
            )),
            ["u16", "i64"]
        );
    }

    #[test]
    fn fields_of_all_variants_are_collected() {
        assert_eq!(
            fields(quote!(
                enum A {
                    B,
                    C(u8, u16),
                    D { e: f64 },
                }
            )),
            ["u8", "u16", "f64"]
        );
        assert_eq!(
            fields(quote!(
                enum A {
                    B(u8),
                }
            )),
            ["u8"]
        );
        assert!(
            fields(quote!(
                enum A {
                    B,
                    C,
                }
            ))
            .is_empty()
        );
    }

    #[test]
    fn structs_without_fields_are_refused() {
        for tokens in [
            quote!(
                struct Empty;
            ),
            quote!(
                struct Empty();
            ),
            quote!(
                struct Empty {}
            ),
        ] {
            assert_eq!(messages(tokens), ["element type Empty: expected a struct with fields, found one of size zero"]);
        }
    }

    #[test]
    fn enums_without_data_are_refused() {
        assert_eq!(
            messages(quote!(
                enum Never {}
            )),
            ["element type Never: expected an enum with variants, found one without, which has no values"]
        );
        assert_eq!(
            messages(quote!(
                enum Only {
                    One,
                }
            )),
            ["element type Only: expected an enum with fields or several variants, found one of size zero"]
        );
    }

    #[test]
    fn unions_are_refused() {
        assert_eq!(
            messages(quote!(union Bits { a: u32, b: f32 })),
            ["element type Bits: expected a struct or an enum, found a union"]
        );
    }

    #[test]
    fn lifetime_parameters_are_refused_by_name() {
        assert_eq!(
            messages(quote!(
                struct Borrowed<'a, T>(&'a T);
            )),
            ["element type Borrowed: expected a type that is 'static, found lifetime parameter 'a"]
        );
    }

    #[test]
    fn everything_that_is_wrong_is_reported() {
        assert_eq!(
            messages(quote!(
                struct Borrowed<'a, 'b>;
            )),
            [
                "element type Borrowed: expected a type that is 'static, found lifetime parameter 'a",
                "element type Borrowed: expected a type that is 'static, found lifetime parameter 'b",
                "element type Borrowed: expected a struct with fields, found one of size zero",
            ]
        );
    }
}
