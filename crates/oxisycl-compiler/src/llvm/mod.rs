//! A typed layer over LLVM's C API, as much as the compiler needs.
//!
//! Handles ([`Value`], [`Type`], [`Block`]) are copied pointers that cannot outlive their [`Context`]. Two things the types do not say are
//! invariants of this crate. Handles of one context are not mixed with those of another. A handle is not used after its function,
//! global or instruction was deleted. Debug builds panic where a handle is used that this crate itself has made dangling (`deleted`).
//!
//! LLVM ends the process on some broken input. Callers that must survive that run the compiler in a child process.

mod attribute;
mod builder;
mod context;
mod debug;
mod deleted;
mod disassembler;
mod inlined_at;
mod inspect;
mod instruction;
mod layout;
mod module;
mod opcode;
pub(crate) mod pass_lists;
mod place;
pub(crate) mod predicate;
pub(crate) mod sys;
mod types;
mod value;
mod vector;

pub(crate) use attribute::Attribute;
pub(crate) use builder::{Block, Builder};
pub(crate) use context::{Context, load};
pub(crate) use debug::{Node, NodeKind, describe, tag};
pub(crate) use disassembler::{Disassembler, Referred};
pub(crate) use inlined_at::Places;
pub(crate) use layout::Layout;
pub(crate) use module::{Codegen, Machine, Module, PassTuning, Vectors};
pub(crate) use opcode::Opcode;
pub(crate) use place::Place;
pub(crate) use types::{Type, TypeKind};
pub(crate) use value::{Linkage, Value, ValueKind};
