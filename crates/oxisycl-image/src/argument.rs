//! The list of what a launch passes to a kernel with arguments.

use std::fmt;

use oxisycl_types::ArgumentType;

/// One value that a launch passes: a leaf of the nest of a kernel's arguments.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Argument {
    /// From the whole argument to the leaf, such as `1.sta[2]`. What the kernel captures is `captures`. Empty if there is only one.
    pub path: String,
    /// The compiler's name of its type.
    pub type_name: String,
    /// Where it begins in the argument block, in bytes.
    pub offset: usize,
    /// The argument's size in bytes, which is not zero.
    pub size: usize,
}

impl Argument {
    /// Most leaves that a list has. What comes behind them is not listed.
    pub const MAX_LISTED: usize = 4096;

    /// The leaves of a type, in the order of their declaration.
    pub fn list(argument: &ArgumentType) -> Vec<Self> {
        let mut list = ArgumentList::default();
        add(argument, 0, &mut list);
        list.leaves
    }

    /// Whether both are the same value of the same block. Names of types are not compared: compilers write them in several ways.
    pub fn is_at_place_of(&self, other: &Self) -> bool {
        (&self.path, self.offset, self.size) == (&other.path, other.offset, other.size)
    }
}

impl fmt::Display for Argument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, type_name, offset, size } = self;
        let path = if path.is_empty() { "argument" } else { path };
        write!(f, "{path}: {type_name}, {size} bytes at {offset}")
    }
}

/// A list that is being made.
#[derive(Default, Debug)]
pub struct ArgumentList {
    /// What is in it.
    pub leaves: Vec<Argument>,
    path: String,
}

impl ArgumentList {
    /// Adds a leaf at the path of the parts that were entered. One of size zero is not passed, and one too many is not listed.
    pub fn leaf(&mut self, type_name: impl FnOnce() -> String, offset: usize, size: usize) {
        if size > 0 && !self.is_full() {
            self.leaves.push(Argument { path: self.path.clone(), type_name: type_name(), offset, size });
        }
    }

    /// Whether nothing more is listed.
    pub fn is_full(&self) -> bool {
        self.leaves.len() == Argument::MAX_LISTED
    }

    /// Enters a field, or the element `index` of an array if the name is empty, calls `inside`, and leaves it.
    pub fn within<R>(&mut self, part: PartName<'_>, inside: impl FnOnce(&mut Self) -> R) -> R {
        let length = self.path.len();
        match part {
            PartName::Whole => {}
            PartName::Field(name) => {
                if length > 0 {
                    self.path.push('.');
                }
                self.path.push_str(name);
            }
            PartName::Element(index) => {
                self.path.push('[');
                self.path.push_str(&index.to_string());
                self.path.push(']');
            }
        }
        let result = inside(self);
        self.path.truncate(length);
        result
    }
}

/// How a part is named in a path.
#[derive(Clone, Copy, Debug)]
pub enum PartName<'a> {
    /// A field.
    Field(&'a str),
    /// An element of an array.
    Element(usize),
    /// A wrapper has no name of its own.
    Whole,
}

fn add(argument: &ArgumentType, offset: usize, list: &mut ArgumentList) {
    // An array of nothing may have any length.
    if argument.size == 0 {
        return;
    }
    let [element] = argument.parts else {
        return add_fields(argument, offset, list);
    };
    if argument.length == ArgumentType::NO_ARRAY {
        return add_fields(argument, offset, list);
    }
    for index in 0..argument.length {
        if list.is_full() {
            return;
        }
        let offset = offset + index * element.part.size;
        list.within(PartName::Element(index), |list| add(element.part, offset, list));
    }
}

fn add_fields(argument: &ArgumentType, offset: usize, list: &mut ArgumentList) {
    if argument.parts.is_empty() {
        return list.leaf(|| (argument.type_name)().to_owned(), offset, argument.size);
    }
    for field in argument.parts {
        let name = if field.name.is_empty() { PartName::Whole } else { PartName::Field(field.name) };
        list.within(name, |list| add(field.part, offset + field.offset, list));
    }
}

#[cfg(test)]
mod tests {
    use std::any::type_name;
    use std::mem::offset_of;

    use oxisycl_types::ArgumentPart;

    use super::*;

    const BYTE: ArgumentType = ArgumentType::leaf(type_name::<u8>, 1);
    const WORD: ArgumentType = ArgumentType::leaf(type_name::<u32>, 4);

    /// The shape of the worked example: a number, a type of two parts, and an array of two of those.
    #[repr(C)]
    struct Example {
        number: u8,
        pair: (u32, u8),
        nothing: (),
        array: [(u32, u8); 2],
    }

    const PAIR: ArgumentType = ArgumentType {
        type_name: type_name::<(u32, u8)>,
        size: size_of::<(u32, u8)>(),
        length: ArgumentType::NO_ARRAY,
        parts: &[
            ArgumentPart { name: "0", offset: offset_of!((u32, u8), 0), part: &WORD },
            ArgumentPart { name: "1", offset: offset_of!((u32, u8), 1), part: &BYTE },
        ],
    };
    const EXAMPLE: ArgumentType = ArgumentType {
        type_name: type_name::<Example>,
        size: size_of::<Example>(),
        length: ArgumentType::NO_ARRAY,
        parts: &[
            ArgumentPart { name: "number", offset: offset_of!(Example, number), part: &BYTE },
            ArgumentPart { name: "", offset: offset_of!(Example, pair), part: &PAIR },
            ArgumentPart {
                name: "nothing",
                offset: offset_of!(Example, nothing),
                part: &ArgumentType::leaf(type_name::<()>, 0),
            },
            ArgumentPart { name: "array", offset: offset_of!(Example, array), part: &array(&PAIR_PART, 2) },
        ],
    };
    const PAIR_PART: [ArgumentPart; 1] = [ArgumentPart { name: "", offset: 0, part: &PAIR }];
    const BYTE_PART: [ArgumentPart; 1] = [ArgumentPart { name: "", offset: 0, part: &BYTE }];

    const fn array(element: &'static [ArgumentPart; 1], length: usize) -> ArgumentType {
        let size = length * element[0].part.size;
        ArgumentType { type_name: type_name::<[(); 0]>, size, length, parts: element }
    }

    #[test]
    fn leaves_are_listed_in_order_of_declaration() {
        let list: Vec<String> = Argument::list(&EXAMPLE).iter().map(ToString::to_string).collect();
        let expected = [
            "number: u8, 1 bytes at 0",
            // A wrapper has no name of its own.
            "0: u32, 4 bytes at 4",
            "1: u8, 1 bytes at 8",
            "array[0].0: u32, 4 bytes at 12",
            "array[0].1: u8, 1 bytes at 16",
            "array[1].0: u32, 4 bytes at 20",
            "array[1].1: u8, 1 bytes at 24",
        ];
        assert_eq!(list, expected);
        assert_eq!(Argument::list(&BYTE)[0].to_string(), "argument: u8, 1 bytes at 0");
    }

    #[test]
    fn lists_end_after_so_many_leaves() {
        static MANY: ArgumentType = array(&BYTE_PART, 10_000);
        let list = Argument::list(&MANY);
        assert_eq!(list.len(), Argument::MAX_LISTED);
        assert_eq!(list[4095].to_string(), "[4095]: u8, 1 bytes at 4095");
        // Of nothing, there may be any number.
        static NOTHING: [ArgumentPart; 1] =
            [ArgumentPart { name: "", offset: 0, part: &ArgumentType::leaf(type_name::<()>, 0) }];
        assert!(Argument::list(&array(&NOTHING, usize::MAX - 1)).is_empty());
    }
}
