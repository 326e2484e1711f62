//! The OpenCL API: handles, numbers, and the functions of a loaded library.
//!
//! Names and types are those of Khronos' `cl.h` and of `cl_intel_unified_shared_memory`. Nothing is checked here.

use std::ffi::{OsStr, c_char, c_void};

use libloading::Library;

/// A result: zero, or a negative number.
pub type Code = i32;
/// `cl_platform_id` and all other handles.
pub type Handle = *mut c_void;

/// A handle of a driver object, which any thread may use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(transparent)]
pub struct Object(pub Handle);

// SAFETY: all OpenCL functions may be called from any thread with any object. The one exception: a kernel's arguments are set by one thread
// at a time, for which the backend has a lock.
unsafe impl Send for Object {}
// SAFETY: as above.
unsafe impl Sync for Object {}

impl Object {
    /// No object.
    pub const NULL: Self = Self(std::ptr::null_mut());
}

/// The constants of the API, under the names of the headers without `CL_`.
#[expect(missing_docs, reason = "the names are Khronos' own, and documented there")]
pub mod code {
    use super::Code;

    pub const SUCCESS: Code = 0;
    pub const DEVICE_NOT_FOUND: Code = -1;
    pub const DEVICE_NOT_AVAILABLE: Code = -2;
    pub const MEM_OBJECT_ALLOCATION_FAILURE: Code = -4;
    pub const OUT_OF_RESOURCES: Code = -5;
    pub const OUT_OF_HOST_MEMORY: Code = -6;
    pub const PROFILING_INFO_NOT_AVAILABLE: Code = -7;
    pub const DEVICE_PARTITION_FAILED: Code = -18;
    pub const INVALID_VALUE: Code = -30;
    pub const INVALID_DEVICE_PARTITION_COUNT: Code = -68;
    pub const INVALID_CONTEXT: Code = -34;
    pub const INVALID_COMMAND_QUEUE: Code = -36;
    pub const INVALID_BUILD_OPTIONS: Code = -43;
    pub const INVALID_KERNEL_NAME: Code = -46;
    pub const INVALID_OPERATION: Code = -59;
    pub const INVALID_ARG_INDEX: Code = -49;
    pub const INVALID_ARG_VALUE: Code = -50;
    pub const INVALID_ARG_SIZE: Code = -51;
    pub const INVALID_BUFFER_SIZE: Code = -61;
    pub const PLATFORM_NOT_FOUND: Code = -1001;

    pub const PLATFORM_VERSION: u32 = 0x0901;
    pub const PLATFORM_NAME: u32 = 0x0902;
    pub const PLATFORM_VENDOR: u32 = 0x0903;

    pub const ALL_DEVICES: u64 = 0xFFFF_FFFF;
    pub const DEVICE_TYPE_CPU: u64 = 1 << 1;
    pub const DEVICE_TYPE_GPU: u64 = 1 << 2;
    pub const DEVICE_TYPE_ACCELERATOR: u64 = 1 << 3;

    pub const DEVICE_TYPE: u32 = 0x1000;
    pub const DEVICE_VENDOR_ID: u32 = 0x1001;
    pub const DEVICE_MAX_COMPUTE_UNITS: u32 = 0x1002;
    pub const DEVICE_MAX_WORK_ITEM_DIMENSIONS: u32 = 0x1003;
    pub const DEVICE_MAX_WORK_GROUP_SIZE: u32 = 0x1004;
    pub const DEVICE_MAX_WORK_ITEM_SIZES: u32 = 0x1005;
    /// The query for `char`. Those for `short`, `int`, `long`, `float` and `double` follow.
    pub const DEVICE_PREFERRED_VECTOR_WIDTH: u32 = 0x1006;
    pub const DEVICE_PREFERRED_VECTOR_WIDTH_HALF: u32 = 0x1034;
    /// The query for `char`. Those for `short`, `int`, `long`, `float`, `double` and `half` follow.
    pub const DEVICE_NATIVE_VECTOR_WIDTH: u32 = 0x1036;
    pub const DEVICE_MAX_CLOCK_FREQUENCY: u32 = 0x100C;
    pub const DEVICE_ADDRESS_BITS: u32 = 0x100D;
    pub const DEVICE_MAX_MEM_ALLOC_SIZE: u32 = 0x1010;
    pub const DEVICE_MEM_BASE_ADDR_ALIGN: u32 = 0x1019;
    pub const DEVICE_SINGLE_FP_CONFIG: u32 = 0x101B;
    pub const DEVICE_GLOBAL_MEM_CACHE_TYPE: u32 = 0x101C;
    pub const DEVICE_GLOBAL_MEM_CACHELINE_SIZE: u32 = 0x101D;
    pub const DEVICE_GLOBAL_MEM_CACHE_SIZE: u32 = 0x101E;
    pub const DEVICE_GLOBAL_MEM_SIZE: u32 = 0x101F;
    pub const DEVICE_LOCAL_MEM_TYPE: u32 = 0x1022;
    pub const DEVICE_LOCAL_MEM_SIZE: u32 = 0x1023;
    pub const DEVICE_ERROR_CORRECTION_SUPPORT: u32 = 0x1024;
    pub const DEVICE_PROFILING_TIMER_RESOLUTION: u32 = 0x1025;
    pub const DEVICE_AVAILABLE: u32 = 0x1027;
    pub const DEVICE_EXECUTION_CAPABILITIES: u32 = 0x1029;
    pub const DEVICE_QUEUE_PROPERTIES: u32 = 0x102A;
    pub const DEVICE_NAME: u32 = 0x102B;
    pub const DEVICE_VENDOR: u32 = 0x102C;
    pub const DRIVER_VERSION: u32 = 0x102D;
    pub const DEVICE_PROFILE: u32 = 0x102E;
    pub const DEVICE_VERSION: u32 = 0x102F;
    pub const DEVICE_PREFERRED_INTEROP_USER_SYNC: u32 = 0x1048;
    pub const DEVICE_EXTENSIONS: u32 = 0x1030;
    pub const DEVICE_SINGLE_FP_ATOMIC_CAPABILITIES: u32 = 0x4231;
    pub const DEVICE_DOUBLE_FP_ATOMIC_CAPABILITIES: u32 = 0x4232;
    /// The bits for global and for local memory.
    pub const FP_ATOMIC_ADD: u64 = 1 << 1 | 1 << 17;
    pub const DEVICE_DOUBLE_FP_CONFIG: u32 = 0x1032;
    pub const DEVICE_HALF_FP_CONFIG: u32 = 0x1033;
    pub const DEVICE_PARTITION_MAX_SUB_DEVICES: u32 = 0x1043;
    pub const DEVICE_PARTITION_PROPERTIES: u32 = 0x1044;
    pub const DEVICE_PARTITION_AFFINITY_DOMAIN: u32 = 0x1045;
    pub const DEVICE_COMPILER_AVAILABLE: u32 = 0x1028;
    pub const DEVICE_LINKER_AVAILABLE: u32 = 0x103E;
    pub const DEVICE_BUILT_IN_KERNELS: u32 = 0x103F;
    pub const DEVICE_SVM_CAPABILITIES: u32 = 0x1053;
    pub const DEVICE_IL_VERSION: u32 = 0x105B;
    pub const DEVICE_GENERIC_ADDRESS_SPACE_SUPPORT: u32 = 0x1069;
    pub const DEVICE_MAX_NUM_SUB_GROUPS: u32 = 0x105C;
    pub const DEVICE_ATOMIC_MEMORY_CAPABILITIES: u32 = 0x1063;
    pub const DEVICE_ATOMIC_FENCE_CAPABILITIES: u32 = 0x1064;
    pub const DEVICE_SUB_GROUP_SIZES_INTEL: u32 = 0x4108;
    pub const DEVICE_HOST_MEM_CAPABILITIES_INTEL: u32 = 0x4190;
    pub const DEVICE_DEVICE_MEM_CAPABILITIES_INTEL: u32 = 0x4191;
    pub const DEVICE_SINGLE_DEVICE_SHARED_MEM_CAPABILITIES_INTEL: u32 = 0x4192;
    pub const DEVICE_SHARED_SYSTEM_MEM_CAPABILITIES_INTEL: u32 = 0x4194;

    pub const USM_ACCESS: u64 = 1 << 0;
    pub const USM_ATOMIC_ACCESS: u64 = 1 << 1;
    pub const USM_CONCURRENT_ATOMIC_ACCESS: u64 = 1 << 3;

    pub const SVM_COARSE_GRAIN_BUFFER: u64 = 1 << 0;
    pub const SVM_FINE_GRAIN_BUFFER: u64 = 1 << 1;
    pub const SVM_FINE_GRAIN_SYSTEM: u64 = 1 << 2;
    pub const SVM_ATOMICS: u64 = 1 << 3;
    pub const MEM_READ_WRITE: u64 = 1 << 0;
    pub const MEM_READ_ONLY: u64 = 1 << 2;
    pub const MEM_COPY_HOST_PTR: u64 = 1 << 5;
    pub const MEM_SVM_FINE_GRAIN_BUFFER: u64 = 1 << 10;
    pub const MEM_SVM_ATOMICS: u64 = 1 << 11;

    pub const R: u32 = 0x10B0;
    pub const RGBA: u32 = 0x10B5;
    pub const UNORM_INT8: u32 = 0x10D2;
    pub const FLOAT: u32 = 0x10DE;
    pub const MEM_OBJECT_IMAGE2D: u32 = 0x10F1;

    pub const PARTITION_EQUALLY: isize = 0x1086;
    pub const PARTITION_BY_COUNTS: isize = 0x1087;
    pub const PARTITION_BY_AFFINITY_DOMAIN: isize = 0x1088;
    pub const AFFINITY_DOMAIN_NUMA: u64 = 1 << 0;
    pub const AFFINITY_DOMAIN_L3_CACHE: u64 = 1 << 2;
    pub const AFFINITY_DOMAIN_L2_CACHE: u64 = 1 << 3;
    pub const AFFINITY_DOMAIN_NEXT_PARTITIONABLE: u64 = 1 << 5;

    pub const QUEUE_CONTEXT: u32 = 0x1090;
    pub const QUEUE_DEVICE: u32 = 0x1091;
    pub const QUEUE_PROPERTIES: u64 = 0x1093;
    pub const QUEUE_PRIORITY: u64 = 0x1096;
    pub const QUEUE_PRIORITY_HIGH: u64 = 1 << 0;
    pub const QUEUE_PRIORITY_LOW: u64 = 1 << 2;
    pub const QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE: u64 = 1 << 0;
    pub const QUEUE_PROFILING_ENABLE: u64 = 1 << 1;

    pub const PROGRAM_CONTEXT: u32 = 0x1161;
    pub const PROGRAM_BINARY_SIZES: u32 = 0x1165;
    pub const PROGRAM_BINARIES: u32 = 0x1166;
    /// `CL_PROGRAM_BUILD_STATUS`
    pub const BUILD_STATUS: u32 = 0x1181;
    pub const BUILD_LOG: u32 = 0x1183;
    pub const N_ARGUMENTS: u32 = 0x1191;
    pub const KERNEL_WORK_GROUP_SIZE: u32 = 0x11B0;
    /// `CL_KERNEL_PREFERRED_WORK_GROUP_SIZE_MULTIPLE`
    pub const KERNEL_PREFERRED_MULTIPLE: u32 = 0x11B3;
    pub const KERNEL_COMPILE_WORK_GROUP_SIZE: u32 = 0x11B1;
    pub const KERNEL_LOCAL_MEM_SIZE: u32 = 0x11B2;
    pub const KERNEL_PRIVATE_MEM_SIZE: u32 = 0x11B4;
    pub const KERNEL_MAX_NUM_SUB_GROUPS: u32 = 0x11B9;
    /// `CL_KERNEL_MAX_SUB_GROUP_SIZE_FOR_NDRANGE`
    pub const KERNEL_MAX_SUB_GROUP_SIZE: u32 = 0x2033;
    pub const KERNEL_EXEC_INFO_SVM_PTRS: u32 = 0x11B6;
    pub const KERNEL_EXEC_INFO_SVM_FINE_GRAIN_SYSTEM: u32 = 0x11B7;
    /// `CL_KERNEL_EXEC_INFO_INDIRECT_HOST_ACCESS_INTEL`; those of device and shared memory follow.
    pub const INDIRECT_HOST_ACCESS: u32 = 0x4200;

    pub const EVENT_COMMAND_EXECUTION_STATUS: u32 = 0x11D3;
    pub const EVENT_CONTEXT: u32 = 0x11D4;
    pub const COMPLETE: Code = 0;
    pub const RUNNING: Code = 1;
    pub const PROFILING_COMMAND_START: u32 = 0x1282;
    pub const PROFILING_COMMAND_END: u32 = 0x1283;
}

/// `cl_image_format`: the order and the type of channels.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
#[expect(missing_docs, reason = "the names are Khronos' own, and documented there")]
pub struct ImageFormat {
    pub channel_order: u32,
    pub channel_type: u32,
}

/// `cl_image_desc`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
#[expect(missing_docs, reason = "the names are Khronos' own, and documented there")]
pub struct ImageDescription {
    pub image_type: u32,
    pub width: usize,
    pub height: usize,
    pub depth: usize,
    pub array_size: usize,
    pub row_pitch: usize,
    pub slice_pitch: usize,
    pub n_mip_levels: u32,
    pub n_samples: u32,
    pub buffer: Handle,
}

macro_rules! functions {
    ($($name:ident($($type:ty),*) -> $result:ty;)*) => {
        /// The functions of a loaded library.
        #[derive(Debug)]
        #[expect(non_snake_case, reason = "the names are OpenCL's")]
        #[expect(missing_docs, reason = "the functions are documented by Khronos, under the same names")]
        pub struct Functions {
            $(pub $name: unsafe extern "system" fn($($type),*) -> $result,)*
            /// Keeps the library loaded until the process ends, since drivers have threads of their own.
            _library: std::mem::ManuallyDrop<Library>,
        }

        impl Functions {
            /// Loads the named library, or the system's loader. The error says what is missing.
            ///
            /// # Safety
            /// The library implements OpenCL 2.1 or later.
            pub unsafe fn load(path: Option<&OsStr>) -> Result<Self, String> {
                let path = path.unwrap_or(OsStr::new(LIBRARY));
                let failed = |what: &dyn std::fmt::Display| format!("{}: {what}", path.to_string_lossy());
                // SAFETY: the caller promises that it is OpenCL's, whose initialisers may run anywhere.
                let library = unsafe { Library::new(path) }.map_err(|error| failed(&error))?;
                Ok(Self {
                    $($name: {
                        // SAFETY: the type is that of `cl.h`.
                        let symbol = unsafe { library.get(concat!(stringify!($name), "\0").as_bytes()) };
                        *symbol.map_err(|error| failed(&error))?
                    },)*
                    _library: std::mem::ManuallyDrop::new(library),
                })
            }
        }
    };
}

/// The file name of the OpenCL loader.
#[cfg(windows)]
const LIBRARY: &str = "OpenCL.dll";
/// The file name of the OpenCL loader.
#[cfg(target_os = "macos")]
const LIBRARY: &str = "/System/Library/Frameworks/OpenCL.framework/OpenCL";
/// The file name of the OpenCL loader.
#[cfg(not(any(windows, target_os = "macos")))]
const LIBRARY: &str = "libOpenCL.so.1";

functions! {
    clGetPlatformIDs(u32, *mut Handle, *mut u32) -> Code;
    clGetPlatformInfo(Handle, u32, usize, *mut c_void, *mut usize) -> Code;
    clGetDeviceIDs(Handle, u64, u32, *mut Handle, *mut u32) -> Code;
    clGetDeviceInfo(Handle, u32, usize, *mut c_void, *mut usize) -> Code;
    clCreateSubDevices(Handle, *const isize, u32, *mut Handle, *mut u32) -> Code;
    clReleaseDevice(Handle) -> Code;
    clGetDeviceAndHostTimer(Handle, *mut u64, *mut u64) -> Code;
    clGetExtensionFunctionAddressForPlatform(Handle, *const c_char) -> *mut c_void;
    clCreateContext(*const isize, u32, *const Handle, *const c_void, *mut c_void, *mut Code) -> Handle;
    clReleaseContext(Handle) -> Code;
    clCreateCommandQueueWithProperties(Handle, Handle, *const u64, *mut Code) -> Handle;
    clReleaseCommandQueue(Handle) -> Code;
    clRetainCommandQueue(Handle) -> Code;
    clGetCommandQueueInfo(Handle, u32, usize, *mut c_void, *mut usize) -> Code;
    clFlush(Handle) -> Code;
    clFinish(Handle) -> Code;
    clCreateProgramWithSource(Handle, u32, *const *const c_char, *const usize, *mut Code) -> Handle;
    clCreateProgramWithBuiltInKernels(Handle, u32, *const Handle, *const c_char, *mut Code) -> Handle;
    clCreateProgramWithIL(Handle, *const c_void, usize, *mut Code) -> Handle;
    clCreateProgramWithBinary(Handle, u32, *const Handle, *const usize, *const *const u8, *mut Code, *mut Code) -> Handle;
    clBuildProgram(Handle, u32, *const Handle, *const c_char, *const c_void, *mut c_void) -> Code;
    clGetProgramBuildInfo(Handle, Handle, u32, usize, *mut c_void, *mut usize) -> Code;
    clGetProgramInfo(Handle, u32, usize, *mut c_void, *mut usize) -> Code;
    clReleaseProgram(Handle) -> Code;
    clRetainProgram(Handle) -> Code;
    clCreateKernel(Handle, *const c_char, *mut Code) -> Handle;
    clGetKernelInfo(Handle, u32, usize, *mut c_void, *mut usize) -> Code;
    clGetKernelWorkGroupInfo(Handle, Handle, u32, usize, *mut c_void, *mut usize) -> Code;
    clGetKernelSubGroupInfo(Handle, Handle, u32, usize, *const c_void, usize, *mut c_void, *mut usize) -> Code;
    clSetKernelArg(Handle, u32, usize, *const c_void) -> Code;
    clSetKernelArgSVMPointer(Handle, u32, *const c_void) -> Code;
    clSetKernelExecInfo(Handle, u32, usize, *const c_void) -> Code;
    clReleaseKernel(Handle) -> Code;
    clEnqueueNDRangeKernel(Handle, Handle, u32, *const usize, *const usize, *const usize, u32, *const Handle, *mut Handle) -> Code;
    clEnqueueBarrierWithWaitList(Handle, u32, *const Handle, *mut Handle) -> Code;
    clEnqueueMarkerWithWaitList(Handle, u32, *const Handle, *mut Handle) -> Code;
    clGetEventInfo(Handle, u32, usize, *mut c_void, *mut usize) -> Code;
    clGetEventProfilingInfo(Handle, u32, usize, *mut c_void, *mut usize) -> Code;
    clWaitForEvents(u32, *const Handle) -> Code;
    clReleaseEvent(Handle) -> Code;
    clRetainEvent(Handle) -> Code;
    clCreateImage(Handle, u64, *const ImageFormat, *const ImageDescription, *mut c_void, *mut Code) -> Handle;
    clReleaseMemObject(Handle) -> Code;
    clSVMAlloc(Handle, u64, usize, u32) -> *mut c_void;
    clSVMFree(Handle, *mut c_void) -> ();
    clEnqueueSVMMemcpy(Handle, u32, *mut c_void, *const c_void, usize, u32, *const Handle, *mut Handle) -> Code;
    clEnqueueSVMMemFill(Handle, *mut c_void, *const c_void, usize, usize, u32, *const Handle, *mut Handle) -> Code;
}

/// `clHostMemAllocINTEL`.
pub type AllocateHost = unsafe extern "system" fn(Handle, *const u64, usize, u32, *mut Code) -> *mut c_void;
/// `clDeviceMemAllocINTEL`.
pub type AllocateDevice = unsafe extern "system" fn(Handle, Handle, *const u64, usize, u32, *mut Code) -> *mut c_void;
/// `clSharedMemAllocINTEL`.
pub type AllocateShared = AllocateDevice;
/// `clMemFreeINTEL` and `clMemBlockingFreeINTEL`.
pub type FreeShared = unsafe extern "system" fn(Handle, *mut c_void) -> Code;
/// `clEnqueueMemcpyINTEL`, and `clEnqueueSVMMemcpy`.
pub type EnqueueCopy =
    unsafe extern "system" fn(Handle, u32, *mut c_void, *const c_void, usize, u32, *const Handle, *mut Handle) -> Code;
/// `clEnqueueMemFillINTEL`, and `clEnqueueSVMMemFill`.
pub type EnqueueFill = unsafe extern "system" fn(
    Handle,
    *mut c_void,
    *const c_void,
    usize,
    usize,
    u32,
    *const Handle,
    *mut Handle,
) -> Code;
/// `clSetKernelArgMemPointerINTEL`.
pub type SetPointer = unsafe extern "system" fn(Handle, u32, *const c_void) -> Code;
/// `clEnqueueMigrateMemINTEL`.
pub type EnqueueMigrate =
    unsafe extern "system" fn(Handle, *const c_void, usize, u64, u32, *const Handle, *mut Handle) -> Code;
