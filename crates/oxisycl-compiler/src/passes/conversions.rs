//! Conversions between integers and `float` on NVIDIA GPUs.
//!
//! Bytes and pairs of bytes, such as the channels of pixels, become floats. The conversion of an integer has a quarter of a sum's throughput, or
//! less, and the byte has to be taken from its word before. Instead, one permutation of bytes makes 2^23 and the number, whose lowest bits the
//! number is. A difference leaves the number itself, without rounding.
//!
//! What Rust's `as` makes of a float is one instruction for integers of 32 bits. It goes no further than the integer's ends, and a NaN becomes 0
//! (PTX ISA, `cvt`). LLVM compares and selects around it.
//!
//! Invariant: results have the same bits.

use crate::llvm::{Builder, Module, Opcode, Type, TypeKind, Value};

/// The bits of 2^23 as a `float`, and those of its opposite.
const BEGIN: u64 = 0x4b00_0000;
const BEFORE: u64 = 0xcb00_0000;

/// Some bytes of a word.
struct Bytes<'c> {
    /// An integer of at most 32 bits.
    word: Value<'c>,
    first: u64,
    /// One or two.
    count: u64,
}

/// Intrinsics of LLVM that stop at the ends of an integer, and those of the processor that do the same.
const SATURATING: [(&str, &str); 2] =
    [("llvm.fptosi.sat.i32.f32", "llvm.nvvm.f2i.rz"), ("llvm.fptoui.sat.i32.f32", "llvm.nvvm.f2ui.rz")];

/// Replaces the conversions. Called right before code generation, since LLVM's simplifications know less of what replaces them.
pub(crate) fn lower(module: &Module<'_>) {
    for instruction in module.functions().into_iter().flat_map(Value::instructions) {
        let replacement = match instruction.opcode() {
            Some(Opcode::UI_TO_FP | Opcode::SI_TO_FP) => permuted(module, instruction),
            Some(Opcode::CALL) => saturated(module, instruction),
            _ => None,
        };
        if let Some(replacement) = replacement {
            instruction.replace_all_uses_with(replacement);
            instruction.erase();
        }
    }
}

/// The number of a call that stops at the ends of an integer.
fn saturated<'c>(module: &Module<'c>, call: Value<'c>) -> Option<Value<'c>> {
    let callee = call.callee()?;
    let (_, native) = SATURATING.into_iter().find(|(name, _)| callee.name() == *name)?;
    let builder = Builder::before(module.context(), call);
    Some(builder.call(module.intrinsic(native, &[]), &call.arguments()))
}

/// The float of a few bytes.
fn permuted<'c>(module: &Module<'c>, conversion: Value<'c>) -> Option<Value<'c>> {
    let context = module.context();
    let (word, single) = (Type::int(context, 32), Type::single(context));
    // The same number, if it has no sign.
    let is_unsigned = conversion.is(Opcode::UI_TO_FP) || conversion.operand(0).value_type() == word;
    if conversion.value_type() != single || !is_unsigned {
        return None;
    }
    let bytes = unsigned(conversion.operand(0))?;
    let builder = Builder::before(context, conversion);
    let value = if bytes.word.value_type() == word { bytes.word } else { builder.widen(bytes.word, word) };
    // Of eight bytes, the upper four are those of 2^23: two or three zeros, and the last one.
    let second = if bytes.count == 2 { bytes.first + 1 } else { 4 };
    let selection = word.constant(0x7400 | second << 4 | bytes.first);
    let permute = module.intrinsic("llvm.nvvm.prmt", &[]);
    let bits = builder.call(permute, &[value, word.constant(BEGIN), selection]);
    let sum = builder.cast(Opcode::BITCAST, bits, single);
    let before = builder.cast(Opcode::BITCAST, word.constant(BEFORE), single);
    Some(builder.binary(Opcode::FADD, sum, before))
}

/// The bytes that an unsigned integer consists of, if they are few.
fn unsigned(value: Value<'_>) -> Option<Bytes<'_>> {
    let bits = |value: Value<'_>| match value.value_type().kind() {
        TypeKind::Integer(bits) => u64::from(bits),
        _ => 0,
    };
    match (value.opcode(), bits(value)) {
        (Some(Opcode::ZEXT), _) if matches!(bits(value.operand(0)), 8 | 16) => unsigned(value.operand(0)),
        (Some(Opcode::TRUNC), count @ (8 | 16)) if bits(value.operand(0)) == 32 => {
            Some(shifted(value.operand(0), count / 8).unwrap_or(Bytes {
                word: value.operand(0),
                first: 0,
                count: count / 8,
            }))
        }
        (_, count @ (8 | 16)) => Some(Bytes { word: value, first: 0, count: count / 8 }),
        (Some(Opcode::AND), 32) => {
            let count = match value.operand(1).integer()? {
                0xff => 1,
                0xffff => 2,
                _ => return None,
            };
            Some(shifted(value.operand(0), count).unwrap_or(Bytes { word: value.operand(0), first: 0, count }))
        }
        (Some(Opcode::LSHR), 32) => match value.operand(1).integer()? {
            24 => shifted(value, 1),
            16 => shifted(value, 2),
            _ => None,
        },
        _ => None,
    }
}

/// The lowest bytes of a word that was shifted by whole bytes.
fn shifted(value: Value<'_>, count: u64) -> Option<Bytes<'_>> {
    let by = value.is(Opcode::LSHR).then(|| value.operand(1).integer()).flatten()?;
    let first = by / 8;
    (by.is_multiple_of(8) && first + count <= 4).then(|| Bytes { word: value.operand(0), first, count })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::passes::tests::{context, module, ptx};

    /// The code of a conversion of `%v`, and of what comes before it.
    fn converted(code: &str, conversion: &str) -> String {
        format!(
            "define ptx_kernel void @k(ptr %p, i32 %w, i8 %b, i16 %h, i64 %wide) {{
            {code}
            %f = {conversion} %v to float
            store float %f, ptr %p
            ret void }}"
        )
    }

    /// The selection of bytes that a conversion becomes, if it becomes one.
    fn selection(text: &str) -> Option<u64> {
        let context = context();
        let module = module(&context, text);
        let before = module.to_string();
        lower(&module);
        module.verify("conversions").expect("a valid module");
        let after = module.to_string();
        let Some((_, call)) = after.split_once("call i32 @llvm.nvvm.prmt(") else {
            assert_eq!(before, after, "what is left alone is unchanged");
            return None;
        };
        assert!(call.contains("i32 1258291200") && call.contains("fadd float") && !call.contains("itofp"), "{after}");
        let number = call.split_once(')').expect("arguments").0.rsplit(' ').next().expect("the selection");
        Some(number.parse().expect("a number"))
    }

    #[test]
    fn bytes_of_words_are_selected() {
        for (code, conversion, expected) in [
            ("%v = and i32 %w, 255", "uitofp i32", 0x7440),
            ("%v = and i32 %w, 255", "sitofp i32", 0x7440),
            ("%s = lshr i32 %w, 8\n %v = and i32 %s, 255", "uitofp i32", 0x7441),
            ("%s = lshr i32 %w, 16\n %v = trunc i32 %s to i8", "uitofp i8", 0x7442),
            ("%s = lshr i32 %w, 16\n %t = trunc i32 %s to i8\n %v = zext i8 %t to i32", "uitofp nneg i32", 0x7442),
            ("%v = lshr i32 %w, 24", "uitofp nneg i32", 0x7443),
            ("%v = lshr i32 %w, 16", "uitofp nneg i32", 0x7432),
            ("%v = and i32 %w, 65535", "uitofp nneg i32", 0x7410),
            ("%s = lshr i32 %w, 8\n %v = trunc i32 %s to i16", "uitofp i16", 0x7421),
            ("%v = zext i8 %b to i64", "uitofp i64", 0x7440),
            ("%v = add i8 %b, 1", "uitofp i8", 0x7440),
            ("%v = add i16 %h, 1", "uitofp i16", 0x7410),
        ] {
            assert_eq!(selection(&converted(code, conversion)), Some(expected), "{code}");
        }
    }

    #[test]
    fn other_numbers_are_converted_as_they_are() {
        for (code, conversion) in [
            ("%v = and i32 %w, 511", "uitofp i32"),
            ("%v = lshr i32 %w, 23", "uitofp i32"),
            ("%v = ashr i32 %w, 24", "uitofp i32"),
            ("%v = lshr i64 %wide, 56", "uitofp i64"),
            ("%v = and i64 %wide, 255", "uitofp i64"),
            ("%v = add i8 %b, 1", "sitofp i8"),
            ("%v = sext i8 %b to i32", "sitofp i32"),
        ] {
            assert_eq!(selection(&converted(code, conversion)), None, "{code}");
        }
        let double = converted("%v = and i32 %w, 255", "uitofp i32").replace("float", "double");
        assert_eq!(selection(&double), None);
    }

    #[test]
    fn a_shifted_byte_beyond_the_word_is_none_of_its_bytes() {
        // The lowest byte of the shifted word is there, and the second one is zero.
        let text = converted("%s = lshr i32 %w, 24\n %v = and i32 %s, 65535", "uitofp i32");
        assert_eq!(selection(&text), Some(0x7410));
    }

    #[test]
    fn a_channel_is_one_permutation_and_one_sum() {
        let context = context();
        let module = module(&context, &converted("%s = lshr i32 %w, 8\n %v = and i32 %s, 255", "uitofp i32"));
        lower(&module);
        let text = ptx(&module);
        assert!(text.contains("prmt.b32") && !text.contains("cvt.") && !text.contains("shr"), "{text}");
    }
    #[test]
    fn what_as_makes_of_a_float_is_one_instruction() {
        let context = context();
        for (intrinsic, instruction) in
            [("llvm.fptosi.sat.i32.f32", "cvt.rzi.s32.f32"), ("llvm.fptoui.sat.i32.f32", "cvt.rzi.u32.f32")]
        {
            let text = format!(
                "declare i32 @{intrinsic}(float)
                define ptx_kernel void @k(ptr %p, float %f) {{
                %v = call i32 @{intrinsic}(float %f)
                store i32 %v, ptr %p
                ret void }}"
            );
            let module = module(&context, &text);
            lower(&module);
            let text = ptx(&module);
            assert!(text.contains(instruction) && !text.contains("setp") && !text.contains("selp"), "{text}");
        }
    }
}
