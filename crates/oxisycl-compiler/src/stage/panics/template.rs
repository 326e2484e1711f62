//! Messages with values: `core::fmt::Arguments` as rustc 1.95 makes them.
//!
//! The template is a sequence of parts: a length below 128 and so many bytes of text; 0x80, a length in 16 bits, and text; a byte with the
//! two highest bits set for a value, whose lower bits say which of flags, width, precision and position follow; zero at the end. Where
//! there are no values the two addresses are a plain string instead, the second one being twice the length plus one.

use oxisycl_image::{FormatAlignment, FormatCount, FormatTrait, MessagePiece};

use super::arguments::{Recorded, of_array};
use crate::llvm::{Opcode, Value};

/// Reads a message. Its values are numbered from `first`.
pub(super) fn read<'c>(template: Value<'c>, arguments: Value<'c>, first: u8) -> (Vec<MessagePiece>, Vec<Recorded<'c>>) {
    let unknown = || (vec![MessagePiece::Literal("the message is not a constant".to_owned())], Vec::new());
    let Some(bytes) = template.initializer().and_then(Value::data) else { return unknown() };
    if arguments.expression() == Some(Opcode::INT_TO_PTR) {
        let length = arguments.operand(0).integer().unwrap_or_default() as usize >> 1;
        let text = bytes.get(..length).and_then(|text| std::str::from_utf8(text).ok());
        return text.map_or_else(unknown, |text| (vec![MessagePiece::Literal(text.to_owned())], Vec::new()));
    }
    let Some(parts) = parse(bytes) else { return unknown() };
    let mut values: Vec<(u16, Recorded<'c>)> = Vec::new();
    let mut styles = Vec::new();
    // The position among the recorded values of an argument.
    let mut recorded = |index: u16| {
        if let Some(position) = values.iter().position(|(other, _)| *other == index) {
            return (first + position as u8, styles[position]);
        }
        let (value, shown) = of_array(arguments, u64::from(index));
        values.push((index, value));
        styles.push(shown.style);
        (first + (values.len() - 1) as u8, shown.style)
    };
    let mut pieces = Vec::new();
    for part in parts {
        pieces.push(match part {
            Part::Text(text) => MessagePiece::Literal(text),
            Part::Value { index, flags, width, precision } => {
                let mut count = |count: Option<Count>| match count? {
                    Count::Is(number) => Some(FormatCount::Is(number)),
                    Count::Argument(index) => Some(FormatCount::Argument(recorded(index).0)),
                };
                let (width, precision) = (count(width), count(precision));
                let (index, style) = recorded(index);
                MessagePiece::Argument { index, format: format(style, flags, width, precision) }
            }
        });
    }
    (pieces, values.into_iter().map(|(_, value)| value).collect())
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
        for broken in [&b""[..], b"\x05ab", b"\xC1\x00", b"\x90\x00", b"\x01a"] {
            assert_eq!(parse(broken), None, "{broken:?}");
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
