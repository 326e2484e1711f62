//! The depth limit of formatting, on devices without a call stack.
//!
//! There is a copy of formatting code for each depth there. The deepest fails within the text of a message, which says so. Elsewhere a
//! failure would be a result like any other. [`provide`] gives a program whose kernel may come to that a function that panics, and the code
//! generator calls it.

use crate::llvm::{Attribute, Block, Builder, Module, Type, Value};
use crate::passes::calls::{Calls, can_fail_to_format, tells};
use crate::passes::panic_names::{self, ENDING};

/// The most nested calls of formatting methods.
pub(crate) const DEEPEST: u32 = 5;
/// The name of the function that panics.
const NAME: &str = "oxisycl.formatting_too_deep";
/// The panic function that it calls, after the prefix of panics.
pub(crate) const PATH: &str = "oxisycl.formatting_depth";

/// The panic message of the work-item.
pub(crate) fn message() -> String {
    format!(
        "values within values are formatted deeper than the {DEEPEST} calls of formatting methods that devices of this kind have room for"
    )
}

/// The function that panics, if the program has it.
pub(crate) fn too_deep<'c>(module: &Module<'c>) -> Option<Value<'c>> {
    module.function(NAME).filter(|function| !function.is_declaration())
}

/// Adds the function that panics, if formatting outside of messages can be recursive.
pub(crate) fn provide<'c>(module: &Module<'c>, kernel: Option<Value<'c>>) {
    let Some(kernel) = kernel.filter(|_| too_deep(module).is_none()) else { return };
    let calls = Calls::all(module);
    let outside = calls.without(&tells).behind(kernel);
    let formats_deep = |function: &Value<'c>| can_fail_to_format(*function) && calls.comes_back(*function);
    if !outside.iter().any(formats_deep) {
        return;
    }
    let context = module.context();
    let nothing = Type::function(Type::void(context), &[]);
    let panic = module.declare(&panic_names::hooked(PATH), nothing);
    // Visible from outside, since nothing calls it before code is generated.
    let function = module.declare(NAME, nothing);
    for attribute in ENDING {
        panic.add_attribute(Attribute::FUNCTION, Attribute::plain(context, attribute, 0));
    }
    for attribute in ["noinline", "cold", "nounwind"] {
        function.add_attribute(Attribute::FUNCTION, Attribute::plain(context, attribute, 0));
    }
    let builder = Builder::at_end(context, Block::append(context, function));
    builder.call(panic, &[]);
    builder.unreachable();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::passes::tests::{context, module};

    /// A kernel that calls a function, and a method that comes back to where it is.
    fn code(first: &str) -> String {
        format!(
            "@table = constant [1 x ptr] [ptr @\"<app::X as core::fmt::Display>::fmt\"]
            define void @k(ptr %f) {{ %r = call i1 @\"{first}\"(ptr %f, ptr %f) ret void }}
            define i1 @plain(ptr %n, ptr %f) {{ ret i1 false }}
            define i1 @__oxisycl_print_formatted(ptr %n, ptr %f) {{
              %r = call i1 @\"core::fmt::write\"(ptr %n, ptr %f)
              ret i1 %r
            }}
            define i1 @\"core::fmt::write\"(ptr %n, ptr %f) {{ %r = call i1 %f(ptr %n, ptr %f) ret i1 %r }}
            define i1 @\"<app::X as core::fmt::Display>::fmt\"(ptr %n, ptr %f) {{
              %r = call i1 @\"core::fmt::write\"(ptr %n, ptr %f)
              ret i1 %r
            }}"
        )
    }

    #[test]
    fn only_formatting_outside_of_messages_that_comes_back_has_a_panic() {
        let context = context();
        for (first, expected) in [("core::fmt::write", 1), ("__oxisycl_print_formatted", 0), ("plain", 0)] {
            let module = module(&context, &code(first));
            for _ in 0..2 {
                provide(&module, module.function("k"));
            }
            module.verify("the panic").expect("a valid module");
            let code = module.to_string();
            let calls = code.matches(&format!("call void @{}()", panic_names::hooked(PATH))).count();
            assert_eq!((calls, too_deep(&module).is_some()), (expected, expected == 1), "{first}: {code}");
        }
    }
}
