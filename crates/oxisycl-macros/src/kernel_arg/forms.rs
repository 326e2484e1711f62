//! The types of fields, and the generic parameters, in each of the three types of an argument.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{GenericParam, Path, Type};

use super::model::{Argument, Parts};
use super::roles::{Structure, structure};
use crate::tokens::{located_at, made_static, mentioned, with_lifetime};

/// Where the type of a field is named.
#[derive(Clone, Copy)]
pub(super) enum Place {
    /// In what crosses, whose parameters are what crosses for arguments.
    Sent,
    /// For what crosses, where parameters are arguments.
    Host,
    /// In the device form, whose parameters are what kernels get.
    Device,
}

/// Generic parameters: how they are declared, how they are passed, and what they have to satisfy.
#[derive(Default)]
pub(super) struct Parameters {
    pub(super) declared: Vec<TokenStream>,
    pub(super) passed: Vec<TokenStream>,
    pub(super) predicates: Vec<TokenStream>,
}

/// What a field has in its place in what crosses, or in the device form.
pub(super) fn form(argument: &Argument, parts: &Parts, of: &Type, place: Place) -> TokenStream {
    // Not at the field: what is wrong there is reported for its bound.
    let facade = &argument.facade;
    let leaf = |of: TokenStream| match place {
        Place::Sent | Place::Host => quote!(#facade::argument::Sent<#of>),
        Place::Device => quote!(#facade::argument::Value<'k, #of>),
    };
    let within = |of| form(argument, parts, of, place);
    match structure(of, &parts.roles.arguments) {
        Structure::Parameter(ident) => match place {
            Place::Sent | Place::Device => ident.to_token_stream(),
            Place::Host => leaf(ident.to_token_stream()),
        },
        Structure::Tuple(fields) => {
            let fields = fields.into_iter().map(within);
            quote!((#(#fields,)*))
        }
        Structure::Array(element) => {
            let (element, length) = (within(element), length(of));
            quote!([#element; #length])
        }
        Structure::Option(value) => {
            let value = within(value);
            quote!(::core::option::Option<#value>)
        }
        Structure::Leaf => leaf(made_static(of, &parts.lifetimes)),
    }
}

/// The length of an array type.
fn length(of: &Type) -> TokenStream {
    match of {
        Type::Array(array) => array.len.to_token_stream(),
        Type::Group(group) => length(&group.elem),
        Type::Paren(paren) => length(&paren.elem),
        _ => TokenStream::new(),
    }
}

/// Whether the device form ends with the call of the kernel, as far as tokens tell.
pub(super) fn ends(parts: &Parts) -> bool {
    let mut leaves = Vec::new();
    parts.fields().for_each(|field| add_leaves(parts, &field.ty, &mut leaves));
    !leaves.is_empty()
}

/// The parameters of what crosses, or of the device form.
pub(super) fn parameters(argument: &Argument, parts: &Parts, place: Place) -> Parameters {
    let Argument { facade, generics, .. } = argument;
    let mut parameters = Parameters::default();
    let is_host = matches!(place, Place::Host);
    let fixed = |tokens: TokenStream| if is_host { tokens } else { made_static(tokens, &parts.lifetimes) };
    for parameter in &generics.params {
        let (declared, passed) = match parameter {
            GenericParam::Lifetime(_) if !is_host => continue,
            GenericParam::Lifetime(parameter) => {
                let (lifetime, bounds) = (&parameter.lifetime, &parameter.bounds);
                (quote!(#lifetime: #bounds), lifetime.to_token_stream())
            }
            GenericParam::Type(parameter) => {
                let ident = &parameter.ident;
                let bounds = parameter.bounds.iter().map(|bound| fixed(bound.to_token_stream()));
                let is_kept = !parts.roles.arguments.contains(ident);
                let part = parts.roles.parts.contains(ident).then(|| part_bound(facade, parts, ident)).into_iter();
                let declared = match place {
                    Place::Sent if !is_kept => quote!(#ident: #facade::argument::DeviceForm),
                    Place::Device if !is_kept => quote!(#ident),
                    _ => {
                        let kept = is_kept.then(|| quote!('static)).into_iter();
                        let bounds = bounds.chain(part).chain(kept);
                        quote!(#ident: #(#bounds)+*)
                    }
                };
                (declared, ident.to_token_stream())
            }
            GenericParam::Const(parameter) => {
                let (ident, of) = (&parameter.ident, &parameter.ty);
                (quote!(const #ident: #of), ident.to_token_stream())
            }
        };
        parameters.declared.push(declared);
        parameters.passed.push(passed);
    }
    let clause = generics.where_clause.iter().flat_map(|clause| &clause.predicates);
    let stated = clause.filter(|predicate| {
        let is_of_lifetimes = matches!(predicate, syn::WherePredicate::Lifetime(_));
        is_host || !is_of_lifetimes && mentioned(predicate, &parts.roles.arguments).is_empty()
    });
    parameters.predicates = stated.map(|predicate| fixed(predicate.to_token_stream())).collect();
    parameters.predicates.extend(leaf_bounds(argument, parts));
    parameters
}

/// That everything is an argument which is no parameter. All types and implementations have these bounds. One that is not met is so reported once, at
/// its field, and nothing follows from it.
///
/// A bound that depends on a parameter hides what the kernel gets: inside the item, rustc does not look at the implementation. If the kernel gets the
/// argument's own type, such a bound says so.
fn leaf_bounds(argument: &Argument, parts: &Parts) -> Vec<TokenStream> {
    let names = argument.generics.params.iter().filter_map(|parameter| match parameter {
        GenericParam::Lifetime(_) => None,
        GenericParam::Type(parameter) => Some(parameter.ident.clone()),
        GenericParam::Const(parameter) => Some(parameter.ident.clone()),
    });
    let names = names.collect();
    let mut leaves = Vec::new();
    parts.fields().for_each(|field| add_leaves(parts, &field.ty, &mut leaves));
    let bounds = leaves.into_iter().map(|leaf| {
        let facade = located_at(&argument.facade, leaf.span());
        let fixed = made_static(leaf, &parts.lifetimes);
        let is_hidden = parts.device.is_none() && !mentioned(leaf, &names).is_empty();
        let own = is_hidden.then(|| {
            let own = with_lifetime("oxisycl_call", leaf, &parts.lifetimes);
            let form = quote_spanned!(leaf.span()=> #facade::argument::DeviceForm<Value<'oxisycl_call> = #own>);
            quote_spanned!(leaf.span()=> <Sent: for<'oxisycl_call> #form>)
        });
        quote_spanned!(leaf.span()=> #fixed: #facade::argument::KernelArg #own)
    });
    bounds.collect()
}

/// Adds what a field consists of but for parameters.
fn add_leaves<'t>(parts: &Parts, of: &'t Type, to: &mut Vec<&'t Type>) {
    match structure(of, &parts.roles.arguments) {
        Structure::Parameter(_) => {}
        Structure::Tuple(fields) => fields.into_iter().for_each(|field| add_leaves(parts, field, to)),
        Structure::Array(part) | Structure::Option(part) => add_leaves(parts, part, to),
        Structure::Leaf => to.push(of),
    }
}

/// The bound of a parameter that is the type of a part, placed at its first one.
fn part_bound(facade: &Path, parts: &Parts, ident: &proc_macro2::Ident) -> TokenStream {
    let is_part = |field: &&syn::Field| !mentioned(&field.ty, &[ident.clone()].into()).is_empty();
    let span = parts.fields().find(is_part).map_or(ident.span(), |field| field.ty.span());
    located_at(&quote!(#facade::argument::KernelArg), span)
}
