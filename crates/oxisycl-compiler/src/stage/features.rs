//! What a program asks of the host's processor at run time, answered for devices: it has none of the optional instructions.
//!
//! The answers are behind caches in statics, which a device must not have, and lead to code for instructions that it has not.

use crate::llvm::{Module, Type, ValueKind};
use crate::stage::sanitize::replace_body;
use crate::symbols::plain_path;

/// The functions behind `is_x86_feature_detected!` and its like: whether the feature of that number is there.
const QUESTIONS: [&str; 2] = ["std_detect::detect::cache::test", "std_detect::detect::check_for"];

/// Instructions that ask the processor itself; zero says that it has nothing.
const INSTRUCTIONS: [&str; 2] = ["cpuid", "xgetbv"];

/// Answers all questions with no.
pub(crate) fn deny(module: &Module<'_>) {
    let no = Type::int(module.context(), 1).constant(0);
    for function in module.functions() {
        if QUESTIONS.contains(&plain_path(function.name()).as_str()) {
            if !function.is_declaration() || function.is_used() {
                replace_body(module, function, |builder| builder.ret(no));
            }
            continue;
        }
        for instruction in function.instructions() {
            let Some(callee) = instruction.callee().filter(|callee| callee.kind() == ValueKind::InlineAsm) else {
                continue;
            };
            let text = callee.print();
            if INSTRUCTIONS.iter().any(|name| text.contains(name)) {
                instruction.replace_all_uses_with(instruction.value_type().null());
                instruction.erase();
            }
        }
    }
}
