//! What macros do with tokens that they do not read as types: where they stand, and which names are in them.

use std::collections::BTreeSet;

use proc_macro2::{Group, Ident, Span, TokenStream, TokenTree};
use quote::ToTokens;

/// The tokens as written, so that they resolve as before, but placed at `span`: rustc reports a missing bound at its path.
pub(crate) fn located_at(tokens: &impl ToTokens, span: Span) -> TokenStream {
    let place = |mut token: TokenTree| {
        token.set_span(token.span().located_at(span));
        token
    };
    tokens.to_token_stream().into_iter().map(place).collect()
}

/// Which of `names` are in the tokens, as names of types or constants.
pub(crate) fn mentioned(tokens: impl ToTokens, names: &BTreeSet<Ident>) -> BTreeSet<Ident> {
    fn visit(tokens: TokenStream, names: &BTreeSet<Ident>, found: &mut BTreeSet<Ident>) {
        let mut is_lifetime = false;
        for token in tokens {
            match &token {
                TokenTree::Ident(ident) if !is_lifetime && names.contains(ident) => {
                    found.insert(ident.clone());
                }
                TokenTree::Group(group) => visit(group.stream(), names, found),
                _ => {}
            }
            is_lifetime = is_quote(&token);
        }
    }
    let mut found = BTreeSet::new();
    visit(tokens.to_token_stream(), names, &mut found);
    found
}

/// The tokens with `'static` in the place of each of the lifetimes.
pub(crate) fn made_static(tokens: impl ToTokens, lifetimes: &BTreeSet<Ident>) -> TokenStream {
    with_lifetime("static", tokens, lifetimes)
}

/// The tokens with one lifetime in the place of each of the lifetimes.
pub(crate) fn with_lifetime(name: &str, tokens: impl ToTokens, lifetimes: &BTreeSet<Ident>) -> TokenStream {
    fn replace(name: &str, tokens: TokenStream, lifetimes: &BTreeSet<Ident>) -> TokenStream {
        let mut is_lifetime = false;
        let replaced = |token: TokenTree| {
            let was_lifetime = std::mem::replace(&mut is_lifetime, is_quote(&token));
            match token {
                TokenTree::Ident(ident) if was_lifetime && lifetimes.contains(&ident) => {
                    TokenTree::Ident(Ident::new(name, ident.span()))
                }
                TokenTree::Group(group) => {
                    let mut inner = Group::new(group.delimiter(), replace(name, group.stream(), lifetimes));
                    inner.set_span(group.span());
                    TokenTree::Group(inner)
                }
                token => token,
            }
        };
        tokens.into_iter().map(replaced).collect()
    }
    let tokens = tokens.to_token_stream();
    if lifetimes.is_empty() { tokens } else { replace(name, tokens, lifetimes) }
}

/// Whether a lifetime's name follows.
fn is_quote(token: &TokenTree) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == '\'')
}

#[cfg(test)]
mod tests {
    use super::*;
    use quote::quote;

    fn names(names: &[&str]) -> BTreeSet<Ident> {
        names.iter().map(|name| Ident::new(name, Span::call_site())).collect()
    }

    #[test]
    fn names_are_found_at_any_depth_and_are_not_lifetimes() {
        let found = mentioned(quote!(Vec<(A, [B; N])> & 'c D), &names(&["A", "N", "c", "E"]));
        assert_eq!(found, names(&["A", "N"]));
    }

    #[test]
    fn lifetimes_of_the_type_become_static_and_no_others() {
        let tokens = made_static(quote!(A<'a, (&'b a, &'c u8)>), &names(&["a", "b"]));
        assert_eq!(tokens.to_string(), quote!(A<'static, (&'static a, &'c u8)>).to_string());
    }
}
