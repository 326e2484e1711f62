//! The output of a formatting function: the trait and the type in its symbol, and the value behind references.

use oxisycl_image::{ArgumentKind, FormatTrait};

use crate::llvm::{Opcode, TypeKind, Value};
use crate::origin::{self, Formatted, Formatter};

/// The output of a formatting function for the address that it gets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Shown {
    pub(super) style: FormatTrait,
    pub(super) kind: ArgumentKind,
    /// The number of addresses between the argument and the value.
    pub(super) indirections: u32,
}

/// The most indirections that the host formats; deeper references are formatted by the device.
const MOST_INDIRECTIONS: u32 = 8;

/// Intrinsics without effects.
const IDLE: [&str; 4] = ["llvm.assume", "llvm.dbg.", "llvm.experimental.noalias.scope.decl", "llvm.lifetime."];

/// The output of a formatting function; `None` if the host cannot produce it.
pub(super) fn shown_by(function: Value<'_>) -> Option<Shown> {
    shown_within(function, MOST_INDIRECTIONS)
}

fn shown_within(function: Value<'_>, n_left: u32) -> Option<Shown> {
    let Formatter { style, formatted } = origin::formatter(function.name())?;
    match formatted {
        Formatted::Value(kind) => Some(Shown { style, kind, indirections: 0 }),
        Formatted::StrReference => Some(Shown { style, kind: ArgumentKind::Str, indirections: 0 }),
        Formatted::Reference if n_left > 0 => shown_behind(function, style, n_left - 1),
        Formatted::Reference | Formatted::Str | Formatted::Other => None,
    }
}

/// The output of the formatting function of `&T`. Symbols need not name `T`, and `T`'s own formatting may have been inlined. So the
/// function counts only if all it does is to call another one with what the reference refers to.
fn shown_behind(function: Value<'_>, style: FormatTrait, n_left: u32) -> Option<Shown> {
    let call = only_call(function)?;
    let callee = call.callee()?;
    let (reference, formatter) = (function.parameter(0), function.parameter(1));
    let is_address = |value: Value<'_>| value.is(Opcode::LOAD) && value.operand(0) == reference;
    let is_length = |value: Value<'_>| value.is(Opcode::LOAD) && is_second_word(value.operand(0), reference);
    let text = |style| Some(Shown { style, kind: ArgumentKind::Str, indirections: 0 });
    if origin::pads(callee.name()) {
        let [first, address, length] = call.arguments()[..] else { return None };
        let is_text = first == formatter && is_address(address) && is_length(length);
        // Only `Display` of a text pads.
        return if is_text && style == FormatTrait::Display { text(style) } else { None };
    }
    let inner = origin::formatter(callee.name())?;
    if inner.formatted == Formatted::Str {
        let [address, length, last] = call.arguments()[..] else { return None };
        return if is_address(address) && is_length(length) && last == formatter { text(inner.style) } else { None };
    }
    let [address, last] = call.arguments()[..] else { return None };
    if !is_address(address) || last != formatter {
        return None;
    }
    let inner = shown_within(callee, n_left)?;
    Some(Shown { indirections: inner.indirections + 1, ..inner })
}

/// The only call of a function that loads, calls once, and returns the call's result.
fn only_call(function: Value<'_>) -> Option<Value<'_>> {
    let [_] = function.blocks()[..] else { return None };
    let mut call = None;
    for instruction in function.instructions() {
        let is_idle = |callee: Value<'_>| IDLE.iter().any(|name| callee.name().starts_with(name));
        match instruction.callee() {
            Some(callee) if is_idle(callee) => {}
            Some(_) if call.is_none() => call = Some(instruction),
            None if [Opcode::LOAD, Opcode::GET_ELEMENT_PTR].iter().any(|opcode| instruction.is(*opcode)) => {}
            None if instruction.is(Opcode::RET) && Some(instruction.operand(0)) == call => {}
            _ => return None,
        }
    }
    call
}

/// Whether an address is eight bytes behind another one.
fn is_second_word(address: Value<'_>, first: Value<'_>) -> bool {
    let is_offset = address.is(Opcode::GET_ELEMENT_PTR)
        && address.operand(0) == first
        && address.gep_type().kind() == TypeKind::Integer(8)
        && address.operands().len() == 2;
    is_offset && address.operand(1).integer() == Some(8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::passes::tests::{context, module};

    #[test]
    fn a_reference_shows_what_it_refers_to_only_if_the_library_says_so() {
        const LIBRARY: &str = "_ZN44_$LT$$RF$T$u20$as$u20$core..fmt..Display$GT$3fmt17h0123456789abcdefE";
        const USER: &str = "_ZN49_$LT$$RF$app..X$u20$as$u20$core..fmt..Display$GT$3fmt17h0123456789abcdefE";
        const HEX: &str =
            "_ZN4core3fmt3num53_$LT$impl$u20$core..fmt..LowerHex$u20$for$u20$u64$GT$3fmt17h0123456789abcdefE";
        const NUMBER: &str =
            "_ZN4core3fmt3num3imp52_$LT$impl$u20$core..fmt..Display$u20$for$u20$u64$GT$3fmt17h0123456789abcdefE";
        const STR: &str = "_ZN42_$LT$str$u20$as$u20$core..fmt..Display$GT$3fmt17h0123456789abcdefE";
        let shown = |name: &str, body: &str| {
            let context = context();
            let text = format!(
                "declare i1 @\"{NUMBER}\"(ptr, ptr)
                declare i1 @\"{HEX}\"(ptr, ptr)
                declare i1 @\"{STR}\"(ptr, i64, ptr)
                declare i1 @_ZN4core3fmt9Formatter3pad17h0123456789abcdefE(ptr, ptr, i64)
                define i1 @\"{name}\"(ptr %self, ptr %f) {{ %p = load ptr, ptr %self {body} ret i1 %r }}"
            );
            let module = module(&context, &text);
            shown_by(module.function(name).expect("it is there"))
        };
        let length = "%q = getelementptr i8, ptr %self, i64 8 %n = load i64, ptr %q";
        let call = |what: &str| format!("%r = call i1 @\"{NUMBER}\"(ptr {what}, ptr %f)");
        let pad = |what: &str, n: &str| {
            let name = "_ZN4core3fmt9Formatter3pad17h0123456789abcdefE";
            format!("{length} %r = call i1 @{name}(ptr %f, ptr {what}, i64 {n})")
        };
        let text = |what: &str, n: &str| format!("{length} %r = call i1 @\"{STR}\"(ptr {what}, i64 {n}, ptr %f)");
        let number = Shown { style: FormatTrait::Display, kind: ArgumentKind::U64, indirections: 1 };
        assert_eq!(shown(LIBRARY, &call("%p")), Some(number));
        let string = Shown { kind: ArgumentKind::Str, indirections: 0, ..number };
        assert_eq!([pad("%p", "%n"), text("%p", "%n")].map(|body| shown(LIBRARY, &body)), [Some(string); 2]);
        // What the method of `T` does was inlined: it shows the number in another way.
        let hex = Shown { style: FormatTrait::LowerHex, ..number };
        assert_eq!(shown(LIBRARY, &call("%p").replace(NUMBER, HEX)), Some(hex));

        let own = "%own = alloca i64 ";
        let sometimes = "%c = icmp eq ptr %p, %f br i1 %c, label %a, label %b a: CALL br label %b
            b: %r = phi i1 [ %x, %a ], [ false, %0 ]";
        let sometimes = sometimes.replace("CALL", &call("%p").replace("%r", "%x"));
        for (name, body) in [
            // A user's method for the reference.
            (USER, call("%p")),
            (USER, pad("%p", "%n")),
            // Users' methods that were inlined into the library's. They use another value, length, formatter or result, call it twice or
            // not always, or have a side effect.
            (LIBRARY, own.to_owned() + &call("%own")),
            (LIBRARY, own.to_owned() + &pad("%own", "%n")),
            (LIBRARY, pad("%p", "7")),
            (LIBRARY, text("%p", "7")),
            (LIBRARY, call("%p").replace("ptr %f", "ptr %p")),
            (LIBRARY, call("%p") + &call("%p").replace("%r", "%s")),
            (LIBRARY, sometimes),
            (LIBRARY, "store i64 1, ptr %p ".to_owned() + &call("%p")),
            (LIBRARY, call("%p").replace("%r", "%s") + " %r = icmp eq ptr %p, %f"),
        ] {
            assert_eq!(shown(name, &body), None, "{name}: {body}");
        }
        // Only `Display` of a text is what pads.
        assert_eq!(shown(&LIBRARY.replace("7Display", "5Debug").replace("Display", "Debug"), &pad("%p", "%n")), None);
    }

    #[test]
    fn types_that_show_each_other_are_left_to_the_device() {
        let [x, y] = ["0", "1"]
            .map(|digit| format!("_ZN44_$LT$$RF$T$u20$as$u20$core..fmt..Display$GT$3fmt17h{digit}123456789abcdefE"));
        let text = format!(
            "define i1 @\"{x}\"(ptr %self, ptr %f) {{ %p = load ptr, ptr %self %r = call i1 @\"{y}\"(ptr %p, ptr %f) ret i1 %r }}
            define i1 @\"{y}\"(ptr %self, ptr %f) {{ %p = load ptr, ptr %self %r = call i1 @\"{x}\"(ptr %p, ptr %f) ret i1 %r }}"
        );
        let context = context();
        let module = module(&context, &text);
        assert_eq!(shown_by(module.function(&x).expect("it is there")), None);
    }
}
