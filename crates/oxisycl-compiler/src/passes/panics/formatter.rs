//! What a formatting function prints: the trait and the type that its symbol names, and what lies behind references.

use oxisycl_image::{ArgumentKind, FormatTrait};

use crate::llvm::Value;
use crate::origin::{self, Origin};

/// What a formatting function prints of the address it is given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Shown {
    pub(super) style: FormatTrait,
    pub(super) kind: ArgumentKind,
    /// How many addresses lie between the argument and the value.
    pub(super) indirections: u32,
}

/// The trait and type of a formatting function.
fn formatter(symbol: &str) -> Option<(FormatTrait, String)> {
    let (name, shown) = origin::formatter(symbol)?;
    let style = match name.as_str() {
        "Display" => FormatTrait::Display,
        "Debug" => FormatTrait::Debug,
        "LowerHex" => FormatTrait::LowerHex,
        "UpperHex" => FormatTrait::UpperHex,
        "Octal" => FormatTrait::Octal,
        "Binary" => FormatTrait::Binary,
        "LowerExp" => FormatTrait::LowerExp,
        "UpperExp" => FormatTrait::UpperExp,
        "Pointer" => FormatTrait::Pointer,
        _ => return None,
    };
    Some((style, shown))
}

/// What a formatting function prints; `None` if the host does not know how.
pub(super) fn shown_by(function: Value<'_>) -> Option<Shown> {
    let (style, name) = formatter(function.name())?;
    let kind = |name: &str| {
        Some(match name {
            "bool" => ArgumentKind::Bool,
            "char" => ArgumentKind::Char,
            "i8" => ArgumentKind::I8,
            "i16" => ArgumentKind::I16,
            "i32" => ArgumentKind::I32,
            "i64" => ArgumentKind::I64,
            "i128" => ArgumentKind::I128,
            "isize" => ArgumentKind::Isize,
            "u8" => ArgumentKind::U8,
            "u16" => ArgumentKind::U16,
            "u32" => ArgumentKind::U32,
            "u64" => ArgumentKind::U64,
            "u128" => ArgumentKind::U128,
            "usize" => ArgumentKind::Usize,
            "f32" => ArgumentKind::F32,
            "f64" => ArgumentKind::F64,
            _ => return None,
        })
    };
    if let Some(kind) = kind(&name).filter(|_| origin::of(function.name()) == Origin::Standard) {
        return Some(Shown { style, kind, indirections: 0 });
    }
    if name == "&str" {
        return Some(Shown { style, kind: ArgumentKind::Str, indirections: 0 });
    }
    // `&T`, where legacy symbols do not say what `T` is: its formatting function says it.
    if !name.starts_with('&') || function.is_declaration() {
        return None;
    }
    for instruction in function.instructions() {
        let Some(callee) = instruction.callee() else { continue };
        match formatter(callee.name()) {
            Some((_, inner)) if inner == "str" => {
                return Some(Shown { style, kind: ArgumentKind::Str, indirections: 0 });
            }
            Some((_, inner)) if kind(&inner).is_some() => {
                return Some(Shown { style, kind: kind(&inner)?, indirections: 1 });
            }
            Some(_) => {
                let inner = shown_by(callee)?;
                return Some(Shown { style, indirections: inner.indirections + 1, ..inner });
            }
            None if origin::pads(callee.name()) => {
                return Some(Shown { style, kind: ArgumentKind::Str, indirections: 0 });
            }
            None => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formatting_functions_are_read_from_both_manglings() {
        for (symbol, style, name) in [
            ("_RNvXs7_NtNtCsgEmfK2I1SDS_4core3fmt5floatdNtB7_7Display3fmt", FormatTrait::Display, "f64"),
            ("_RNvXs6_NtNtCsgEmfK2I1SDS_4core3fmt3numjNtB7_8LowerHex3fmt", FormatTrait::LowerHex, "usize"),
            ("_ZN42_$LT$$RF$T$u20$as$u20$core..fmt..Debug$GT$3fmt17hb9624c4616cd4342E", FormatTrait::Debug, "&T"),
            (
                "_ZN4core3fmt3num3imp52_$LT$impl$u20$core..fmt..Display$u20$for$u20$i32$GT$3fmt17h0123456789abcdefE",
                FormatTrait::Display,
                "i32",
            ),
        ] {
            assert_eq!(formatter(symbol), Some((style, name.to_owned())), "{symbol}");
        }
        assert_eq!(formatter("memcpy"), None);
    }
}
