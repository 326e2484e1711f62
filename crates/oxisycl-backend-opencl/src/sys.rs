//! The OpenCL API: handles, numbers, and the functions of a loaded library.
//!
//! Names and types are those of Khronos' `cl.h` and of `cl_intel_unified_shared_memory`. Nothing is checked here.

use std::ffi::{OsStr, c_char, c_void};

use libloading::Library;

/// A result: zero, or a negative number.
pub type Code = i32;
/// `cl_platform_id` and all other handles.
pub type Handle = *mut c_void;

/// What a number of the API means.
pub mod code {
    /// `CL_DEVICE_TYPE_ALL`.
    pub const ALL_DEVICES: u64 = 0xFFFF_FFFF;
    /// `CL_DEVICE_NAME`.
    pub const DEVICE_NAME: u32 = 0x102B;
    /// `CL_DRIVER_VERSION`.
    pub const DRIVER_VERSION: u32 = 0x102D;
    /// `CL_DEVICE_IL_VERSION`.
    pub const DEVICE_IL_VERSION: u32 = 0x105B;
    /// `CL_PROGRAM_BUILD_LOG`.
    pub const BUILD_LOG: u32 = 0x1183;
    /// `CL_KERNEL_NUM_ARGS`.
    pub const N_ARGUMENTS: u32 = 0x1191;
    /// `CL_KERNEL_EXEC_INFO_INDIRECT_HOST_ACCESS_INTEL`; those of device and shared memory follow.
    pub const INDIRECT_HOST_ACCESS: u32 = 0x4200;
}

macro_rules! functions {
    ($($name:ident($($type:ty),*) -> $result:ty;)*) => {
        /// The functions of a loaded library.
        #[expect(non_snake_case, reason = "the names are OpenCL's")]
        #[expect(missing_docs, reason = "the functions are documented by Khronos, under the same names")]
        pub struct Functions {
            $(pub $name: unsafe extern "system" fn($($type),*) -> $result,)*
            /// Never unloaded: drivers have threads of their own.
            _library: std::mem::ManuallyDrop<Library>,
        }

        impl Functions {
            /// Loads a library: the named one, or the system's loader. The error says what is missing.
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

/// The loader of the system.
#[cfg(windows)]
const LIBRARY: &str = "OpenCL.dll";
/// As above.
#[cfg(target_os = "macos")]
const LIBRARY: &str = "/System/Library/Frameworks/OpenCL.framework/OpenCL";
/// As above.
#[cfg(not(any(windows, target_os = "macos")))]
const LIBRARY: &str = "libOpenCL.so.1";

functions! {
    clGetPlatformIDs(u32, *mut Handle, *mut u32) -> Code;
    clGetDeviceIDs(Handle, u64, u32, *mut Handle, *mut u32) -> Code;
    clGetDeviceInfo(Handle, u32, usize, *mut c_void, *mut usize) -> Code;
    clGetExtensionFunctionAddressForPlatform(Handle, *const c_char) -> *mut c_void;
    clCreateContext(*const isize, u32, *const Handle, *const c_void, *mut c_void, *mut Code) -> Handle;
    clReleaseContext(Handle) -> Code;
    clCreateCommandQueueWithProperties(Handle, Handle, *const u64, *mut Code) -> Handle;
    clReleaseCommandQueue(Handle) -> Code;
    clCreateProgramWithIL(Handle, *const c_void, usize, *mut Code) -> Handle;
    clBuildProgram(Handle, u32, *const Handle, *const c_char, *const c_void, *mut c_void) -> Code;
    clGetProgramBuildInfo(Handle, Handle, u32, usize, *mut c_void, *mut usize) -> Code;
    clReleaseProgram(Handle) -> Code;
    clCreateKernel(Handle, *const c_char, *mut Code) -> Handle;
    clGetKernelInfo(Handle, u32, usize, *mut c_void, *mut usize) -> Code;
    clSetKernelArg(Handle, u32, usize, *const c_void) -> Code;
    clSetKernelExecInfo(Handle, u32, usize, *const c_void) -> Code;
    clReleaseKernel(Handle) -> Code;
    clEnqueueNDRangeKernel(Handle, Handle, u32, *const usize, *const usize, *const usize, u32, *const Handle, *mut Handle) -> Code;
    clFinish(Handle) -> Code;
}

/// `clSharedMemAllocINTEL`.
pub type AllocateShared = unsafe extern "system" fn(Handle, Handle, *const u64, usize, u32, *mut Code) -> *mut c_void;
/// `clMemBlockingFreeINTEL`.
pub type FreeShared = unsafe extern "system" fn(Handle, *mut c_void) -> Code;
