//! Decides which functions can be kernels, as far as their tokens tell, and keeps what the expansion needs.
//!
//! Invariant: a [`Kernel`] is a safe function that returns nothing. It has a first parameter, and at most [`MAX_ARGUMENTS`] after it.

use std::collections::BTreeSet;

use proc_macro2::{Ident, TokenStream, TokenTree};
use quote::{ToTokens, format_ident};
use syn::spanned::Spanned;
use syn::{Expr, ExprLit, FnArg, ItemFn, Lit, Pat, Path, ReturnType, Safety, Type};

use super::parse::{Input, Stated};
use crate::errors::Errors;

/// Most arguments that a kernel gets. They are passed as one tuple.
pub(super) const MAX_ARGUMENTS: usize = 12;

/// A function that may be a kernel if its parameters may be what a kernel gets.
pub(super) struct Kernel {
    /// The function, as the user wrote it.
    pub(super) function: ItemFn,
    /// The crate that the expansion takes types from.
    pub(super) facade: Path,
    /// What the options state.
    pub(super) stated: Stated,
    /// The type of the first parameter, by which a work-item knows what it is.
    pub(super) token: Type,
    /// All other parameters.
    pub(super) parameters: Vec<Parameter>,
    /// The names of the lifetime parameters, without quotes.
    pub(super) lifetimes: BTreeSet<Ident>,
}

/// A parameter that gets an argument.
pub(super) struct Parameter {
    pub(super) name: Ident,
    pub(super) of: Type,
    /// Whether it gets a value of its own type, so that a literal is enough.
    pub(super) is_plain: bool,
}

pub(super) fn check(input: Input) -> syn::Result<Kernel> {
    let Input { function, facade, stated } = input;
    let (mut errors, signature) = (Errors::default(), &function.sig);
    let ident = &signature.ident;
    let mut unexpected = |span, expected: &str, found: &str| {
        errors.push(span, format!("kernel {ident}: expected {expected}, found {found}"));
    };
    if let Some(token) = &signature.constness {
        unexpected(token.span, "a plain function", "a const one");
    }
    if let Some(token) = &signature.asyncness {
        unexpected(token.span, "a plain function", "an async one");
    }
    if !matches!(signature.safety, Safety::Default) {
        unexpected(signature.safety.span(), "a plain function", "one that says whether it is safe");
    }
    if let Some(abi) = &signature.abi {
        unexpected(abi.extern_token.span, "a plain function", "an extern one");
    }
    match &signature.output {
        ReturnType::Default => {}
        ReturnType::Type(_, of) if matches!(&**of, Type::Tuple(tuple) if tuple.elems.is_empty()) => {}
        ReturnType::Type(_, of) => unexpected(of.span(), "a function that returns nothing", "a return type"),
    }
    for parameter in signature.generics.lifetimes().filter(|parameter| !parameter.bounds.is_empty()) {
        unexpected(parameter.lifetime.span(), "lifetime parameters without bounds", &parameter.lifetime.to_string());
    }
    for (index, aspect) in stated.aspects.iter().enumerate() {
        if stated.aspects[..index].contains(aspect) {
            unexpected(aspect.span(), "each aspect once", &format!("{aspect} again"));
        }
    }
    if let [.., last] = &stated.group[..]
        && stated.group.len() > 3
    {
        unexpected(last.span(), "up to 3 extents of a work-group", &stated.group.len().to_string());
    }
    if let [_, second, ..] = &stated.sub_group[..] {
        unexpected(second.span(), "one size of sub-groups", &stated.sub_group.len().to_string());
    }
    for size in stated.group.iter().chain(&stated.sub_group).filter(|size| is_zero(size)) {
        unexpected(size.span(), "a size of at least 1", "0");
    }
    let (mut token, mut parameters) = (None, Vec::new());
    for (index, input) in signature.inputs.iter().enumerate() {
        let parameter = match input {
            FnArg::Receiver(receiver) => {
                unexpected(receiver.self_token.span, "a function that is no method", "self");
                continue;
            }
            FnArg::Typed(parameter) => parameter,
        };
        if has_impl(parameter.ty.to_token_stream()) {
            unexpected(parameter.ty.span(), "a type or a type parameter", "impl Trait");
        }
        if index == 0 {
            token = Some((*parameter.ty).clone());
            continue;
        }
        let name = match &*parameter.pat {
            Pat::Ident(pattern) => pattern.ident.clone(),
            _ => format_ident!("argument_{}", index - 1),
        };
        let of = (*parameter.ty).clone();
        parameters.push(Parameter { name, is_plain: is_plain(&of), of });
    }
    if parameters.len() > MAX_ARGUMENTS {
        let found = parameters.len().to_string();
        unexpected(ident.span(), &format!("at most {MAX_ARGUMENTS} arguments"), &found);
    }
    if signature.inputs.is_empty() {
        unexpected(ident.span(), "an Item or a Single as the first parameter", "no parameters");
    }
    let lifetimes = signature.generics.lifetimes().map(|parameter| parameter.lifetime.ident.clone()).collect();
    match token {
        Some(token) => errors.or(Kernel { facade, stated, token, parameters, lifetimes, function }),
        None => Err(errors.or(()).expect_err("there is no first parameter")),
    }
}

/// Whether the type consists of numbers and the like. Nothing but a `()` may be made of something else on the host.
fn is_plain(of: &Type) -> bool {
    const PLAIN: [&str; 16] = [
        "bool", "char", "f32", "f64", "i8", "i16", "i32", "i64", "i128", "isize", "u8", "u16", "u32", "u64", "u128",
        "usize",
    ];
    match of {
        Type::Array(array) => is_plain(&array.elem),
        Type::Group(group) => is_plain(&group.elem),
        Type::Paren(paren) => is_plain(&paren.elem),
        Type::Path(path) => path.path.get_ident().is_some_and(|ident| PLAIN.iter().any(|name| ident == name)),
        Type::Tuple(tuple) => !tuple.elems.is_empty() && tuple.elems.iter().all(is_plain),
        _ => false,
    }
}

/// Whether a size is the literal 0. The compiler evaluates all others.
fn is_zero(size: &Expr) -> bool {
    match size {
        Expr::Lit(ExprLit { lit: Lit::Int(number), .. }) => number.base10_digits() == "0",
        _ => false,
    }
}

/// Whether an `impl Trait` is in the type.
fn has_impl(of: TokenStream) -> bool {
    of.into_iter().any(|token| match token {
        TokenTree::Ident(ident) => ident == "impl",
        TokenTree::Group(group) => has_impl(group.stream()),
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::super::parse::parse;
    use super::*;
    use quote::quote;

    fn messages(function: TokenStream) -> Vec<String> {
        let error = check(parse(quote!(), function).unwrap()).err().unwrap();
        error.into_iter().map(|error| error.to_string()).collect()
    }

    #[test]
    fn parameters_keep_their_names_where_they_have_some() {
        let function = quote! { fn a(item: Item<1>, (x, y): (f32, f32), mut z: &[u8], _: ()) {} };
        let kernel = check(parse(quote!(), function).unwrap()).unwrap();
        let names: Vec<String> = kernel.parameters.iter().map(|parameter| parameter.name.to_string()).collect();
        assert_eq!(names, ["argument_0", "z", "argument_2"]);
        assert_eq!(kernel.token.to_token_stream().to_string(), "Item < 1 >");
    }

    #[test]
    fn literals_are_enough_for_numbers() {
        for (of, expected) in [
            (quote!(f32), true),
            (quote!((u8, [bool; N])), true),
            (quote!(()), false),
            (quote!((f32, T)), false),
            (quote!(&[f32]), false),
            (quote!(my::f32), false),
        ] {
            assert_eq!(is_plain(&syn::parse2(of).unwrap()), expected);
        }
    }

    #[test]
    fn only_plain_functions_are_kernels() {
        for (function, found) in [
            (quote! { const fn a(item: Item<1>) {} }, "a const one"),
            (quote! { async fn a(item: Item<1>) {} }, "an async one"),
            (quote! { unsafe fn a(item: Item<1>) {} }, "one that says whether it is safe"),
            (quote! { extern "C" fn a(item: Item<1>) {} }, "an extern one"),
        ] {
            assert_eq!(messages(function), [format!("kernel a: expected a plain function, found {found}")]);
        }
    }

    #[test]
    fn what_kernels_cannot_have_is_refused_all_at_once() {
        assert_eq!(
            messages(quote! { fn a<'b: 'c, 'c>(item: Item<1>, f: Option<impl Fn()>) -> u32 {} }),
            [
                "kernel a: expected a function that returns nothing, found a return type",
                "kernel a: expected lifetime parameters without bounds, found 'b",
                "kernel a: expected a type or a type parameter, found impl Trait",
            ]
        );
        assert_eq!(
            messages(quote! { fn a() {} }),
            ["kernel a: expected an Item or a Single as the first parameter, found no parameters"]
        );
        assert_eq!(
            messages(quote! { fn a(&self) {} }),
            ["kernel a: expected a function that is no method, found self"]
        );
    }

    #[test]
    fn what_cannot_be_stated_is_refused() {
        let refused = |options| {
            let error = check(parse(options, quote! { fn a(item: Item<1>) {} }).unwrap()).err().unwrap();
            error.into_iter().map(|error| error.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(
            refused(quote!(device_has(Fp64, Fp16, Fp64), work_group_size(0), sub_group_size(32, 0))),
            [
                "kernel a: expected each aspect once, found Fp64 again",
                "kernel a: expected one size of sub-groups, found 2",
                "kernel a: expected a size of at least 1, found 0",
                "kernel a: expected a size of at least 1, found 0",
            ]
        );
        assert_eq!(
            refused(quote!(work_group_size(1, 2, 3, 4))),
            ["kernel a: expected up to 3 extents of a work-group, found 4"]
        );
    }

    #[test]
    fn a_kernel_has_at_most_as_many_arguments_as_a_tuple() {
        let function = |n: usize| {
            let (name, of) = ((0..n).map(|index| format_ident!("a{index}")), (0..n).map(|_| quote!(u8)));
            quote! { fn a(item: Item<1>, #(#name: #of),*) {} }
        };
        assert!(check(parse(quote!(), function(12)).unwrap()).is_ok());
        assert_eq!(messages(function(13)), ["kernel a: expected at most 12 arguments, found 13"]);
    }
}
