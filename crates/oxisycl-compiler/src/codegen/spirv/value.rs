//! The translation of LLVM's values: shapes of types, and ids in those shapes.
//!
//! Integers of a width that SPIR-V lacks are kept in the next wider one, with zeros above. Integers of more than 64 bits are two words.
//! Arrays, structs and vectors in registers are lists of their elements.

use rspirv::spirv::{StorageClass, Word};

use super::module_builder::Scalar;
use crate::llvm::{Type, TypeKind};
use crate::refused::Refused;

/// A type of LLVM in registers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Shape {
    Nothing,
    Bool,
    /// 2 to 64 bits.
    Int(u32),
    /// 65 to 128 bits.
    Wide(u32),
    Float(u32),
    Address,
    Parts(Vec<Shape>),
}

impl Shape {
    pub(super) fn of(of: Type<'_>) -> Result<Self, Refused> {
        Ok(match of.kind() {
            TypeKind::Void => Self::Nothing,
            TypeKind::Half => Self::Float(16),
            TypeKind::Float => Self::Float(32),
            // Its bits: see `brain`.
            TypeKind::BFloat => Self::Int(16),
            TypeKind::Double => Self::Float(64),
            TypeKind::Integer(1) => Self::Bool,
            TypeKind::Integer(width @ ..=64) => Self::Int(width),
            TypeKind::Integer(width @ ..=128) => Self::Wide(width),
            TypeKind::Pointer(_) => Self::Address,
            TypeKind::Struct => Self::Parts(of.members().into_iter().map(Self::of).collect::<Result<_, _>>()?),
            TypeKind::Array | TypeKind::Vector => {
                let (element, count) = of.elements();
                if count > 1 << 12 {
                    return Err(Refused::new(format!("a value of {count} elements in registers")));
                }
                Self::Parts(vec![Self::of(element)?; count as usize])
            }
            TypeKind::Integer(width) => return Err(Refused::new(format!("an integer of {width} bits"))),
            TypeKind::WideFloat => return Err(Refused::new("a floating-point type of more than 64 bits")),
            TypeKind::Other => return Err(Refused::new("a type that SPIR-V has not")),
        })
    }

    /// The scalars of the shape; addresses are generic ones.
    pub(super) fn scalars(&self) -> Vec<Scalar> {
        match self {
            Self::Nothing => Vec::new(),
            Self::Bool => vec![Scalar::Bool],
            Self::Int(width) => vec![Scalar::Int(container(*width))],
            Self::Wide(_) => vec![Scalar::Int(64); 2],
            Self::Float(width) => vec![Scalar::Float(*width)],
            Self::Address => vec![Scalar::Address(StorageClass::Generic)],
            Self::Parts(parts) => parts.iter().flat_map(Self::scalars).collect(),
        }
    }
}

/// An operation on the elements at one position of several vectors.
pub(super) type ElementWise<'f> = dyn FnMut(&[&Translated], &Shape) -> Result<Translated, Refused> + 'f;

/// The width of the register for an integer of at most 64 bits.
pub(super) fn container(width: u32) -> u32 {
    width.next_power_of_two().max(8)
}

/// The translation of a value of LLVM.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Translated {
    Nothing,
    Scalar(Word),
    /// Low and high 64 bits.
    Wide(Word, Word),
    Address(Word, StorageClass),
    Parts(Vec<Translated>),
}

impl Translated {
    /// The id of a boolean, an integer of at most 64 bits, or a float.
    pub(super) fn scalar(&self) -> Word {
        match self {
            Self::Scalar(id) => *id,
            other => unreachable!("a scalar was expected by the type of the instruction, not {other:?}"),
        }
    }

    /// The two ids of a wide integer.
    pub(super) fn wide(&self) -> (Word, Word) {
        match self {
            Self::Wide(low, high) => (*low, *high),
            other => unreachable!("a wide integer was expected by the type of the instruction, not {other:?}"),
        }
    }

    pub(super) fn address(&self) -> (Word, StorageClass) {
        match self {
            Self::Address(id, class) => (*id, *class),
            other => unreachable!("an address was expected by the type of the instruction, not {other:?}"),
        }
    }

    pub(super) fn parts(&self) -> &[Translated] {
        match self {
            Self::Parts(parts) => parts,
            other => unreachable!("several values were expected by the type of the instruction, not {other:?}"),
        }
    }

    /// Applies `one` to each element of vectors, or once to other values.
    pub(super) fn zip(values: &[&Self], shape: &Shape, one: &mut ElementWise<'_>) -> Result<Self, Refused> {
        let Shape::Parts(shapes) = shape else { return one(values, shape) };
        let parts = shapes.iter().enumerate().map(|(index, shape)| {
            let elements: Vec<&Self> = values.iter().map(|value| &value.parts()[index]).collect();
            one(&elements, shape)
        });
        Ok(Self::Parts(parts.collect::<Result<_, _>>()?))
    }
}
