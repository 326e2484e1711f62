//! The part of the CUDA driver API that this crate uses, as plain types, constants and a table of functions.
//!
//! Owns no handles and checks nothing: that is the business of the types above it. Names and numbers are those of `cuda.h`;
//! they are part of the driver's binary interface and do not change.

mod api;
mod load;

use std::ffi::{c_int, c_uint, c_void};

pub(crate) use api::Driver;
pub(crate) use load::{LoadFailure, load};

/// A result code.
pub(crate) type Code = c_int;
/// A device's handle.
pub(crate) type RawDevice = c_int;
/// An address in unified addressing.
pub(crate) type DevicePointer = u64;

macro_rules! handles {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, PartialEq, Eq, Debug)]
            #[repr(transparent)]
            pub(crate) struct $name(pub(crate) *mut c_void);

            // SAFETY: a handle is a name for something inside the driver, which may be used from any thread.
            unsafe impl Send for $name {}
            // SAFETY: as above.
            unsafe impl Sync for $name {}

            impl $name {
                pub(crate) const NULL: Self = Self(std::ptr::null_mut());
            }
        )*
    };
}

handles! {
    /// A `CUcontext`.
    RawContext,
    /// A `CUstream`.
    RawStream,
    /// A `CUevent`.
    RawEvent,
    /// A `CUmodule`.
    RawModule,
    /// A `CUfunction`.
    RawFunction,
    /// A `CUgraph`.
    RawGraph,
    /// A `CUgraphNode`.
    RawGraphNode,
    /// A `CUgraphExec`.
    RawGraphExec,
}

/// The result codes that this crate distinguishes.
pub(crate) mod code {
    use super::Code;

    pub(crate) const SUCCESS: Code = 0;
    pub(crate) const INVALID_VALUE: Code = 1;
    pub(crate) const OUT_OF_MEMORY: Code = 2;
    pub(crate) const DEINITIALIZED: Code = 4;
    pub(crate) const STUB_LIBRARY: Code = 34;
    pub(crate) const NO_DEVICE: Code = 100;
    pub(crate) const INVALID_PTX: Code = 218;
    pub(crate) const UNSUPPORTED_PTX_VERSION: Code = 222;
    pub(crate) const NOT_FOUND: Code = 500;
    pub(crate) const NOT_READY: Code = 600;

    /// Errors after which a context is unusable.
    pub(crate) const STICKY: &[Code] = &[
        DEINITIALIZED,
        214, // uncorrectable ECC error
        220, // uncorrectable NVLink error
        700, // illegal address
        702, // launch timeout
        709, // context is destroyed
        710, // assert
        714, // hardware stack error
        715, // illegal instruction
        716, // misaligned address
        717, // invalid address space
        718, // invalid program counter
        719, // launch failed
        721, // launch failed in tensor memory
        723, // contained
    ];

    /// The codes that follow a stack overflow of a work-item. The address beyond the stack may belong to another work-item, or be unmapped.
    pub(crate) const OF_THE_STACK: &[Code] = &[700, 714, 717, 718, 719];
}

/// Numbers of `CUdevice_attribute`.
pub(crate) mod attribute {
    use std::ffi::c_int;

    pub(crate) const MAX_THREADS_PER_BLOCK: c_int = 1;
    pub(crate) const MAX_BLOCK_DIM_X: c_int = 2;
    pub(crate) const MAX_BLOCK_DIM_Y: c_int = 3;
    pub(crate) const MAX_BLOCK_DIM_Z: c_int = 4;
    pub(crate) const MAX_SHARED_MEMORY_PER_BLOCK: c_int = 8;
    pub(crate) const WARP_SIZE: c_int = 10;
    pub(crate) const CLOCK_RATE: c_int = 13;
    pub(crate) const MULTIPROCESSOR_COUNT: c_int = 16;
    pub(crate) const COMPUTE_MODE: c_int = 20;
    pub(crate) const ECC_ENABLED: c_int = 32;
    pub(crate) const L2_CACHE_SIZE: c_int = 38;
    pub(crate) const UNIFIED_ADDRESSING: c_int = 41;
    pub(crate) const COMPUTE_CAPABILITY_MAJOR: c_int = 75;
    pub(crate) const COMPUTE_CAPABILITY_MINOR: c_int = 76;
    pub(crate) const MANAGED_MEMORY: c_int = 83;
    pub(crate) const HOST_NATIVE_ATOMIC_SUPPORTED: c_int = 86;
    pub(crate) const PAGEABLE_MEMORY_ACCESS: c_int = 88;
    pub(crate) const CONCURRENT_MANAGED_ACCESS: c_int = 89;
    pub(crate) const MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: c_int = 97;
}

/// `CU_STREAM_PER_THREAD`, a stream's handle.
pub(crate) const STREAM_PER_THREAD: usize = 2;
/// `CU_STREAM_NON_BLOCKING`
pub(crate) const STREAM_NON_BLOCKING: c_uint = 1;
/// `CU_EVENT_DISABLE_TIMING`
pub(crate) const EVENT_DISABLE_TIMING: c_uint = 2;
/// `CU_EVENT_DEFAULT`
pub(crate) const EVENT_DEFAULT: c_uint = 0;
/// `CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP`
pub(crate) const HOST_ALLOC_PORTABLE_MAPPED: c_uint = 1 | 2;
/// `CU_MEM_ATTACH_GLOBAL`
pub(crate) const MEM_ATTACH_GLOBAL: c_uint = 1;
/// `CU_POINTER_ATTRIBUTE_MEMORY_TYPE`
pub(crate) const POINTER_MEMORY_TYPE: c_int = 2;
/// `CU_POINTER_ATTRIBUTE_IS_MANAGED`
pub(crate) const POINTER_IS_MANAGED: c_int = 8;
/// `CU_LIMIT_STACK_SIZE`
pub(crate) const LIMIT_STACK_SIZE: c_int = 0;
/// `CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES`
pub(crate) const FUNCTION_SHARED_SIZE: c_int = 1;
/// `CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES`
pub(crate) const FUNCTION_MAX_DYNAMIC_SHARED_SIZE: c_int = 8;
/// `CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES`
pub(crate) const FUNCTION_LOCAL_SIZE: c_int = 3;
/// `CU_FUNC_ATTRIBUTE_NUM_REGS`
pub(crate) const FUNCTION_REGISTERS: c_int = 4;
/// `CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK`
pub(crate) const FUNCTION_MAX_THREADS: c_int = 0;
/// `CU_COMPUTEMODE_PROHIBITED`
pub(crate) const COMPUTE_MODE_PROHIBITED: c_int = 2;

/// `CU_MEMORYTYPE_HOST`
pub(crate) const MEMORY_TYPE_HOST: c_uint = 1;
/// `CU_MEMORYTYPE_UNIFIED`
pub(crate) const MEMORY_TYPE_UNIFIED: c_uint = 4;

/// Options of `cuModuleLoadDataEx`.
pub(crate) mod jit {
    use std::ffi::c_int;

    pub(crate) const INFO_LOG_BUFFER: c_int = 3;
    pub(crate) const INFO_LOG_BUFFER_SIZE_BYTES: c_int = 4;
    pub(crate) const ERROR_LOG_BUFFER: c_int = 5;
    pub(crate) const ERROR_LOG_BUFFER_SIZE_BYTES: c_int = 6;
    pub(crate) const GENERATE_LINE_INFO: c_int = 13;
}

/// Values of `CUmem_advise`.
pub(crate) mod advice {
    use std::ffi::c_int;

    pub(crate) const SET_READ_MOSTLY: c_int = 1;
    pub(crate) const UNSET_READ_MOSTLY: c_int = 2;
    pub(crate) const SET_PREFERRED_LOCATION: c_int = 3;
    pub(crate) const UNSET_PREFERRED_LOCATION: c_int = 4;
}

/// `CU_DEVICE_CPU`
pub(crate) const DEVICE_CPU: RawDevice = -1;

/// `CUmemLocation`
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct MemoryLocation {
    /// 1 for a device, 2 for the host.
    pub(crate) kind: c_int,
    pub(crate) id: c_int,
}

impl MemoryLocation {
    pub(crate) fn of(device: RawDevice) -> Self {
        if device == DEVICE_CPU { Self { kind: 2, id: 0 } } else { Self { kind: 1, id: device } }
    }
}

/// `CUDA_KERNEL_NODE_PARAMS_v2`
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct KernelNodeParameters {
    pub(crate) function: RawFunction,
    pub(crate) grid: [c_uint; 3],
    pub(crate) block: [c_uint; 3],
    pub(crate) shared: c_uint,
    pub(crate) parameters: *mut *mut c_void,
    pub(crate) extra: *mut *mut c_void,
    /// Null: `function` says it.
    pub(crate) kernel: *mut c_void,
    /// Null: the current one.
    pub(crate) context: RawContext,
}

/// `CUDA_MEMCPY2D`
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Copy2D {
    pub(crate) source: End2D,
    pub(crate) target: End2D,
    pub(crate) width: usize,
    pub(crate) height: usize,
}

/// One of the two halves of `CUDA_MEMCPY2D`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct End2D {
    pub(crate) x: usize,
    pub(crate) y: usize,
    pub(crate) memory_type: c_uint,
    pub(crate) host: *mut c_void,
    pub(crate) device: DevicePointer,
    pub(crate) array: *mut c_void,
    pub(crate) pitch: usize,
}

/// `CUDA_MEMCPY3D`, and `CUDA_MEMCPY3D_PEER`, which differs in what its two reserved fields mean.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Copy3D {
    pub(crate) source: End3D,
    pub(crate) target: End3D,
    pub(crate) width: usize,
    pub(crate) height: usize,
    pub(crate) depth: usize,
}

/// One of the two halves of `CUDA_MEMCPY3D`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct End3D {
    pub(crate) x: usize,
    pub(crate) y: usize,
    pub(crate) z: usize,
    pub(crate) level: usize,
    pub(crate) memory_type: c_uint,
    pub(crate) host: *mut c_void,
    pub(crate) device: DevicePointer,
    pub(crate) array: *mut c_void,
    /// Null except for copies between devices.
    pub(crate) context: RawContext,
    pub(crate) pitch: usize,
    pub(crate) height: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structures_have_the_sizes_of_the_header() {
        assert_eq!((size_of::<Copy2D>(), size_of::<Copy3D>()), (128, 200));
        assert_eq!((std::mem::offset_of!(Copy2D, target), std::mem::offset_of!(Copy3D, target)), (56, 88));
        assert_eq!((std::mem::offset_of!(End2D, host), std::mem::offset_of!(End3D, host)), (24, 40));
        assert_eq!(std::mem::offset_of!(Copy2D, width), 112);
        assert_eq!(std::mem::offset_of!(Copy3D, width), 176);
        assert_eq!(size_of::<MemoryLocation>(), 8);
        assert_eq!(size_of::<KernelNodeParameters>(), 72);
        assert_eq!(std::mem::offset_of!(KernelNodeParameters, parameters), 40);
    }
}
