//! What the type parameters of an argument's type stand for. See the [parent](super).

use std::collections::BTreeSet;

use proc_macro2::Ident;
use syn::{GenericArgument, Generics, PathArguments, Type};

use crate::tokens::mentioned;

/// What type parameters stand for.
pub(super) struct Roles {
    /// The types of arguments; the others are kept.
    pub(super) arguments: BTreeSet<Ident>,
    /// The types of fields or of parts of fields, which have to be arguments: those above, and kept ones that are used in both ways.
    pub(super) parts: BTreeSet<Ident>,
}

/// What a type consists of for the host, a kernel and what crosses alike.
pub(super) enum Structure<'t> {
    /// A type parameter.
    Parameter(&'t Ident),
    Tuple(Vec<&'t Type>),
    Array(&'t Type),
    Option(&'t Type),
    /// Anything else.
    Leaf,
}

impl Roles {
    pub(super) fn of<'t>(generics: &Generics, fields: impl Iterator<Item = &'t Type>) -> Self {
        let all: BTreeSet<Ident> = generics.type_params().map(|parameter| parameter.ident.clone()).collect();
        let (mut parts, mut kept) = (BTreeSet::new(), BTreeSet::new());
        for field in fields {
            visit(field, &all, &mut parts, &mut kept);
        }
        let mut arguments = &parts - &kept;
        // Bounds of kept parameters are stated again for what crosses, where the host's types are unknown.
        let bounds = bounds(generics, &all);
        while let Some(mixed) =
            bounds.iter().find(|bound| !bound.is_subset(&arguments) && !bound.is_disjoint(&arguments))
        {
            arguments = &arguments - mixed;
        }
        Self { arguments, parts }
    }
}

/// The type parameters in each bound of the type.
fn bounds(generics: &Generics, all: &BTreeSet<Ident>) -> Vec<BTreeSet<Ident>> {
    let own = generics.type_params().map(|parameter| {
        let mut bound = mentioned(&parameter.bounds, all);
        bound.insert(parameter.ident.clone());
        bound
    });
    let clause = generics.where_clause.iter().flat_map(|clause| &clause.predicates);
    own.chain(clause.map(|predicate| mentioned(predicate, all))).collect()
}

/// Adds the type parameters that are parts of `field`, and those that only something in it knows.
fn visit(field: &Type, all: &BTreeSet<Ident>, parts: &mut BTreeSet<Ident>, kept: &mut BTreeSet<Ident>) {
    match structure(field, all) {
        Structure::Parameter(ident) => {
            parts.insert(ident.clone());
        }
        Structure::Tuple(fields) => fields.into_iter().for_each(|field| visit(field, all, parts, kept)),
        Structure::Array(part) | Structure::Option(part) => visit(part, all, parts, kept),
        Structure::Leaf => kept.append(&mut mentioned(field, all)),
    }
}

/// What the type consists of, if one of the `parameters` is in it.
pub(super) fn structure<'t>(of: &'t Type, parameters: &BTreeSet<Ident>) -> Structure<'t> {
    match of {
        Type::Group(group) => structure(&group.elem, parameters),
        Type::Paren(paren) => structure(&paren.elem, parameters),
        _ if mentioned(of, parameters).is_empty() => Structure::Leaf,
        Type::Tuple(tuple) => Structure::Tuple(tuple.elems.iter().collect()),
        Type::Array(array) => Structure::Array(&array.elem),
        Type::Path(path) if path.qself.is_none() => {
            let segments = &path.path.segments;
            let names: Vec<String> = segments.iter().map(|segment| segment.ident.to_string()).collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            match (&*names, &segments[segments.len() - 1].arguments) {
                ([_], PathArguments::None) => Structure::Parameter(&segments[0].ident),
                (["Option"] | ["core" | "std", "option", "Option"], PathArguments::AngleBracketed(arguments)) => {
                    match arguments.args.first() {
                        Some(GenericArgument::Type(of)) if arguments.args.len() == 1 => Structure::Option(of),
                        _ => Structure::Leaf,
                    }
                }
                _ => Structure::Leaf,
            }
        }
        _ => Structure::Leaf,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proc_macro2::TokenStream;
    use quote::quote;
    use syn::{Data, DeriveInput};

    /// The parameters that stand for arguments, and then those that have to be arguments.
    fn roles(tokens: TokenStream) -> [String; 2] {
        let item: DeriveInput = syn::parse2(tokens).unwrap();
        let Data::Struct(data) = item.data else { unreachable!("tests use structs") };
        let Roles { arguments, parts } = Roles::of(&item.generics, data.fields.iter().map(|field| &field.ty));
        [arguments, parts].map(|names| names.iter().map(Ident::to_string).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn types_of_fields_and_of_their_parts_stand_for_arguments() {
        let tokens = quote! { struct A<B, C, D, E>(B, (u8, (C,)), [[D; 2]; 3], Option<::core::option::Option<E>>); };
        assert_eq!(roles(tokens), ["B C D E", "B C D E"]);
    }

    #[test]
    fn types_that_something_else_knows_are_kept() {
        let tokens = quote! { struct A<B, C, D, E>(Vec<B>, my::Option<C>, &'static D, <E as F>::G); };
        assert_eq!(roles(tokens), ["", ""]);
    }

    #[test]
    fn types_that_are_used_in_both_ways_are_kept() {
        assert_eq!(roles(quote! { struct A<B, C>(B, Vec<B>, C); }), ["C", "B C"]);
    }

    #[test]
    fn types_in_bounds_of_kept_ones_are_kept() {
        assert_eq!(roles(quote! { struct A<B: Into<C>, C, D>(Vec<B>, C, D); }), ["D", "C D"]);
        assert_eq!(roles(quote! { struct A<B, C, D>(Vec<B>, C, D) where C: Into<B>, D: Into<C>; }), ["", "C D"]);
        assert_eq!(roles(quote! { struct A<B: Into<C>, C: Copy, D: Copy>(B, C, Vec<D>); }), ["B C", "B C"]);
    }
}
