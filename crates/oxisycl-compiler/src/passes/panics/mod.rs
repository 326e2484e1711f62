//! Panics and printing on devices.
//!
//! [`hook`] takes the bodies of Rust's panic functions, and of what `println!` calls, away before anything is linked that only they need.
//! After optimisation, [`lower`] turns each call into a call of a function of `oxisycl-device`. It passes the number of a [`PanicSite`],
//! and the addresses and kinds of the values in the message. The host formats them. Only what it does not know, such as a user's own
//! `Display`, is formatted on the device, and only then is formatting code linked.

mod arguments;
mod formatter;
mod template;
mod trap;

use oxisycl_image::{ArgumentKind, MessagePiece, PanicSite, SourceLocation};

use crate::error::CompileError;
use crate::llvm::{Attribute, Builder, Linkage, Module, Opcode, Place, Type, Value, ValueKind};
use crate::origin::{self, PanicMessage, SLICE_ERROR};
use crate::passes::panic_names::{
    ENDING, FORMATTED, PREFIX, PRINT, RECORD, RECORD_VALUES, is_print, is_record, prints,
};
use crate::passes::{arena, formatting_depth, frames, recursion};
use arguments::{Recorded, plain};

/// The text that the host's panic hook prints for payloads that are not strings.
const ANY: &str = "Box<dyn Any>";

/// Whether the call is one that [`SLICE_ERROR`] makes of itself.
pub(crate) fn fails_again(call: Value<'_>) -> bool {
    call.callee() == Some(call.function()) && origin::cuts_a_string(call.function().name())
}

/// Replaces panic functions, traps, and printing functions by declarations that [`lower`] finds.
pub(crate) fn hook(module: &Module<'_>) {
    let context = module.context();
    trap::hook(module, &ENDING);
    for function in module.functions() {
        let Some((path, message)) = origin::ending(function.name()) else { continue };
        let attributes: &[&str] = if message.is_print() { &["cold", "nounwind", "convergent"] } else { &ENDING };
        let declaration = module.declare(&format!("{PREFIX}{path}"), function.held_type());
        for attribute in attributes {
            declaration.add_attribute(Attribute::FUNCTION, Attribute::plain(context, attribute, 0));
        }
        function.replace_all_uses_with(declaration);
        function.delete_function();
    }
}

/// Whether the module calls hooked functions.
pub(crate) fn may_begin(module: &Module<'_>) -> bool {
    module.functions().into_iter().any(|function| function.name().starts_with(PREFIX) && function.is_used())
}

/// Declares the function that writes records, if the module may need it.
pub(crate) fn declare_record(module: &Module<'_>) {
    if may_begin(module) {
        number_recorder(module);
    }
}

/// Removes the function that writes records from a module that does not call it.
pub(crate) fn drop_record(module: &Module<'_>) {
    if let Some(record) = module.function(RECORD).filter(|record| !record.is_used()) {
        record.delete_function();
    }
}

/// Checks that recorders claim the launch's record. A recorder that claims nothing was compiled for the host by mistake, and panics would
/// be lost.
pub(crate) fn check_recorders(module: &Module<'_>) -> Result<(), CompileError> {
    let claims = |instruction: &Value<'_>| instruction.is(Opcode::ATOMIC_CMP_XCHG) || instruction.callee().is_some();
    for function in module.functions() {
        let is_empty = || !function.instructions().iter().any(claims);
        if is_record(function.name()) && !function.is_declaration() && is_empty() {
            return Err(CompileError::Kernel(format!("`{}` records nothing", function.name())));
        }
    }
    Ok(())
}

fn recorder<'c>(module: &Module<'c>, name: &str) -> Value<'c> {
    let context = module.context();
    let (pointer, number) = (Type::pointer(context, 0), Type::int(context, 32));
    module.declare(name, Type::function(Type::void(context), &[pointer, number, pointer, number]))
}

fn number_recorder<'c>(module: &Module<'c>) -> Value<'c> {
    let context = module.context();
    let (pointer, number, word) = (Type::pointer(context, 0), Type::int(context, 32), Type::int(context, 64));
    module.declare(RECORD, Type::function(Type::void(context), &[pointer, number, word, word, word, word]))
}

/// The places where the code of an image can panic or print.
#[derive(Default)]
pub(crate) struct Sites {
    pub(crate) list: Vec<PanicSite>,
}

impl Sites {
    /// The number of a site, which is added if it is new.
    fn number(&mut self, site: PanicSite) -> u32 {
        let known = self.list.iter().position(|other| *other == site);
        known.unwrap_or_else(|| {
            self.list.push(site);
            self.list.len() - 1
        }) as u32
    }
}

/// Replaces the calls of hooked functions by records. `end` ends the work-item after those that do not return.
pub(crate) fn lower<'c>(
    module: &Module<'c>,
    sites: &mut Sites,
    launch: &dyn Fn(&Builder<'c>) -> Value<'c>,
    end: &dyn Fn(&Builder<'c>),
) {
    let context = module.context();
    let number = Type::int(context, 32);
    // In the order of the code, not of the list of uses.
    let mut ordered = Vec::new();
    for function in module.functions() {
        for instruction in function.instructions() {
            let callee = instruction.callee().filter(|callee| callee.kind() == ValueKind::Function);
            if fails_again(instruction) {
                // Not all devices can call a function within itself.
                ordered.push((SLICE_ERROR, instruction));
            } else if let Some(path) = callee.and_then(|callee| callee.name().strip_prefix(PREFIX)) {
                ordered.push((path, instruction));
            }
        }
    }
    for (path, call) in ordered {
        // The record is claimed by then, and not all devices can call a function within itself.
        if is_record(call.function().name()) && !prints(path) {
            end(&Builder::before(context, call));
            call.erase();
            continue;
        }
        let is_print = prints(path);
        let (message, values) = if is_print { output(path, call) } else { message(path, call) };
        let location = match path {
            _ if is_print => None,
            trap::PATH => trap::location(call.arguments()[0]),
            recursion::PATH => recursion::location(call),
            arena::PATH | frames::PATH => users_place(call),
            _ => location(call),
        };
        let site = sites.number(PanicSite { location, message });
        let builder = Builder::before(context, call);
        let numbers = if is_print { None } else { arguments::numbers(module, &builder, &values) };
        if let Some((kinds, [first, second, third])) = numbers {
            let record = number_recorder(module);
            let kinds = Type::int(context, 64).constant(kinds);
            let site = number.constant(u64::from(site));
            builder.call(record, &[launch(&builder), site, kinds, first, second, third]);
            end(&builder);
            call.erase();
            continue;
        }
        let count = number.constant(values.len() as u64);
        let array = arguments::store(module, &builder, call, &values);
        let name = if is_print { PRINT } else { RECORD_VALUES };
        let form = if values.iter().any(Recorded::is_formatted) { FORMATTED } else { "" };
        let record = recorder(module, &format!("{name}{form}"));
        builder.call(record, &[launch(&builder), number.constant(u64::from(site)), array, count]);
        if !is_print {
            end(&builder);
        }
        call.erase();
    }
    // Whatever calls it is there now.
    set_linkage_of_recorders(module, Linkage::INTERNAL);
}

/// Makes LLVM keep the parameters of recorders while more code is optimised with them, since calls are added when its panics are lowered.
pub(crate) fn keep_recorders(module: &Module<'_>) {
    set_linkage_of_recorders(module, Linkage::EXTERNAL);
}

fn set_linkage_of_recorders(module: &Module<'_>, linkage: Linkage) {
    let is_recorder = |function: &Value<'_>| is_record(function.name()) || is_print(function.name());
    for function in module.functions().into_iter().filter(is_recorder) {
        if !function.is_declaration() {
            function.set_linkage(linkage);
        }
    }
}

/// The output of a printing call, and the values in it.
fn output<'c>(path: &str, call: Value<'c>) -> (Vec<MessagePiece>, Vec<Recorded<'c>>) {
    let arguments = call.arguments();
    let (mut pieces, values) = template::read(arguments[0], arguments[1], 0);
    if origin::message_of(path) == Some(PanicMessage::PrintLine) {
        match pieces.last_mut() {
            Some(MessagePiece::Literal(text)) => text.push('\n'),
            _ => pieces.push(MessagePiece::Literal("\n".to_owned())),
        }
    }
    (pieces, values)
}

/// The message of a panic, and the values in it.
fn message<'c>(path: &str, call: Value<'c>) -> (Vec<MessagePiece>, Vec<Recorded<'c>>) {
    let arguments = call.arguments();
    let literal = |text: &str| MessagePiece::Literal(text.to_owned());
    let text = |text: &str| (vec![literal(text)], Vec::new());
    // A string by its address and its length, which may be known only when the kernel runs.
    let string = |first: usize| match (arguments.get(first), arguments.get(first + 1)) {
        (Some(start), Some(length)) => match constant_text(*start, *length) {
            Some(constant) => text(&constant),
            None => (vec![plain(0)], vec![Recorded::string(*start, *length)]),
        },
        _ => text("panic"),
    };
    let message = match path {
        trap::PATH => PanicMessage::Abort,
        recursion::PATH => {
            return (recursion::message(plain(0)), vec![Recorded::scalar(arguments[0], ArgumentKind::Usize)]);
        }
        arena::PATH => return text(&arena::message()),
        frames::PATH => return text(&frames::message()),
        formatting_depth::PATH => return text(&formatting_depth::message()),
        SLICE_ERROR => PanicMessage::SliceError,
        _ => origin::message_of(path).unwrap_or(PanicMessage::Name),
    };
    match message {
        PanicMessage::Arguments | PanicMessage::Print | PanicMessage::PrintLine => {
            template::read(arguments[0], arguments[1], 0)
        }
        PanicMessage::BoundsCheck => (
            vec![literal("index out of bounds: the len is "), plain(1), literal(" but the index is "), plain(0)],
            vec![
                Recorded::scalar(arguments[0], ArgumentKind::Usize),
                Recorded::scalar(arguments[1], ArgumentKind::Usize),
            ],
        ),
        PanicMessage::Assertion => assertion(&arguments),
        PanicMessage::NoValue => text("called `Option::unwrap()` on a `None` value"),
        PanicMessage::Error => {
            let (mut pieces, mut values) = string(0);
            let (error, shown) = arguments::of_object(arguments[2], arguments[3], values.len() as u8);
            pieces.extend([literal(": "), shown]);
            values.push(error);
            (pieces, values)
        }
        // What it carries may be anything that is passed as two numbers, so that only what is a constant text is taken for one.
        PanicMessage::Payload => match arguments.as_slice() {
            [start, length, _] => text(constant_text(*start, *length).as_deref().unwrap_or(ANY)),
            _ => text(ANY),
        },
        PanicMessage::Text => string(0),
        PanicMessage::CannotUnwind => text("panic in a function that cannot unwind"),
        PanicMessage::InCleanup => text("panic in a destructor during cleanup"),
        PanicMessage::NullPointer => text("null pointer dereference occurred"),
        PanicMessage::Misaligned => text("misaligned pointer dereference"),
        PanicMessage::Abort => text(trap::MESSAGE),
        PanicMessage::SliceError => text("failed to slice string"),
        PanicMessage::OutOfMemory => text("memory allocation failed"),
        PanicMessage::Name => text(&constant_panic(path)),
    }
}

/// The message of one of the compiler's own panics.
fn constant_panic(path: &str) -> String {
    let text = match origin::last_name(path).trim_start_matches("panic_const_") {
        "add_overflow" => "attempt to add with overflow",
        "sub_overflow" => "attempt to subtract with overflow",
        "mul_overflow" => "attempt to multiply with overflow",
        "div_overflow" => "attempt to divide with overflow",
        "rem_overflow" => "attempt to calculate the remainder with overflow",
        "neg_overflow" => "attempt to negate with overflow",
        "shr_overflow" => "attempt to shift right with overflow",
        "shl_overflow" => "attempt to shift left with overflow",
        "div_by_zero" => "attempt to divide by zero",
        "rem_by_zero" => "attempt to calculate the remainder with a divisor of zero",
        _ => return format!("panic in {path}"),
    };
    text.to_owned()
}

/// The message of `assert_eq!` and `assert_ne!`: kind, two objects, and an optional message.
fn assertion<'c>(arguments: &[Value<'c>]) -> (Vec<MessagePiece>, Vec<Recorded<'c>>) {
    let operator = match arguments[0].integer() {
        Some(0) => "left == right",
        Some(1) => "left != right",
        _ => "left matches right",
    };
    let (left, right) =
        (arguments::of_object(arguments[1], arguments[2], 0), arguments::of_object(arguments[3], arguments[4], 1));
    let mut pieces = vec![MessagePiece::Literal(format!("assertion `{operator}` failed"))];
    let mut values = vec![left.0, right.0];
    let has_message = arguments.len() >= 7 && !arguments[5].is_null();
    if has_message {
        let (more, more_values) = template::read(arguments[5], arguments[6], values.len() as u8);
        pieces.push(MessagePiece::Literal(": ".to_owned()));
        pieces.extend(more);
        values.extend(more_values);
    }
    pieces.extend([
        MessagePiece::Literal("\n  left: ".to_owned()),
        left.1,
        MessagePiece::Literal("\n right: ".to_owned()),
        right.1,
    ]);
    (pieces, values)
}

/// A string constant, given by address and length.
fn constant_text(start: Value<'_>, length: Value<'_>) -> Option<String> {
    let bytes = start.initializer()?.data()?.get(..length.integer()? as usize)?;
    std::str::from_utf8(bytes).ok().map(str::to_owned)
}

/// The innermost place of a call that is in user code.
fn users_place(call: Value<'_>) -> Option<SourceLocation> {
    let is_users = |place: &Place<'_>| origin::is_users_file(&place.file, &place.folder);
    call.places().into_iter().find(is_users).map(Place::location)
}

/// The place in the last argument of a function with `#[track_caller]`.
fn location(call: Value<'_>) -> Option<SourceLocation> {
    location_of(*call.arguments().last()?)
}

/// The place in a constant `core::panic::Location`.
pub(crate) fn location_of(constant: Value<'_>) -> Option<SourceLocation> {
    let record = constant.initializer()?;
    let name = record.element(0)?.initializer()?.data()?;
    let rest = record.element(1)?.data()?;
    let number = |at: usize| Some(u32::from_le_bytes(rest.get(at..at + 4)?.try_into().ok()?));
    let length = u64::from_le_bytes(rest.get(..8)?.try_into().ok()?) as usize;
    let file = std::str::from_utf8(name.get(..length)?).ok()?.to_owned();
    Some(SourceLocation { file, line: number(8)?, column: number(12)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_compilers_own_panics_have_rusts_messages() {
        assert_eq!(
            constant_panic("core::panicking::panic_const::panic_const_div_by_zero"),
            "attempt to divide by zero"
        );
    }

    #[test]
    fn what_cuts_a_string_to_show_where_it_cannot_be_cut_does_not_call_itself() {
        let context = crate::passes::tests::context();
        let text = "
            declare void @end()
            define void @f(ptr %s, i64 %n) { call void @\"core::str::slice_error_fail_rt\"(ptr %s, i64 %n, ptr null) ret void }
            define internal void @\"core::str::slice_error_fail_rt\"(ptr %s, i64 %n, ptr %place) noinline {
              %c = icmp eq i64 %n, 0
              br i1 %c, label %again, label %other
            again:
              call void @\"core::str::slice_error_fail_rt\"(ptr %s, i64 %n, ptr null)
              unreachable
            other:
              ret void
            }";
        let module = crate::passes::tests::module(&context, text);
        let mut sites = Sites::default();
        let end = module.function("end").expect("it is declared");
        lower(&module, &mut sites, &|_| Type::pointer(&context, 0).null(), &|builder| _ = builder.call(end, &[]));
        module.verify("lowering").expect("a valid module");
        assert_eq!(sites.list[0].message, [MessagePiece::Literal("failed to slice string".to_owned())]);
        let function = module.function(SLICE_ERROR).expect("it is there");
        let callers: Vec<_> = function.users().into_iter().map(|call| call.function().name()).collect();
        assert_eq!(callers, ["f"]);
    }
}
