use std::error::Error;
use std::fmt;

use crate::{Argument, GroupNeeds, ImageTarget, ParameterLayout, SpecializedLoad, TargetError};

/// Why bytes are not a device image, or a device image cannot be encoded.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ImageError {
    /// The bytes do not begin like a device image or bundle.
    Magic {
        /// What they begin with if they are what was asked for.
        expected: &'static str,
        /// What they begin with; at most eight bytes.
        found: Vec<u8>,
    },
    /// The image was written in another version of the format.
    Version {
        /// The image's version.
        found: u32,
        /// The version that is read.
        expected: u32,
    },
    /// The image says that it has another length than it has.
    Length {
        /// What the image says, in bytes.
        expected: u64,
        /// What there is.
        found: u64,
    },
    /// The bytes are not those that were written.
    Checksum {
        /// The checksum in the image.
        expected: u64,
        /// The checksum of the bytes.
        found: u64,
    },
    /// A part of the image ends before it should.
    Truncated {
        /// The part.
        part: &'static str,
        /// Where in the image, in bytes.
        offset: usize,
        /// How many bytes are needed there.
        expected: usize,
        /// How many bytes there are.
        found: usize,
    },
    /// A part of the image goes on after its end.
    Trailing {
        /// The part.
        part: &'static str,
        /// How many bytes are left.
        found: usize,
    },
    /// A number in the image is not the only one that can stand there.
    Number {
        /// What it stands for.
        part: &'static str,
        /// Where in the image, in bytes.
        offset: usize,
        /// The number that belongs there, or the largest one.
        expected: u64,
        /// The number in the image.
        found: u64,
    },
    /// A text in the image is not UTF-8.
    Text {
        /// The part that the text is in.
        part: &'static str,
        /// Where in the image the text begins, in bytes.
        offset: usize,
    },
    /// The target is not one that is known.
    Target(TargetError),
    /// The target prints as another target does.
    AmbiguousTarget {
        /// The image's target.
        target: ImageTarget,
        /// What its text means.
        reads_as: ImageTarget,
    },
    /// A symbol is empty or has a NUL byte.
    Symbol {
        /// The symbol.
        symbol: String,
    },
    /// A kernel's index space has a number of dimensions that does not exist.
    Dimensions {
        /// The kernel's symbol.
        symbol: String,
        /// How many dimensions it has.
        dimensions: u8,
    },
    /// A kernel asks for work-groups that cannot be.
    Groups {
        /// The kernel's symbol.
        symbol: String,
        /// What it asks for.
        groups: GroupNeeds,
    },
    /// A kernel states an aspect that is not among its requirements.
    Aspect {
        /// The kernel's symbol.
        symbol: String,
        /// The aspect's name.
        aspect: String,
    },
    /// A kernel's argument block is not the size and alignment of any type.
    Parameters {
        /// The kernel's symbol.
        symbol: String,
        /// The size and alignment of the argument block.
        parameters: ParameterLayout,
    },
    /// An argument of a kernel is not inside its argument block.
    Argument {
        /// The kernel's symbol.
        symbol: String,
        /// The argument.
        argument: Argument,
        /// The size of the argument block, in bytes.
        size: usize,
    },
    /// A load of a specialization constant is not inside the kernel's argument block, or its place in the code is no such load.
    Specialized {
        /// The kernel's symbol.
        symbol: String,
        /// The load.
        load: SpecializedLoad,
    },
    /// Two kernels have the same symbol.
    DuplicateSymbol {
        /// The symbol.
        symbol: String,
    },
    /// Two kernels have the same type and form.
    DuplicateKernel {
        /// The symbol of the first.
        first: String,
        /// The symbol of the second.
        second: String,
    },
    /// A part of the image is too large for the format.
    TooLarge {
        /// The part.
        part: &'static str,
        /// The largest length or count.
        expected: usize,
        /// The length or count.
        found: usize,
    },
}

impl Error for ImageError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Target(error) => Some(error),
            _ => None,
        }
    }
}

impl From<TargetError> for ImageError {
    fn from(error: TargetError) -> Self {
        Self::Target(error)
    }
}

impl fmt::Display for ImageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("device image: ")?;
        match self {
            Self::Magic { expected, found } => {
                write!(f, "expected it to begin with {expected:?}, found \"{}\"", found.escape_ascii())
            }
            Self::Version { found, expected } => write!(f, "expected format version {expected}, found {found}"),
            Self::Length { expected, found } => write!(f, "expected {expected} bytes, found {found}"),
            Self::Checksum { expected, found } => write!(f, "expected checksum {expected:#018x}, found {found:#018x}"),
            Self::Truncated { part, offset, expected, found } => {
                write!(f, "{part}: expected {expected} bytes at offset {offset}, found {found}")
            }
            Self::Trailing { part, found } => write!(f, "{part}: expected its end, found {found} more bytes"),
            Self::Number { part, offset, expected, found } => {
                write!(f, "{part}: expected {expected} at offset {offset}, found {found}")
            }
            Self::Text { part, offset } => write!(f, "{part}: expected utf-8 at offset {offset}, found other bytes"),
            Self::Target(_) => f.write_str("expected a known target, found another"),
            Self::AmbiguousTarget { target, reads_as } => {
                write!(f, "expected a target that reads as itself, found {target:?}, which reads as {reads_as:?}")
            }
            Self::Symbol { symbol } => {
                write!(f, "kernel {symbol:?}: expected a symbol that is not empty and has no nul byte, found this one")
            }
            Self::Dimensions { symbol, dimensions } => {
                write!(f, "kernel {symbol:?}: expected 1 to 3 dimensions, found {dimensions}")
            }
            Self::Groups { symbol, groups } => {
                write!(
                    f,
                    "kernel \"{symbol}\": expected work-groups of a size that a device may have, found {groups:?}"
                )
            }
            Self::Aspect { symbol, aspect } => {
                write!(f, "kernel \"{symbol}\": expected each stated aspect among its requirements, found {aspect}")
            }
            Self::Parameters { symbol, parameters: ParameterLayout { size, align } } => write!(
                f,
                "kernel {symbol:?}: expected the size and alignment of a type, found size {size} and alignment {align}"
            ),
            Self::Argument { symbol, argument, size } => {
                write!(
                    f,
                    "kernel {symbol:?}: expected an argument inside the {size} bytes of its block, found {argument}"
                )
            }
            Self::Specialized { symbol, load: SpecializedLoad { place, offset, size } } => {
                write!(
                    f,
                    "kernel {symbol:?}: expected a load of {size} bytes at {offset} of its block in the code at {place}, found none"
                )
            }
            Self::DuplicateSymbol { symbol } => {
                write!(f, "kernel {symbol:?}: expected its symbol once, found it twice")
            }
            Self::DuplicateKernel { first, second } => {
                write!(f, "kernel {second:?}: expected a type and form of its own, found those of kernel {first:?}")
            }
            Self::TooLarge { part, expected, found } => write!(f, "{part}: expected at most {expected}, found {found}"),
        }
    }
}
