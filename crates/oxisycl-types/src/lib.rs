//! Plain values that host code, kernels and backends share.
//!
//! Owns the vocabulary of the SYCL 2020 specification: index-space types ([`Id`], [`Range`], [`NdRange`]), access modes,
//! device types, aspects and error codes. Owns the description of one launch ([`LaunchRange`]), for kernels on a CPU
//! ([`HostChunk`]) and in device images ([`DeviceLaunch`]). Says what a kernel's arguments consist of ([`ArgumentType`]). Describes faults of drivers ([`Quirk`]), without knowing any.
//! Invariant: every type here is plain data with the same layout in host and device code.
//! Does not know buffers, devices or memory; depends on nothing.
#![no_std]
#![forbid(unsafe_code)]

mod access_mode;
mod argument_type;
mod aspect;
mod backend_kind;
mod conversions;
mod device_launch;
mod device_type;
mod error_code;
mod host_group;
mod id;
mod image;
mod launch;
mod nd_range;
mod operators;
mod quirk;
mod range;

pub use access_mode::{AccessMode, Target};
pub use argument_type::{ArgumentPart, ArgumentType};
pub use aspect::{Aspect, Aspects};
pub use backend_kind::BackendKind;
pub use device_launch::{BUFFER_AT, DeviceLaunch, PanicArgument, PanicRecord, PrintHeader, PrintRecord};
pub use device_type::DeviceType;
pub use error_code::ErrorCode;
pub use host_group::{HostGroup, HostPlace, HostTurn, HostWaiting};
pub use id::Id;
pub use image::{AddressingMode, ChannelOrder, ChannelType, CoordinateMode, FilteringMode, ImageFormat, ImageSampler};
pub use launch::{GroupSize, HostChunk, HostEntry, LaunchRange, NativeEntry};
pub use nd_range::NdRange;
pub use quirk::{Quirk, Reproducer};
pub use range::Range;
