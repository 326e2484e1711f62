//! Device images that were built by the driver, and their kernels.
//!
//! Invariant: a program stays alive as long as one of its kernels is held, which commands do until they have completed.

use std::any::Any;
use std::ffi::{CString, c_void};
use std::fmt;
use std::ptr;
use std::sync::Arc;

use oxisycl_backend::driver::{ImageFacts, log_text};
use oxisycl_backend::{BackendError, KernelGroupLimits, KernelInfo, LoadedKernel, Module};
use oxisycl_image::{DeviceImage, KernelEntry, PanicSite};
use oxisycl_types::DeviceLaunch;
use parking_lot::Mutex;

use crate::capabilities;
use crate::context::Context;
use crate::error::{ClError, Result, check};
use crate::launch_shape::GroupLimits;
use crate::process_exit;
use crate::query::Asked;
use crate::sharing::Indirect;
use crate::sys::{Object, code};

/// Division and square root of `f32` are rounded correctly only if that is asked for. Some drivers do it although their device does not say
/// so, and some do not know the option. It is left out if the driver refuses it, with a warning for the device.
const CORRECT_ROUNDING: &str = "-cl-fp32-correctly-rounded-divide-sqrt";

/// A built image.
pub(crate) struct ClModule {
    pub(crate) context: Arc<Context>,
    raw: Object,
    limits: GroupLimits,
    facts: ImageFacts,
}

/// A kernel of a built image.
pub(crate) struct ClKernel {
    pub(crate) module: Arc<ClModule>,
    pub(crate) raw: Object,
    /// The kernel as its image states it.
    pub(crate) entry: KernelEntry,
    /// Whether it gets the address of its arguments.
    pub(crate) by_address: bool,
    /// The limits of its work-groups.
    pub(crate) limits: GroupLimits,
    info: KernelInfo,
    /// The arguments that are set in the driver. Locked from setting them until the kernel is issued.
    pub(crate) state: Mutex<KernelState>,
}

/// The arguments of a kernel that were set in the driver and stay set.
#[derive(Default)]
pub(crate) struct KernelState {
    pub(crate) indirect: Indirect,
    /// The first argument.
    pub(crate) launch: Option<DeviceLaunch>,
}

/// Refuses an image whose kernels would leave out work-items, since a launch has one work-item for each position of its grid.
fn check_kernels(context: &Context, image: &DeviceImage) -> Result<(), BackendError> {
    let Some(kernel) = image.kernels.iter().find(|kernel| kernel.is_paired) else { return Ok(()) };
    let what = format!(
        "kernel \"{}\", whose image runs two work-items at each position of the grid; devices of OpenCL run one",
        kernel.symbol
    );
    Err(BackendError::Unsupported { device: context.name.clone(), what })
}

/// A program that is released when it is dropped.
pub(crate) struct Program<'c> {
    pub(crate) context: &'c Context,
    pub(crate) raw: Object,
}

impl Drop for Program<'_> {
    fn drop(&mut self) {
        // SAFETY: created by the driver, and released once.
        unsafe { (self.context.functions.clReleaseProgram)(self.raw.0) };
    }
}

impl Program<'_> {
    /// Gives the program away, which is not released then.
    pub(crate) fn keep(self) -> Object {
        let raw = self.raw;
        std::mem::forget(self);
        raw
    }

    /// Builds the program for the context's device.
    pub(crate) fn build(&self, options: &str) -> Result<()> {
        let text = CString::new(options).map_err(|_| BAD_OPTIONS)?;
        let context = self.context;
        // SAFETY: a live program and a device of its context; without a callback, the call returns when it is built.
        check("clBuildProgram", unsafe {
            let (build, device) = (context.functions.clBuildProgram, &raw const context.device.0);
            build(self.raw.0, 1, device, text.as_ptr(), ptr::null(), ptr::null_mut())
        })
    }

    /// Builds the program with the options of its image, and with correct rounding if the driver has that option.
    fn build_image(&self, image: &DeviceImage) -> Result<()> {
        let own = driver_options(&image.build_options);
        match self.build(format!("{CORRECT_ROUNDING} {own}").trim_end()) {
            Err(error) if error.code == code::INVALID_BUILD_OPTIONS => {
                self.build(&own)?;
                self.context.rounding_warned.call_once(|| warn_of_rounding(&self.context.name));
                Ok(())
            }
            built => built,
        }
    }

    fn log(&self) -> String {
        let functions = &self.context.functions;
        let get = |size: usize, value: *mut c_void, needed: *mut usize| {
            // SAFETY: a live program and a device of its context, and room for as many bytes as are said.
            unsafe {
                let get = functions.clGetProgramBuildInfo;
                get(self.raw.0, self.context.device.0, code::BUILD_LOG, size, value, needed)
            }
        };
        let mut size = 0;
        if get(0, ptr::null_mut(), &raw mut size) != code::SUCCESS || size == 0 {
            return String::new();
        }
        let mut bytes = vec![0u8; size];
        if get(size, bytes.as_mut_ptr().cast(), ptr::null_mut()) != code::SUCCESS {
            return String::new();
        }
        log_text(&bytes)
    }
}

fn warn_of_rounding(device: &str) {
    tracing::warn!(
        device,
        "OpenCL device \"{device}\": its driver does not know {CORRECT_ROUNDING}; quotients and square roots of f32 may be rounded \
         otherwise than on the host"
    );
}

const BAD_OPTIONS: ClError = ClError { call: "clBuildProgram", code: code::INVALID_BUILD_OPTIONS };

/// The image's options that are meant for the driver: those that begin with a dash. The others, `name=value`, tell how the device compiler
/// made the image.
fn driver_options(options: &str) -> String {
    options.split_whitespace().filter(|word| word.starts_with('-')).collect::<Vec<_>>().join(" ")
}

/// The error for a program that the driver does not build, with the driver's log.
pub(crate) fn refusal(program: &Program<'_>, error: ClError) -> BackendError {
    let log = program.log();
    let note = if log.is_empty() { log } else { format!("; the driver's log: {log}") };
    program.context.fail(error).with_note(&note)
}

impl ClModule {
    /// Builds an image's code.
    ///
    /// # Safety
    /// The code is what the device compiler made, or the user has vouched for it.
    pub(crate) unsafe fn load(
        context: &Arc<Context>,
        limits: GroupLimits,
        image: &DeviceImage,
    ) -> Result<Self, BackendError> {
        context.check_alive()?;
        check_kernels(context, image)?;
        if let Some(missing) = capabilities::missing(&image.code, Asked::device(&context.functions, context.device)) {
            let names: Vec<&str> = image.kernels.iter().map(|kernel| kernel.type_name.as_str()).collect();
            let what = format!("kernel \"{}\", which needs {missing}", names.join("\", \""));
            return Err(BackendError::Unsupported { device: context.name.clone(), what });
        }
        let mut result = 0;
        // SAFETY: a live context, and as many bytes as are said, which the driver copies.
        let raw = unsafe {
            let create = context.functions.clCreateProgramWithIL;
            create(context.raw.0, image.code.as_ptr().cast(), image.code.len(), &raw mut result)
        };
        check("clCreateProgramWithIL", result).map_err(|error| context.fail(error))?;
        let program = Program { context, raw: Object(raw) };
        let built = program.build_image(image);
        process_exit::watch();
        built.map_err(|error| refusal(&program, error))?;
        let raw = program.keep();
        Ok(Self { context: context.clone(), raw, limits, facts: ImageFacts::of(image) })
    }

    /// Loads an image from the bytes that [`binary`](Module::binary) returned.
    ///
    /// # Safety
    /// As for [`load`](Self::load), and the bytes are what `binary` gave for this image.
    pub(crate) unsafe fn load_binary(
        context: &Arc<Context>,
        limits: GroupLimits,
        image: &DeviceImage,
        binary: &[u8],
    ) -> Result<Self, BackendError> {
        context.check_alive()?;
        check_kernels(context, image)?;
        let (size, bytes) = (binary.len(), binary.as_ptr());
        let (mut status, mut result) = (0, 0);
        // SAFETY: a live context with its device, and as many bytes as are said, which the driver copies.
        let raw = unsafe {
            let create = context.functions.clCreateProgramWithBinary;
            let device = &raw const context.device.0;
            create(context.raw.0, 1, device, &raw const size, &raw const bytes, &raw mut status, &raw mut result)
        };
        check("clCreateProgramWithBinary", result).map_err(|error| context.fail(error))?;
        let program = Program { context, raw: Object(raw) };
        // With the same options, since a driver's binary may be code that is compiled only now.
        program.build_image(image).map_err(|error| refusal(&program, error))?;
        let raw = program.keep();
        Ok(Self { context: context.clone(), raw, limits, facts: ImageFacts::of(image) })
    }

    /// The places where its kernels can panic or print.
    pub(crate) fn sites(&self) -> &[PanicSite] {
        &self.facts.sites
    }

    fn info(&self, what: u32, size: usize, value: *mut c_void) -> Result<()> {
        // SAFETY: a live program, and a value of the size that is said.
        check("clGetProgramInfo", unsafe {
            (self.context.functions.clGetProgramInfo)(self.raw.0, what, size, value, ptr::null_mut())
        })
    }

    fn binary(&self) -> Result<Vec<u8>> {
        let mut size = 0usize;
        self.info(code::PROGRAM_BINARY_SIZES, size_of::<usize>(), (&raw mut size).cast())?;
        let mut bytes = vec![0u8; size];
        let mut target = bytes.as_mut_ptr();
        // The value is the address of a buffer for each device, of which there is one.
        self.info(code::PROGRAM_BINARIES, size_of::<*mut u8>(), (&raw mut target).cast())?;
        Ok(bytes)
    }

    /// The driver's answer to a query about a kernel.
    fn ask<T: Default>(&self, kernel: Object, what: u32) -> Option<T> {
        let mut answer = T::default();
        // SAFETY: a live kernel and a device of its context. The callers name what is a number of that type, so the size is right.
        let asked = unsafe {
            let get = self.context.functions.clGetKernelWorkGroupInfo;
            let value = (&raw mut answer).cast();
            get(kernel.0, self.context.device.0, what, size_of::<T>(), value, ptr::null_mut())
        };
        (asked == code::SUCCESS).then_some(answer)
    }

    /// The driver's answer to a query about the sub-groups of a kernel in groups of that many work-items; `None` where it has no sub-groups.
    fn ask_sub_groups(&self, kernel: Object, what: u32, items: usize) -> Option<usize> {
        let mut answer = 0usize;
        // SAFETY: a live kernel and a device of its context. Input and answer are of the sizes that are said.
        let asked = unsafe {
            let get = self.context.functions.clGetKernelSubGroupInfo;
            let (input, value, size) = ((&raw const items).cast(), (&raw mut answer).cast(), size_of::<usize>());
            get(kernel.0, self.context.device.0, what, size, input, size, value, ptr::null_mut())
        };
        (asked == code::SUCCESS && answer > 0).then_some(answer)
    }

    /// The most work-items of a group of the kernel.
    fn most_items(&self, kernel: Object) -> usize {
        self.ask(kernel, code::KERNEL_WORK_GROUP_SIZE).filter(|items| *items > 0).unwrap_or(1)
    }
}

impl Drop for ClModule {
    fn drop(&mut self) {
        if !self.context.is_foreign() {
            // SAFETY: created by `load`, and released once; kernels, and through them commands, hold the module.
            unsafe { (self.context.functions.clReleaseProgram)(self.raw.0) };
        }
    }
}

/// A module whose kernels keep it alive.
pub(crate) struct ModuleHandle(pub(crate) Arc<ClModule>);

impl Module for ModuleHandle {
    fn kernel(&self, symbol: &str) -> Result<Arc<dyn LoadedKernel>, BackendError> {
        const CALL: &str = "clCreateKernel";
        let module = &self.0;
        let context = &module.context;
        context.check_alive()?;
        let fail = |error: ClError| context.fail(error).with_note(&format!(" (kernel \"{symbol}\")"));
        let missing = ClError { call: CALL, code: code::INVALID_KERNEL_NAME };
        let entry = module.facts.kernel(symbol).ok_or_else(|| fail(missing))?.clone();
        let name = CString::new(symbol).map_err(|_| fail(missing))?;
        let mut result = 0;
        // SAFETY: a live program and a name.
        let raw = unsafe { (context.functions.clCreateKernel)(module.raw.0, name.as_ptr(), &raw mut result) };
        check(CALL, result).map_err(fail)?;
        if entry.groups.has_barriers && entry.may_panic && !context.quirks.barriers_go_on {
            let what = format!(
                "kernel \"{symbol}\", whose work-items may panic before others wait at a barrier: it is not known that this driver's \
                 barriers go on without them"
            );
            // SAFETY: a kernel that was created above, and is not used.
            unsafe { (context.functions.clReleaseKernel)(raw) };
            return Err(BackendError::Unsupported { device: context.name.clone(), what });
        }
        let items = module.most_items(Object(raw));
        let sub_groups = |what| module.ask_sub_groups(Object(raw), what, items);
        let kernel = ClKernel {
            module: module.clone(),
            raw: Object(raw),
            by_address: module.facts.passes_by_address(&entry),
            limits: GroupLimits { items: items.min(module.limits.items), ..module.limits },
            info: KernelInfo {
                may_print: entry.may_print,
                group_limits: KernelGroupLimits {
                    items,
                    static_local_bytes: entry.groups.static_local_bytes as usize,
                    bytes_of_element: entry.groups.bytes_of_element as usize,
                },
                group: entry.groups.local,
                sub_group: entry.groups.sub_group,
                preferred_multiple: module.ask(Object(raw), code::KERNEL_PREFERRED_MULTIPLE).unwrap_or(1).max(1),
                private_bytes: module
                    .ask::<u64>(Object(raw), code::KERNEL_PRIVATE_MEM_SIZE)
                    .and_then(|bytes| usize::try_from(bytes).ok()),
                sub_group_size: sub_groups(code::KERNEL_MAX_SUB_GROUP_SIZE),
                max_sub_groups: sub_groups(code::KERNEL_MAX_NUM_SUB_GROUPS),
                ..KernelInfo::NOTHING
            },
            entry,
            state: Mutex::default(),
        };
        kernel.check_arguments()?;
        Ok(Arc::new(kernel))
    }

    fn binary(&self) -> Option<Vec<u8>> {
        // Without one it is built again the next time.
        self.0.binary().ok().filter(|bytes| !bytes.is_empty())
    }
}

impl ClKernel {
    /// Downcasts a kernel; `None` if it is another backend's.
    pub(crate) fn of(code: &dyn LoadedKernel) -> Option<&Self> {
        let code: &dyn Any = code;
        code.downcast_ref()
    }

    /// Checks that the code has the parameters that its image promises: a launch, and the captures if there are any. The driver compares
    /// their sizes when they are set.
    fn check_arguments(&self) -> Result<(), BackendError> {
        let context = &self.module.context;
        let mut found = 0u32;
        // SAFETY: a live kernel, and a value of the size that is said.
        let asked = check("clGetKernelInfo", unsafe {
            let (what, value) = (code::N_ARGUMENTS, (&raw mut found).cast());
            (context.functions.clGetKernelInfo)(self.raw.0, what, size_of::<u32>(), value, ptr::null_mut())
        });
        asked.map_err(|error| context.fail(error))?;
        let expected = 1 + u32::from(self.entry.parameters.size > 0) + u32::from(self.entry.groups.uses_local_memory);
        if found == expected {
            return Ok(());
        }
        let what = format!(
            "kernel \"{}\", whose image promises {expected} parameters; its code has {found}, and no launch has more",
            self.entry.symbol
        );
        Err(BackendError::Unsupported { device: context.name.clone(), what })
    }
}

impl LoadedKernel for ClKernel {
    fn info(&self) -> &KernelInfo {
        &self.info
    }
}

impl Drop for ClKernel {
    fn drop(&mut self) {
        let context = &self.module.context;
        if !context.is_foreign() {
            // SAFETY: created by `kernel`, and released once; commands hold the kernel until they have completed.
            unsafe { (context.functions.clReleaseKernel)(self.raw.0) };
        }
    }
}

impl fmt::Debug for ClKernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClKernel").field("symbol", &self.entry.symbol).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_compiler_tells_of_itself_is_no_option() {
        assert_eq!(driver_options("oxisycl=0.1.0 opt-level=3 -cl-mad-enable float=contract -w"), "-cl-mad-enable -w");
        assert_eq!(driver_options("rustc=1.95.0"), "");
    }
}
