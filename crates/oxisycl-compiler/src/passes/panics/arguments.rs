//! The values of a message: where they are, their kinds, and how the device gets them.
//!
//! What the host can format is recorded as it is. For everything else the device formats: it gets a message with this one value in it. So a
//! value that is not understood here costs code, and is never shown wrongly.

use oxisycl_image::{ArgumentFormat, ArgumentKind, FormatTrait, MessagePiece};

use super::formatter::{Shown, shown_by};
use crate::llvm::{Builder, Module, Opcode, Type, TypeKind, Value};

/// The template of a message with one value, as for `{}` or `{:?}`.
const ONE_VALUE: &[u8] = b"\xC0\x00";

/// A value that the device records.
#[derive(Clone)]
pub(super) struct Recorded<'c> {
    place: Place<'c>,
    kind: ArgumentKind,
}

#[derive(Clone)]
enum Place<'c> {
    /// The value itself.
    Scalar(Value<'c>),
    /// Address and length of a string.
    String(Value<'c>, Value<'c>),
    /// An address that leads to the value through a number of further addresses.
    Address(Value<'c>, u32),
    /// The address of an address that leads to the value through a number of further ones.
    Slot { array: Value<'c>, offset: u64, indirections: u32 },
    /// A message.
    Message { template: Template<'c>, arguments: Value<'c> },
    /// A value behind `&dyn Debug`, given by its address and its vtable.
    Object { data: Value<'c>, table: Value<'c> },
}

#[derive(Clone)]
enum Template<'c> {
    Own(Vec<u8>),
    Given(Value<'c>),
}

impl<'c> Recorded<'c> {
    pub(super) fn scalar(value: Value<'c>, kind: ArgumentKind) -> Self {
        Self { place: Place::Scalar(value), kind }
    }

    /// A string whose contents are known at run time.
    pub(super) fn string(start: Value<'c>, length: Value<'c>) -> Self {
        Self { place: Place::String(start, length), kind: ArgumentKind::Str }
    }

    /// A whole message, which the device formats.
    pub(super) fn message(template: Value<'c>, arguments: Value<'c>) -> Self {
        Self { place: Place::Message { template: Template::Given(template), arguments }, kind: ArgumentKind::Text }
    }

    /// A part of a message, which the device formats.
    pub(super) fn part(template: Vec<u8>, arguments: Value<'c>) -> Self {
        Self { place: Place::Message { template: Template::Own(template), arguments }, kind: ArgumentKind::Text }
    }

    /// Whether the device needs code that formats it.
    pub(super) fn is_formatted(&self) -> bool {
        self.kind == ArgumentKind::Text
    }
}

/// The piece of a message that prints the value with the index `index` without options.
pub(super) fn plain(index: u8) -> MessagePiece {
    MessagePiece::Argument { index, format: ArgumentFormat::new(FormatTrait::Display) }
}

/// A value behind `&dyn Debug`.
pub(super) fn of_object<'c>(data: Value<'c>, table: Value<'c>, index: u8) -> (Recorded<'c>, MessagePiece) {
    // Drop, size, alignment, then the only method.
    let method = table.initializer().and_then(|table| table.operands().into_iter().next_back());
    match method.and_then(shown_by) {
        Some(shown) => {
            let recorded = Recorded { place: Place::Address(data, shown.indirections), kind: shown.kind };
            (recorded, MessagePiece::Argument { index, format: ArgumentFormat::new(shown.style) })
        }
        None => (Recorded { place: Place::Object { data, table }, kind: ArgumentKind::Text }, plain(index)),
    }
}

/// The argument at an index of an array of `fmt::rt::Argument`: pairs of an address and a formatting function. `None` if the host cannot
/// format it.
pub(super) fn of_array<'c>(array: Value<'c>, index: u64) -> Option<(Recorded<'c>, Shown)> {
    let offset = index * 16;
    let shown = shown_by(stored_at(array, offset + 8)?)?;
    Some((Recorded { place: Place::Slot { array, offset, indirections: shown.indirections }, kind: shown.kind }, shown))
}

/// The only value that is stored at an offset of a local array.
fn stored_at<'c>(array: Value<'c>, offset: u64) -> Option<Value<'c>> {
    let mut found = None;
    let mut places = Vec::new();
    // Also by its address in the address space that the target keeps variables in.
    let variable = array.is(Opcode::ADDRESS_SPACE_CAST).then(|| array.operand(0));
    let arrays: Vec<_> = variable.into_iter().chain([array]).collect();
    if offset == 0 {
        places.clone_from(&arrays);
    }
    for user in arrays.iter().flat_map(|array| array.users()) {
        let is_place = user.is(Opcode::GET_ELEMENT_PTR)
            && arrays.contains(&user.operand(0))
            && user.gep_type().kind() == TypeKind::Integer(8)
            && user.operands().len() == 2
            && user.operand(1).integer() == Some(offset);
        if is_place {
            places.push(user);
        }
    }
    for place in places {
        for user in place.users() {
            // A loop that was unrolled stores the same several times.
            if user.is(Opcode::STORE)
                && user.operand(1) == place
                && found.replace(user.operand(0)).is_some_and(|other| other != user.operand(0))
            {
                return None;
            }
        }
    }
    found
}

/// The most numbers of a record that are passed by value.
pub(super) const MAX_NUMBERS: usize = 3;

/// The values as 64-bit numbers, and one number that has their kinds in its bytes, the first one lowest. Its fourth byte says how many they are.
/// `None` if there are too many values, or one is not a number of at most 64 bits. Such values need no memory, which every work-item would reserve even if
/// none panics.
pub(super) fn numbers<'c>(
    module: &Module<'c>,
    builder: &Builder<'c>,
    values: &[Recorded<'c>],
) -> Option<(u64, [Value<'c>; MAX_NUMBERS])> {
    let context = module.context();
    let (pointer, byte, word) = (Type::pointer(context, 0), Type::int(context, 8), Type::int(context, 64));
    let fits = |value: &Recorded<'_>| match &value.place {
        Place::Scalar(scalar) => scalar.value_type().kind() == TypeKind::Integer(64),
        Place::Address(..) | Place::Slot { .. } => size(value.kind).is_some(),
        Place::String(..) | Place::Message { .. } | Place::Object { .. } => false,
    };
    if values.len() > MAX_NUMBERS || !values.iter().all(fits) {
        return None;
    }
    let mut kinds = (values.len() as u64) << (8 * MAX_NUMBERS);
    let mut numbers = [word.constant(0); MAX_NUMBERS];
    for (index, value) in values.iter().enumerate() {
        kinds |= u64::from(value.kind.number()) << (8 * index);
        let (mut address, indirections) = match &value.place {
            Place::Scalar(scalar) => {
                numbers[index] = *scalar;
                continue;
            }
            Place::Address(address, indirections) => (*address, *indirections),
            Place::Slot { array, offset, indirections } => {
                (builder.offset(byte, *array, word.constant(*offset)), indirections + 1)
            }
            Place::String(..) | Place::Message { .. } | Place::Object { .. } => return None,
        };
        for _ in 0..indirections {
            address = builder.load(pointer, address);
        }
        let bits = 8 * size(value.kind)?;
        let number = builder.load(Type::int(context, bits), address);
        numbers[index] = if bits < 64 { builder.widen(number, word) } else { number };
    }
    Some((kinds, numbers))
}

/// The bytes of a value of that kind; `None` unless it is a number of at most 64 bits.
fn size(kind: ArgumentKind) -> Option<u32> {
    match kind {
        ArgumentKind::Bool | ArgumentKind::I8 | ArgumentKind::U8 => Some(1),
        ArgumentKind::I16 | ArgumentKind::U16 => Some(2),
        ArgumentKind::Char | ArgumentKind::I32 | ArgumentKind::U32 | ArgumentKind::F32 => Some(4),
        ArgumentKind::I64 | ArgumentKind::U64 | ArgumentKind::F64 => Some(8),
        ArgumentKind::Isize | ArgumentKind::Usize => Some(8),
        _ => None,
    }
}

/// Makes an array of addresses and kinds for the device, before `call`.
pub(super) fn store<'c>(
    module: &Module<'c>,
    builder: &Builder<'c>,
    call: Value<'c>,
    values: &[Recorded<'c>],
) -> Value<'c> {
    let context = module.context();
    let (pointer, word, byte) = (Type::pointer(context, 0), Type::int(context, 64), Type::int(context, 8));
    if values.is_empty() {
        return pointer.null();
    }
    // Memory is reserved once, at the start of the function.
    let at_start = Builder::before(context, call.function().blocks()[0].instructions()[0]);
    let reserve = |size: u64| {
        let place = at_start.alloca(byte, word.constant(size));
        place.set_alignment(16);
        // Some targets keep variables in an address space of their own.
        if place.value_type() == pointer { place } else { at_start.cast_address(place, pointer) }
    };
    let at = |address: Value<'c>, offset: u64| builder.offset(byte, address, word.constant(offset));
    let pair = |first: Value<'c>, second: Value<'c>| {
        let place = reserve(16);
        builder.store(first, place);
        builder.store(second, at(place, 8));
        place
    };
    let array = reserve(16 * values.len() as u64);
    for (index, value) in values.iter().enumerate() {
        let (mut address, indirections) = match &value.place {
            Place::Scalar(scalar) => {
                let place = reserve(16);
                builder.store(*scalar, place);
                (place, 0)
            }
            Place::String(start, length) => (pair(*start, *length), 0),
            Place::Address(address, indirections) => (*address, *indirections),
            Place::Slot { array, offset, indirections } => (at(*array, *offset), indirections + 1),
            Place::Message { template, arguments } => {
                let template = match template {
                    Template::Own(bytes) => constant(module, bytes),
                    Template::Given(template) => *template,
                };
                (pair(template, *arguments), 0)
            }
            Place::Object { data, table } => {
                let method = builder.load(pointer, at(*table, 24));
                (pair(constant(module, ONE_VALUE), pair(*data, method)), 0)
            }
        };
        for _ in 0..indirections {
            address = builder.load(pointer, address);
        }
        builder.store(address, at(array, 16 * index as u64));
        let kind = word.constant(u64::from(value.kind.number()));
        builder.store(kind, at(array, 16 * index as u64 + 8));
    }
    array
}

/// A constant with a template of the compiler's, once per module.
fn constant<'c>(module: &Module<'c>, bytes: &[u8]) -> Value<'c> {
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let name = format!("oxisycl.template.{digits}");
    module.global(&name).unwrap_or_else(|| module.add_constant(&name, bytes))
}
