//! The part of OxiSYCL that kernels see, usable without `std` so that kernel libraries need only this crate.
//!
//! Owns element types ([`DeviceCopyable`]), and the tokens that prove that code runs inside a kernel ([`Item`],
//! [`Single`]). Owns the accessors that turn a token into memory access ([`Accessor`], [`Chunked`]). Owns the entry
//! functions that run a kernel over a piece of its index space.
//!
//! # Why safe kernels are safe
//!
//! - An accessor alone gives no access to memory; every access takes a token, and only the runtime makes tokens.
//! - A token is bound to one call of one kernel: it is `!Send`, and branded by a lifetime that nothing outside the call has.
//! - A writing accessor lets a work-item reach its own element (or its own block of elements) only. Two work-items of one
//!   launch never have the same id. Other writes are atomic, or `unsafe`.
//! - An accessor is branded by its command group, so it cannot be kept for another one, where nothing would order its use.
//! - A token and the accessors of a group that has not started never meet. `submit` is refused inside a kernel, before
//!   it calls the closure that makes accessors.
//! - The runtime refuses overlapping accessors within one command group if one of them writes.
//!
//! Does not allocate, knows no queue and no device.
#![no_std]

#[cfg(test)]
extern crate std;
#[cfg(test)]
mod tests;

mod accessor;
mod advice;
pub mod argument;
pub mod atomic;
mod bounds;
#[doc(hidden)]
pub mod buffer_name;
#[doc(hidden)]
pub mod builtin;
mod cell_view;
mod chunks;
mod element;
pub mod float;
pub mod group;
pub mod images;
mod item;
mod kernel;
pub mod math;
mod mode;
pub mod multi_ptr;
pub mod operator;
mod panic_record;
#[doc(hidden)]
pub mod print;
mod recorded;
mod slices;
pub mod vector;
mod view;

pub use accessor::{Accessor, AccessorParts};
#[doc(hidden)]
pub use advice::{AnyBits, Captured};
pub use atomic::AtomicElement;
pub use cell_view::CellView;
pub use chunks::{Block, Chunked};
pub use element::DeviceCopyable;
pub use item::{InItem, Inside, Item, Single};
pub use kernel::{DescribeKernel, Kernel, RangeForm, SingleForm, SingleKernel, kernel, range_entry, single_entry};
pub use mode::{Atomic, Loads, Mode, ModeFor, NoInit, OnlyLoads, Read, ReadWrite, Stores, Write};
pub use oxisycl_macros::{DeviceCopyable, kernel};
pub use view::{View, ViewIter, Window};

pub use oxisycl_types::{Id, NdRange, Range};
