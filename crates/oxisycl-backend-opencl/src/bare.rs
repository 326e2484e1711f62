//! Single kernels on one device and one queue: each launch is waited for.
//!
//! Arguments are bytes by value, as in images of OxiSYCL; what they point to is shared memory. Without any device that takes SPIR-V,
//! [`Device::find`] says why.

use std::ffi::{CString, c_void};
use std::ptr::{null, null_mut};

use crate::sys::{AllocateShared, Code, FreeShared, Functions, Handle, code};

/// A device that takes SPIR-V, with a context and a queue of its own.
pub struct Device {
    functions: Functions,
    device: Handle,
    context: Handle,
    queue: Handle,
    allocate: AllocateShared,
    free: FreeShared,
    /// Name, driver version and the versions of SPIR-V that it takes.
    pub description: String,
}

fn check(call: &str, result: Code) -> Result<(), String> {
    if result == 0 { Ok(()) } else { Err(format!("{call}: error {result}")) }
}

impl Device {
    /// Finds the first device that takes SPIR-V and has shared memory. The error says why there is none.
    ///
    /// # Safety
    /// The OpenCL loader of the system, and the drivers that it loads, are ones.
    pub unsafe fn find() -> Result<Self, String> {
        // SAFETY: by contract.
        let functions = unsafe { Functions::load(None) }?;
        let mut platforms = [null_mut(); 16];
        let mut count = 0;
        // SAFETY: room for as many handles as are asked for.
        check("clGetPlatformIDs", unsafe { (functions.clGetPlatformIDs)(16, platforms.as_mut_ptr(), &raw mut count) })?;
        for &platform in &platforms[..count.min(16) as usize] {
            let mut devices = [null_mut(); 16];
            // SAFETY: as above, of a live platform.
            let result = unsafe {
                (functions.clGetDeviceIDs)(platform, code::ALL_DEVICES, 16, devices.as_mut_ptr(), &raw mut count)
            };
            if result != 0 {
                continue;
            }
            for &device in &devices[..count.min(16) as usize] {
                if text(&functions, device, code::DEVICE_IL_VERSION).contains("SPIR-V") {
                    return Self::open(functions, platform, device);
                }
            }
        }
        Err("no OpenCL device takes SPIR-V".to_owned())
    }

    fn open(functions: Functions, platform: Handle, device: Handle) -> Result<Self, String> {
        let description = [code::DEVICE_NAME, code::DRIVER_VERSION, code::DEVICE_IL_VERSION]
            .map(|what| text(&functions, device, what))
            .join(", ");
        let address = |name: &std::ffi::CStr| {
            // SAFETY: a live platform and a name.
            let address = unsafe { (functions.clGetExtensionFunctionAddressForPlatform)(platform, name.as_ptr()) };
            if address.is_null() { Err(format!("{description} has no {name:?}")) } else { Ok(address) }
        };
        let (allocate, free) = (address(c"clSharedMemAllocINTEL")?, address(c"clMemBlockingFreeINTEL")?);
        // SAFETY: the driver gave the functions of these names, whose types are the extension's.
        let (allocate, free) = unsafe {
            (
                std::mem::transmute::<*mut c_void, AllocateShared>(allocate),
                std::mem::transmute::<*mut c_void, FreeShared>(free),
            )
        };
        let mut result = 0;
        // SAFETY: one live device; the handles are released when the object ends.
        let (context, queue) = unsafe {
            let context =
                (functions.clCreateContext)(null(), 1, &raw const device, null(), null_mut(), &raw mut result);
            check("clCreateContext", result)?;
            let queue = (functions.clCreateCommandQueueWithProperties)(context, device, null(), &raw mut result);
            check("clCreateCommandQueueWithProperties", result)?;
            (context, queue)
        };
        Ok(Self { functions, device, context, queue, allocate, free, description })
    }

    /// Whether the device has an extension of this name.
    pub fn has_extension(&self, name: &str) -> bool {
        text(&self.functions, self.device, code::DEVICE_EXTENSIONS).split(' ').any(|extension| extension == name)
    }

    /// Compiles a module. The error holds the driver's log.
    ///
    /// # Safety
    /// The bytes are a valid module: drivers need not check them.
    pub unsafe fn build(&self, spirv: &[u8]) -> Result<Program<'_>, String> {
        let mut result = 0;
        // SAFETY: the bytes of a module, by contract, with their length, and a live context.
        let program = unsafe {
            (self.functions.clCreateProgramWithIL)(self.context, spirv.as_ptr().cast(), spirv.len(), &raw mut result)
        };
        check("clCreateProgramWithIL", result)?;
        let program = Program { device: self, program };
        // Division and square root are rounded correctly only if that is asked for.
        let options = c"-cl-fp32-correctly-rounded-divide-sqrt";
        // SAFETY: a live program and device.
        let result = unsafe {
            let device = &raw const self.device;
            (self.functions.clBuildProgram)(program.program, 1, device, options.as_ptr(), null(), null_mut())
        };
        check("clBuildProgram", result).map_err(|error| format!("{error}\n{}", program.log()))?;
        Ok(program)
    }

    /// Allocates `size` bytes of shared memory, filled with zeros.
    pub fn allocate(&self, size: usize) -> Result<Memory<'_>, String> {
        let mut result = 0;
        // SAFETY: a live context and device; 64 is an alignment.
        let start = unsafe { (self.allocate)(self.context, self.device, null(), size.max(1), 64, &raw mut result) }
            .cast::<u8>();
        check("clSharedMemAllocINTEL", result)?;
        // SAFETY: so many bytes were just allocated.
        unsafe { start.write_bytes(0, size) };
        Ok(Memory { device: self, start, size })
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        // SAFETY: made in `open`; programs and memory borrow the device.
        unsafe {
            (self.functions.clReleaseCommandQueue)(self.queue);
            (self.functions.clReleaseContext)(self.context);
        }
    }
}

fn text(functions: &Functions, device: Handle, what: u32) -> String {
    let mut bytes = vec![0u8; 1 << 14];
    let mut size = 0;
    // SAFETY: room for as many bytes as are said, and a live device.
    let result =
        unsafe { (functions.clGetDeviceInfo)(device, what, bytes.len(), bytes.as_mut_ptr().cast(), &raw mut size) };
    let size = if result == 0 { size.min(bytes.len()) } else { 0 };
    String::from_utf8_lossy(&bytes[..size]).trim_end_matches('\0').to_owned()
}

/// Shared memory, which host and device see at one address.
pub struct Memory<'d> {
    device: &'d Device,
    start: *mut u8,
    size: usize,
}

impl Memory<'_> {
    /// The address of the first byte.
    pub fn address(&self) -> u64 {
        self.start as u64
    }

    /// The bytes. No kernel runs meanwhile, since launches are waited for.
    pub fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: allocated with this size, and borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.start, self.size) }
    }
}

impl Drop for Memory<'_> {
    fn drop(&mut self) {
        // SAFETY: allocated from this context, and given back once.
        unsafe { (self.device.free)(self.device.context, self.start.cast()) };
    }
}

/// A compiled module.
pub struct Program<'d> {
    device: &'d Device,
    program: Handle,
}

impl Program<'_> {
    fn log(&self) -> String {
        let mut bytes = vec![0u8; 1 << 16];
        let mut size = 0;
        // SAFETY: a live program and device, and room for as many bytes as are said.
        let result = unsafe {
            (self.device.functions.clGetProgramBuildInfo)(
                self.program,
                self.device.device,
                code::BUILD_LOG,
                bytes.len(),
                bytes.as_mut_ptr().cast(),
                &raw mut size,
            )
        };
        let size = if result == 0 { size.min(bytes.len()) } else { 0 };
        String::from_utf8_lossy(&bytes[..size]).trim_end_matches('\0').to_owned()
    }

    /// Runs a kernel and waits for it. `arguments` are passed by value, in their order; `local` bytes of local memory follow if there
    /// are any. `items` and `group` are the numbers of work-items, in all and in a group, per dimension.
    ///
    /// # Safety
    /// The kernel accesses only memory that it may.
    pub unsafe fn run(
        &self,
        kernel: &str,
        arguments: &[&[u8]],
        local: usize,
        (items, group): ([usize; 3], [usize; 3]),
    ) -> Result<(), String> {
        let functions = &self.device.functions;
        let name = CString::new(kernel).map_err(|error| error.to_string())?;
        let mut result = 0;
        // SAFETY: a live program and a name.
        let handle = unsafe { (functions.clCreateKernel)(self.program, name.as_ptr(), &raw mut result) };
        check(&format!("clCreateKernel {kernel}"), result)?;
        // SAFETY: the kernel is live until its release, and `set_and_launch` waits for what it starts.
        unsafe {
            let done = self.set_and_launch(handle, arguments, local, items, group);
            (functions.clReleaseKernel)(handle);
            done.map_err(|error| format!("{kernel}: {error}"))
        }
    }

    /// # Safety
    /// A live kernel, which accesses only memory that it may.
    unsafe fn set_and_launch(
        &self,
        kernel: Handle,
        arguments: &[&[u8]],
        local: usize,
        items: [usize; 3],
        group: [usize; 3],
    ) -> Result<(), String> {
        let functions = &self.device.functions;
        // SAFETY: a live kernel and queue; sizes are those of the values; three dimensions as the count says.
        unsafe {
            for (index, argument) in arguments.iter().enumerate() {
                let value = argument.as_ptr().cast();
                check("clSetKernelArg", (functions.clSetKernelArg)(kernel, index as u32, argument.len(), value))?;
            }
            if local > 0 {
                check("clSetKernelArg", (functions.clSetKernelArg)(kernel, arguments.len() as u32, local, null()))?;
            }
            let yes: u32 = 1;
            for kind in 0..3 {
                let what = code::INDIRECT_HOST_ACCESS + kind;
                check(
                    "clSetKernelExecInfo",
                    (functions.clSetKernelExecInfo)(kernel, what, 4, (&raw const yes).cast()),
                )?;
            }
            let (items, group, queue) = (items.as_ptr(), group.as_ptr(), self.device.queue);
            let enqueued =
                (functions.clEnqueueNDRangeKernel)(queue, kernel, 3, null(), items, group, 0, null(), null_mut());
            check("clEnqueueNDRangeKernel", enqueued)?;
            check("clFinish", (functions.clFinish)(queue))
        }
    }
}

impl Drop for Program<'_> {
    fn drop(&mut self) {
        // SAFETY: made by the device, which is borrowed.
        unsafe { (self.device.functions.clReleaseProgram)(self.program) };
    }
}
