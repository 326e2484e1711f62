//! Functions that turn values into text.
//!
//! Whose they are is not asked here: a user's type has formatting functions of its own, which are in paths of the library's traits. What these
//! answers decide is where code goes and what is inlined; only [`formatter`]'s callers believe the standard library's, and ask for that.

use crate::symbols::{path, plain_path};

/// Whether a function formats values. Those that put messages together have to be inlined, so that their values are found.
pub(crate) fn formats(symbol: &str) -> bool {
    let path = plain_path(symbol);
    let is_formatting = path.starts_with("core::fmt::") || path.contains(" as core::fmt::");
    !makes_messages(&path) && (is_formatting || path.contains("core::num::flt2dec::"))
}

/// Whether a function formats a value that is not a reference: those of references only pass on to another one, and tell by that what is
/// printed; those that put messages together tell what is in them.
pub(crate) fn formats_itself(symbol: &str) -> bool {
    let path = path(symbol);
    path.contains("core::fmt::") && !path.starts_with("<&") && !makes_messages(&path)
}

/// Whether a function is a method of one of the formatting traits, by its name.
pub(crate) fn is_method(symbol: &str) -> bool {
    let path = plain_path(symbol);
    path.contains(" as core::fmt::") && path.ends_with(">::fmt")
}

/// Whether a function is what strings are written by.
pub(crate) fn pads(symbol: &str) -> bool {
    path(symbol) == "core::fmt::Formatter::pad"
}

/// Whether the function with that path puts a message together, for others to format.
fn makes_messages(path: &str) -> bool {
    ["core::fmt::rt::", "core::fmt::Arguments::"].iter().any(|start| path.contains(start))
}

/// The names of trait and type of a formatting function, from its path: `<usize as core::fmt::Display>::fmt`, or in legacy symbols
/// `core::fmt::num::imp::<impl core::fmt::Display for usize>::fmt`.
pub(crate) fn formatter(symbol: &str) -> Option<(String, String)> {
    let path = path(symbol);
    let path = path.strip_suffix("::fmt")?;
    let (style, shown) = if let Some(start) = path.find("<impl core::fmt::") {
        let inside = path[start..].strip_prefix("<impl core::fmt::")?.strip_suffix('>')?;
        inside.split_once(" for ")?
    } else {
        let inside = path.strip_prefix('<')?.strip_suffix('>')?;
        let (shown, style) = inside.rsplit_once(" as core::fmt::")?;
        (style, shown)
    };
    Some((style.to_owned(), shown.to_owned()))
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
}
