//! Kernel identities, parameter layouts, and the container for device images.
//!
//! Owns what the runtime and the device compiler must agree on: how a kernel is identified ([`KernelId`]), what its argument
//! block looks like ([`ParameterLayout`]), and how an image that holds compiled kernels is laid out.
//! Invariant: decoding never trusts a length in the input. Does not load, compile or run anything.
#![forbid(unsafe_code)]

mod decode;
mod encode;
mod error;
mod format;
mod image;
mod kernel;
mod target;

pub use decode::decode;
pub use encode::encode;
pub use error::ImageError;
pub use image::{DeviceImage, KernelEntry, SourceLocation};
pub use kernel::{Form, KernelDescriptor, KernelId, ParameterLayout};
pub use target::{ImageTarget, TargetError};
