//! Panic sites: what the compiler knows of each place where kernels of an image can panic, or print.
//!
//! The message is kept in pieces, as `format_args!` was given it; the values come from the device in a
//! [`PanicRecord`](oxisycl_types::PanicRecord) or a [`PrintRecord`](oxisycl_types::PrintRecord). Putting the two together is the module
//! `message`.

use std::fmt;

use crate::SourceLocation;

/// A place where a kernel can panic or print. Its position among the [`sites`](crate::DeviceImage::sites) is what the device records.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PanicSite {
    /// Where in the user's source, if that is one place. Places that print have none.
    pub location: Option<SourceLocation>,
    /// The message, in pieces.
    pub message: Vec<MessagePiece>,
}

/// A piece of a panic message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum MessagePiece {
    /// Text that is always the same.
    Literal(String),
    /// A value that the device recorded.
    Argument {
        /// The argument's position among the recorded ones. One that no record has room for counts as not recorded.
        index: u8,
        /// How it is printed.
        format: ArgumentFormat,
    },
}

/// How a value is printed: what stands between the braces of a format string.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ArgumentFormat {
    /// The trait of `std::fmt`.
    pub style: FormatTrait,
    /// `#`
    pub alternate: bool,
    /// `+`
    pub sign_plus: bool,
    /// `0` before the width.
    pub zero_pad: bool,
    /// What fills the width.
    pub fill: char,
    /// Where the value stands in the width; left to its type if absent.
    pub alignment: Option<FormatAlignment>,
    /// Least width in characters.
    pub width: Option<FormatCount>,
    /// Digits after the point of a number, most characters of a text.
    pub precision: Option<FormatCount>,
}

impl ArgumentFormat {
    /// `{}` if `style` is `Display`, `{:?}` if it is `Debug`, and so on.
    pub const fn new(style: FormatTrait) -> Self {
        Self {
            style,
            alternate: false,
            sign_plus: false,
            zero_pad: false,
            fill: ' ',
            alignment: None,
            width: None,
            precision: None,
        }
    }
}

/// A trait of `std::fmt`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[expect(missing_docs, reason = "the traits of the same name")]
pub enum FormatTrait {
    Display,
    Debug,
    LowerHex,
    UpperHex,
    Octal,
    Binary,
    LowerExp,
    UpperExp,
    Pointer,
    /// `{:x?}`
    DebugLowerHex,
    /// `{:X?}`
    DebugUpperHex,
}

impl FormatTrait {
    /// All of them, at the position that is their number in the image format.
    pub(crate) const ALL: [Self; 11] = [
        Self::Display,
        Self::Debug,
        Self::LowerHex,
        Self::UpperHex,
        Self::Octal,
        Self::Binary,
        Self::LowerExp,
        Self::UpperExp,
        Self::Pointer,
        Self::DebugLowerHex,
        Self::DebugUpperHex,
    ];
}

/// Where a value stands in its width.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum FormatAlignment {
    /// `<`
    Left,
    /// `>`
    Right,
    /// `^`
    Center,
}

/// A width or precision.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum FormatCount {
    /// Written in the format string.
    Is(u16),
    /// The recorded argument at this position, a `usize`.
    Argument(u8),
}

/// The type of a recorded value, as [`PanicArgument::kind`](oxisycl_types::PanicArgument::kind) numbers it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u32)]
#[expect(missing_docs, reason = "the types of the same name")]
pub enum ArgumentKind {
    /// A type whose values are not recorded.
    Unknown = 0,
    Bool = 1,
    /// The scalar value in 32 bits.
    Char = 2,
    I8 = 3,
    I16 = 4,
    I32 = 5,
    I64 = 6,
    I128 = 7,
    Isize = 8,
    U8 = 9,
    U16 = 10,
    U32 = 11,
    U64 = 12,
    U128 = 13,
    Usize = 14,
    F32 = 15,
    F64 = 16,
    /// The next [`size`](oxisycl_types::PanicArgument::size) bytes of the record's text.
    Str = 17,
    /// The address in 64 bits.
    Pointer = 18,
    /// Bytes of the record's text as for a string, which the device has formatted: what the compiler knows no kind for.
    Text = 19,
}

impl ArgumentKind {
    /// All kinds, at the position that is their number.
    pub const ALL: [Self; 20] = [
        Self::Unknown,
        Self::Bool,
        Self::Char,
        Self::I8,
        Self::I16,
        Self::I32,
        Self::I64,
        Self::I128,
        Self::Isize,
        Self::U8,
        Self::U16,
        Self::U32,
        Self::U64,
        Self::U128,
        Self::Usize,
        Self::F32,
        Self::F64,
        Self::Str,
        Self::Pointer,
        Self::Text,
    ];

    /// The kind with that number; `Unknown` if there is none.
    pub fn from_number(number: u32) -> Self {
        Self::ALL.get(number as usize).copied().unwrap_or(Self::Unknown)
    }

    /// Whether its bytes are in the record's text.
    pub const fn is_text(self) -> bool {
        matches!(self, Self::Str | Self::Text)
    }

    /// The number that the compiler and the device write for it.
    pub const fn number(self) -> u32 {
        self as u32
    }
}

/// `src/main.rs:7:31`
impl fmt::Display for SourceLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}
