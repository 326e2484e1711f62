//! Puts a panic message together: the pieces from the image, the values from the device.
//!
//! Values are printed as Rust's formatting prints them. The record comes from a device and may hold anything. So no number in it is
//! trusted, and nothing panics. Control characters of strings in panic messages are replaced, and the message has a maximum length.

use oxisycl_types::{PanicArgument, PanicRecord};

use crate::{ArgumentFormat, ArgumentKind, FormatAlignment, FormatCount, FormatTrait, MessagePiece, PanicSite};

/// Longest message in bytes; what goes beyond is cut off.
const MAX_MESSAGE: usize = 64 << 10;
/// What stands for the rest of a text that was cut off.
const ELLIPSIS: char = '…';

impl PanicSite {
    /// The message with the values of a record, of which nothing is trusted.
    pub fn format(&self, record: &PanicRecord) -> String {
        let n_arguments = (record.n_arguments as usize).min(PanicRecord::MAX_ARGUMENTS);
        let text_length = (record.text_length as usize).min(PanicRecord::MAX_TEXT);
        self.format_values(&record.arguments[..n_arguments], &record.text[..text_length])
    }

    /// The message with the values of the two parts of a record that matter, of which nothing is trusted.
    pub fn format_values(&self, arguments: &[PanicArgument], text: &[u8]) -> String {
        self.put_together(&Values { arguments, text, is_output: false })
    }

    /// What a kernel prints here: strings are as the program made them, since it could write them itself as well.
    pub(crate) fn format_output(&self, arguments: &[PanicArgument], text: &[u8]) -> String {
        self.put_together(&Values { arguments, text, is_output: true })
    }

    fn put_together(&self, values: &Values<'_>) -> String {
        let mut message = String::new();
        for piece in &self.message {
            match piece {
                MessagePiece::Literal(literal) => message.push_str(literal),
                MessagePiece::Argument { index, format } => message.push_str(&values.print(*index, format)),
            }
            // What is printed is as long as the room for it, which was the user's choice.
            if !values.is_output && message.len() > MAX_MESSAGE {
                message.truncate(message.floor_char_boundary(MAX_MESSAGE));
                message.push(ELLIPSIS);
                break;
            }
        }
        message
    }
}

/// The untrusted values.
struct Values<'a> {
    arguments: &'a [PanicArgument],
    text: &'a [u8],
    /// Whether control characters in strings are left as they are.
    is_output: bool,
}

/// What a value prints as, before its width is filled.
enum Printed {
    /// Ignores width and precision.
    Verbatim(String),
    /// Is cut by the precision, and stands left in its width.
    Text(String),
    /// Stands right in its width, which zeros can fill.
    Number { sign: &'static str, prefix: &'static str, digits: String },
}

impl Values<'_> {
    fn print(&self, index: u8, format: &ArgumentFormat) -> String {
        let Some(argument) = self.arguments.get(usize::from(index)) else { return "<not recorded>".to_owned() };
        // One digit more than the largest precision would panic in the standard library.
        let precision = self.count(format.precision).map(|precision| precision.min(usize::from(u16::MAX - 1)));
        let width = self.count(format.width);
        let plus = if format.sign_plus { "+" } else { "" };
        let (low, high) = (argument.bits[0], argument.bits[1]);
        let wide = u128::from(high) << 64 | u128::from(low);
        let signed = |value: i128, bits: u128| integer(value < 0, value.unsigned_abs(), bits, plus, precision, format);
        let unsigned = |value: u128| integer(false, value, value, plus, precision, format);
        let printed = match ArgumentKind::from_number(argument.kind) {
            ArgumentKind::Unknown => Printed::Verbatim("<type>".to_owned()),
            ArgumentKind::Bool => Printed::Text((low & 0xff != 0).to_string()),
            ArgumentKind::Char => character(low as u32, format, self.is_output),
            ArgumentKind::I8 => signed((low as i8).into(), (low as u8).into()),
            ArgumentKind::I16 => signed((low as i16).into(), (low as u16).into()),
            ArgumentKind::I32 => signed((low as i32).into(), (low as u32).into()),
            ArgumentKind::I64 | ArgumentKind::Isize => signed((low as i64).into(), low.into()),
            ArgumentKind::I128 => signed(wide as i128, wide),
            ArgumentKind::U8 => unsigned((low as u8).into()),
            ArgumentKind::U16 => unsigned((low as u16).into()),
            ArgumentKind::U32 => unsigned((low as u32).into()),
            ArgumentKind::U64 | ArgumentKind::Usize => unsigned(low.into()),
            ArgumentKind::U128 => unsigned(wide),
            ArgumentKind::F32 => {
                let value = f32::from_bits(low as u32);
                float(value.is_sign_negative(), value.is_nan(), value.abs(), plus, precision, format)
            }
            ArgumentKind::F64 => {
                let value = f64::from_bits(low);
                float(value.is_sign_negative(), value.is_nan(), value.abs(), plus, precision, format)
            }
            ArgumentKind::Str if is_debug(format.style) => {
                Printed::Verbatim(format!("{:?}", self.string(usize::from(index))))
            }
            ArgumentKind::Str => Printed::Text(self.shown(usize::from(index))),
            // Width and precision are in the text already.
            ArgumentKind::Text => Printed::Verbatim(self.shown(usize::from(index))),
            ArgumentKind::Pointer => {
                let digits = format!("{low:x}");
                // An alternate pointer shows all its digits.
                if format.alternate {
                    let format = ArgumentFormat { zero_pad: true, ..*format };
                    let printed = Printed::Number { sign: plus, prefix: "0x", digits };
                    return fill(printed, width.or(Some(18)), precision, &format);
                }
                Printed::Number { sign: plus, prefix: "0x", digits }
            }
        };
        fill(printed, width, precision, format)
    }

    /// A width or precision. One that a wrong kind of value stands for is none.
    fn count(&self, count: Option<FormatCount>) -> Option<usize> {
        match count? {
            FormatCount::Is(count) => Some(usize::from(count)),
            FormatCount::Argument(index) => {
                let argument = self.arguments.get(usize::from(index))?;
                let is_size = ArgumentKind::from_number(argument.kind) == ArgumentKind::Usize;
                // The largest that Rust's formatting takes.
                is_size.then(|| argument.bits[0].min(u64::from(u16::MAX)) as usize)
            }
        }
    }

    /// The string at that position as it is shown.
    fn shown(&self, index: usize) -> String {
        let text = self.string(index);
        if self.is_output { text } else { text.chars().map(harmless).collect() }
    }

    /// The string at that position among the arguments.
    fn string(&self, index: usize) -> String {
        let is_string = |argument: &&PanicArgument| ArgumentKind::from_number(argument.kind).is_text();
        let before = self.arguments[..index].iter().filter(is_string);
        let begin = before.fold(0_usize, |begin, argument| begin.saturating_add(argument.size as usize));
        let rest = self.text.get(begin..).unwrap_or_default();
        let size = self.arguments[index].size as usize;
        let (bytes, is_cut) = (&rest[..size.min(rest.len())], size > rest.len());
        let mut text = String::new();
        for chunk in bytes.utf8_chunks() {
            text.push_str(chunk.valid());
            // A character that was cut in two goes with what was cut off.
            let at_end = is_cut && chunk.invalid().as_ptr_range().end == bytes.as_ptr_range().end;
            if !chunk.invalid().is_empty() && !at_end {
                text.push(char::REPLACEMENT_CHARACTER);
            }
        }
        if is_cut {
            text.push(ELLIPSIS);
        }
        text
    }
}

fn character(scalar: u32, format: &ArgumentFormat, is_output: bool) -> Printed {
    let value = char::from_u32(scalar).unwrap_or(char::REPLACEMENT_CHARACTER);
    if is_debug(format.style) {
        return Printed::Verbatim(format!("{value:?}"));
    }
    Printed::Text(if is_output { value } else { harmless(value) }.to_string())
}

/// The character, unless a terminal would obey it.
fn harmless(character: char) -> char {
    let is_harmful = character.is_control() && character != '\n' && character != '\t';
    if is_harmful { char::REPLACEMENT_CHARACTER } else { character }
}

fn is_debug(style: FormatTrait) -> bool {
    matches!(style, FormatTrait::Debug | FormatTrait::DebugLowerHex | FormatTrait::DebugUpperHex)
}

/// `magnitude` is the absolute value, `bits` the value in two's complement of its own width.
fn integer(
    is_negative: bool,
    magnitude: u128,
    bits: u128,
    plus: &'static str,
    precision: Option<usize>,
    format: &ArgumentFormat,
) -> Printed {
    let sign = if is_negative { "-" } else { plus };
    let (sign, prefix, digits) = match format.style {
        FormatTrait::Display | FormatTrait::Debug => (sign, "", magnitude.to_string()),
        FormatTrait::LowerHex | FormatTrait::DebugLowerHex => (plus, "0x", format!("{bits:x}")),
        FormatTrait::UpperHex | FormatTrait::DebugUpperHex => (plus, "0x", format!("{bits:X}")),
        FormatTrait::Octal => (plus, "0o", format!("{bits:o}")),
        FormatTrait::Binary => (plus, "0b", format!("{bits:b}")),
        FormatTrait::LowerExp => match precision {
            Some(precision) => (sign, "", format!("{magnitude:.precision$e}")),
            None => (sign, "", format!("{magnitude:e}")),
        },
        FormatTrait::UpperExp => match precision {
            Some(precision) => (sign, "", format!("{magnitude:.precision$E}")),
            None => (sign, "", format!("{magnitude:E}")),
        },
        // Integers do not print as pointers.
        FormatTrait::Pointer => (plus, "0x", format!("{bits:x}")),
    };
    let prefix = if format.alternate { prefix } else { "" };
    Printed::Number { sign, prefix, digits }
}

/// `value` is the absolute value, of which the sign was asked before.
fn float<F: std::fmt::Display + std::fmt::Debug + std::fmt::LowerExp + std::fmt::UpperExp>(
    is_negative: bool,
    is_nan: bool,
    value: F,
    plus: &'static str,
    precision: Option<usize>,
    format: &ArgumentFormat,
) -> Printed {
    let sign = match (is_nan, is_negative) {
        (true, _) => "",
        (false, true) => "-",
        (false, false) => plus,
    };
    let digits = match (format.style, precision) {
        (FormatTrait::LowerExp, Some(precision)) => format!("{value:.precision$e}"),
        (FormatTrait::LowerExp, None) => format!("{value:e}"),
        (FormatTrait::UpperExp, Some(precision)) => format!("{value:.precision$E}"),
        (FormatTrait::UpperExp, None) => format!("{value:E}"),
        (style, Some(precision)) if is_debug(style) => format!("{value:.precision$?}"),
        (style, None) if is_debug(style) => format!("{value:?}"),
        (_, Some(precision)) => format!("{value:.precision$}"),
        (_, None) => format!("{value}"),
    };
    Printed::Number { sign, prefix: "", digits }
}

/// Fills the width.
fn fill(printed: Printed, width: Option<usize>, precision: Option<usize>, format: &ArgumentFormat) -> String {
    let (text, default) = match printed {
        Printed::Verbatim(text) => return text,
        Printed::Text(text) => {
            let text = match precision {
                Some(precision) => text.chars().take(precision).collect(),
                None => text,
            };
            (text, FormatAlignment::Left)
        }
        Printed::Number { sign, prefix, digits } => {
            if format.zero_pad {
                let length = sign.len() + prefix.len() + digits.len();
                let zeros = width.unwrap_or(0).saturating_sub(length);
                return format!("{sign}{prefix}{}{digits}", "0".repeat(zeros));
            }
            (format!("{sign}{prefix}{digits}"), FormatAlignment::Right)
        }
    };
    let missing = width.unwrap_or(0).saturating_sub(text.chars().count());
    let before = match format.alignment.unwrap_or(default) {
        FormatAlignment::Left => 0,
        FormatAlignment::Right => missing,
        FormatAlignment::Center => missing / 2,
    };
    let filling = |n: usize| std::iter::repeat_n(format.fill, n);
    filling(before).chain(text.chars()).chain(filling(missing - before)).collect()
}

#[cfg(test)]
mod tests;
