//! Stack checks of recursive functions. The depth of recursion is known only at run time, and a stack overflow of a work-item takes its
//! whole device down. So each function that can be called again before it has returned first checks that there is stack left for it. If
//! there is none, it panics.
//!
//! [`add_checks`] puts a question there, after functions were inlined; the panic becomes a record as others do. [`lower`] answers the
//! questions at the end, when it is known how much stack functions take. Where a kernel's stack begins is the same for all its work-items,
//! and is kept in the memory of the group. The stack's size comes with the launch. Kernels without recursion have nothing of this.
//!
//! Formatting is calls through pointers, whose types say little. They count where they can lead back to code of a user, such as a method that
//! shows a value within a value. A function that formats can say that it failed. It does so within the text of a message, which ends there,
//! see `recorded` in `oxisycl-device`; elsewhere it panics like any other.

use std::mem::offset_of;

use rustc_hash::FxHashMap;

use oxisycl_image::{MessagePiece, SourceLocation};
use oxisycl_types::DeviceLaunch;

use crate::llvm::{Attribute, Block, Builder, Layout, Linkage, Module, Node, Opcode, Place, Type, Value, ValueKind};
use crate::origin;
use crate::passes::calls::{Calls, can_fail_to_format, formats, leads_back_to_user};
use crate::passes::{builtins, panic_names};

/// The function that returns whether the calling function has enough stack.
const IS_LEFT: &str = "oxisycl.stack_is_left";
/// The function that returns the stack size for calls, in bytes.
const SIZE: &str = "oxisycl.stack_size";
/// The function that returns whether the work-item is within the text of a message, which then ends there.
const ENDS_MESSAGE: &str = "oxisycl.stack_ends_message";
/// The builtins that begin the text of a message, and tell afterwards whether it was cut off.
const BEGIN_MESSAGE: &str = "oxisycl.begin_message";
const WAS_CUT_OFF: &str = "oxisycl.formatting_was_cut_off";
/// The panic function that is called if no stack is left, after the prefix of panics. Its argument is the size.
pub(crate) const PATH: &str = "oxisycl.stack";

/// The variable for the lowest address that a kernel's stack may have.
const SLOT: &str = "oxisycl_stack_limit";
/// The variable for the address of two numbers of each work-item. They say how many messages it has begun, and whether one of them was cut
/// off. They are on the stack, and at the same address for all work-items, since each has addresses of its own there.
const MESSAGES: &str = "oxisycl_messages";

/// The bytes that a function needs beside its variables, at most, for saved registers.
const SAVED: u64 = 128;
/// LLVM's predicate for an unsigned `<=`.
const AT_MOST: i32 = 37;

/// Attributes that LLVM may have inferred and that are wrong for functions that panic.
const NO_LONGER: [&str; 5] = ["memory", "willreturn", "nosync", "nofree", "speculatable"];

/// Adds a stack check to every recursive function. Functions that have one are left as they are.
pub(crate) fn add_checks(module: &Module<'_>) {
    let plain = Calls::without_formatting(module);
    let mut has_changed = add_checks_to(module, &|function| plain.comes_back(function));
    let all = Calls::all(module);
    if leads_back_to_user(&all) {
        // Methods first, then what else can say that it failed. Most cycles are broken by that.
        let is_method = |function: Value<'_>| can_fail_to_format(function) && origin::is_method(function.name());
        let orders: [&dyn Fn(Value<'_>) -> bool; 3] = [&is_method, &|function| can_fail_to_format(function), &|_| true];
        for asks in orders {
            let left = all.without(&has_check);
            has_changed |= add_checks_to(module, &|function| asks(function) && left.comes_back(function));
        }
    }
    if has_changed {
        forget_attributes(module);
    }
}

/// Adds stack checks to the functions that `is_recursive` selects. Returns whether there are any.
fn add_checks_to<'c>(module: &Module<'c>, is_recursive: &dyn Fn(Value<'c>) -> bool) -> bool {
    // In the order of the module, not of a table.
    let functions = module.functions().into_iter().filter(|function| !function.is_declaration());
    let recursive: Vec<_> = functions.filter(|function| is_recursive(*function) && !has_check(*function)).collect();
    for &function in &recursive {
        add_check(module, function);
    }
    !recursive.is_empty()
}

/// Removes inferred attributes that are wrong for functions that panic now.
pub(crate) fn forget_attributes(module: &Module<'_>) {
    for function in module.functions().into_iter().filter(|function| !function.is_declaration()) {
        for attribute in NO_LONGER {
            function.remove_attribute(Attribute::FUNCTION, attribute);
        }
    }
}

/// Whether a function's first block has a stack check.
fn has_check(function: Value<'_>) -> bool {
    let first = function.blocks()[0].instructions();
    first.into_iter().any(|instruction| is_call_of(instruction, IS_LEFT))
}

fn is_call_of(instruction: Value<'_>, name: &str) -> bool {
    instruction.callee().is_some_and(|callee| callee.kind() == ValueKind::Function && callee.name() == name)
}

fn add_check<'c>(module: &Module<'c>, function: Value<'c>) {
    let context = module.context();
    let declare = |name: &str, result: Type<'c>, parameters: &[Type<'c>], attributes: &[&str]| {
        let function = module.declare(name, Type::function(result, parameters));
        for attribute in attributes {
            function.add_attribute(Attribute::FUNCTION, Attribute::plain(context, attribute, 0));
        }
        function
    };
    let word = Type::int(context, 64);
    let is_left = declare(IS_LEFT, Type::int(context, 1), &[], &["nounwind", "convergent"]);
    let size = declare(SIZE, word, &[], &["nounwind", "convergent"]);
    let panic = declare(&panic_names::hooked(PATH), Type::void(context), &[word], &panic_names::ENDING);

    let body = function.blocks()[0];
    let (first, none_left) = (Block::append(context, function), Block::append(context, function));
    first.move_before(body);
    let (asks, ends) = (Builder::at_end(context, first), Builder::at_end(context, none_left));
    for variable in body.instructions().into_iter().filter(|instruction| instruction.is(Opcode::ALLOCA)) {
        asks.take(variable);
    }
    // Calls that may be inlined have a place, as LLVM wants it of those in functions with lines.
    let with_place = function.instructions().into_iter().find(|instruction| instruction.place().is_some());
    let place = Builder::before(context, with_place.unwrap_or_else(|| body.end()));
    let call = |builder: &Builder<'c>, callee: Value<'c>, arguments: &[Value<'c>]| {
        let call = place.call(callee, arguments);
        builder.take(call);
        call
    };
    asks.branch_if(call(&asks, is_left, &[]), body, none_left);
    let ends = if can_fail_to_format(function) {
        let ends_message = declare(ENDS_MESSAGE, Type::int(context, 1), &[], &["nounwind", "convergent"]);
        let (fails, panics) = (Block::append(context, function), Block::append(context, function));
        ends.branch_if(call(&ends, ends_message, &[]), fails, panics);
        Builder::at_end(context, fails).ret(Type::int(context, 1).constant(1));
        Builder::at_end(context, panics)
    } else {
        ends
    };
    let size = call(&ends, size, &[]);
    call(&ends, panic, &[size]);
    ends.unreachable();
}

/// The panic message of a work-item without stack; `size` is the value in it.
pub(crate) fn message(size: MessagePiece) -> Vec<MessagePiece> {
    let literal = |text: &str| MessagePiece::Literal(text.to_owned());
    let rest = " bytes that it has for them, as OXISYCL_CALL_STACK says";
    vec![literal("recursive calls need more stack than the "), size, literal(rest)]
}

/// The place of the function with the stack check that the call belongs to.
pub(crate) fn location(call: Value<'_>) -> Option<SourceLocation> {
    Node::of_function(call.function()).and_then(Place::of_function).map(Place::location)
}

/// Replaces the stack checks of all functions by comparisons with the limit that the kernel stores in the memory of the group. To be called
/// before the launch is lowered.
pub(crate) fn lower<'c>(module: &Module<'c>, kernel: Value<'c>, group_memory: u32) {
    let context = module.context();
    let (byte, word) = (Type::int(context, 8), Type::int(context, 64));
    let size = |builder: &Builder<'c>| {
        let offset = word.constant(offset_of!(DeviceLaunch, call_stack) as u64);
        let number =
            builder.load(Type::int(context, 32), builder.offset(byte, builtins::launch(module, builder), offset));
        builder.widen(number, word)
    };
    // The address of a variable, which is lower the deeper the calls are.
    let depth = |function: Value<'c>, builder: &Builder<'c>| {
        let start = Builder::before(context, function.blocks()[0].instructions()[0]);
        builder.address_to_int(start.alloca(byte, word.constant(1)), word)
    };
    lower_messages(module, kernel, group_memory);
    if let Some(is_left) = module.function(IS_LEFT) {
        let needs = Needs::of(module);
        let calls: Vec<_> = is_left.users().into_iter().filter(|user| user.callee() == Some(is_left)).collect();
        if !calls.is_empty() {
            let slot = module.add_global(SLOT, word, group_memory);
            slot.set_initializer(word.poison());
            slot.set_linkage(Linkage::INTERNAL);
            slot.set_alignment(8);
            for call in calls {
                let builder = Builder::before(context, call);
                let need = word.constant(needs.of_function(call.function()));
                let lowest = builder.add(builder.load(word, slot), need);
                call.replace_all_uses_with(builder.compare(AT_MOST, lowest, depth(call.function(), &builder)));
                call.erase();
            }
            let builder = Builder::before(context, kernel.blocks()[0].instructions()[0]);
            // All work-items of a group write the same number, so that it does not matter whose store comes last.
            builder.store(builder.subtract(depth(kernel, &builder), size(&builder)), slot);
        }
        is_left.delete_function();
    }
    if let Some(asked) = module.function(SIZE) {
        for call in asked.users().into_iter().filter(|user| user.callee() == Some(asked)) {
            call.replace_all_uses_with(size(&Builder::before(context, call)));
            call.erase();
        }
        asked.delete_function();
    }
}

/// Lowers the beginnings of messages, and the checks for being within one, by numbers on the stack of each work-item. Without such a check
/// the beginnings are removed.
fn lower_messages<'c>(module: &Module<'c>, kernel: Value<'c>, group_memory: u32) {
    let context = module.context();
    let (number, pointer) = (Type::int(context, 32), Type::pointer(context, 0));
    let calls = |name: &str| {
        let function = module.function(name);
        let users = function.map_or_else(Vec::new, |function| function.users());
        users.into_iter().filter(|user| user.callee() == function).collect::<Vec<_>>()
    };
    let (questions, begun, ended) = (calls(ENDS_MESSAGE), calls(BEGIN_MESSAGE), calls(WAS_CUT_OFF));
    let zero = number.constant(0);
    if questions.is_empty() {
        ended.iter().for_each(|call| call.replace_all_uses_with(Type::int(context, 1).constant(0)));
    } else {
        let slot = module.add_global(MESSAGES, pointer, group_memory);
        slot.set_initializer(pointer.poison());
        slot.set_linkage(Linkage::INTERNAL);
        slot.set_alignment(8);
        let begins = Builder::before(context, kernel.blocks()[0].instructions()[0]);
        let numbers = begins.alloca(number, number.constant(2));
        let cut_off = |builder: &Builder<'c>, numbers| builder.offset(number, numbers, number.constant(1));
        begins.store(zero, numbers);
        begins.store(zero, cut_off(&begins, numbers));
        begins.store(numbers, slot);
        let at = |call: Value<'c>| {
            let builder = Builder::before(context, call);
            let numbers = builder.load(pointer, slot);
            let n_open = builder.load(number, numbers);
            (builder, numbers, n_open)
        };
        for &call in &begun {
            let (builder, numbers, n_open) = at(call);
            builder.store(builder.add(n_open, number.constant(1)), numbers);
        }
        for &call in &ended {
            let (builder, numbers, n_open) = at(call);
            builder.store(builder.subtract(n_open, number.constant(1)), numbers);
            let flag = cut_off(&builder, numbers);
            let was_cut_off = builder.is_unequal(builder.load(number, flag), zero);
            builder.store(zero, flag);
            call.replace_all_uses_with(was_cut_off);
        }
        for &call in &questions {
            let (builder, numbers, n_open) = at(call);
            // How many are open is not zero if any is.
            builder.store(n_open, cut_off(&builder, numbers));
            call.replace_all_uses_with(builder.is_unequal(n_open, zero));
        }
    }
    questions.into_iter().chain(begun).chain(ended).for_each(Value::erase);
    for name in [ENDS_MESSAGE, BEGIN_MESSAGE, WAS_CUT_OFF] {
        module.function(name).into_iter().for_each(Value::delete_function);
    }
}

/// The stack that functions need for themselves and their callees, up to the next stack check.
struct Needs<'c>(FxHashMap<Value<'c>, u64>);

impl<'c> Needs<'c> {
    fn of(module: &Module<'c>) -> Self {
        let mut functions = module.functions().into_iter();
        let formatting_asks = functions.any(|f| !f.is_declaration() && formats(f) && has_check(f));
        let calls = if formatting_asks { Calls::all(module) } else { Calls::without_formatting(module) };
        let mut needs = Self(FxHashMap::default());
        for function in calls.functions() {
            needs.find(module, &calls, function);
        }
        needs
    }

    fn find(&mut self, module: &Module<'c>, calls: &Calls<'c>, function: Value<'c>) -> u64 {
        if let Some(known) = self.0.get(&function) {
            return *known;
        }
        // The library's formatting may come back to where it is, as deep as its values are.
        self.0.insert(function, 0);
        let callees = calls.of_function(function).iter().filter(|callee| !has_check(**callee));
        let deepest = callees.map(|callee| self.find(module, calls, *callee)).max().unwrap_or(0);
        let need = SAVED + variables(module, function) + deepest;
        self.0.insert(function, need);
        need
    }

    fn of_function(&self, function: Value<'c>) -> u64 {
        self.0.get(&function).copied().unwrap_or(0)
    }
}

/// The bytes of a function's variables.
fn variables(module: &Module<'_>, function: Value<'_>) -> u64 {
    let layout = Layout::of(module);
    let variables = function.instructions().into_iter().filter(|instruction| instruction.is(Opcode::ALLOCA));
    // A number that is not constant is not in code of Rust.
    let size =
        |variable: Value<'_>| layout.size(variable.allocated_type()) * variable.operand(0).integer().unwrap_or(1);
    variables.map(|variable| size(variable).next_multiple_of(u64::from(variable.alignment().max(1)))).sum()
}

#[cfg(test)]
mod tests;
