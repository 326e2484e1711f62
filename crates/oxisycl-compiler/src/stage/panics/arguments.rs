//! The values of a panic message: where they are, what they are, and how the device is told.

use oxisycl_image::{ArgumentFormat, ArgumentKind, FormatTrait, MessagePiece};

use super::shown_by;
use crate::llvm::{Builder, Module, Opcode, Type, TypeKind, Value};

/// A value that the device records.
#[derive(Clone, Copy)]
pub(super) struct Recorded<'c> {
    place: Place<'c>,
    kind: ArgumentKind,
}

#[derive(Clone, Copy)]
enum Place<'c> {
    /// The value itself.
    Scalar(Value<'c>),
    /// An address that leads to the value over so many other addresses.
    Address(Value<'c>, u32),
    /// The address of an address that leads to the value over so many others.
    Slot { array: Value<'c>, offset: u64, indirections: u32 },
    /// Nothing is known of it.
    Nowhere,
}

/// What a formatting function prints of the address it is given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Shown {
    pub(super) style: FormatTrait,
    pub(super) kind: ArgumentKind,
    /// How many addresses lie between the argument and the value.
    pub(super) indirections: u32,
}

impl Shown {
    const UNKNOWN: Self = Self { style: FormatTrait::Debug, kind: ArgumentKind::Unknown, indirections: 0 };

    /// The piece of a message that prints the value.
    pub(super) fn piece(self, index: u8) -> MessagePiece {
        MessagePiece::Argument { index, format: ArgumentFormat::new(self.style) }
    }
}

impl<'c> Recorded<'c> {
    pub(super) fn scalar(value: Value<'c>, kind: ArgumentKind) -> Self {
        Self { place: Place::Scalar(value), kind }
    }
}

/// A value behind `&dyn Debug`.
pub(super) fn of_object<'c>(data: Value<'c>, table: Value<'c>) -> (Recorded<'c>, Shown) {
    // Drop, size, alignment, then the only method.
    let method = table.initializer().and_then(|table| table.operands().into_iter().next_back());
    match method.and_then(shown_by) {
        Some(shown) => (Recorded { place: Place::Address(data, shown.indirections), kind: shown.kind }, shown),
        None => (Recorded { place: Place::Nowhere, kind: ArgumentKind::Unknown }, Shown::UNKNOWN),
    }
}

/// The argument at the given position of an array of `fmt::rt::Argument`: pairs of an address and a formatting function.
pub(super) fn of_array<'c>(array: Value<'c>, index: u64) -> (Recorded<'c>, Shown) {
    let offset = index * 16;
    match stored_at(array, offset + 8).and_then(shown_by) {
        Some(shown) => {
            let place = Place::Slot { array, offset, indirections: shown.indirections };
            (Recorded { place, kind: shown.kind }, shown)
        }
        None => (Recorded { place: Place::Nowhere, kind: ArgumentKind::Unknown }, Shown::UNKNOWN),
    }
}

/// The only value that is stored at an offset of a local array, if that is certain enough for a message.
fn stored_at<'c>(array: Value<'c>, offset: u64) -> Option<Value<'c>> {
    let mut found = None;
    let mut places = Vec::new();
    if offset == 0 {
        places.push(array);
    }
    for user in array.users() {
        let is_place = user.is(Opcode::GET_ELEMENT_PTR)
            && user.operand(0) == array
            && user.gep_type().kind() == TypeKind::Integer(8)
            && user.operands().len() == 2
            && user.operand(1).integer() == Some(offset);
        if is_place {
            places.push(user);
        }
    }
    for place in places {
        for user in place.users() {
            if user.is(Opcode::STORE) && user.operand(1) == place && found.replace(user.operand(0)).is_some() {
                return None;
            }
        }
    }
    found
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
        place
    };
    let array = reserve(16 * values.len() as u64);
    for (index, value) in values.iter().enumerate() {
        let (mut address, indirections) = match value.place {
            Place::Scalar(scalar) => {
                let place = reserve(16);
                builder.store(scalar, place);
                (place, 0)
            }
            Place::Address(address, indirections) => (address, indirections),
            Place::Slot { array, offset, indirections } => {
                (builder.offset(byte, array, word.constant(offset)), indirections + 1)
            }
            Place::Nowhere => (pointer.null(), 0),
        };
        for _ in 0..indirections {
            address = builder.load(pointer, address);
        }
        builder.store(address, builder.offset(byte, array, word.constant(16 * index as u64)));
        let kind = word.constant(u64::from(value.kind.number()));
        builder.store(kind, builder.offset(byte, array, word.constant(16 * index as u64 + 8)));
    }
    array
}
