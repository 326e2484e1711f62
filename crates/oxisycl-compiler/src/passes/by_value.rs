//! By-value arguments in memory: the called function makes the copy, instead of the call.
//!
//! `byval` says that a call copies what an argument points at, which is how large structs are passed to `extern "C"` functions. LLVM
//! counts on it, and drops a copy of the caller's own. Calls through a table of functions, recursion in frames and SPIR-V know no such
//! copy, and the function would write into its caller's value. Invariant: after this pass only kernels have parameters with `byval`.

use crate::llvm::{Attribute, Builder, Layout, Module, Type, Value};

const BY_VALUE: &str = "byval";
const COPY: &str = "llvm.memcpy.p0.p0.i64";
/// The attribute index of a function's first parameter.
const FIRST_PARAMETER: u32 = 1;

/// Makes each function, except the kernels, copy its by-value arguments, and each call pass only the address.
pub(crate) fn copy(module: &Module<'_>, is_kernel: &dyn Fn(&str) -> bool) {
    for function in module.functions() {
        if is_kernel(function.name()) || function.name().starts_with("llvm.") {
            continue;
        }
        for (index, parameter) in (FIRST_PARAMETER..).zip(function.parameters()) {
            let Some(held) = function.type_attribute(index, BY_VALUE) else { continue };
            let alignment = function.number_attribute(index, "align").unwrap_or(1);
            function.remove_attribute(index, BY_VALUE);
            if !function.is_declaration() {
                copy_parameter(module, function, parameter, held, alignment);
            }
        }
    }
    for call in module.functions().into_iter().flat_map(Value::instructions).filter(|it| it.callee().is_some()) {
        for (index, _) in (FIRST_PARAMETER..).zip(call.arguments()) {
            call.remove_site_attribute(index, BY_VALUE);
        }
    }
}

fn copy_parameter<'c>(module: &Module<'c>, function: Value<'c>, parameter: Value<'c>, held: Type<'c>, alignment: u64) {
    let context = module.context();
    let Some(first) = function.instructions().first().copied() else { return };
    let size = Type::int(context, 64).constant(Layout::of(module).size(held));
    let builder = Builder::before(context, first);
    let variable = builder.alloca(held, Type::int(context, 32).constant(1));
    variable.set_alignment(alignment as u32);
    let address = match variable.value_type() == parameter.value_type() {
        true => variable,
        // Variables have an address space of their own on some targets.
        false => builder.cast_address(variable, parameter.value_type()),
    };
    parameter.replace_all_uses_with(address);
    let pointer = Type::pointer(context, 0);
    let parameters = [pointer, pointer, Type::int(context, 64), Type::int(context, 1)];
    let copy = module.declare(COPY, Type::function(Type::void(context), &parameters));
    let call = builder.call(copy, &[address, parameter, size, Type::int(context, 1).constant(0)]);
    for index in [FIRST_PARAMETER, FIRST_PARAMETER + 1] {
        call.add_site_attribute(index, Attribute::plain(context, "align", alignment));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::passes::tests::{context, module};

    /// Rust's `extern "C"` functions get a struct of 64 bytes this way. Without the pass, `@kernel` would see what `@add` wrote.
    #[test]
    fn a_function_writes_to_a_copy_of_its_own() {
        let context = context();
        let text = "
            @table = private constant [1 x ptr] [ptr @add]
            define internal void @add(ptr noalias byval([64 x i8]) align 8 %x) {
                %n = load i64, ptr %x
                %m = add i64 %n, 1
                store i64 %m, ptr %x
                ret void
            }
            declare void @later(ptr byval([64 x i8]) align 8)
            define i64 @kernel(ptr %f, ptr byval([8 x i8]) %launch) {
                %x = alloca [64 x i8], align 8
                store i64 7, ptr %x
                call void @add(ptr byval([64 x i8]) align 8 %x)
                call void %f(ptr byval([64 x i8]) align 8 %x)
                call void @later(ptr byval([64 x i8]) align 8 %x)
                %r = load i64, ptr %x
                ret i64 %r
            }";
        let module = module(&context, text);
        copy(&module, &|name| name == "kernel");
        module.verify("by-value").expect("a valid module");
        let code = module.to_string();
        assert_eq!(code.matches("byval").count(), 1, "that of the kernel: {code}");
        let (_, add) = code.split_once("@add(ptr noalias align 8 %x)").expect("the function");
        let lines: Vec<&str> = add.lines().map(str::trim).take(5).collect();
        assert_eq!(lines[1], "%1 = alloca [64 x i8], align 8", "{code}");
        assert_eq!(
            lines[2], "call void @llvm.memcpy.p0.p0.i64(ptr align 8 %1, ptr align 8 %x, i64 64, i1 false)",
            "{code}"
        );
        assert_eq!(lines[3], "%n = load i64, ptr %1, align 4", "{code}");
    }
}
