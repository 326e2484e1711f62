//! The storage class of each address.
//!
//! LLVM's code has generic addresses almost everywhere. If all values that an address can come from are of one storage class, the address
//! keeps that class in registers. This spares the driver the check at each access. This is a forward analysis over the function: an address
//! starts with no class, and goes down to the generic one when two classes meet. Addresses from memory and from integers are generic,
//! except those that are among the launch's arguments. These are addresses of global memory, since nothing else can be passed. What is
//! known about an address at a call is known in the function, too, which is translated anew for each combination ([`Known`]).

use rspirv::spirv::StorageClass;
use rustc_hash::{FxHashMap, FxHashSet};

use super::module::holds_addresses;
use super::names::{is_as_global, is_launch};
use crate::llvm::{Opcode, TypeKind, Value, ValueKind};

/// The known facts about an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Known {
    pub(super) class: StorageClass,
    /// Whether it points to the launch's arguments.
    pub(super) is_arguments: bool,
}

/// The classes of the addresses in a function.
pub(super) struct Classes<'c> {
    known: FxHashMap<Value<'c>, StorageClass>,
    /// Addresses of the launch's arguments, which hold addresses of global memory.
    arguments: FxHashSet<Value<'c>>,
}

impl<'c> Classes<'c> {
    /// Analyses a function. `instructions` are its instructions, in an order in which definitions come before uses, phis excepted.
    /// `parameters` are the facts about its parameters, `None` for those that are no addresses.
    pub(super) fn of(function: Value<'c>, instructions: &[Value<'c>], parameters: &[Option<Known>]) -> Self {
        let mut classes = Self { known: FxHashMap::default(), arguments: FxHashSet::default() };
        for (parameter, known) in function.parameters().into_iter().zip(parameters) {
            let Some(known) = known else { continue };
            classes.known.insert(parameter, known.class);
            if known.is_arguments {
                classes.arguments.insert(parameter);
            }
        }
        loop {
            let mut changed = false;
            for &instruction in instructions {
                if !is_address(instruction) {
                    continue;
                }
                let Some(class) = classes.infer(instruction) else { continue };
                changed |= classes.known.insert(instruction, class) != Some(class);
            }
            if !changed {
                return classes;
            }
        }
    }

    /// The class of an instruction's result.
    pub(super) fn class(&self, value: Value<'c>) -> StorageClass {
        self.of_operand(value).unwrap_or(StorageClass::Generic)
    }

    /// The facts about a value; `None` if it is no address.
    pub(super) fn known(&self, value: Value<'c>) -> Option<Known> {
        let is_arguments = self.arguments.contains(&value);
        is_address(value).then(|| Known { class: self.class(value), is_arguments })
    }

    /// The class of an operand; `None` if it can be any: for null, and for values that were not visited yet.
    fn of_operand(&self, value: Value<'c>) -> Option<StorageClass> {
        match value.kind() {
            ValueKind::Instruction | ValueKind::Argument => match self.known.get(&value) {
                None if value.kind() == ValueKind::Argument => Some(StorageClass::Generic),
                class => class.copied(),
            },
            ValueKind::GlobalVariable => Some(of_global(value)),
            ValueKind::Null | ValueKind::Undefined => None,
            ValueKind::ConstantExpression => match value.expression() {
                Some(Opcode::GET_ELEMENT_PTR | Opcode::ADDRESS_SPACE_CAST | Opcode::BITCAST) => {
                    self.of_operand(value.operand(0))
                }
                _ => Some(StorageClass::Generic),
            },
            _ => Some(StorageClass::Generic),
        }
    }

    fn infer(&mut self, instruction: Value<'c>) -> Option<StorageClass> {
        let operand = |index| self.of_operand(instruction.operand(index));
        match instruction.opcode()? {
            Opcode::ALLOCA => Some(StorageClass::Function),
            Opcode::GET_ELEMENT_PTR | Opcode::BITCAST | Opcode::FREEZE => {
                let class = operand(0);
                if self.arguments.contains(&instruction.operand(0)) {
                    self.arguments.insert(instruction);
                }
                class
            }
            Opcode::ADDRESS_SPACE_CAST => {
                let class = match instruction.value_type().kind() {
                    TypeKind::Pointer(space) if space != 0 => Some(of_space(space)),
                    _ => operand(0),
                };
                if self.arguments.contains(&instruction.operand(0)) {
                    self.arguments.insert(instruction);
                }
                class
            }
            Opcode::SELECT => join(operand(1), operand(2)),
            Opcode::PHI => instruction.incoming().into_iter().map(|(value, _)| self.of_operand(value)).fold(None, join),
            Opcode::LOAD if self.is_argument(instruction) => Some(StorageClass::CrossWorkgroup),
            // A record's address is a number to the host.
            Opcode::INT_TO_PTR if self.is_argument(instruction.operand(0)) => Some(StorageClass::CrossWorkgroup),
            Opcode::CALL if is_as_global(instruction) => Some(StorageClass::CrossWorkgroup),
            Opcode::CALL if is_launch(instruction) => {
                self.arguments.insert(instruction);
                Some(StorageClass::Function)
            }
            _ => Some(StorageClass::Generic),
        }
    }
}

impl<'c> Classes<'c> {
    /// Whether a value is loaded from the launch's arguments.
    fn is_argument(&self, value: Value<'c>) -> bool {
        value.is(Opcode::LOAD) && self.arguments.contains(&value.operand(0))
    }
}

fn is_address(value: Value<'_>) -> bool {
    matches!(value.value_type().kind(), TypeKind::Pointer(_))
}

fn join(a: Option<StorageClass>, b: Option<StorageClass>) -> Option<StorageClass> {
    match (a, b) {
        (None, class) | (class, None) => class,
        (Some(a), Some(b)) => Some(if a == b { a } else { StorageClass::Generic }),
    }
}

/// The storage class of a global. Constants are in global memory, since generic addresses may lead there; those with addresses in them are
/// copied into each work-item.
pub(super) fn of_global(global: Value<'_>) -> StorageClass {
    match global.value_type().kind() {
        TypeKind::Pointer(space @ 1..) => of_space(space),
        _ if global.initializer().is_some_and(holds_addresses) => StorageClass::Function,
        _ => StorageClass::CrossWorkgroup,
    }
}

/// The storage class of an address space of LLVM's NVPTX target.
fn of_space(space: u32) -> StorageClass {
    match space {
        1 | 4 => StorageClass::CrossWorkgroup,
        3 => StorageClass::Workgroup,
        5 => StorageClass::Function,
        _ => StorageClass::Generic,
    }
}
