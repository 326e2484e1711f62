//! Writes the function that takes arguments, and the type that has the kernel's code.

use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Attribute, Expr, GenericParam, Type};

use super::model::Kernel;
use super::parse::Stated;
use crate::tokens::{located_at, made_static};

pub(super) fn expand(kernel: &Kernel) -> TokenStream {
    let (call, code) = (call(kernel), code(kernel));
    quote!(#call #code)
}

/// Attributes that are about each of the items. All others are about the code, but for comments.
fn is_shared(attribute: &Attribute) -> bool {
    ["cfg", "cfg_attr", "allow", "warn", "deny", "forbid"].iter().any(|name| attribute.path().is_ident(name))
}

/// The function that takes arguments.
fn call(kernel: &Kernel) -> TokenStream {
    let Kernel { function, facade, token, parameters, lifetimes, .. } = kernel;
    let (ident, vis) = (&function.sig.ident, &function.vis);
    let is_docs = |attribute: &&Attribute| attribute.path().is_ident("doc") || is_shared(attribute);
    let attributes = function.attrs.iter().filter(is_docs);
    let (declared, passed, predicates) = generics(kernel);
    let names: Vec<&Ident> = parameters.iter().map(|parameter| &parameter.name).collect();
    let any: Vec<Option<Ident>> = parameters
        .iter()
        .enumerate()
        .map(|(index, parameter)| (!parameter.is_plain).then(|| format_ident!("Argument{index}")))
        .collect();
    let types = parameters.iter().zip(&any).map(|(parameter, any)| match any {
        Some(any) => any.to_token_stream(),
        None => parameter.of.to_token_stream(),
    });
    let types: Vec<TokenStream> = types.collect();
    let any = || any.iter().flatten();
    let declared = declared.into_iter().chain(any().map(ToTokens::to_token_stream));
    let of_lifetimes = of_lifetimes(lifetimes);
    let bounds = parameters.iter().filter(|parameter| !parameter.is_plain).zip(any()).map(|(parameter, argument)| {
        let (of, span) = (&parameter.of, parameter.of.span());
        let facade = located_at(facade, span);
        quote_spanned!(span=> #argument: #facade::argument::PassedTo<#of_lifetimes fn(#of)>)
    });
    let form = {
        let facade = located_at(facade, token.span());
        // Without the parentheses the lifetimes would be those of the bound.
        quote_spanned!(token.span()=> (#of_lifetimes fn(#token)): #facade::argument::FirstParameter)
    };
    let (closure, name) = (closure_type(kernel), ident.unraw().to_string());
    let (stated, dimensions) = stated(kernel);
    quote! {
        #(#attributes)*
        #[allow(trivial_bounds, clippy::multiple_bound_locations, clippy::too_many_arguments, clippy::type_complexity)]
        #vis fn #ident<#(#declared),*>(
            #(#names: #types),*
        ) -> #facade::argument::Call<(#(#types,)*), #closure #stated>
        where
            #(#predicates,)*
            #form,
            #(#bounds,)*
        {
            #dimensions
            #facade::argument::Call::new(#name, (#(#names,)*), #ident::closure::<#(#passed),*>())
        }
    }
}

/// The type of what the options state, as a further argument of the call's type. Beside it, the check that a group has the dimensions of the
/// range. Nothing if they state nothing, so that calls of most kernels have the same type as before.
fn stated(kernel: &Kernel) -> (Option<TokenStream>, Option<TokenStream>) {
    let Kernel { facade, stated: Stated { aspects, group, sub_group }, token, lifetimes, .. } = kernel;
    if aspects.is_empty() && group.is_empty() && sub_group.is_empty() {
        return (None, None);
    }
    let aspects = aspects.iter().map(|aspect| {
        let facade = located_at(facade, aspect.span());
        quote_spanned!(aspect.span()=> #facade::Aspect::#aspect)
    });
    let aspects = quote!({ #facade::argument::stated_aspects(&[#(#aspects),*]) });
    let size = |values: &[Expr], of: TokenStream| match values.first() {
        Some(first) => {
            let (facade, of) = (located_at(facade, first.span()), located_at(&of, first.span()));
            quote_spanned!(first.span()=> { #facade::argument::#of })
        }
        None => quote!(0),
    };
    let extents = size(group, quote!(stated_group([#(#group),*])));
    let sub_group_size = size(sub_group, quote!(stated_sub_group(#(#sub_group)*)));
    let dimensions = group.first().map(|first| {
        let (of_lifetimes, n) = (of_lifetimes(lifetimes), group.len());
        let facade = located_at(facade, first.span());
        // As a bound it would only be looked at where the function is called.
        quote_spanned!(first.span()=> #facade::argument::has_dimensions::<#of_lifetimes fn(#token), #n>();)
    });
    (Some(quote!(, #facade::argument::Stated<#aspects, #extents, #sub_group_size>)), dimensions)
}

/// The type that has the kernel's code. With braces or as an enum, a type can have the name of a function.
fn code(kernel: &Kernel) -> TokenStream {
    let Kernel { function, parameters, .. } = kernel;
    let (ident, vis) = (&function.sig.ident, &function.vis);
    let (shared, own): (Vec<&Attribute>, Vec<&Attribute>) = function
        .attrs
        .iter()
        .filter(|attribute| !attribute.path().is_ident("doc"))
        .partition(|attribute| is_shared(attribute));
    let cfg: Vec<&&Attribute> = shared.iter().filter(|attribute| attribute.path().is_ident("cfg")).collect();
    let (declared, passed, predicates) = generics(kernel);
    let closure = closure_type(kernel);
    let names: Vec<Ident> = (0..parameters.len()).map(|index| format_ident!("argument_{index}")).collect();
    let mut body = function.sig.clone();
    body.ident = format_ident!("body", span = ident.span());
    let block = &function.block;
    let text = format!(" The code of the kernel [`{ident}`](fn@{ident}), which other kernels call as `{ident}::body`.");
    quote! {
        #(#cfg)*
        #[doc = #text]
        #[allow(dead_code, non_camel_case_types)]
        #vis enum #ident {}

        #(#cfg)*
        #[allow(dead_code)]
        impl #ident {
            /// What the kernel does.
            #(#shared)*
            #(#own)*
            #[inline]
            #vis #body #block

            #[allow(clippy::multiple_bound_locations, clippy::type_complexity)]
            #[inline(always)]
            fn closure<#(#declared),*>() -> #closure
            where
                #(#predicates,)*
            {
                |token, (#(#names,)*)| Self::body::<#(#passed),*>(token, #(#names),*)
            }
        }
    }
}

/// The closure's type. The lifetimes that the user left out are those of the call, as in the parameters of the function.
fn closure_type(kernel: &Kernel) -> TokenStream {
    let types: Vec<&Type> = kernel.parameters.iter().map(|parameter| &parameter.of).collect();
    let (of_lifetimes, token) = (of_lifetimes(&kernel.lifetimes), &kernel.token);
    quote! {
        impl #of_lifetimes Fn(#token, (#(#types,)*))
            + ::core::marker::Copy + ::core::marker::Send + ::core::marker::Sync + 'static
    }
}

/// `for<..>` with the lifetimes that the user named.
fn of_lifetimes(lifetimes: &std::collections::BTreeSet<Ident>) -> Option<TokenStream> {
    let names = lifetimes.iter().map(|name| syn::Lifetime { apostrophe: name.span(), ident: name.clone() });
    (!lifetimes.is_empty()).then(|| quote!(for<#(#names),*>))
}

/// The types and constants among the generic parameters: how they are declared, how they are passed, and what they have to satisfy.
fn generics(kernel: &Kernel) -> (Vec<TokenStream>, Vec<TokenStream>, Vec<TokenStream>) {
    let generics = &kernel.function.sig.generics;
    let (mut declared, mut passed) = (Vec::new(), Vec::new());
    for parameter in &generics.params {
        match parameter {
            GenericParam::Lifetime(_) => {}
            GenericParam::Type(parameter) => {
                let ident = &parameter.ident;
                let bounds = parameter.bounds.iter().map(|bound| made_static(bound, &kernel.lifetimes));
                declared.push(quote!(#ident: #(#bounds +)* 'static));
                passed.push(ident.to_token_stream());
            }
            GenericParam::Const(parameter) => {
                let (ident, of) = (&parameter.ident, &parameter.ty);
                declared.push(quote!(const #ident: #of));
                passed.push(ident.to_token_stream());
            }
        }
    }
    let clause = generics.where_clause.iter().flat_map(|clause| &clause.predicates);
    let predicates = clause.map(|predicate| made_static(predicate, &kernel.lifetimes)).collect();
    (declared, passed, predicates)
}

#[cfg(test)]
mod tests {
    use super::super::attribute;
    use super::*;

    fn expanded(function: TokenStream) -> String {
        attribute(quote!(), function).unwrap().to_string()
    }

    #[track_caller]
    fn assert_has(expanded: &str, part: TokenStream) {
        let [expanded, part] = [expanded, &part.to_string()].map(|text| text.replace(' ', ""));
        assert!(expanded.contains(&part), "{part}\nis not in\n{expanded}");
    }

    #[test]
    fn the_closure_does_not_know_the_arguments() {
        let expanded = expanded(quote! {
            pub(crate) fn a<T: Copy, const N: usize>(item: Item<1>, x: [T; N], n: u8, y: &[T]) where T: Into<u8> { b() }
        });
        for part in [
            quote! {
                pub(crate) fn a<T: Copy + 'static, const N: usize, Argument0, Argument2>(x: Argument0, n: u8, y: Argument2)
                    -> ::oxisycl::argument::Call<(Argument0, u8, Argument2,),
                        impl Fn(Item<1>, ([T; N], u8, &[T],))
                            + ::core::marker::Copy + ::core::marker::Send + ::core::marker::Sync + 'static>
            },
            quote! { Argument0: ::oxisycl::argument::PassedTo<fn([T; N])>, },
            quote! { Argument2: ::oxisycl::argument::PassedTo<fn(&[T])>, },
            quote! { ::oxisycl::argument::Call::new("a", (x, n, y,), a::closure::<T, N>()) },
            quote! { pub(crate) enum a {} },
            quote! {
                pub(crate) fn body<T: Copy, const N: usize>(item: Item<1>, x: [T; N], n: u8, y: &[T]) where T: Into<u8> { b() }
            },
            quote! { fn closure<T: Copy + 'static, const N: usize>() -> impl Fn(Item<1>, ([T; N], u8, &[T],)) },
        ] {
            assert_has(&expanded, part);
        }
    }

    #[test]
    fn what_is_stated_is_in_the_type_of_the_call() {
        let options = quote!(device_has(Fp64, Atomic64), work_group_size(16, N), crate = b);
        let expanded = attribute(options, quote! { fn a(item: Item<2>, x: u8) {} }).unwrap().to_string();
        for part in [
            quote! {
                , b::argument::Stated<
                    { b::argument::stated_aspects(&[b::Aspect::Fp64, b::Aspect::Atomic64]) },
                    { b::argument::stated_group([16, N]) },
                    0
                >>
            },
            quote! { b::argument::has_dimensions::<fn(Item<2>), 2usize>(); },
        ] {
            assert_has(&expanded, part);
        }
        let expanded = attribute(quote!(sub_group_size(32)), quote! { fn a(item: Item<2>) {} }).unwrap().to_string();
        assert_has(&expanded, quote! { 0, { ::oxisycl::argument::stated_sub_group(32) }>> });
    }

    #[test]
    fn lifetimes_are_those_of_a_call() {
        let expanded = expanded(quote! { fn a<'k, T: B<'k>>(item: Item<'k, 1>, x: C<'k, T>) {} });
        for part in [
            quote! { fn a<T: B<'static> + 'static, Argument0>(x: Argument0) },
            quote! { (for<'k> fn(Item<'k, 1>)): ::oxisycl::argument::FirstParameter },
            quote! { Argument0: ::oxisycl::argument::PassedTo<for<'k> fn(C<'k, T>)> },
            quote! { impl for<'k> Fn(Item<'k, 1>, (C<'k, T>,)) },
            quote! { fn body<'k, T: B<'k>>(item: Item<'k, 1>, x: C<'k, T>) {} },
        ] {
            assert_has(&expanded, part);
        }
    }

    #[test]
    fn attributes_go_where_they_belong() {
        let expanded = expanded(quote! { #[doc = "a"] #[cfg(b)] #[deny(c)] #[cold] fn d(_: Single) {} });
        assert!(expanded.starts_with(&quote! { #[doc = "a"] #[cfg(b)] #[deny(c)] }.to_string()), "{expanded}");
        assert_has(&expanded, quote! { #[cfg(b)] #[deny(c)] #[cold] #[inline] fn body(_: Single) {} });
        assert_has(&expanded, quote! { #[cfg(b)] #[allow(dead_code)] impl d });
    }
}
