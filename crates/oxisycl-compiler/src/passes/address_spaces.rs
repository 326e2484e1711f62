//! What the program says about the memory of addresses, for targets whose code generators ask for address spaces.
//!
//! `as_global` says that an address is of global memory, and `as_constant` asks for a copy of a constant in constant memory. Both are calls
//! without effects until here. Casts to an address space and back say nothing: LLVM folds them. A cast by way of a number stays, and the code generator
//! takes all that is computed of it for global memory. It costs what LLVM knows about aliases, so addresses from the launch's arguments go without:
//! code generators know that those are of global memory.
//!
//! Invariant: no address changes, but for those of constants.

use rustc_hash::FxHashMap;

use crate::error::CompileError;
use crate::llvm::{Builder, Layout, Linkage, Module, Opcode, Type, TypeKind, Value, ValueKind};

/// The builtins that are replaced here.
const AS_GLOBAL: &str = "oxisycl.as_global";
const AS_CONSTANT: &str = "oxisycl.as_constant";
const PREFETCH: &str = "oxisycl.prefetch";

/// LLVM's numbers of address spaces, on NVIDIA's target and on AMD's.
const GLOBAL: u32 = 1;
const CONSTANT: u32 = 4;

/// Bytes of constant memory.
const MAX_CONSTANT_BYTES: u64 = 64 << 10;

/// Copies the constants that the program asks for to constant memory, as many as there is room for. The others stay where they are.
pub(crate) fn place_constants(module: &Module<'_>) {
    let Some(marker) = module.function(AS_CONSTANT) else { return };
    let (context, layout) = (module.context(), Layout::of(module));
    let mut used: u64 =
        module.globals().into_iter().filter(|global| is_placed(*global)).map(|global| size(layout, global)).sum();
    let mut copies = FxHashMap::default();
    for call in marker.users() {
        let Some(constant) = call.arguments().first().copied().filter(|operand| is_constant(*operand)) else {
            continue;
        };
        let copy = match copies.get(&constant) {
            Some(&copy) => copy,
            None if used + size(layout, constant) > MAX_CONSTANT_BYTES => continue,
            None => {
                used += size(layout, constant);
                let copy = module.add_global(&format!("{}.constant", constant.name()), constant.held_type(), CONSTANT);
                copy.set_initializer(constant.initializer().expect("a constant has a value"));
                copy.make_constant();
                copy.set_linkage(Linkage::INTERNAL);
                copy.set_alignment(constant.alignment().max(layout.alignment(constant.held_type())));
                copies.insert(constant, copy);
                copy
            }
        };
        let address = Builder::before(context, call).cast_address(copy, call.value_type());
        call.replace_all_uses_with(address);
        call.erase();
    }
}

/// Drops what is said about addresses among the launch's arguments. To be called before optimisation.
pub(crate) fn forget_arguments(module: &Module<'_>, kernel: Option<Value<'_>>) {
    let Some(marker) = module.function(AS_GLOBAL) else { return };
    for call in marker.users() {
        let operand = call.arguments()[0];
        if Some(call.function()) == kernel && is_argument(operand) {
            call.replace_all_uses_with(operand);
            call.erase();
        }
    }
}

/// Replaces all that is left. To be called after optimisation.
pub(crate) fn lower(module: &Module<'_>) {
    let context = module.context();
    if let Some(marker) = module.function(AS_CONSTANT) {
        for call in marker.users() {
            call.replace_all_uses_with(call.arguments()[0]);
            call.erase();
        }
        marker.delete_function();
    }
    if let Some(marker) = module.function(AS_GLOBAL) {
        for call in marker.users() {
            let builder = Builder::before(context, call);
            let number = builder.address_to_int(call.arguments()[0], Type::int(context, 64));
            let global = builder.int_to_address(number, Type::pointer(context, GLOBAL));
            call.replace_all_uses_with(builder.cast_address(global, call.value_type()));
            call.erase();
        }
        marker.delete_function();
    }
}

/// Replaces prefetches by NVIDIA's instruction. LLVM's intrinsic for it needs a newer version of PTX than the instruction. Returns whether there was one.
pub(crate) fn prefetch(module: &Module<'_>) -> Result<bool, CompileError> {
    const BODY: &str = "define void @oxisycl.prefetch(ptr %address) alwaysinline {
        call void asm sideeffect \"prefetch.L2 [$0];\", \"l\"(ptr %address)
        ret void\n}";
    if module.function(PREFETCH).is_none() {
        return Ok(false);
    }
    module.link(Module::from_text(module.context(), BODY, "prefetch")?)?;
    module.function(PREFETCH).into_iter().for_each(|function| function.set_linkage(Linkage::INTERNAL));
    Ok(true)
}

/// Says of the addresses in an argument block that is itself in global memory that they are of global memory. Code generators know that of a block
/// that is a parameter.
pub(crate) fn know_arguments(module: &Module<'_>, kernel: Value<'_>) {
    let context = module.context();
    let (pointer, global) = (Type::pointer(context, 0), Type::pointer(context, GLOBAL));
    let is_of_block = |load: Value<'_>| {
        let block = base(load.operand(0));
        block.kind() == ValueKind::Argument && block.value_type() == global
    };
    for load in kernel.instructions() {
        if !load.is(Opcode::LOAD) || load.value_type() != pointer || !is_of_block(load) {
            continue;
        }
        let users = load.users();
        let builder = Builder::before(context, load.next());
        let number = builder.address_to_int(load, Type::int(context, 64));
        let known = builder.cast_address(builder.int_to_address(number, global), pointer);
        for user in users {
            for (index, operand) in (0..).zip(user.operands()) {
                if operand == load {
                    user.set_operand(index, known);
                }
            }
        }
    }
}

fn size(layout: Layout<'_>, global: Value<'_>) -> u64 {
    layout.size(global.held_type()).next_multiple_of(u64::from(layout.alignment(global.held_type())))
}

fn is_placed(global: Value<'_>) -> bool {
    global.value_type().kind() == TypeKind::Pointer(CONSTANT)
}

fn is_constant(value: Value<'_>) -> bool {
    value.kind() == ValueKind::GlobalVariable
        && value.is_constant_global()
        && value.initializer().is_some()
        && value.value_type().kind() == TypeKind::Pointer(0)
}

/// Whether an address is computed from one that is among the launch's arguments.
fn is_argument(address: Value<'_>) -> bool {
    let loaded = base(address);
    loaded.is(Opcode::LOAD) && base(loaded.operand(0)).kind() == ValueKind::Argument
}

/// The address that another one is computed from.
fn base(mut address: Value<'_>) -> Value<'_> {
    while [Opcode::GET_ELEMENT_PTR, Opcode::ADDRESS_SPACE_CAST, Opcode::BITCAST]
        .into_iter()
        .any(|code| address.is(code))
    {
        address = address.operand(0);
    }
    address
}

#[cfg(test)]
mod tests {
    use oxisycl_image::ImageTarget;

    use super::*;
    use crate::codegen;
    use crate::llvm::Codegen;
    use crate::passes::tests::{context, module, ptx};

    const DECLARATIONS: &str = "
        declare ptr @oxisycl.as_global(ptr) nounwind willreturn memory(none)
        declare ptr @oxisycl.as_constant(ptr) nounwind willreturn memory(none)\n";

    #[test]
    fn what_is_computed_from_a_global_address_is_accessed_as_global_memory() {
        let context = context();
        let text = format!(
            "{DECLARATIONS} define void @f(ptr %list, i64 %n) {{
                %any = load ptr, ptr %list
                %known = call ptr @oxisycl.as_global(ptr %any)
                %at = getelementptr i32, ptr %known, i64 %n
                %x = load i32, ptr %at
                store i32 %x, ptr %known
                ret void\n}}"
        );
        let module = module(&context, &text);
        lower(&module);
        assert!(module.function(AS_GLOBAL).is_none());
        let code = ptx(&module);
        assert!(code.contains("ld.global.b32") && code.contains("st.global.b32"), "{code}");
        assert!(!code.contains("ld.b32") && !code.contains("st.b32"), "{code}");
        let target = codegen::of(&ImageTarget::AmdGcn { arch: "gfx90a".to_owned() }).expect("a target");
        module.set_target(target.machine().triple(), &target.machine().data_layout());
        let code = target.machine().emit(&module, Codegen::Assembly).expect("code");
        let code = String::from_utf8(code).expect("text");
        assert!(code.contains("global_load_dword ") && code.contains("global_store_dword "), "{code}");
    }

    #[test]
    fn an_address_among_the_arguments_is_left_as_it_is() {
        let context = context();
        let text = format!(
            "{DECLARATIONS} define void @k(ptr %launch, ptr %arguments) {{
                %place = getelementptr i8, ptr %arguments, i64 8
                %buffer = load ptr, ptr %place
                %own = getelementptr i32, ptr %buffer, i64 3
                %known = call ptr @oxisycl.as_global(ptr %own)
                %next = load ptr, ptr %known
                %also = call ptr @oxisycl.as_global(ptr %next)
                store i32 1, ptr %also
                ret void\n}}"
        );
        let module = module(&context, &text);
        forget_arguments(&module, module.function("k"));
        let text = module.to_string();
        assert!(text.contains("load ptr, ptr %own"), "{text}");
        assert_eq!(text.matches("call ptr @oxisycl.as_global").count(), 1, "{text}");
        // Of another function than the kernel it is not known what its parameters lead to.
        forget_arguments(&module, None);
        assert_eq!(module.to_string().matches("call ptr @oxisycl.as_global").count(), 1);
    }

    #[test]
    fn constants_are_copied_once_and_as_many_as_there_is_room_for() {
        let context = context();
        let text = format!(
            "@small = internal constant [4 x i32] [i32 1, i32 2, i32 3, i32 4]
            @large = internal constant [65500 x i8] zeroinitializer
            @fits = internal constant [40000 x i8] zeroinitializer
            @changes = internal global [4 x i32] zeroinitializer
            {DECLARATIONS} define i32 @f(i64 %n, ptr %any) {{
                %a = call ptr @oxisycl.as_constant(ptr @small)
                %b = call ptr @oxisycl.as_constant(ptr @large)
                %c = call ptr @oxisycl.as_constant(ptr @fits)
                %d = call ptr @oxisycl.as_constant(ptr @small)
                %e = call ptr @oxisycl.as_constant(ptr %any)
                %g = call ptr @oxisycl.as_constant(ptr @changes)
                %ea = getelementptr i32, ptr %a, i64 %n
                %eb = getelementptr i8, ptr %b, i64 %n
                %ec = getelementptr i8, ptr %c, i64 %n
                %x = load i32, ptr %ea
                %y = load i32, ptr %eb, align 1
                %z = load i32, ptr %ec, align 1
                %u = load i32, ptr %d
                %v = load i32, ptr %e
                %w = load i32, ptr %g
                %s1 = add i32 %x, %y
                %s2 = add i32 %s1, %z
                %s3 = add i32 %s2, %u
                %s4 = add i32 %s3, %v
                %s5 = add i32 %s4, %w
                ret i32 %s5\n}}"
        );
        let module = module(&context, &text);
        place_constants(&module);
        // Again, as after more code was linked: what is in constant memory counts.
        place_constants(&module);
        lower(&module);
        let code = ptx(&module);
        let placed: Vec<&str> = code.lines().filter(|line| line.starts_with(".const")).collect();
        assert_eq!(placed.len(), 2, "{placed:?}");
        assert!(placed[0].contains("small") && placed[1].contains("fits"), "{placed:?}");
        assert!(code.contains("ld.const.b32") && code.contains("ld.global"), "{code}");
        assert!(!code.contains("oxisycl.as_constant"), "{code}");
    }
}
