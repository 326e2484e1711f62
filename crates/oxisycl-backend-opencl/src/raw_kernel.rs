//! Kernels of a program's own source or binary and those that a device has by itself, launched with arguments by index.

use std::ffi::{CString, c_char, c_void};
use std::fmt;
use std::ptr;
use std::sync::Arc;

use oxisycl_backend::{
    BackendError, KernelGroupLimits, KernelInfo, NativeCommand, NativeQueue, RawKernel, RawLaunch, RawModule,
    RawRefusal, RawValue, Source,
};
use parking_lot::Mutex;

use crate::context::Context;
use crate::error::{ClError, Result, check};
use crate::foreign;
use crate::module::{Program, refusal};
use crate::process_exit;
use crate::sys::{Object, code};

/// A built program of the user's.
pub(crate) struct ClRawModule(Arc<RawProgram>);

struct RawProgram {
    context: Arc<Context>,
    raw: Object,
}

struct ClRawKernel {
    program: Arc<RawProgram>,
    name: String,
    raw: Object,
    info: KernelInfo,
    /// Locked while arguments are set, until the kernel is enqueued.
    arguments: Mutex<()>,
}

impl ClRawModule {
    /// Builds a program.
    ///
    /// # Safety
    /// The user has vouched for the code.
    pub(crate) unsafe fn load(context: &Arc<Context>, source: &Source<'_>) -> Result<Self, BackendError> {
        context.check_alive()?;
        let (call, raw, result) = create(context, source)?;
        check(call, result).map_err(|error| context.fail(error))?;
        let program = Program { context, raw };
        // Others are built already.
        if let Some(options) = options(source) {
            let built = program.build(options);
            process_exit::watch();
            built.map_err(|error| refusal(&program, error))?;
        }
        let raw = program.keep();
        Ok(Self(Arc::new(RawProgram { context: context.clone(), raw })))
    }
}

/// The options that the driver's compiler gets; `None` if there is nothing to compile.
fn options<'s>(source: &Source<'s>) -> Option<&'s str> {
    match source {
        Source::OpenClC { options, .. } => Some(options),
        Source::BuiltIn(_) | Source::Native(_) => None,
        _ => Some(""),
    }
}

/// Makes a program of the source: the call, the program, and the code of the call.
fn create(context: &Context, source: &Source<'_>) -> Result<(&'static str, Object, i32), BackendError> {
    let functions = &context.functions;
    let mut result = 0;
    let (call, raw) = match source {
        Source::SpirV(bytes) => {
            // SAFETY: a live context, and as many bytes as are said, which the driver copies.
            let raw = unsafe {
                let (bytes, size) = (bytes.as_ptr().cast(), bytes.len());
                (functions.clCreateProgramWithIL)(context.raw.0, bytes, size, &raw mut result)
            };
            ("clCreateProgramWithIL", raw)
        }
        Source::OpenClC { text, .. } => {
            let (pointer, size) = (text.as_ptr().cast::<c_char>(), text.len());
            // SAFETY: a live context, and one text of as many bytes as are said, which the driver copies.
            let raw = unsafe {
                let create = functions.clCreateProgramWithSource;
                create(context.raw.0, 1, &raw const pointer, &raw const size, &raw mut result)
            };
            ("clCreateProgramWithSource", raw)
        }
        Source::BuiltIn(names) => {
            let text = CString::new(names.join(";")).unwrap_or_default();
            // SAFETY: a live context with its device, and a text that ends with a NUL byte.
            let raw = unsafe {
                let (create, device) = (functions.clCreateProgramWithBuiltInKernels, &raw const context.device.0);
                create(context.raw.0, 1, device, text.as_ptr(), &raw mut result)
            };
            ("clCreateProgramWithBuiltInKernels", raw)
        }
        Source::Native(handle) => {
            // SAFETY: null or a live program, by the contract of `load`.
            unsafe { foreign::retain_program(context, Object(*handle)) }?;
            ("clRetainProgram", *handle)
        }
        Source::Ptx(_) => {
            let (device, what) = (context.name.clone(), source.name().to_owned());
            return Err(BackendError::Unsupported { device, what });
        }
    };
    Ok((call, Object(raw), result))
}

impl Drop for RawProgram {
    fn drop(&mut self) {
        if !self.context.is_foreign() {
            // SAFETY: created or retained by `load`, and released once; kernels, and through them commands, hold the program.
            unsafe { (self.context.functions.clReleaseProgram)(self.raw.0) };
        }
    }
}

impl RawModule for ClRawModule {
    fn native_handle(&self) -> *mut c_void {
        self.0.raw.0
    }

    fn kernel(&self, name: &str) -> Result<Option<Arc<dyn RawKernel>>, BackendError> {
        let context = &self.0.context;
        context.check_alive()?;
        let Ok(text) = CString::new(name) else { return Ok(None) };
        let mut result = 0;
        // SAFETY: a live program and a name.
        let raw = unsafe { (context.functions.clCreateKernel)(self.0.raw.0, text.as_ptr(), &raw mut result) };
        if result == code::INVALID_KERNEL_NAME {
            return Ok(None);
        }
        check("clCreateKernel", result).map_err(|error| context.fail(error))?;
        let raw = Object(raw);
        let info = info(context, raw);
        let (program, arguments) = (self.0.clone(), Mutex::new(()));
        Ok(Some(Arc::new(ClRawKernel { program, name: name.to_owned(), raw, info, arguments })))
    }
}

/// What the driver says of a kernel.
fn info(context: &Context, kernel: Object) -> KernelInfo {
    let items = ask(context, kernel, code::KERNEL_WORK_GROUP_SIZE).filter(|items: &usize| *items > 0).unwrap_or(1);
    let bytes = |what| ask::<u64>(context, kernel, what).and_then(|bytes| usize::try_from(bytes).ok());
    let fixed: [usize; 3] = ask(context, kernel, code::KERNEL_COMPILE_WORK_GROUP_SIZE).unwrap_or_default();
    KernelInfo {
        group_limits: KernelGroupLimits {
            items,
            static_local_bytes: bytes(code::KERNEL_LOCAL_MEM_SIZE).unwrap_or(0),
            bytes_of_element: 0,
        },
        preferred_multiple: ask(context, kernel, code::KERNEL_PREFERRED_MULTIPLE).unwrap_or(1).max(1),
        private_bytes: bytes(code::KERNEL_PRIVATE_MEM_SIZE),
        // The driver has the innermost dimension first.
        group: if fixed == [0; 3] {
            [0; 3]
        } else {
            [fixed[2], fixed[1], fixed[0]].map(|items| u32::try_from(items.max(1)).unwrap_or(u32::MAX))
        },
        ..KernelInfo::NOTHING
    }
}

/// The driver's answer to a query about a kernel.
fn ask<T: Default>(context: &Context, kernel: Object, what: u32) -> Option<T> {
    let mut answer = T::default();
    // SAFETY: a live kernel and a device of its context. The callers name what is a value of that type, so the size is right.
    let asked = unsafe {
        let (get, value) = (context.functions.clGetKernelWorkGroupInfo, (&raw mut answer).cast());
        get(kernel.0, context.device.0, what, size_of::<T>(), value, ptr::null_mut())
    };
    (asked == code::SUCCESS).then_some(answer)
}

impl ClRawKernel {
    /// Sets the arguments. The caller has locked them. An error has the index of the argument.
    fn set(&self, launch: &RawLaunch) -> Result<(), (usize, ClError)> {
        let context = &self.program.context;
        let functions = &context.functions;
        for (index, value) in launch.arguments.iter().enumerate() {
            let set = |size: usize, value: *const c_void| {
                // SAFETY: a live kernel, whose arguments the caller has locked, and a value of that size, which is copied.
                check("clSetKernelArg", unsafe { (functions.clSetKernelArg)(self.raw.0, index as u32, size, value) })
            };
            match value {
                RawValue::Bytes(bytes) => set(bytes.len(), bytes.as_ptr().cast()),
                RawValue::Local(bytes) => set(*bytes, ptr::null()),
                // SAFETY: a live kernel, whose arguments the caller has locked, and an address of its context.
                RawValue::Pointer(address) => unsafe {
                    context.sharing.set_pointer(functions, self.raw, index as u32, ptr::without_provenance(*address))
                },
            }
            .map_err(|error| (index, error))?;
        }
        Ok(())
    }

    fn n_parameters(&self) -> Result<u32> {
        let mut found = 0u32;
        // SAFETY: a live kernel, and a value of the size that is said.
        check("clGetKernelInfo", unsafe {
            let (what, value) = (code::N_ARGUMENTS, (&raw mut found).cast());
            (self.program.context.functions.clGetKernelInfo)(self.raw.0, what, size_of::<u32>(), value, ptr::null_mut())
        })?;
        Ok(found)
    }
}

impl RawKernel for ClRawKernel {
    fn native_handle(&self) -> *mut c_void {
        self.raw.0
    }

    fn info(&self) -> &KernelInfo {
        &self.info
    }

    fn check(&self, launch: &RawLaunch) -> Result<(), RawRefusal> {
        let context = &self.program.context;
        context.check_alive().map_err(RawRefusal::Backend)?;
        let expected = self.n_parameters().map_err(|error| RawRefusal::Backend(context.fail(error)))?;
        let found = launch.arguments.len();
        if u32::try_from(found) != Ok(expected) {
            return Err(RawRefusal::Arguments(format!("{found} arguments, and its code has {expected} parameters")));
        }
        let (fixed, found) = (self.info.group.map(|items| items as usize), launch.local);
        if fixed != [0; 3] && fixed != found {
            return Err(RawRefusal::Range(format!(
                "work-groups of {found:?} work-items, its code allows {fixed:?} alone"
            )));
        }
        // The driver compares them with its own list when they are set.
        let set = {
            let _arguments = self.arguments.lock();
            self.set(launch)
        };
        set.map_err(|(index, error)| match error.code {
            code::INVALID_ARG_SIZE | code::INVALID_ARG_VALUE | code::INVALID_ARG_INDEX => {
                let what = match &launch.arguments[index] {
                    RawValue::Bytes(bytes) => format!("of {} bytes", bytes.len()),
                    RawValue::Pointer(_) => "that is an address".to_owned(),
                    RawValue::Local(bytes) => format!("of {bytes} bytes of local memory"),
                };
                let error = error.to_backend();
                RawRefusal::Arguments(format!("argument {index}, {what}, does not fit its parameter: {error}"))
            }
            _ => RawRefusal::Backend(context.fail(error)),
        })
    }

    fn command(self: Arc<Self>, name: String, launch: RawLaunch) -> NativeCommand {
        let kernel = self;
        let work = move |native: NativeQueue| {
            // A lost device is found by the poller: locks are held here.
            let refused = |error: ClError| error.to_backend().with_note(&format!(" (kernel \"{}\")", kernel.name));
            let _arguments = kernel.arguments.lock();
            kernel.set(&launch).map_err(|(_, error)| refused(error))?;
            let dimensions = launch.dimensions.clamp(1, 3);
            // The driver has the innermost dimension first.
            let local = [launch.local[2], launch.local[1], launch.local[0]];
            let groups = [launch.groups[2], launch.groups[1], launch.groups[0]];
            let global: [usize; 3] = std::array::from_fn(|d| groups[d].saturating_mul(local[d]));
            // SAFETY: queue and kernel are live (who issues the command keeps the kernel), and the arrays have as many dimensions as are said. All
            // arguments are set; what they point to is valid by the user's promise.
            let code = unsafe {
                let enqueue = kernel.program.context.functions.clEnqueueNDRangeKernel;
                let (global, local, none) = (global.as_ptr(), local.as_ptr(), ptr::null());
                enqueue(
                    native.queue,
                    kernel.raw.0,
                    u32::from(dimensions),
                    none,
                    global,
                    local,
                    0,
                    ptr::null(),
                    ptr::null_mut(),
                )
            };
            check("clEnqueueNDRangeKernel", code).map_err(refused)
        };
        NativeCommand::new(name, Box::new(work))
    }
}

impl Drop for ClRawKernel {
    fn drop(&mut self) {
        if !self.program.context.is_foreign() {
            // SAFETY: created by `kernel`, and released once; who issues commands holds the kernel until they have ended.
            unsafe { (self.program.context.functions.clReleaseKernel)(self.raw.0) };
        }
    }
}

impl fmt::Debug for ClRawKernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClRawKernel").field("name", &self.name).finish_non_exhaustive()
    }
}
