//! Kernels that a program brings for a driver itself: from source, from binaries, or built into a device.
//!
//! Their arguments are set by index. Invariant: nothing is enqueued before [`RawKernel::check`] has compared them with what the driver
//! knows of the kernel. Does not know what the code does.

use std::any::Any;
use std::ffi::c_void;
use std::fmt;
use std::sync::Arc;

use crate::{BackendError, KernelInfo, NativeCommand};

/// Code for a driver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Source<'a> {
    /// PTX.
    Ptx(&'a str),
    /// A module of SPIR-V with kernels of OpenCL.
    SpirV(&'a [u8]),
    /// OpenCL C, with options for its compiler.
    OpenClC {
        /// The text.
        text: &'a str,
        /// The options.
        options: &'a str,
    },
    /// Kernels that the device has by itself, by their names.
    BuiltIn(&'a [&'a str]),
    /// Code that the driver has already, by its handle: a `CUmodule`, or a `cl_program` that is built for the device.
    Native(*mut c_void),
}

impl Source<'_> {
    /// What it is, in messages.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Ptx(_) => "kernels from PTX",
            Self::SpirV(_) => "kernels from SPIR-V",
            Self::OpenClC { .. } => "kernels from OpenCL C",
            Self::BuiltIn(_) => "built-in kernels",
            Self::Native(_) => "kernels of a native module",
        }
    }
}

/// Code that a driver has compiled. Unloaded when the object and all its kernels are gone.
pub trait RawModule: Send + Sync {
    /// The kernel of this name; `None` if the code has none.
    ///
    /// # Errors
    /// The errors of the driver.
    fn kernel(&self, name: &str) -> Result<Option<Arc<dyn RawKernel>>, BackendError>;

    /// The driver's handle of the code, valid as long as the object.
    fn native_handle(&self) -> *mut c_void;
}

/// A kernel of a [`RawModule`], which it keeps alive.
pub trait RawKernel: Any + fmt::Debug + Send + Sync {
    /// The limits of its code.
    fn info(&self) -> &KernelInfo;

    /// Compares the launch with what the driver knows of the kernel, and prepares what may fail.
    ///
    /// # Errors
    /// What is wrong, without the names of kernel and device.
    fn check(&self, launch: &RawLaunch) -> Result<(), RawRefusal>;

    /// The launch as a command, after [`check`](Self::check) has accepted it. Who issues it keeps the kernel until the command has ended: a driver may
    /// wait for its device when it unloads code.
    fn command(self: Arc<Self>, name: String, launch: RawLaunch) -> NativeCommand;

    /// The driver's handle of the kernel, valid as long as the object.
    fn native_handle(&self) -> *mut c_void;
}

/// A launch of a [`RawKernel`]. Its groups are whole.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RawLaunch {
    /// How many dimensions the range has.
    pub dimensions: u8,
    /// Work-groups, the innermost dimension last; unused leading ones are 1.
    pub groups: [usize; 3],
    /// Work-items of a group, in the same way.
    pub local: [usize; 3],
    /// The arguments in their order.
    pub arguments: Vec<RawValue>,
}

/// An argument by index.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RawValue {
    /// A value, as its bytes.
    Bytes(Vec<u8>),
    /// An address of the device.
    Pointer(usize),
    /// That many bytes of local memory.
    Local(usize),
}

/// Why a launch is refused.
#[derive(Clone, Debug)]
pub enum RawRefusal {
    /// The arguments do not fit the kernel's parameters.
    Arguments(String),
    /// The range exceeds a limit.
    Range(String),
    /// The driver's own error.
    Backend(BackendError),
}
