//! Writes the implementation. Every bound and check carries the span of the field or type it is about.

use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Generics, Path, parse_quote};

use super::model::Element;
use crate::tokens::located_at;

pub(super) fn expand(element: &Element) -> TokenStream {
    let Element { ident, facade, .. } = element;
    let generics = bounded(element);
    let (parameters, arguments, bounds) = generics.split_for_impl();
    let (fields, assertion) = (fields_check(element, &generics), size_assertion(element));
    let argument = (!element.is_element_only).then(|| argument(element, &generics));
    quote! {
        // SAFETY: every field is device copyable by the bounds below, and the supertraits of the trait require the rest.
        #[automatically_derived]
        #[allow(trivial_bounds)]
        unsafe impl #parameters #facade::DeviceCopyable for #ident #arguments #bounds {}
        #fields
        #assertion
        #argument
    }
}

/// Makes the type an argument of kernels that crosses bit by bit.
fn argument(element: &Element, generics: &Generics) -> TokenStream {
    let Element { ident, facade, .. } = element;
    let (parameters, arguments, bounds) = generics.split_for_impl();
    let mut with_host = generics.clone();
    with_host.params.push(parse_quote!(OxisyclHost: #facade::argument::LaunchHost));
    let (parameters_with_host, ..) = with_host.split_for_impl();
    quote! {
        #[automatically_derived]
        #[allow(trivial_bounds)]
        impl #parameters #facade::argument::KernelArg for #ident #arguments #bounds {
            type Sent = #facade::argument::Bits<Self>;
        }
        #[automatically_derived]
        #[allow(trivial_bounds)]
        impl #parameters_with_host #facade::argument::Deconstruct<OxisyclHost> for #ident #arguments #bounds {
            #[inline(always)]
            unsafe fn deconstruct(
                self,
                _host: &mut OxisyclHost,
            ) -> ::core::result::Result<#facade::argument::Bits<Self>, OxisyclHost::Error> {
                ::core::result::Result::Ok(#facade::argument::Bits(self))
            }
        }
    }
}

/// Takes a value of the type apart, field by field. Attributes below the derive may change the type after this macro has seen it. A type
/// that then has other fields does not compile, and fields are checked as they are.
fn fields_check(element: &Element, generics: &Generics) -> TokenStream {
    let Element { ident, facade, shapes, .. } = element;
    let (parameters, arguments, bounds) = generics.split_for_impl();
    let arms = shapes.iter().map(|shape| {
        let variant = shape.variant.iter();
        let members = &shape.members;
        let names: Vec<_> = (0..members.len()).map(|index| format_ident!("field_{index}")).collect();
        // With braces the name is that of a type or of a variant, and never that of a function or a constant.
        quote!(#ident #(:: #variant)* { #(#members: #names),* } => { #(is_device_copyable(#names);)* })
    });
    quote! {
        const _: () = {
            #[allow(dead_code, trivial_bounds, clippy::all)]
            fn fields #parameters (value: #ident #arguments) #bounds {
                fn is_device_copyable<Field: #facade::DeviceCopyable>(_: Field) {}
                match value { #(#arms)* }
            }
        };
    }
}

/// The type's generics, where every type parameter and the type of every field is device copyable.
fn bounded(element: &Element) -> Generics {
    let facade: &Path = &element.facade;
    let mut generics = element.generics.clone();
    for parameter in generics.type_params_mut() {
        parameter.bounds.push(parse_quote!(#facade::DeviceCopyable));
    }
    if !element.fields.is_empty() {
        let predicates = &mut generics.make_where_clause().predicates;
        for field in &element.fields {
            let facade = located_at(facade, field.span());
            let bound = quote_spanned!(field.span()=> #field: #facade::DeviceCopyable);
            predicates.push(parse_quote!(#bound));
        }
    }
    generics
}

/// Refuses a type whose fields all have size zero. A generic type has no size yet; code that stores elements checks it.
fn size_assertion(element: &Element) -> TokenStream {
    if !element.generics.params.is_empty() {
        return TokenStream::new();
    }
    let ident = &element.ident;
    let message = format!("element type {ident}: expected a type with a size, found one of size zero");
    quote_spanned! {ident.span()=>
        const _: () = ::core::assert!(::core::mem::size_of::<#ident>() != 0, #message);
    }
}

#[cfg(test)]
mod tests {
    use super::super::derive;
    use super::*;

    /// The implementation without its assertion, as printed tokens.
    fn implementation(tokens: TokenStream) -> String {
        let expanded = derive(tokens).unwrap().to_string();
        expanded.split(" const _").next().unwrap().trim_end().to_owned()
    }

    fn expected(tokens: TokenStream) -> String {
        quote!(#[automatically_derived] #[allow(trivial_bounds)] #tokens).to_string()
    }

    #[test]
    fn fields_become_bounds() {
        assert_eq!(
            implementation(quote!(
                struct A {
                    a: f32,
                    b: [u8; 4],
                }
            )),
            expected(quote! {
                unsafe impl ::oxisycl::DeviceCopyable for A
                where f32: ::oxisycl::DeviceCopyable, [u8; 4]: ::oxisycl::DeviceCopyable {}
            })
        );
    }

    #[test]
    fn type_parameters_are_bound_and_keep_their_bounds() {
        assert_eq!(
            implementation(quote! {
                #[oxisycl(crate = ::oxisycl_device)]
                struct A<T: Clone = u8, const N: usize = 3>([T; N]) where T: Copy;
            }),
            expected(quote! {
                unsafe impl<T: Clone + ::oxisycl_device::DeviceCopyable, const N: usize> ::oxisycl_device::DeviceCopyable
                for A<T, N>
                where T: Copy, [T; N]: ::oxisycl_device::DeviceCopyable {}
            })
        );
    }

    #[test]
    fn enums_without_fields_need_no_bounds() {
        assert_eq!(
            implementation(quote!(
                enum A {
                    B,
                    C,
                }
            )),
            expected(quote!(
                unsafe impl ::oxisycl::DeviceCopyable for A {}
            ))
        );
    }

    #[test]
    fn fields_of_variants_become_bounds() {
        assert_eq!(
            implementation(quote!(
                enum A<T> {
                    B(T),
                    C { c: u8 },
                }
            )),
            expected(quote! {
                unsafe impl<T: ::oxisycl::DeviceCopyable> ::oxisycl::DeviceCopyable for A<T>
                where T: ::oxisycl::DeviceCopyable, u8: ::oxisycl::DeviceCopyable {}
            })
        );
    }

    #[test]
    fn the_size_is_asserted_where_it_is_known() {
        let has_assertion = |tokens| derive(tokens).unwrap().to_string().contains("size_of");
        assert!(has_assertion(quote!(
            struct A([u8; 0]);
        )));
        assert!(has_assertion(quote!(
            enum A {
                B,
                C,
            }
        )));
        assert!(!has_assertion(quote!(
            struct A<T>(T);
        )));
        assert!(!has_assertion(quote!(
            struct A<const N: usize>([u8; N]);
        )));
    }
}
