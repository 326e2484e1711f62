//! Functions that turn values into text.
//!
//! A user's type has formatting functions of its own, which are methods of the library's traits. They differ from the library's. Only the
//! library's decide where code goes, what is inlined, and where a value within a value is too deep to be shown. What a value is, only the
//! library's own functions say ([`formatter`]).

use oxisycl_image::{ArgumentKind, FormatTrait};

use super::{Origin, of};
use crate::symbols::{path, plain_path};

/// Whether a function formats values. Functions that only assemble messages do not count: they have to be inlined, so that their values are
/// found.
pub(crate) fn formats(symbol: &str) -> bool {
    library_formats(symbol) || is_method(symbol)
}

/// Whether a function of the standard library formats values. Functions that it calls by address are formatting functions, or functions
/// that text is written to.
pub(crate) fn library_formats(symbol: &str) -> bool {
    symbol.contains("core") && of(symbol) == Origin::Standard && is_formatting(&plain_path(symbol))
}

fn is_formatting(path: &str) -> bool {
    let parts = ["core::fmt::", "core::num::flt2dec::"];
    !makes_messages(path)
        && (parts.iter().any(|part| path.starts_with(part))
            || path.starts_with('<') && path.contains(" as core::fmt::"))
}

/// Whether a function formats a value that is not a reference. Functions for references only call another one, which tells what is printed.
/// Functions that assemble messages tell their contents.
pub(crate) fn formats_itself(symbol: &str) -> bool {
    let path = path(symbol);
    path.contains("core::fmt::") && !path.starts_with("<&") && !makes_messages(&path) && formats(symbol)
}

/// Whether a function is a method of a formatting trait, by its name. `fmt` is the only method of these traits, also for a user's type.
pub(crate) fn is_method(symbol: &str) -> bool {
    let is_candidate = symbol.contains("core") && symbol.contains("fmt");
    is_candidate && implemented(&path(symbol)).is_some_and(|(style, _)| !style.contains("::") && style != "Write")
}

/// Whether a function is `Formatter::pad`, by which strings are written.
pub(crate) fn pads(symbol: &str) -> bool {
    of(symbol) == Origin::Standard && path(symbol) == "core::fmt::Formatter::pad"
}

/// Whether a function writes text: a method of `core::fmt::Write` of any type.
pub(crate) fn writes_text(symbol: &str) -> bool {
    const METHODS: [&str; 3] = ["write_char", "write_fmt", "write_str"];
    let path = if symbol.contains("Write") { path(symbol) } else { return false };
    let Some((of, method)) = path.rsplit_once("::") else { return false };
    let implements = of == "core::fmt::Write"
        || of.starts_with('<') && of.ends_with(" as core::fmt::Write>")
        || of.ends_with('>') && of.contains("<impl core::fmt::Write for ");
    implements && METHODS.contains(&method)
}

/// Whether the function with that path assembles a message that others format.
fn makes_messages(path: &str) -> bool {
    ["core::fmt::rt::", "core::fmt::Arguments::"].iter().any(|start| path.contains(start))
}

/// A formatting function of the standard library.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Formatter {
    pub(crate) style: FormatTrait,
    pub(crate) formatted: Formatted,
}

/// The type that a formatting function formats.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Formatted {
    Value(ArgumentKind),
    Str,
    StrReference,
    /// A reference to any type; legacy symbols do not say which.
    Reference,
    Other,
}

/// The trait and type of a formatting function of the standard library; `None` for all other functions.
pub(crate) fn formatter(symbol: &str) -> Option<Formatter> {
    if of(symbol) != Origin::Standard {
        return None;
    }
    let path = path(symbol);
    let (style, shown) = implemented(&path)?;
    let (_, style) = STYLES.iter().find(|(name, _)| *name == style)?;
    let formatted = match shown {
        "str" => Formatted::Str,
        "&str" => Formatted::StrReference,
        _ if shown.starts_with('&') => Formatted::Reference,
        _ => {
            KINDS.iter().find(|(name, _)| *name == shown).map_or(Formatted::Other, |(_, kind)| Formatted::Value(*kind))
        }
    };
    Some(Formatter { style: *style, formatted })
}

const STYLES: [(&str, FormatTrait); 9] = [
    ("Binary", FormatTrait::Binary),
    ("Debug", FormatTrait::Debug),
    ("Display", FormatTrait::Display),
    ("LowerExp", FormatTrait::LowerExp),
    ("LowerHex", FormatTrait::LowerHex),
    ("Octal", FormatTrait::Octal),
    ("Pointer", FormatTrait::Pointer),
    ("UpperExp", FormatTrait::UpperExp),
    ("UpperHex", FormatTrait::UpperHex),
];

const KINDS: [(&str, ArgumentKind); 16] = [
    ("bool", ArgumentKind::Bool),
    ("char", ArgumentKind::Char),
    ("f32", ArgumentKind::F32),
    ("f64", ArgumentKind::F64),
    ("i8", ArgumentKind::I8),
    ("i16", ArgumentKind::I16),
    ("i32", ArgumentKind::I32),
    ("i64", ArgumentKind::I64),
    ("i128", ArgumentKind::I128),
    ("isize", ArgumentKind::Isize),
    ("u8", ArgumentKind::U8),
    ("u16", ArgumentKind::U16),
    ("u32", ArgumentKind::U32),
    ("u64", ArgumentKind::U64),
    ("u128", ArgumentKind::U128),
    ("usize", ArgumentKind::Usize),
];

/// The names of trait and type, from the path of a method `fmt` in an implementation of a trait in `core::fmt`. Such paths are
/// `<usize as core::fmt::Display>::fmt`, or in legacy symbols `core::fmt::num::imp::<impl core::fmt::Display for usize>::fmt`.
///
/// Functions and traits within such a method are none: only the last brackets count, and only what is in no others.
fn implemented(path: &str) -> Option<(&str, &str)> {
    let inside = path.strip_suffix(">::fmt")?;
    let start = opening(inside)?;
    let (before, inside) = (&inside[..start], &inside[start + 1..]);
    let (style, shown) = match inside.strip_prefix("impl ") {
        Some(inside) if before.ends_with("::") => split(inside, " for ")?,
        None if before.is_empty() => {
            let (shown, style) = split(inside, " as ")?;
            (style, shown)
        }
        _ => return None,
    };
    Some((style.strip_prefix("core::fmt::")?, shown))
}

/// The position of the bracket that is closed at the end of a text.
fn opening(text: &str) -> Option<usize> {
    let mut depth = 1_usize;
    text.char_indices().rev().find_map(|(at, letter)| {
        match letter {
            '>' if !text[..at].ends_with('-') => depth += 1,
            '<' => depth -= 1,
            _ => {}
        }
        (depth == 0).then_some(at)
    })
}

/// The parts of a text before and behind a word that is outside of all brackets.
fn split<'t>(text: &'t str, word: &str) -> Option<(&'t str, &'t str)> {
    let mut depth = 0_i32;
    let at = text.char_indices().find_map(|(at, letter)| {
        match letter {
            '<' | '(' | '[' | '{' => depth += 1,
            '>' if text[..at].ends_with('-') => {}
            '>' | ')' | ']' | '}' => depth -= 1,
            _ => {}
        }
        (depth == 0 && text[at..].starts_with(word)).then_some(at)
    })?;
    Some((&text[..at], &text[at + word.len()..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_values_are_formatted_by_themselves() {
        assert!(formats_itself("_RNvXs7_NtNtCsgEmfK2I1SDS_4core3fmt5floatdNtB7_7Display3fmt"));
        assert!(!formats_itself("_ZN44_$LT$$RF$T$u20$as$u20$core..fmt..Display$GT$3fmt17h7c80914ce4238de4E"));
        assert!(!formats_itself("_RNvXs1g_NtCsgEmfK2I1SDS_4core3fmtRINtNtB8_6option6OptionjENtB6_5Debug3fmt"));
        assert!(!formats_itself("memcpy"));
        // What puts a message together.
        assert!(!formats_itself("_ZN4core3fmt9Arguments3new17h1451a41a32de2560E"));
    }

    #[test]
    fn the_method_of_a_formatting_trait_is_told_from_what_is_within_it() {
        for (path, expected) in [
            ("<usize as core::fmt::Display>::fmt", Some(("Display", "usize"))),
            ("<&app::X as core::fmt::Debug>::fmt", Some(("Debug", "&app::X"))),
            ("<app::X<<u8 as app::A>::B> as core::fmt::Debug>::fmt", Some(("Debug", "app::X<<u8 as app::A>::B>"))),
            ("<fn(u8) -> u8 as core::fmt::Pointer>::fmt", Some(("Pointer", "fn(u8) -> u8"))),
            ("core::fmt::num::imp::<impl core::fmt::Display for i32>::fmt", Some(("Display", "i32"))),
            ("app::<impl core::fmt::Debug for app::X>::fmt", Some(("Debug", "app::X"))),
            ("<app::X as core::fmt::Debug>::fmt::{{closure}}", None),
            ("<app::X as core::fmt::Debug>::fmt::helper", None),
            ("<app::W as <app::X as core::fmt::Debug>::fmt::Deep>::fmt", None),
            ("<app::W as app::Deep<<u8 as core::fmt::Debug>>>::fmt", None),
            ("<app::X as core::fmt::Debug>::fmt::<impl app::Deep for app::W>::fmt", None),
            ("app::<impl app::Make<core::fmt::Error> for app::W>::fmt", None),
            ("app::core::fmt::fmt", None),
            ("fmt", None),
        ] {
            assert_eq!(implemented(path), expected, "{path}");
        }
    }

    #[test]
    fn what_only_names_the_librarys_formatting_does_not_format() {
        let within = "_ZN43_$LT$app..X$u20$as$u20$core..fmt..Debug$GT$3fmt6helper17h0123456789abcdefE";
        let made = "_ZN3app70_$LT$impl$u20$app..Make$LT$core..fmt..Error$GT$$u20$for$u20$app..Y$GT$12__rust_alloc17h0123456789abcdefE";
        let method = "_ZN43_$LT$app..X$u20$as$u20$core..fmt..Debug$GT$3fmt17h0123456789abcdefE";
        let reference = "_ZN49_$LT$$RF$app..X$u20$as$u20$core..fmt..Display$GT$3fmt17h0123456789abcdefE";
        let library = "_ZN42_$LT$$RF$T$u20$as$u20$core..fmt..Debug$GT$3fmt17hb9624c4616cd4342E";
        for symbol in [within, made] {
            assert!(!formats(symbol) && !formats_itself(symbol), "{symbol}: {}", path(symbol));
        }
        assert!(formats(method) && is_method(method) && !library_formats(method) && formatter(method).is_none());
        assert!(formats(reference) && formatter(reference).is_none() && !formats_itself(reference));
        let expected = Formatter { style: FormatTrait::Debug, formatted: Formatted::Reference };
        assert_eq!(formatter(library), Some(expected));
        assert!(library_formats(library) && library_formats("_ZN4core3fmt5write17h0123456789abcdefE"));
        // Methods of a type of the library, in both manglings.
        let lists = [
            "_RNvMsa_NtCs1234_4core3fmtNtB5_9Formatter10debug_list",
            "_ZN4core3fmt9Formatter10debug_list17h0123456789abcdefE",
        ];
        assert!(lists.iter().all(|symbol| formats_itself(symbol) && library_formats(symbol)));
        let pad = ["_RNvMsa_NtCs1234_4core3fmtNtB5_9Formatter3pad", "_ZN4core3fmt9Formatter3pad17h0123456789abcdefE"];
        assert!(pad.iter().all(|symbol| pads(symbol)) && !lists.iter().any(|symbol| pads(symbol)));
        assert!(!formats("_RNvMsa_NtCs1234_4core3fmtNtB5_9Arguments3new"));
        assert!(!library_formats("_ZN3app4core3fmt5write17h0123456789abcdefE"));
    }

    #[test]
    fn formatting_functions_are_read_from_both_manglings() {
        use ArgumentKind::{F64, I32, Usize};
        use Formatted::{Other, Reference, Str, StrReference, Value};
        let reference = |of: &str| {
            format!("_ZN{}_$LT$$RF${of}$u20$as$u20$core..fmt..Debug$GT$3fmt17hb9624c4616cd4342E", 41 + of.len())
        };
        let ours =
            |of: &str| format!("_ZN{}_$LT${of}$u20$as$u20$core..fmt..Debug$GT$3fmt17hb9624c4616cd4342E", 37 + of.len());
        for (symbol, style, formatted) in [
            ("_RNvXs7_NtNtCsgEmfK2I1SDS_4core3fmt5floatdNtB7_7Display3fmt", FormatTrait::Display, Value(F64)),
            ("_RNvXs6_NtNtCsgEmfK2I1SDS_4core3fmt3numjNtB7_8LowerHex3fmt", FormatTrait::LowerHex, Value(Usize)),
            (&reference("T"), FormatTrait::Debug, Reference),
            (&reference("str"), FormatTrait::Debug, StrReference),
            (&ours("str"), FormatTrait::Debug, Str),
            (&ours("core..time..Duration"), FormatTrait::Debug, Other),
            (
                "_ZN4core3fmt3num3imp52_$LT$impl$u20$core..fmt..Display$u20$for$u20$i32$GT$3fmt17h0123456789abcdefE",
                FormatTrait::Display,
                Value(I32),
            ),
        ] {
            assert_eq!(formatter(symbol), Some(Formatter { style, formatted }), "{symbol}: {}", path(symbol));
        }
        for symbol in ["memcpy", &ours("app..X"), "_ZN4core3fmt5Write9write_str17h0123456789abcdefE"] {
            assert_eq!(formatter(symbol), None, "{symbol}");
        }
    }
}
