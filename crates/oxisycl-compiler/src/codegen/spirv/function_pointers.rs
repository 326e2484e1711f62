//! Function pointers, which SPIR-V has not.
//!
//! A kernel and what it calls are all the code there is, so that the functions whose addresses are taken are known. Each gets a number, which
//! is its address from now on, also in tables of trait objects. A call of an address becomes a call of a function that compares it with the
//! numbers of all functions of that type, and calls the one that it is of.
//!
//! What formats values has such functions of its own: only there a cycle of calls can be given an end.

use crate::llvm::{Attribute, Block, Builder, Linkage, Module, Type, TypeKind, Value, ValueKind};
use crate::origin;
use crate::passes::panic_names;
use rustc_hash::FxHashMap;

/// The functions that choose among others.
const CHOICE: &str = "oxisycl.choice.";
/// Those that what formats values calls.
const CHOICE_OF_FORMATTERS: &str = "oxisycl.choice.format.";
/// `LLVMIntEQ`
const EQUAL: i32 = 32;

/// Whether the function is one that calls formatting functions by their addresses.
pub(super) fn chooses_formatter(function: Value<'_>) -> bool {
    function.name().starts_with(CHOICE_OF_FORMATTERS)
}

/// Whether the function is a method of one of the formatting traits, which says whether it failed.
pub(super) fn shows_value(function: Value<'_>) -> bool {
    function.held_type().result().kind() == TypeKind::Integer(1) && { origin::is_method(function.name()) }
}

/// Gives numbers to functions whose addresses are taken, and calls them by these.
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
            let name = caller.name();
            let formats = origin::formats(name) || panic_names::is_record(name) || panic_names::is_print(name);
            let count = choices.len();
            let choice = *choices.entry((call.called_type(), formats)).or_insert_with(|| {
                let candidates: Vec<_> = (0..taken.len())
                    .filter(|&position| taken[position].held_type() == call.called_type())
                    .map(|position| (number(position), taken[position]))
                    .collect();
                let prefix = if formats { CHOICE_OF_FORMATTERS } else { CHOICE };
                let parameters: Vec<_> = call.arguments().into_iter().map(Value::value_type).collect();
                let parameters = [&[pointer], &parameters[..]].concat();
                choose(module, &format!("{prefix}{count}"), (&parameters, call.value_type()), &candidates)
            });
            let arguments: Vec<_> = [callee].into_iter().chain(call.arguments()).collect();
            let direct = Builder::before(context, call).call(choice, &arguments);
            if call.is_used() {
                call.replace_all_uses_with(direct);
            }
            call.erase();
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

/// A function that calls the candidate whose number is its first argument, with the others.
fn choose<'c>(
    module: &Module<'c>,
    name: &str,
    (parameters, result): (&[Type<'c>], Type<'c>),
    candidates: &[(Value<'c>, Value<'c>)],
) -> Value<'c> {
    let context = module.context();
    let choice = module.declare(name, Type::function(result, parameters));
    choice.set_linkage(Linkage::INTERNAL);
    for attribute in ["nounwind", "convergent", "noinline"] {
        choice.add_attribute(Attribute::FUNCTION, Attribute::plain(context, attribute, 0));
    }
    let mut builder = Builder::at_end(context, Block::append(context, choice));
    let given = choice.parameters();
    for &(number, candidate) in candidates {
        let is_it = builder.compare(EQUAL, given[0], number);
        let [found, next] = std::array::from_fn(|_| Block::append(context, choice));
        builder.branch_if(is_it, found, next);
        let inside = Builder::at_end(context, found);
        let value = inside.call(candidate, &given[1..]);
        if result.kind() == TypeKind::Void {
            inside.ret_void()
        } else {
            inside.ret(value)
        }
        builder = Builder::at_end(context, next);
    }
    // No other function has this type.
    builder.unreachable();
    choice
}

/// Whether calls of the function count as a value within a value.
pub(super) fn has_depth(function: Value<'_>) -> bool {
    chooses_formatter(function) || shows_value(function)
}
