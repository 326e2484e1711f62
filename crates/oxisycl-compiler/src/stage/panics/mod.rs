//! Panics on devices.
//!
//! [`hook`] takes the bodies of Rust's panic functions away before anything is linked that only they need. [`lower`], after optimisation,
//! turns each call into a call of `__oxisycl_record_panic` (in `oxisycl-device`) with the number of a [`PanicSite`] and the addresses and
//! kinds of the values in the message. The host formats them; no formatting code runs on the device for this.

mod arguments;
mod template;

use oxisycl_image::{ArgumentFormat, ArgumentKind, FormatTrait, MessagePiece, PanicSite, SourceLocation};

use crate::llvm::{Attribute, Builder, Module, Type, Value};
use crate::symbols::{path, plain_path};
use arguments::{Recorded, Shown};

const PREFIX: &str = "oxisycl.panic.";
/// Writes the launch's record; see `oxisycl_device::panic_record`.
pub(crate) const RECORD: &str = "__oxisycl_record_panic";

/// Functions that begin a panic or end the program, by path. None of them returns. Others of the standard library end in one of these.
fn is_panic(path: &str) -> bool {
    const FUNCTIONS: [&str; 19] = [
        "core::panicking::panic",
        "core::panicking::panic_fmt",
        "core::panicking::panic_nounwind",
        "core::panicking::panic_nounwind_fmt",
        "core::panicking::panic_nounwind_nobacktrace",
        "core::panicking::panic_bounds_check",
        "core::panicking::panic_misaligned_pointer_dereference",
        "core::panicking::panic_null_pointer_dereference",
        "core::panicking::panic_invalid_enum_construction",
        "core::panicking::panic_cannot_unwind",
        "core::panicking::panic_in_cleanup",
        "core::panicking::assert_failed_inner",
        "core::option::unwrap_failed",
        "core::option::expect_failed",
        "core::result::unwrap_failed",
        "core::intrinsics::abort",
        "std::process::abort",
        "alloc::alloc::handle_alloc_error",
        "oxisycl_device::builtin::not_on_the_host",
    ];
    path.starts_with("core::panicking::panic_const::")
        || path.starts_with("std::rt::begin_panic")
        || FUNCTIONS.contains(&path)
}

/// Replaces panic functions by declarations that [`lower`] finds.
pub(crate) fn hook(module: &Module<'_>) {
    let context = module.context();
    for function in module.functions() {
        let path = plain_path(function.name());
        if !is_panic(&path) {
            continue;
        }
        let declaration = module.declare(&format!("{PREFIX}{path}"), function.held_type());
        for attribute in ["noreturn", "cold", "nounwind", "convergent"] {
            declaration.add_attribute(Attribute::FUNCTION, Attribute::plain(context, attribute, 0));
        }
        function.replace_all_uses_with(declaration);
        function.delete_function();
    }
}

/// Where the code of an image can panic.
#[derive(Default)]
pub(crate) struct Sites {
    pub(crate) list: Vec<PanicSite>,
}

impl Sites {
    /// The number of a site.
    fn number(&mut self, site: PanicSite) -> u32 {
        let known = self.list.iter().position(|other| *other == site);
        known.unwrap_or_else(|| {
            self.list.push(site);
            self.list.len() - 1
        }) as u32
    }
}

/// Replaces the calls of hooked functions by records; `end` ends the work-item after them.
pub(crate) fn lower<'c>(
    module: &Module<'c>,
    sites: &mut Sites,
    launch: &dyn Fn(&Builder<'c>) -> Value<'c>,
    end: &dyn Fn(&Builder<'c>),
) {
    let context = module.context();
    let (pointer, number) = (Type::pointer(context, 0), Type::int(context, 32));
    let mut calls = Vec::new();
    for function in module.functions() {
        let Some(path) = function.name().strip_prefix(PREFIX) else { continue };
        calls.extend(
            function.users().into_iter().filter(|user| user.callee() == Some(function)).map(|call| (path, call)),
        );
    }
    // In the order of the code, not of the list of uses.
    let mut ordered = Vec::new();
    for function in module.functions() {
        for instruction in function.instructions() {
            ordered.extend(calls.iter().find(|(_, call)| *call == instruction).copied());
        }
    }
    for (path, call) in ordered {
        let (message, values) = message(path, call);
        let site = sites.number(PanicSite { location: location(call), message });
        let builder = Builder::before(context, call);
        let count = number.constant(values.len() as u64);
        let array = arguments::store(module, &builder, call, &values);
        let record = module.declare(RECORD, Type::function(Type::void(context), &[pointer, number, pointer, number]));
        builder.call(record, &[launch(&builder), number.constant(u64::from(site)), array, count]);
        end(&builder);
        call.erase();
    }
}

/// The message of a panic, and the values in it.
fn message<'c>(path: &str, call: Value<'c>) -> (Vec<MessagePiece>, Vec<Recorded<'c>>) {
    let arguments = call.arguments();
    let text = |text: &str| (vec![MessagePiece::Literal(text.to_owned())], Vec::new());
    let string = |first: usize| {
        let constant = arguments
            .get(first)
            .zip(arguments.get(first + 1))
            .and_then(|(start, length)| constant_text(*start, *length));
        constant.unwrap_or_else(|| "the message is not a constant".to_owned())
    };
    let plain = |index: u8| MessagePiece::Argument { index, format: ArgumentFormat::new(FormatTrait::Display) };
    let literal = |text: &str| MessagePiece::Literal(text.to_owned());
    match path {
        "core::panicking::panic_fmt" | "core::panicking::panic_nounwind_fmt" => {
            template::read(arguments[0], arguments[1], 0)
        }
        "core::panicking::panic_bounds_check" => (
            vec![literal("index out of bounds: the len is "), plain(1), literal(" but the index is "), plain(0)],
            vec![
                Recorded::scalar(arguments[0], ArgumentKind::Usize),
                Recorded::scalar(arguments[1], ArgumentKind::Usize),
            ],
        ),
        "core::panicking::assert_failed_inner" => assertion(&arguments),
        "core::option::unwrap_failed" => text("called `Option::unwrap()` on a `None` value"),
        "core::result::unwrap_failed" => {
            let error = arguments::of_object(arguments[2], arguments[3]);
            let pieces = vec![MessagePiece::Literal(string(0) + ": "), error.1.piece(0)];
            (pieces, vec![error.0])
        }
        "core::panicking::panic"
        | "core::panicking::panic_nounwind"
        | "core::panicking::panic_nounwind_nobacktrace"
        | "core::option::expect_failed" => text(&string(0)),
        "core::panicking::panic_cannot_unwind" => text("panic in a function that cannot unwind"),
        "core::panicking::panic_in_cleanup" => text("panic in a destructor during cleanup"),
        "core::panicking::panic_null_pointer_dereference" => text("null pointer dereference occurred"),
        "core::panicking::panic_misaligned_pointer_dereference" => text("misaligned pointer dereference"),
        "core::intrinsics::abort" | "std::process::abort" => text("the program aborted"),
        "alloc::alloc::handle_alloc_error" => text("memory allocation failed"),
        _ => text(&constant_panic(path)),
    }
}

/// The message of one of the compiler's own panics.
fn constant_panic(path: &str) -> String {
    let name = path.rsplit("::").next().unwrap_or(path);
    let text = match name.trim_start_matches("panic_const_") {
        "add_overflow" => "attempt to add with overflow",
        "sub_overflow" => "attempt to subtract with overflow",
        "mul_overflow" => "attempt to multiply with overflow",
        "div_overflow" => "attempt to divide with overflow",
        "rem_overflow" => "attempt to calculate the remainder with overflow",
        "neg_overflow" => "attempt to negate with overflow",
        "shr_overflow" => "attempt to shift right with overflow",
        "shl_overflow" => "attempt to shift left with overflow",
        "div_by_zero" => "attempt to divide by zero",
        "rem_by_zero" => "attempt to calculate the remainder with a divisor of zero",
        _ => return format!("panic in {path}"),
    };
    text.to_owned()
}

/// `assert_eq!` and `assert_ne!`: kind, two objects, and an optional message.
fn assertion<'c>(arguments: &[Value<'c>]) -> (Vec<MessagePiece>, Vec<Recorded<'c>>) {
    let operator = match arguments[0].integer() {
        Some(0) => "left == right",
        Some(1) => "left != right",
        _ => "left matches right",
    };
    let (left, right) =
        (arguments::of_object(arguments[1], arguments[2]), arguments::of_object(arguments[3], arguments[4]));
    let mut pieces = vec![MessagePiece::Literal(format!("assertion `{operator}` failed"))];
    let mut values = vec![left.0, right.0];
    let has_message = arguments.len() >= 7 && !arguments[5].is_null();
    if has_message {
        let (more, more_values) = template::read(arguments[5], arguments[6], values.len() as u8);
        pieces.push(MessagePiece::Literal(": ".to_owned()));
        pieces.extend(more);
        values.extend(more_values);
    }
    pieces.extend([
        MessagePiece::Literal("\n  left: ".to_owned()),
        left.1.piece(0),
        MessagePiece::Literal("\n right: ".to_owned()),
        right.1.piece(1),
    ]);
    (pieces, values)
}

/// A string constant, given by address and length.
fn constant_text(start: Value<'_>, length: Value<'_>) -> Option<String> {
    let bytes = start.initializer()?.data()?.get(..length.integer()? as usize)?;
    std::str::from_utf8(bytes).ok().map(str::to_owned)
}

/// The last argument of a function with `#[track_caller]`.
fn location(call: Value<'_>) -> Option<SourceLocation> {
    let record = call.arguments().last()?.initializer()?;
    let name = record.element(0)?.initializer()?.data()?;
    let rest = record.element(1)?.data()?;
    let number = |at: usize| Some(u32::from_le_bytes(rest.get(at..at + 4)?.try_into().ok()?));
    let length = u64::from_le_bytes(rest.get(..8)?.try_into().ok()?) as usize;
    let file = std::str::from_utf8(name.get(..length)?).ok()?.to_owned();
    Some(SourceLocation { file, line: number(8)?, column: number(12)? })
}

/// The trait and type of a formatting function, from its path: `<usize as core::fmt::Display>::fmt`, or in legacy symbols
/// `core::fmt::num::imp::<impl core::fmt::Display for usize>::fmt`.
fn formatter(symbol: &str) -> Option<(FormatTrait, String)> {
    let path = path(symbol);
    let path = path.strip_suffix("::fmt")?;
    let (name, shown) = if let Some(start) = path.find("<impl core::fmt::") {
        let inside = path[start..].strip_prefix("<impl core::fmt::")?.strip_suffix('>')?;
        let (style, shown) = inside.split_once(" for ")?;
        (style, shown)
    } else {
        let inside = path.strip_prefix('<')?.strip_suffix('>')?;
        let (shown, style) = inside.rsplit_once(" as core::fmt::")?;
        (style, shown)
    };
    let style = match name {
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
    Some((style, shown.to_owned()))
}

/// What a formatting function prints.
fn shown_by(function: Value<'_>) -> Option<Shown> {
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
    if let Some(kind) = kind(&name) {
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
            None if path(callee.name()) == "core::fmt::Formatter::pad" => {
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

    #[test]
    fn the_compilers_own_panics_have_rusts_messages() {
        assert_eq!(
            constant_panic("core::panicking::panic_const::panic_const_div_by_zero"),
            "attempt to divide by zero"
        );
        assert!(is_panic("core::panicking::panic_const::panic_const_div_by_zero"));
        assert!(!is_panic("core::slice::index::slice_index_fail"), "it says more than we would");
    }
}
