//! SYCL for Rust: one ordinary Rust program whose closures run as kernels on every device of a machine.
//!
//! ```
//! use oxisycl::prelude::*;
//!
//! fn main() -> oxisycl::Result<()> {
//!     let queue = Queue::default()?;
//!     let buffer = Buffer::from_vec_nd((0..512).collect::<Vec<i32>>(), [8, 8, 8])?;
//!     let val = 12;
//!     queue.submit(|cg| {
//!         let acc = cg.access(&buffer, ReadWrite);
//!         cg.parallel_for([8, 8, 8], move |item| acc.update(item, |x| x + val))
//!     })?;
//!     let host = buffer.host_access(Read)?; // waits for the kernel
//!     assert!(host.iter().enumerate().all(|(i, &x)| x == val + i as i32));
//!     Ok(())
//! }
//! ```
//!
//! - [`Queue`] takes command groups for one [`Device`]; [`Handler`] records what a group does.
//! - [`Buffer`] holds data that moves to where it is used; [`Accessor`]s say how a command uses it, and thereby what it waits for.
//! - [`Event`] stands for a submitted command: wait for it, or `.await` it.
//! - [`usm`] is the pointer-based alternative to buffers.
//!
//! Names and meaning follow the SYCL 2020 specification; where OxiSYCL says more, the book's chapter "Semantics" is normative.

// Compiled with every program, so that the device compiler can link its functions into kernels.
extern crate oxisycl_builtins as _;

#[doc(hidden)]
#[path = "print.rs"]
pub mod __print;
pub mod argument;
pub mod backend_info;
mod borrowed;
mod buffer;
mod compile_time;
mod context;
mod device;
mod environment;
mod event;
mod handler;
mod host_accessor;
mod image_objects;
pub mod interop;
pub mod kernel_bundle;
mod kernel_id;
mod kernel_info;
mod platform;
mod queue;
pub mod selector;
#[cfg(feature = "simulated")]
pub mod simulated;
pub mod source_bundle;
pub mod specialization;
pub mod usm;
mod wiring;

pub mod observe;

pub use __print::{OutputHandler, set_output_handler};
#[cfg(feature = "image")]
pub use buffer::FlatPixel;
pub use buffer::{
    BorrowedBuffer, Buffer, BufferAccess, BufferOptions, ChunkedAccess, FinalData, IntoVecError, Placeholder,
};
pub use compile_time::{all_devices_have, any_device_has};
#[doc(hidden)]
pub mod __compile_time {
    pub use crate::compile_time::{all_targets_have, any_target_has};
}
pub use context::Context;
pub use device::Device;
pub use event::{Event, Profile};
pub use handler::{Handler, HostMemory, HostScope, HostSlot, HostTaskAccessor, InteropHandle, NativeScope};
pub use host_accessor::{HostAccessor, HostIter};
#[cfg(feature = "image")]
pub use image_objects::ImagePixel;
pub use image_objects::{
    BorrowedImage, ChunkedImageAccess, HostSampledImageAccessor, HostTaskImageAccessor, HostTaskSampledImageAccessor,
    HostUnsampledImageAccessor, ImageLimits, ImagePitch, IntoPixelsError, SampledImage, SampledImageAccess,
    UnsampledImage, UnsampledImageAccess,
};
pub use kernel_bundle::KernelBundle;
pub use kernel_id::KernelId;
pub use kernel_info::KernelInfo;
pub use platform::Platform;
pub use queue::{AsyncHandler, HostCopy, Queue, QueueBuilder, Reduced};

pub use oxisycl_backend::{
    Advice, AffinityDomain, CacheType, DeviceInfo, EventStatus, FpConfig, LocalMemoryType, MemoryOrder, MemoryScope,
    PartitionProperty, Priority, UsmKind, VectorWidths,
};
pub use oxisycl_device::atomic;
pub use oxisycl_device::group;
pub use oxisycl_device::group::reduction;
pub use oxisycl_device::images;
pub use oxisycl_device::math;
pub use oxisycl_device::multi_ptr;
pub use oxisycl_device::operator;
pub use oxisycl_device::vector;
pub use oxisycl_device::{
    Accessor, Atomic, AtomicElement, Block, CellView, Chunked, DeviceCopyable, Id, InItem, Inside, Item, Kernel, Loads,
    Mode, ModeFor, NdRange, NoInit, OnlyLoads, Range, Read, ReadWrite, Single, SingleKernel, Stores, View, ViewIter,
    Window, Write, float, kernel,
};
pub use oxisycl_image::{HostLevel, ImageTarget};
pub use oxisycl_runtime::{Error, Result};
pub use oxisycl_types::{AccessMode, Aspect, BackendKind, DeviceType, ErrorCode, ImageFormat, ImageSampler};

/// What most programs need.
pub mod prelude {
    pub use crate::argument::KernelArg;
    pub use crate::{
        Accessor, Aspect, Atomic, Buffer, BufferOptions, Chunked, Context, Device, DeviceCopyable, DeviceType, Error,
        ErrorCode, Event, Handler, HostAccessor, Id, ImageFormat, ImageSampler, Item, Kernel, NdRange, NoInit,
        Platform, Queue, Range, Read, ReadWrite, SampledImage, Single, UnsampledImage, View, Write, kernel,
    };
}
