//! What the arguments of a kernel consist of, as constants that host and device code have each for itself.

use core::fmt;

/// The type in which an argument crosses to a device, and its parts.
///
/// The device compiler reads these constants from the code that it compiles, field by field. Host and image can so be compared. There is no
/// padding, whose bytes need not have values.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct ArgumentType {
    /// The compiler's name of the type.
    pub type_name: fn() -> &'static str,
    /// Size in bytes.
    pub size: usize,
    /// The length if it is an array, whose only part is its element; else [`NO_ARRAY`](Self::NO_ARRAY).
    pub length: usize,
    /// The parts, in the order of their declaration. A type without parts is one leaf.
    pub parts: &'static [ArgumentPart],
}

/// One part of a type.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct ArgumentPart {
    /// The field's name; empty for the elements of an array.
    pub name: &'static str,
    /// Where it begins, in bytes.
    pub offset: usize,
    /// The type of the field or of the elements.
    pub part: &'static ArgumentType,
}

impl ArgumentType {
    /// The length of what is no array. No array with elements that have a size is so long.
    pub const NO_ARRAY: usize = usize::MAX;

    /// A type that crosses as one value.
    pub const fn leaf(type_name: fn() -> &'static str, size: usize) -> Self {
        Self { type_name, size, length: Self::NO_ARRAY, parts: &[] }
    }
}

impl fmt::Debug for ArgumentType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ArgumentType")
            .field("type_name", &(self.type_name)())
            .field("size", &self.size)
            .finish_non_exhaustive()
    }
}
