//! The implementations for a type that says itself how it is taken apart.

use proc_macro2::TokenStream;
use quote::quote;
use syn::parse_quote;

use super::Argument;

pub(super) fn expand(argument: &Argument) -> TokenStream {
    let Argument { ident, generics, facade, .. } = argument;
    let mut generics = generics.clone();
    generics.make_where_clause().predicates.push(parse_quote!(Self: #facade::argument::Decompose));
    let (parameters, arguments, bounds) = generics.split_for_impl();
    let mut with_host = generics.clone();
    with_host.params.push(parse_quote!(OxisyclHost: #facade::argument::LaunchHost));
    with_host.make_where_clause().predicates.push(parse_quote! {
        <Self as #facade::argument::Decompose>::Parts: #facade::argument::Deconstruct<OxisyclHost>
    });
    let (parameters_with_host, _, bounds_with_host) = with_host.split_for_impl();
    quote! {
        #[automatically_derived]
        impl #parameters #facade::argument::KernelArg for #ident #arguments #bounds {
            type Sent = #facade::argument::Rebuilt<Self>;
        }
        #[automatically_derived]
        impl #parameters_with_host #facade::argument::Deconstruct<OxisyclHost> for #ident #arguments #bounds_with_host {
            #[inline]
            unsafe fn deconstruct(
                self,
                host: &mut OxisyclHost,
            ) -> ::core::result::Result<#facade::argument::Rebuilt<Self>, OxisyclHost::Error> {
                // SAFETY: by the contract of this function.
                unsafe { #facade::argument::Rebuilt::deconstruct(self, host) }
            }
        }
    }
}
