//! Marks loads of specialization constants in PTX, so that a runtime finds them in the text and puts values in their place.
//!
//! Such a load becomes an instruction of inline assembly below a comment, which nothing joins with the loads beside it. The text as it stands runs for all values.
//! Invariant: each load loads what it did. One that is not of exactly one part, or of several side by side, is left as it is.

use std::collections::BTreeMap;
use std::fmt::Write;

use oxisycl_image::SpecializedLoad;

use crate::error::CompileError;
use crate::llvm::pass_lists::INLINE_BODIES;
use crate::llvm::{Builder, Layout, Linkage, Module, Opcode, PassTuning, Type, TypeKind, Value, ValueKind};

/// The parameter of a kernel that is its block.
const BLOCK: u32 = 1;
/// The address space of parameters.
const PARAMETERS: u32 = 101;

/// Marks the loads of `parts`, each an offset and a size, in the kernel `kernel`.
pub(crate) fn mark_loads(module: &Module<'_>, kernel: Value<'_>, parts: &[(usize, usize)]) -> Result<(), CompileError> {
    let by_value = |kernel: Value<'_>| kernel.parameter(BLOCK).value_type().kind() == TypeKind::Pointer(0);
    if parts.is_empty() || kernel.parameter_count() <= BLOCK || !by_value(kernel) {
        return Ok(());
    }
    let (context, layout) = (module.context(), Layout::of(module));
    let mut found: BTreeMap<(usize, usize, &'static str), Vec<Value<'_>>> = BTreeMap::new();
    for load in kernel.instructions() {
        if !load.is(Opcode::LOAD) || load.is_volatile() || load.is_atomic() {
            continue;
        }
        let size = layout.size(load.value_type()) as usize;
        let offset =
            offset_in(kernel.parameter(BLOCK), load.operand(0)).and_then(|offset| usize::try_from(offset).ok());
        if let (Some(offset), Some(type_name)) = (offset, type_name(load.value_type()))
            && pieces(parts, offset, size).is_some()
        {
            found.entry((offset, size, type_name)).or_default().push(load);
        }
    }
    if found.is_empty() {
        return Ok(());
    }
    let parameter = format!("{}_param_{BLOCK}", kernel.name()).replace('$', "$$");
    let mut bodies = String::new();
    for &(offset, size, type_name) in found.keys() {
        let pieces = pieces(parts, offset, size).expect("as it was above");
        bodies.push_str(&body(&name(offset, type_name), type_name, &parameter, offset, size, &pieces));
    }
    module.link(Module::from_text(context, &bodies, "specialization")?)?;
    for ((offset, _, type_name), loads) in found {
        let body = module.function(&name(offset, type_name)).expect("it was linked above");
        body.set_linkage(Linkage::INTERNAL);
        for load in loads {
            load.replace_all_uses_with(Builder::before(context, load).call(body, &[]));
            load.erase();
        }
    }
    // Sums of one piece are no sums.
    module.run(&format!("{INLINE_BODIES},function(instsimplify)"), None, &PassTuning::DEVICE)
}

/// The parts that a load consists of: one, or several side by side that were joined.
fn pieces(parts: &[(usize, usize)], offset: usize, size: usize) -> Option<Vec<(usize, usize)>> {
    let mut pieces = Vec::new();
    let mut at = offset;
    while at < offset + size {
        let piece = parts.iter().find(|(start, length)| *start == at && at + length <= offset + size)?;
        pieces.push(*piece);
        at += piece.1;
    }
    Some(pieces)
}

/// A function that loads the pieces of a number one by one.
fn body(name: &str, type_name: &str, parameter: &str, offset: usize, size: usize, pieces: &[(usize, usize)]) -> String {
    let whole = 8 * size;
    let mut body = format!("define {type_name} @{name}() alwaysinline nounwind willreturn memory(none) {{\n");
    for (index, &(at, length)) in pieces.iter().enumerate() {
        // The smallest register has 16 bits.
        let (bits, register) = ((8 * length).max(16), ["h", "h", "r", "l"][length.ilog2() as usize]);
        let text = SpecializedLoad::text(at, length, "$0", parameter).replace('\n', "\\0A").replace('\t', "\\09");
        let _ = writeln!(
            body,
            "%loaded{index} = call i{bits} asm \"{text}\", \"={register}\"() nounwind willreturn memory(none)"
        );
        let is_cut = length == 1;
        let _ = writeln!(
            body,
            "%piece{index} = {} i{bits} %loaded{index} to i{}",
            if is_cut { "trunc" } else { "bitcast" },
            8 * length
        );
        let cast = if 8 * length == whole { "bitcast" } else { "zext" };
        let _ = writeln!(body, "%wide{index} = {cast} i{} %piece{index} to i{whole}", 8 * length);
        let _ = writeln!(body, "%moved{index} = shl i{whole} %wide{index}, {}", 8 * (at - offset));
        let sum = index.checked_sub(1).map_or_else(|| "0".to_owned(), |before| format!("%sum{before}"));
        let _ = writeln!(body, "%sum{index} = or i{whole} {sum}, %moved{index}");
    }
    let _ = writeln!(body, "%value = bitcast i{whole} %sum{} to {type_name}", pieces.len() - 1);
    let _ = writeln!(body, "ret {type_name} %value\n}}");
    body
}

/// The name of a type of numbers in LLVM's assembly.
fn type_name(of: Type<'_>) -> Option<&'static str> {
    Some(match of.kind() {
        TypeKind::Integer(8) => "i8",
        TypeKind::Integer(16) => "i16",
        TypeKind::Integer(32) => "i32",
        TypeKind::Integer(64) => "i64",
        TypeKind::Float => "float",
        TypeKind::Double => "double",
        _ => return None,
    })
}

fn name(offset: usize, type_name: &str) -> String {
    format!("oxisycl.specialized.{offset}.{type_name}")
}

/// How far an address is behind the beginning of a parameter, if that is a constant.
fn offset_in(parameter: Value<'_>, mut address: Value<'_>) -> Option<u64> {
    let mut offset = 0u64;
    while address != parameter {
        if address.kind() != ValueKind::Instruction {
            return None;
        }
        if address.is(Opcode::GET_ELEMENT_PTR) && address.operands().len() == 2 {
            let TypeKind::Integer(8) = address.gep_type().kind() else { return None };
            offset = offset.checked_add(address.operand(1).integer()?)?;
        } else if !address.is(Opcode::ADDRESS_SPACE_CAST)
            || !matches!(address.value_type().kind(), TypeKind::Pointer(0 | PARAMETERS))
        {
            return None;
        }
        address = address.operand(0);
    }
    Some(offset)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::passes::tests::{context, module, ptx};

    const KERNEL: &str = "
        define ptx_kernel void @k(ptr byval([104 x i8]) align 8 %launch, ptr byval([40 x i8]) align 8 %block) {
            %n.place = getelementptr i8, ptr %block, i64 16
            %n = load i32, ptr %n.place, align 8
            %m.place = getelementptr i8, ptr %block, i64 20
            %m = load i32, ptr %m.place, align 4
            %x.place = getelementptr i8, ptr %block, i64 24
            %x = load float, ptr %x.place, align 8
            %flag.place = getelementptr i8, ptr %x.place, i64 4
            %flag = load i8, ptr %flag.place, align 4
            %wide.place = getelementptr i8, ptr %block, i64 32
            %wide = load double, ptr %wide.place, align 8
            %at = zext i8 %flag to i64
            %element.place = getelementptr i8, ptr %block, i64 %at
            %element = load i32, ptr %element.place, align 4
            %to = load ptr, ptr %block, align 8
            %s1 = add i32 %n, %m
            %s2 = add i32 %s1, %element
            store i32 %s2, ptr %to
            %next = getelementptr i8, ptr %to, i64 8
            store float %x, ptr %next
            %last = getelementptr i8, ptr %to, i64 16
            store double %wide, ptr %last
            ret void
        }";

    #[test]
    fn loads_of_exactly_a_part_can_be_found_in_the_text() {
        let context = context();
        let module = module(&context, KERNEL);
        let kernel = module.function("k").expect("a kernel");
        // The last one is a part of another size.
        mark_loads(&module, kernel, &[(16, 4), (20, 4), (24, 4), (28, 1), (32, 4)]).expect("marked");
        module.verify("specialization").expect("a valid module");
        let code = ptx(&module);
        let parts = |load: &SpecializedLoad| (load.offset, load.size);
        let mut found: Vec<_> = SpecializedLoad::find(code.as_bytes()).iter().map(parts).collect();
        found.sort_unstable();
        assert_eq!(found, [(16, 4), (20, 4), (24, 4), (28, 1)], "{code}");
        // Neighbours are not joined, but for those that are none of ours.
        assert!(!code.contains("ld.param.v2"), "{code}");
        assert!(code.contains("[k_param_1+32]") && code.contains("ld.param.b64"), "{code}");
    }

    #[test]
    fn a_load_of_neighbours_is_taken_apart() {
        let context = context();
        let text = "
            define ptx_kernel void @k(ptr byval([104 x i8]) align 8 %launch, ptr byval([24 x i8]) align 8 %block) {
                %place = getelementptr i8, ptr %block, i64 8
                %both = load i64, ptr %place, align 8
                %other.place = getelementptr i8, ptr %block, i64 16
                %other = load i64, ptr %other.place, align 8
                %sum = add i64 %both, %other
                %to = load ptr, ptr %block, align 8
                store i64 %sum, ptr %to
                ret void
            }";
        let module = module(&context, text);
        // Of the second load, one half is no part.
        mark_loads(&module, module.function("k").expect("a kernel"), &[(8, 4), (12, 2), (14, 1), (15, 1), (16, 4)])
            .expect("marked");
        module.verify("specialization").expect("a valid module");
        let code = ptx(&module);
        let found = SpecializedLoad::find(code.as_bytes());
        let mut parts: Vec<_> = found.iter().map(|load| (load.offset, load.size)).collect();
        parts.sort_unstable();
        assert_eq!(parts, [(8, 4), (12, 2), (14, 1), (15, 1)], "{code}");
    }

    #[test]
    fn code_without_parts_is_left_as_it_is() {
        let context = context();
        let module = module(&context, KERNEL);
        let before = module.to_string();
        mark_loads(&module, module.function("k").expect("a kernel"), &[]).expect("nothing to do");
        mark_loads(&module, module.function("k").expect("a kernel"), &[(17, 4), (16, 2)]).expect("nothing to do");
        assert_eq!(module.to_string(), before);
    }
}
