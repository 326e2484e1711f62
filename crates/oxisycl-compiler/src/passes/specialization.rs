//! Marks loads of specialization constants in PTX and SPIR-V, so that a runtime finds them in the code and puts values in their place.
//!
//! In PTX such a load becomes an instruction of inline assembly below a comment, which nothing joins with the loads beside it. For SPIR-V it gets a name, which
//! the translation keeps. The code as it stands runs for all values.
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

/// What the names of loads begin with in modules for SPIR-V. Offset and size follow, each with a dot behind it, and then what makes names different.
const NAME: &str = "oxisycl.spec.";

/// A load of one part of a kernel's block, or of several side by side that were joined.
struct Load<'c> {
    load: Value<'c>,
    offset: usize,
    size: usize,
    type_name: &'static str,
}

/// The loads of `parts`, each an offset and a size, in the kernel `kernel`.
fn loads<'c>(module: &Module<'c>, kernel: Value<'c>, parts: &[(usize, usize)]) -> Vec<Load<'c>> {
    let by_value = |kernel: Value<'_>| kernel.parameter(BLOCK).value_type().kind() == TypeKind::Pointer(0);
    if parts.is_empty() || kernel.parameter_count() <= BLOCK || !by_value(kernel) {
        return Vec::new();
    }
    let layout = Layout::of(module);
    let of_parts = |load: Value<'c>| {
        if !load.is(Opcode::LOAD) || load.is_volatile() || load.is_atomic() {
            return None;
        }
        let size = layout.size(load.value_type()) as usize;
        let offset = usize::try_from(offset_in(kernel.parameter(BLOCK), load.operand(0))?).ok()?;
        let type_name = type_name(load.value_type())?;
        pieces(parts, offset, size).map(|_| Load { load, offset, size, type_name })
    };
    kernel.instructions().into_iter().filter_map(of_parts).collect()
}

/// Names the loads of `parts`, each an offset and a size, in the kernel `kernel`. Those of several parts are taken apart.
///
/// The block is private memory there, and LLVM does not know that it is constant. Nothing writes to a part: values of specialization constants are `Copy`, and
/// a shared reference to such a value allows no write.
pub(crate) fn name_loads(module: &Module<'_>, kernel: Value<'_>, parts: &[(usize, usize)]) -> Result<(), CompileError> {
    let name_of_load = |offset: usize, size: usize| format!("{NAME}{offset}.{size}.");
    let mut joined: BTreeMap<String, Vec<Value<'_>>> = BTreeMap::new();
    let mut bodies = String::new();
    for Load { load, offset, size, type_name } in loads(module, kernel, parts) {
        let pieces = pieces(parts, offset, size).expect("as it was found");
        if pieces.len() == 1 {
            load.set_name(&name_of_load(offset, size));
            continue;
        }
        let alignment = load.alignment().max(1);
        let name = format!("{}.{alignment}", name(offset, type_name));
        if !joined.contains_key(&name) {
            let piece = |index: usize, at: usize, length: usize| {
                let distance = at - offset;
                let alignment = if distance == 0 { alignment } else { alignment.min(1 << distance.trailing_zeros()) };
                let (bits, loaded) = (8 * length, name_of_load(at, length));
                format!(
                    "%at{index} = getelementptr i8, ptr %first, i64 {distance}\n\
                     %{loaded} = load i{bits}, ptr %at{index}, align {alignment}\n\
                     %piece{index} = bitcast i{bits} %{loaded} to i{bits}\n"
                )
            };
            bodies.push_str(&body(&format!("{name}(ptr %first)"), type_name, (offset, size), &pieces, piece));
        }
        joined.entry(name).or_default().push(load);
    }
    replace(module, &bodies, joined, |load| vec![load.operand(0)])
}

/// Which part of the block a load is of that has this name: offset and size.
pub(crate) fn named_part(name: &str) -> Option<(usize, usize)> {
    let mut numbers = name.strip_prefix(NAME)?.split('.');
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// Marks the loads of `parts`, each an offset and a size, in the kernel `kernel`.
pub(crate) fn mark_loads(module: &Module<'_>, kernel: Value<'_>, parts: &[(usize, usize)]) -> Result<(), CompileError> {
    let parameter = format!("{}_param_{BLOCK}", kernel.name()).replace('$', "$$");
    let mut found: BTreeMap<String, Vec<Value<'_>>> = BTreeMap::new();
    let mut bodies = String::new();
    for Load { load, offset, size, type_name } in loads(module, kernel, parts) {
        let name = name(offset, type_name);
        if !found.contains_key(&name) {
            let pieces = pieces(parts, offset, size).expect("as it was found");
            let piece = |index: usize, at: usize, length: usize| marked(index, at, length, &parameter);
            bodies.push_str(&body(&format!("{name}()"), type_name, (offset, size), &pieces, piece));
        }
        found.entry(name).or_default().push(load);
    }
    replace(module, &bodies, found, |_| Vec::new())
}

/// Replaces loads by the bodies of the functions that they are listed by.
fn replace<'c>(
    module: &Module<'c>,
    bodies: &str,
    found: BTreeMap<String, Vec<Value<'c>>>,
    arguments: impl Fn(Value<'c>) -> Vec<Value<'c>>,
) -> Result<(), CompileError> {
    if found.is_empty() {
        return Ok(());
    }
    let context = module.context();
    module.link(Module::from_text(context, bodies, "specialization")?)?;
    for (name, loads) in found {
        let body = module.function(&name).expect("it was linked above");
        body.set_linkage(Linkage::INTERNAL);
        for load in loads {
            load.replace_all_uses_with(Builder::before(context, load).call(body, &arguments(load)));
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

/// A function that loads the pieces of a number one by one. `load` is the code that makes an integer `%piece` with an index out of an offset and a size.
fn body(
    signature: &str,
    type_name: &str,
    (offset, size): (usize, usize),
    pieces: &[(usize, usize)],
    load: impl Fn(usize, usize, usize) -> String,
) -> String {
    let whole = 8 * size;
    let mut body = format!("define {type_name} @{signature} alwaysinline nounwind willreturn memory(read) {{\n");
    for (index, &(at, length)) in pieces.iter().enumerate() {
        body.push_str(&load(index, at, length));
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

/// The code of a load of one piece in PTX.
fn marked(index: usize, at: usize, length: usize, parameter: &str) -> String {
    // The smallest register has 16 bits.
    let (bits, register) = ((8 * length).max(16), ["h", "h", "r", "l"][length.ilog2() as usize]);
    let text = SpecializedLoad::text(at, length, "$0", parameter).replace('\n', "\\0A").replace('\t', "\\09");
    let cast = if length == 1 { "trunc" } else { "bitcast" };
    format!(
        "%loaded{index} = call i{bits} asm \"{text}\", \"={register}\"() nounwind willreturn memory(none)\n\
         %piece{index} = {cast} i{bits} %loaded{index} to i{}\n",
        8 * length
    )
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
    use oxisycl_image::{DeviceImage, Form, ImageTarget, KernelEntry, ParameterLayout};

    use super::*;
    use crate::codegen;
    use crate::codegen::spirv::validate;
    use crate::llvm::Context;
    use crate::passes::tests::{context, module, ptx};
    use crate::toolchain::Toolchain;

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

    const JOINED: &str = "
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
        let module = module(&context, JOINED);
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

    /// The image of a kernel for OpenCL devices whose loads of these parts have names.
    fn spirv(context: &Context, text: &str, size: usize, parts: &[(usize, usize)]) -> DeviceImage {
        let module = module(context, &text.replace("ptx_kernel", "spir_kernel"));
        let image_target = ImageTarget::SpirV { major: 1, minor: 2 };
        let target = codegen::of(&image_target).expect("a target");
        module.set_target(target.machine().triple(), &target.machine().data_layout());
        name_loads(&module, module.function("k").expect("a kernel"), parts).expect("named");
        module.verify("specialization").expect("a valid module");
        let parameters = ParameterLayout { size, align: 8 };
        let code = target.emit(&module, parameters, &Toolchain::of_the_tests()).expect("code");
        let kernel = KernelEntry {
            specialized: SpecializedLoad::find_for(&image_target, &code),
            ..KernelEntry::new("k", [7; 16], Form::Range(1), parameters, "k")
        };
        DeviceImage {
            target: image_target,
            kernels: vec![kernel],
            build_options: String::new(),
            unsupported: Vec::new(),
            sites: Vec::new(),
            code,
        }
    }

    /// Makes a variant, and checks it, too.
    fn variant(image: &DeviceImage) -> DeviceImage {
        assert_eq!(image.verify(), Ok(()));
        validate(&image.code);
        let variant = image.with_values(0, |offset, size| if size == 1 { 1 } else { 3 * offset as u64 });
        let variant = variant.expect("the image keeps the rules");
        validate(&variant.code);
        assert_eq!(SpecializedLoad::find_for(&variant.target, &variant.code), []);
        variant
    }

    #[test]
    fn loads_of_exactly_a_part_can_be_found_in_spirv() {
        let context = context();
        let parts = [(16, 4), (20, 4), (24, 4), (28, 1), (32, 4)];
        let image = spirv(&context, KERNEL, 40, &parts);
        assert_eq!(image.kernels[0].specialized_parts(), [(16, 4), (20, 4), (24, 4), (28, 1)]);
        let loads = |code: &[u8]| code.chunks(4).filter(|word| matches!(word, [61, 0, 4 | 6, 0])).count();
        let with_values = variant(&image);
        assert_eq!(loads(&image.code), loads(&with_values.code) + 4);
        // Each declaration has a word less than its load.
        assert_eq!(with_values.code.len(), image.code.len() - 4 * 4 * 2);
    }

    #[test]
    fn a_joined_load_is_taken_apart_for_spirv() {
        let context = context();
        let image = spirv(&context, JOINED, 24, &[(8, 4), (12, 2), (14, 1), (15, 1), (16, 4)]);
        assert_eq!(image.kernels[0].specialized_parts(), [(8, 4), (12, 2), (14, 1), (15, 1)]);
        variant(&image);
        // Two loads of one part have two names.
        let twice = "
            define ptx_kernel void @k(ptr byval([104 x i8]) align 8 %launch, ptr byval([24 x i8]) align 8 %block) {
                %place = getelementptr i8, ptr %block, i64 8
                %first = load i64, ptr %place, align 8
                store volatile i64 %first, ptr %launch
                %second = load i64, ptr %place, align 8
                %float = load double, ptr %place, align 8
                store volatile i64 %second, ptr %launch
                store volatile double %float, ptr %launch
                ret void
            }";
        let image = spirv(&context, twice, 24, &[(8, 8)]);
        assert_eq!(image.kernels[0].specialized.len(), 3);
        variant(&image);
        let image = spirv(&context, twice, 24, &[(8, 4), (12, 4)]);
        assert_eq!(image.kernels[0].specialized.len(), 6);
        variant(&image);
    }

    #[test]
    fn code_without_parts_is_left_as_it_is() {
        let context = context();
        let module = module(&context, KERNEL);
        let before = module.to_string();
        mark_loads(&module, module.function("k").expect("a kernel"), &[]).expect("nothing to do");
        mark_loads(&module, module.function("k").expect("a kernel"), &[(17, 4), (16, 2)]).expect("nothing to do");
        name_loads(&module, module.function("k").expect("a kernel"), &[]).expect("nothing to do");
        name_loads(&module, module.function("k").expect("a kernel"), &[(17, 4), (16, 2)]).expect("nothing to do");
        assert_eq!(module.to_string(), before);
    }
}
