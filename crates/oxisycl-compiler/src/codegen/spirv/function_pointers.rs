//! Replaces function pointers, which SPIR-V lacks.
//!
//! A kernel and what it calls are all the code there is, so that the functions whose addresses are taken are known. Each gets a number, which
//! is its address from now on, also in tables of trait objects. A call of an address becomes a call of a dispatch function. This function
//! compares the address with the numbers of all functions of that type, and calls the matching one.
//!
//! Formatting code has dispatch functions of its own. Only there a cycle of calls can be ended, since each formatting call says whether it
//! failed.

use crate::llvm::{Attribute, Module, Type, TypeKind, Value, ValueKind};
use crate::origin;
use crate::passes::choice::{call_choice, choose};
use crate::passes::panic_names;
use rustc_hash::FxHashMap;

/// The prefix of dispatch functions.
const CHOICE: &str = "oxisycl.choice.";
/// The prefix of dispatch functions for formatting functions.
const CHOICE_OF_FORMATTERS: &str = "oxisycl.choice.format.";

/// Whether the function is a dispatch function for formatting functions.
pub(super) fn chooses_formatter(function: Value<'_>) -> bool {
    function.name().starts_with(CHOICE_OF_FORMATTERS)
}

/// Whether the function is a method of a formatting trait, whose result says whether it failed.
pub(super) fn shows_value(function: Value<'_>) -> bool {
    says_whether(function.held_type().result()) && origin::is_method(function.name())
}

/// Whether a type is that of a result that says whether something failed.
fn says_whether(result: Type<'_>) -> bool {
    result.kind() == TypeKind::Integer(1)
}

/// Whether the functions that `caller` calls by address are formatting functions, or functions that text is written to. In a user's method
/// all functions of that type have to be methods of formatting traits. The library's code calls nothing else that returns a truth value,
/// but a user's closure may have been inlined there. So no other function may have that type either.
fn calls_formatters(caller: &str, result: Type<'_>, candidates: &[Value<'_>]) -> bool {
    let is_librarys =
        origin::library_formats(caller) || panic_names::is_record(caller) || panic_names::is_print(caller);
    let is_text =
        |function: Value<'_>| origin::library_formats(function.name()) || origin::writes_text(function.name());
    let is_formatter = |function: &Value<'_>| shows_value(*function) || is_librarys && is_text(*function);
    says_whether(result) && (is_librarys || origin::is_method(caller)) && candidates.iter().all(is_formatter)
}

/// Numbers the functions whose addresses are taken, and replaces calls of addresses by calls of dispatch functions.
pub(super) fn number_functions(module: &Module<'_>) {
    let context = module.context();
    let pointer = Type::pointer(context, 0);
    let is_call_of =
        |user: Value<'_>, function: Value<'_>| user.callee() == Some(function) && !user.arguments().contains(&function);
    let is_taken = |function: &Value<'_>| {
        !function.name().starts_with("llvm.") && !function.users().into_iter().all(|user| is_call_of(user, *function))
    };
    let taken: Vec<_> = module.functions().into_iter().filter(is_taken).collect();
    let number = |position: usize| Type::int(context, 64).constant(position as u64 + 1).int_to_pointer(pointer);
    let mut choices = FxHashMap::default();
    for caller in module.functions() {
        for call in caller.instructions() {
            let Some(callee) = call.callee() else { continue };
            if matches!(callee.kind(), ValueKind::Function | ValueKind::InlineAsm) {
                continue;
            }
            let is_candidate = |position: &usize| taken[*position].held_type() == call.called_type();
            let positions: Vec<usize> = (0..taken.len()).filter(is_candidate).collect();
            let candidates: Vec<_> = positions.iter().map(|&position| taken[position]).collect();
            let formats = calls_formatters(caller.name(), call.value_type(), &candidates);
            let count = choices.len();
            let choice = *choices.entry((call.called_type(), formats)).or_insert_with(|| {
                let numbers = positions.iter().map(|&position| number(position));
                let candidates: Vec<_> = numbers.zip(candidates).collect();
                let prefix = if formats { CHOICE_OF_FORMATTERS } else { CHOICE };
                let choice = choose(module, &format!("{prefix}{count}"), call, pointer, &candidates);
                for attribute in ["nounwind", "convergent", "noinline"] {
                    choice.add_attribute(Attribute::FUNCTION, Attribute::plain(context, attribute, 0));
                }
                choice
            });
            call_choice(context, call, choice, callee);
        }
    }
    for (position, function) in taken.into_iter().enumerate() {
        let calls: Vec<_> = function.users().into_iter().filter(|user| user.callee() == Some(function)).collect();
        function.replace_all_uses_with(number(position));
        for call in calls {
            call.set_callee(function);
        }
    }
}

/// Whether calls of the function count towards the depth of formatted values.
pub(super) fn has_depth(function: Value<'_>) -> bool {
    chooses_formatter(function) || shows_value(function)
}
