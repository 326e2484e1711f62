//! Walking through the tokens of a source without its tests and documentation.

use std::str::FromStr;

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// The tokens of a source, in which items of tests, attributes and documentation are left out. The bodies of macros are in it.
pub(super) fn of(text: &str) -> Result<Vec<TokenTree>, String> {
    let stream = TokenStream::from_str(text).map_err(|error| error.to_string())?;
    Ok(without_tests(stream))
}

/// The tokens of a group, likewise.
pub(super) fn without_tests(stream: TokenStream) -> Vec<TokenTree> {
    let tokens: Vec<TokenTree> = stream.into_iter().collect();
    let mut kept = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let Some((end, is_test)) = attribute(&tokens, at) else {
            kept.push(tokens[at].clone());
            at += 1;
            continue;
        };
        at = end;
        if is_test {
            while let Some((end, _)) = attribute(&tokens, at) {
                at = end;
            }
            let is_end = |token: &TokenTree| is_punctuation(token, ';') || braces(token).is_some();
            at += tokens[at..].iter().position(is_end).map_or(0, |position| position + 1);
        }
    }
    kept
}

/// Where an attribute that begins at `at` ends, and whether it is `cfg(test)` or one that contains it.
fn attribute(tokens: &[TokenTree], at: usize) -> Option<(usize, bool)> {
    if !is_punctuation(tokens.get(at)?, '#') {
        return None;
    }
    let inner = usize::from(tokens.get(at + 1).is_some_and(|token| is_punctuation(token, '!')));
    match tokens.get(at + 1 + inner)? {
        TokenTree::Group(group) if group.delimiter() == Delimiter::Bracket => {
            let text = group.stream().to_string();
            let is_test = text.starts_with("cfg") && text.contains("test") && !text.contains("not (test");
            Some((at + 2 + inner, is_test))
        }
        _ => None,
    }
}

pub(super) fn is_punctuation(token: &TokenTree, letter: char) -> bool {
    matches!(token, TokenTree::Punct(punctuation) if punctuation.as_char() == letter)
}

pub(super) fn is_word(token: &TokenTree, word: &str) -> bool {
    matches!(token, TokenTree::Ident(name) if name == word)
}

/// What is in braces.
pub(super) fn braces(token: &TokenTree) -> Option<TokenStream> {
    match token {
        TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => Some(group.stream()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(text: &str) -> String {
        of(text).expect("tokens").into_iter().map(|token| token.to_string()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn tests_and_documentation_are_left_out() {
        let text = "//! Doc.\n/// More.\n#[inline]\nfn a(b: u8) {}\n#[cfg(test)]\nmod tests { fn b() {} }\n";
        assert_eq!(kept(text), "fn a (b : u8) { }");
        assert_eq!(kept("#[cfg(all(test, not(loom)))]\nmod tests;\nfn a() {}"), "fn a () { }");
        assert_eq!(kept("#[cfg(test)]\n#[inline]\nfn of_the_tests() {}\n fn a() {}"), "fn a () { }");
        assert!(of("fn a( {").is_err());
    }
}
