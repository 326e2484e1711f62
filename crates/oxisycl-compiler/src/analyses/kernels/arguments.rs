//! Reads the list of a kernel's arguments out of the constants that describe them ([`ArgumentType`]).

use std::mem::{offset_of, size_of};

use oxisycl_image::{Argument, ArgumentList, PartName};
use oxisycl_types::{ArgumentPart, ArgumentType};

use super::{text_of, unreadable};
use crate::error::CompileError;
use crate::llvm::{Layout, Module, Opcode, TypeKind, Value, ValueKind};

/// Deepest nest of arguments that is read. A type is no part of itself, so that this only ends the reading of damaged constants.
const MAX_DEPTH: usize = 64;

/// The arguments that `described` points to: the constant that a kernel's description returned. Null if there are none.
pub(super) fn of(evaluated: &Module<'_>, described: Value<'_>, method: &str) -> Result<Vec<Argument>, CompileError> {
    if described.kind() == ValueKind::Null {
        return Ok(Vec::new());
    }
    let mut list = ArgumentList::default();
    let mut reader = Reader { evaluated, list: &mut list, depth: 0 };
    reader.add(described, 0).ok_or_else(|| unreadable(method))?;
    Ok(list.leaves)
}

struct Reader<'m, 'c> {
    evaluated: &'m Module<'c>,
    list: &'m mut ArgumentList,
    depth: usize,
}

impl<'c> Reader<'_, 'c> {
    /// Adds the leaves of the type whose description `described` points to.
    fn add(&mut self, described: Value<'_>, offset: usize) -> Option<()> {
        if self.depth == MAX_DEPTH {
            return None;
        }
        let memory = Memory::of(described, Layout::of(self.evaluated))?;
        let (size, length) =
            (memory.number(offset_of!(ArgumentType, size))?, memory.number(offset_of!(ArgumentType, length))?);
        // An array of nothing may have any length.
        if size == 0 {
            return Some(());
        }
        let parts = offset_of!(ArgumentType, parts);
        let n_parts = memory.number(parts + size_of::<usize>())?;
        match (n_parts, length) {
            (0, _) => {
                let name = memory.address(offset_of!(ArgumentType, type_name))?;
                self.list.leaf(|| name_of_type(self.evaluated, name), offset, size);
            }
            (_, ArgumentType::NO_ARRAY) => {
                let fields = Memory::of(memory.address(parts)?, Layout::of(self.evaluated))?;
                for index in 0..n_parts {
                    self.add_part(&fields, index, offset, None)?;
                }
            }
            (_, length) => {
                let element = Memory::of(memory.address(parts)?, Layout::of(self.evaluated))?;
                for index in (0..length).take_while(|index| *index < Argument::MAX_LISTED) {
                    self.add_part(&element, 0, offset, Some(index))?;
                }
            }
        }
        Some(())
    }

    /// Adds the leaves of a field, or of the element `element` of an array.
    fn add_part(&mut self, parts: &Memory<'_>, index: usize, offset: usize, element: Option<usize>) -> Option<()> {
        let at = |field| index * size_of::<ArgumentPart>() + field;
        let part = parts.address(at(offset_of!(ArgumentPart, part)))?;
        let name = at(offset_of!(ArgumentPart, name));
        let name = match parts.number(name + size_of::<usize>())? {
            0 => String::new(),
            length => text_of(parts.address(name)?, length)?.to_owned(),
        };
        let (name, offset) = match element {
            Some(element) => {
                let size = Memory::of(part, Layout::of(self.evaluated))?.number(offset_of!(ArgumentType, size))?;
                (PartName::Element(element), offset.checked_add(element.checked_mul(size)?)?)
            }
            None => {
                let name = if name.is_empty() { PartName::Whole } else { PartName::Field(&name) };
                (name, offset.checked_add(parts.number(at(offset_of!(ArgumentPart, offset)))?)?)
            }
        };
        let (evaluated, depth) = (self.evaluated, self.depth + 1);
        self.list.within(name, |list| Reader { evaluated, list, depth }.add(part, offset))
    }
}

/// The name that a function for it returns; `_` if the code of that is in another crate.
fn name_of_type(evaluated: &Module<'_>, function: Value<'_>) -> String {
    let returned = super::returned(evaluated, function.name()).ok();
    let name = returned.and_then(|name| text_of(name.element(0)?, name.element(1)?.integer()? as usize));
    name.unwrap_or("_").to_owned()
}

/// The bytes of a constant, and the addresses in it.
#[derive(Default)]
struct Memory<'c> {
    bytes: Vec<u8>,
    /// By the offset where each stands.
    addresses: Vec<(usize, Value<'c>)>,
}

impl<'c> Memory<'c> {
    /// What an address points to.
    fn of(address: Value<'c>, layout: Layout<'_>) -> Option<Self> {
        let mut memory = Self::default();
        memory.read(address.initializer()?, layout)?;
        Some(memory)
    }

    fn read(&mut self, value: Value<'c>, layout: Layout<'_>) -> Option<()> {
        if let Some(data) = value.data() {
            self.bytes.extend_from_slice(data);
            return Some(());
        }
        if let Some(number) = value.integer() {
            let TypeKind::Integer(bits @ (8 | 16 | 32 | 64)) = value.value_type().kind() else { return None };
            self.bytes.extend_from_slice(&number.to_le_bytes()[..bits as usize / 8]);
            return Some(());
        }
        match value.kind() {
            ValueKind::Aggregate => value.operands().into_iter().try_for_each(|element| self.read(element, layout)),
            ValueKind::ConstantExpression if value.expression() == Some(Opcode::INT_TO_PTR) => {
                self.read(value.operand(0), layout)
            }
            _ if matches!(value.value_type().kind(), TypeKind::Pointer(_)) => {
                self.addresses.push((self.bytes.len(), value));
                self.bytes.extend_from_slice(&[0; size_of::<usize>()]);
                Some(())
            }
            ValueKind::Null => {
                let zeros = layout.size(value.value_type());
                self.bytes.resize(self.bytes.len() + usize::try_from(zeros).ok()?, 0);
                Some(())
            }
            _ => None,
        }
    }

    fn number(&self, at: usize) -> Option<usize> {
        let bytes = self.bytes.get(at..at + size_of::<usize>())?;
        Some(usize::from_le_bytes(bytes.try_into().ok()?))
    }

    fn address(&self, at: usize) -> Option<Value<'c>> {
        self.addresses.iter().find(|(offset, _)| *offset == at).map(|(_, address)| *address)
    }
}
