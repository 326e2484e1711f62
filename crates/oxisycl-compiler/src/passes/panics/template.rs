//! Messages with values: `core::fmt::Arguments` as rustc 1.95 makes them.
//!
//! The template is a sequence of parts, and ends with zero:
//!
//! - a length below 128 and so many bytes of text;
//! - 0x80, a length in 16 bits, and text;
//! - a byte with the two highest bits set for a value, whose lower bits say which of flags, width, precision and position follow.
//!
//! Where there are no values the two addresses are a plain string instead, the second one being twice the length plus one.

use oxisycl_image::{FormatAlignment, FormatCount, FormatTrait, MessagePiece};

use super::arguments::{Recorded, of_array, plain};
use crate::llvm::{Opcode, Value};

/// Reads a message. Its values are numbered from `first`.
pub(super) fn read<'c>(template: Value<'c>, arguments: Value<'c>, first: u8) -> (Vec<MessagePiece>, Vec<Recorded<'c>>) {
    let text = |text: &str| (vec![MessagePiece::Literal(text.to_owned())], Vec::new());
    let on_device = || (vec![plain(first)], vec![Recorded::message(template, arguments)]);
    let bytes = template.initializer().and_then(Value::data);
    if arguments.expression() == Some(Opcode::INT_TO_PTR) {
        let length = arguments.operand(0).integer().unwrap_or_default() as usize >> 1;
        let constant = if length == 0 { Some(&b""[..]) } else { bytes.and_then(|bytes| bytes.get(..length)) };
        return constant.and_then(|text| std::str::from_utf8(text).ok()).map_or_else(on_device, text);
    }
    let Some(parts) = bytes.and_then(parse) else { return on_device() };
    let mut message = Message { arguments, first, values: Vec::new(), known: Vec::new() };
    let pieces = parts.into_iter().map(|part| message.piece(part)).collect();
    (pieces, message.values)
}

/// The state of reading a message.
struct Message<'c> {
    arguments: Value<'c>,
    first: u8,
    values: Vec<Recorded<'c>>,
    /// The indices of arguments that the host formats, with the indices and traits of their values.
    known: Vec<(u16, u8, FormatTrait)>,
}

impl<'c> Message<'c> {
    fn piece(&mut self, part: Part) -> MessagePiece {
        let (index, flags, width, precision) = match &part {
            Part::Text(text) => return MessagePiece::Literal(text.clone()),
            Part::Value { index, flags, width, precision } => (*index, *flags, *width, *precision),
        };
        match (self.known(index), self.count(width), self.count(precision)) {
            (Some((index, style)), Some(width), Some(precision)) => {
                MessagePiece::Argument { index, format: format(style, flags, width, precision) }
            }
            _ => plain(self.add(Recorded::part(part.bytes(), self.arguments))),
        }
    }

    /// The index among the recorded values, and the trait, of an argument that the host can format.
    fn known(&mut self, index: u16) -> Option<(u8, FormatTrait)> {
        if let Some((_, position, style)) = self.known.iter().find(|(other, ..)| *other == index) {
            return Some((*position, *style));
        }
        let (value, shown) = of_array(self.arguments, u64::from(index))?;
        let position = self.add(value);
        self.known.push((index, position, shown.style));
        Some((position, shown.style))
    }

    /// A width or precision. The outer `Option` is `None` if it is an argument that the host cannot use.
    fn count(&mut self, count: Option<Count>) -> Option<Option<FormatCount>> {
        match count {
            None => Some(None),
            Some(Count::Is(number)) => Some(Some(FormatCount::Is(number))),
            Some(Count::Argument(index)) => self.known(index).map(|(index, _)| Some(FormatCount::Argument(index))),
        }
    }

    fn add(&mut self, value: Recorded<'c>) -> u8 {
        self.values.push(value);
        // A value beyond the last position counts as not recorded.
        u8::try_from(usize::from(self.first) + self.values.len() - 1).unwrap_or(u8::MAX)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Count {
    Is(u16),
    Argument(u16),
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Part {
    Text(String),
    Value { index: u16, flags: Option<u32>, width: Option<Count>, precision: Option<Count> },
}

impl Part {
    /// The template of a message with only this value.
    fn bytes(&self) -> Vec<u8> {
        let Self::Value { index, flags, width, precision } = self else { return vec![0] };
        let count = |count: &Option<Count>, present: u8, indirect: u8| match count {
            None => (0, None),
            Some(Count::Is(number)) => (present, Some(*number)),
            Some(Count::Argument(number)) => (present | indirect, Some(*number)),
        };
        let ((width_bits, width), (precision_bits, precision)) = (count(width, 2, 16), count(precision, 4, 32));
        let mut bytes = vec![0xC0 | u8::from(flags.is_some()) | width_bits | precision_bits | 8];
        bytes.extend(flags.iter().flat_map(|flags| flags.to_le_bytes()));
        bytes.extend(width.into_iter().chain(precision).chain([*index]).flat_map(u16::to_le_bytes));
        bytes.push(0);
        bytes
    }
}

fn parse(bytes: &[u8]) -> Option<Vec<Part>> {
    let mut rest = bytes;
    let mut parts = Vec::new();
    let mut next = 0;
    loop {
        let (&first, after) = rest.split_first()?;
        rest = after;
        match first {
            0 => return Some(parts),
            1..=0x80 => {
                let length = if first == 0x80 { u16_of(&mut rest)? } else { u16::from(first) };
                let (text, after) = rest.split_at_checked(usize::from(length))?;
                parts.push(Part::Text(std::str::from_utf8(text).ok()?.to_owned()));
                rest = after;
            }
            0xC0.. => {
                let has = |bit: u8| first & bit != 0;
                let flags = if has(1) {
                    Some(u32::from(u16_of(&mut rest)?) | u32::from(u16_of(&mut rest)?) << 16)
                } else {
                    None
                };
                let mut count = |present: u8, indirect: u8| {
                    if !has(present) {
                        return Some(None);
                    }
                    let number = u16_of(&mut rest)?;
                    Some(Some(if has(indirect) { Count::Argument(number) } else { Count::Is(number) }))
                };
                let (width, precision) = (count(2, 16)?, count(4, 32)?);
                // A zero is left out; a flag tells it from none.
                let zero = |flag: u32| flags.filter(|flags| flags & flag != 0).map(|_| Count::Is(0));
                let (width, precision) = (width.or(zero(HAS_WIDTH)), precision.or(zero(HAS_PRECISION)));
                let index = if has(8) { u16_of(&mut rest)? } else { next };
                next = index + 1;
                parts.push(Part::Value { index, flags, width, precision });
            }
            _ => return None,
        }
    }
}

fn u16_of(rest: &mut &[u8]) -> Option<u16> {
    let (bytes, after) = rest.split_first_chunk::<2>()?;
    *rest = after;
    Some(u16::from_le_bytes(*bytes))
}

/// The bit of `FormattingOptions` for a width.
const HAS_WIDTH: u32 = 1 << 27;
const HAS_PRECISION: u32 = 1 << 28;

/// The options of a value, from the bits of `FormattingOptions`.
fn format(
    style: FormatTrait,
    flags: Option<u32>,
    width: Option<FormatCount>,
    precision: Option<FormatCount>,
) -> oxisycl_image::ArgumentFormat {
    let flags = flags.unwrap_or(u32::from(' ') | 3 << 29);
    let has = |bit: u32| flags & (1 << bit) != 0;
    let style = match style {
        FormatTrait::Debug if has(25) => FormatTrait::DebugLowerHex,
        FormatTrait::Debug if has(26) => FormatTrait::DebugUpperHex,
        style => style,
    };
    oxisycl_image::ArgumentFormat {
        style,
        alternate: has(23),
        sign_plus: has(21),
        zero_pad: has(24),
        fill: char::from_u32(flags & 0x1F_FFFF).unwrap_or(' '),
        alignment: match flags >> 29 & 3 {
            0 => Some(FormatAlignment::Left),
            1 => Some(FormatAlignment::Right),
            2 => Some(FormatAlignment::Center),
            _ => None,
        },
        width,
        precision,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_are_read_as_rustc_writes_them() {
        let text = |text: &str| Part::Text(text.to_owned());
        let value = |index| Part::Value { index, flags: None, width: None, precision: None };
        assert_eq!(
            parse(b"\x09negative \xC0\x04 at \xC0\x00"),
            Some(vec![text("negative "), value(0), text(" at "), value(1)])
        );
        assert_eq!(parse(b"\x00"), Some(Vec::new()));
        assert_eq!(
            parse(b"\xCF\x20\x00\x00\x61\x05\x00\x02\x00\x01\x00\x00"),
            Some(vec![Part::Value {
                index: 1,
                flags: Some(0x6100_0020),
                width: Some(Count::Is(5)),
                precision: Some(Count::Is(2))
            }])
        );
        // `{:.0}`
        assert_eq!(
            parse(b"\xC1\x20\x00\x00\x70\x00"),
            Some(vec![Part::Value { index: 0, flags: Some(0x7000_0020), width: None, precision: Some(Count::Is(0)) }])
        );
        for broken in [&b""[..], b"\x05ab", b"\xC1\x00", b"\x90\x00", b"\x01a"] {
            assert_eq!(parse(broken), None, "{broken:?}");
        }
    }

    #[test]
    fn a_value_alone_reads_as_it_did_in_its_message() {
        for template in [
            &b"\xC0\x00"[..],
            b"\x01a\xC8\x03\x00\x00",
            b"\xCF\x20\x00\x00\x61\x05\x00\x02\x00\x01\x00\x00",
            b"\xF6\x04\x00\x05\x00\x00",
        ] {
            let part = parse(template).and_then(|mut parts| parts.pop()).expect("it ends with a value");
            assert_eq!(parse(&part.bytes()), Some(vec![part]));
        }
    }

    #[test]
    fn long_texts_have_a_length_of_16_bits() {
        let mut bytes = vec![0x80, 0x2C, 0x01];
        bytes.extend([b'x'; 300]);
        bytes.push(0);
        assert_eq!(parse(&bytes), Some(vec![Part::Text("x".repeat(300))]));
    }
}
