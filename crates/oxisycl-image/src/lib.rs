//! Kernel identities, parameter layouts, and the container for device images.
//!
//! Owns what the runtime and the device compiler must agree on: how a kernel is identified ([`KernelId`]), and what
//! its argument block is ([`ParameterLayout`], [`Argument`]). Owns how an image that holds compiled kernels is laid out, and what
//! a panic on a device says ([`PanicSite`]).
//! Invariant: decoding never trusts a length in the input. Does not load, compile or run anything.
#![forbid(unsafe_code)]

mod argument;
mod decode;
mod encode;
mod error;
mod format;
mod image;
mod kernel;
mod message;
mod panic_site;
mod print_buffer;
mod reader;
mod specialized;
mod target;

pub use argument::{Argument, ArgumentList, PartName};
pub use decode::{decode, decode_bundle};
pub use encode::{encode, encode_bundle};
pub use error::ImageError;
pub use format::VERSION;
pub use image::{DeviceImage, KernelEntry, SourceLocation, UnsupportedKernel};
pub use kernel::{
    Form, GroupNeeds, KernelDescriptor, KernelId, ParameterLayout, StatedNeeds, display_name_of, user_name,
};
pub use panic_site::{
    ArgumentFormat, ArgumentKind, FormatAlignment, FormatCount, FormatTrait, MessagePiece, PanicSite,
};
pub use print_buffer::{Printed, read_print_buffer};
pub use specialized::SpecializedLoad;
pub use target::{HostLevel, ImageTarget, TargetError};
