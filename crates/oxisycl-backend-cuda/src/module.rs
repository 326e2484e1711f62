//! Device images that were loaded by the driver, and their kernels.
//!
//! Invariant: a module stays loaded as long as one of its kernels is held, which commands do until they have completed.

use std::any::Any;
use std::ffi::{CString, c_int, c_void};
use std::fmt;
use std::ptr;
use std::sync::Arc;

use oxisycl_backend::driver::{ImageFacts, log_text};
use oxisycl_backend::{BackendError, KernelGroupLimits, KernelInfo, LoadedKernel};
use oxisycl_image::{DeviceImage, KernelEntry, PanicSite, ParameterLayout};
use oxisycl_types::{DeviceLaunch, GroupSize};
use parking_lot::Mutex;

use crate::context::Context;
use crate::error::{DriverError, version_text};
use crate::info::max_local_bytes;
use crate::stack::LimitFailure;
use crate::sys::{self, RawFunction, RawModule, code, jit};

/// Bytes of each of the driver's logs.
const LOG_SIZE: usize = 8 << 10;
/// Work-items of a work-group, unless the kernel takes fewer. Measured to be as good as any for kernels without local memory.
const BLOCK: c_int = 256;

/// The error for a function that a module lacks.
pub(crate) const MISSING: DriverError = DriverError { call: "cuModuleGetFunction", code: code::NOT_FOUND };

/// A loaded image.
pub(crate) struct CudaModule {
    pub(crate) context: Arc<Context>,
    raw: RawModule,
    facts: ImageFacts,
    /// Whether other code has loaded it, and unloads it.
    is_borrowed: bool,
}

/// A kernel of a loaded image.
pub(crate) struct CudaKernel {
    pub(crate) module: Arc<CudaModule>,
    pub(crate) function: RawFunction,
    /// The kernel as its image states it.
    pub(crate) entry: KernelEntry,
    /// Whether it gets the address of its arguments.
    pub(crate) by_address: bool,
    /// Work-items of a work-group, if the launch does not specify them.
    pub(crate) block_threads: u32,
    info: KernelInfo,
    /// The bytes of local memory that the driver currently allows for a launch.
    allowed_local_bytes: Mutex<usize>,
    /// The owner that all kernels of the module keep alive.
    _kept: Arc<dyn Any + Send + Sync>,
}

impl CudaModule {
    /// Loads code into the driver. The code is PTX, or another format that the driver accepts.
    ///
    /// # Safety
    /// The code is what the device compiler made, or the user has vouched for it.
    pub(crate) unsafe fn load(context: &Arc<Context>, code: &[u8], facts: ImageFacts) -> Result<Self, BackendError> {
        let _entered = context.enter()?;
        let mut text = Vec::with_capacity(code.len() + 1);
        text.extend_from_slice(code);
        text.push(0);
        let (mut info, mut errors) = (vec![0u8; LOG_SIZE], vec![0u8; LOG_SIZE]);
        let mut options = [
            jit::INFO_LOG_BUFFER,
            jit::INFO_LOG_BUFFER_SIZE_BYTES,
            jit::ERROR_LOG_BUFFER,
            jit::ERROR_LOG_BUFFER_SIZE_BYTES,
            // For tools that look at running kernels. The code is the same.
            jit::GENERATE_LINE_INFO,
        ];
        let size = ptr::without_provenance_mut::<c_void>(LOG_SIZE);
        let yes = ptr::without_provenance_mut::<c_void>(1);
        let mut values = [info.as_mut_ptr().cast(), size, errors.as_mut_ptr().cast(), size, yes];
        let mut raw = RawModule::NULL;
        // SAFETY: the context is current, and the code ends with a NUL byte. Options and values are as many as stated. The buffers are as
        // large as stated and outlive the call.
        let loaded = unsafe {
            context.driver.module_load_data_ex(
                &raw mut raw,
                text.as_ptr().cast(),
                options.len() as u32,
                options.as_mut_ptr(),
                values.as_mut_ptr(),
            )
        };
        match loaded {
            Ok(()) => Ok(Self { context: context.clone(), raw, facts, is_borrowed: false }),
            Err(error) => Err(refusal(context, error, code, &log_text(&errors))),
        }
    }

    /// Loads the PTX of an image.
    ///
    /// # Safety
    /// As for [`load`](Self::load).
    pub(crate) unsafe fn load_image(context: &Arc<Context>, image: &DeviceImage) -> Result<Self, BackendError> {
        // SAFETY: by the contract of this function.
        let module = unsafe { Self::load(context, &image.code, ImageFacts::of(image)) }?;
        let _entered = context.enter()?;
        // The driver loads functions when they are first needed, and then waits for running kernels. One of these may be waiting for
        // another kernel of the image.
        for kernel in &image.kernels {
            // One that cannot be loaded says so where it is launched.
            let _ = module.function(&kernel.symbol);
        }
        Ok(module)
    }

    /// The places where its kernels can panic or print.
    pub(crate) fn sites(&self) -> &[PanicSite] {
        &self.facts.sites
    }

    /// Code that other code has loaded.
    ///
    /// # Safety
    /// A live module of the context, which lives as long as the result.
    pub(crate) unsafe fn borrowed(context: &Arc<Context>, raw: RawModule) -> Self {
        Self { context: context.clone(), raw, facts: ImageFacts::default(), is_borrowed: true }
    }

    /// The driver's handle.
    pub(crate) fn raw(&self) -> RawModule {
        self.raw
    }

    /// The function with the symbol `symbol`. The context is current.
    pub(crate) fn function(&self, symbol: &str) -> Result<RawFunction, DriverError> {
        let name = CString::new(symbol).map_err(|_| MISSING)?;
        let mut function = RawFunction::NULL;
        let driver = &self.context.driver;
        // SAFETY: the module is loaded as long as `self` lives, and its context current.
        unsafe { driver.module_get_function(&raw mut function, self.raw, name.as_ptr()) }?;
        // Loaded now instead of by the first launch, which would wait for running kernels.
        // SAFETY: as above.
        if let Some(loaded) = unsafe { driver.func_load(function) } {
            loaded?;
        }
        Ok(function)
    }

    fn check_parameters(
        &self,
        symbol: &str,
        function: RawFunction,
        layout: ParameterLayout,
    ) -> Result<(), BackendError> {
        let expected = [size_of::<DeviceLaunch>(), layout.size];
        let n_parameters = if layout.size == 0 { 1 } else { 2 };
        for index in 0..=n_parameters {
            let (mut offset, mut size) = (0, 0);
            // SAFETY: the function is of this module, and its context current.
            let asked =
                unsafe { self.context.driver.func_get_param_info(function, index, &raw mut offset, &raw mut size) };
            let found = match asked {
                None => return Ok(()),
                Some(Ok(())) => Some(size),
                Some(Err(_)) => None,
            };
            if found != (index < n_parameters).then(|| expected[index]) {
                let found = found.map_or_else(|| "none".to_owned(), |size| format!("one of {size} bytes"));
                let expected = if index < n_parameters { expected[index] } else { 0 };
                let what = format!(
                    "kernel \"{symbol}\", whose image promises {expected} bytes for parameter {index}; its code has {found}"
                );
                return Err(BackendError::Unsupported { device: self.context.name.clone(), what });
            }
        }
        Ok(())
    }
}

impl Drop for CudaModule {
    fn drop(&mut self) {
        if self.is_borrowed || self.context.is_foreign() {
            return;
        }
        if let Ok(_entered) = self.context.enter_anyway() {
            // SAFETY: loaded by `load`; kernels, and through them commands, hold the module.
            let _ = unsafe { self.context.driver.module_unload(self.raw) };
        }
    }
}

impl CudaModule {
    /// The kernel with the symbol `symbol`. It keeps the module and `kept` alive.
    ///
    /// # Errors
    /// The errors of [`Module::kernel`](oxisycl_backend::Module::kernel).
    pub(crate) fn kernel(
        self: &Arc<Self>,
        symbol: &str,
        kept: Arc<dyn Any + Send + Sync>,
    ) -> Result<Arc<dyn LoadedKernel>, BackendError> {
        let module = self;
        let context = &module.context;
        let fail = |error: DriverError| context.fail(error).with_note(&format!(" (kernel \"{symbol}\")"));
        let entry = module.facts.kernel(symbol).ok_or_else(|| fail(MISSING))?.clone();
        let _entered = context.enter()?;
        let function = module.function(symbol).map_err(fail)?;
        let by_address = module.facts.passes_by_address(&entry);
        let passed = if by_address { ParameterLayout::ADDRESS } else { entry.parameters };
        module.check_parameters(symbol, function, passed)?;
        if entry.has_unbounded_stack {
            // SAFETY: the function is of a loaded module, whose context is current.
            let provided = unsafe { context.stack.provide(&context.driver, function) };
            provided.map_err(|refused| match refused.failure {
                LimitFailure::Refused(error) => fail(error).with_note(&format!("; {}", refused.text())),
                LimitFailure::Provides(limit) => {
                    let what = format!("kernel \"{symbol}\": {}; its driver provides {limit}", refused.text());
                    BackendError::Unsupported { device: context.name.clone(), what }
                }
            })?;
        }
        let attribute = |attribute| {
            let mut value = 0;
            // SAFETY: the function is of a loaded module, whose context is current.
            unsafe { context.driver.func_get_attribute(&raw mut value, attribute, function) }.map_err(fail)?;
            Ok::<_, BackendError>(value)
        };
        let mut own_local_bytes = 0;
        if entry.groups.uses_local_memory {
            own_local_bytes = attribute(sys::FUNCTION_SHARED_SIZE)?;
        }
        // The memory of a launch begins at a multiple of its alignment.
        let static_local_bytes = usize::try_from(own_local_bytes).unwrap_or(0).next_multiple_of(GroupSize::ALIGNMENT);
        let max_threads = attribute(sys::FUNCTION_MAX_THREADS)?;
        let (private_bytes, registers) = (attribute(sys::FUNCTION_LOCAL_SIZE)?, attribute(sys::FUNCTION_REGISTERS)?);
        let (mut grid, mut block) = (0, 0);
        // SAFETY: the function is of a loaded module, whose context is current.
        unsafe {
            context
                .driver
                .occupancy_max_potential_block_size(&raw mut grid, &raw mut block, function, ptr::null(), 0, BLOCK)
                .map_err(fail)?;
        }
        let max_threads = u32::try_from(max_threads).unwrap_or(1).max(1);
        let block_threads = u32::try_from(block).unwrap_or(1).clamp(1, max_threads);
        Ok(Arc::new(CudaKernel {
            module: module.clone(),
            function,
            by_address,
            block_threads,
            info: KernelInfo {
                may_print: entry.may_print,
                group_limits: KernelGroupLimits {
                    items: max_threads as usize,
                    static_local_bytes,
                    bytes_of_element: entry.groups.bytes_of_element as usize,
                },
                group: entry.groups.local,
                sub_group: entry.groups.sub_group,
                preferred_multiple: WARP,
                preferred_items: Some(block_threads as usize),
                private_bytes: usize::try_from(private_bytes).ok(),
                registers: usize::try_from(registers).ok(),
                sub_group_size: Some(WARP),
                max_sub_groups: Some((max_threads as usize).div_ceil(WARP)),
            },
            allowed_local_bytes: Mutex::new(ALLOWED_LOCAL_BYTES.saturating_sub(static_local_bytes)),
            entry,
            _kept: kept,
        }))
    }
}

/// The number of threads that NVIDIA GPUs execute together.
pub(crate) const WARP: usize = 32;
/// Bytes of local memory of a block, its code's own included, above which each function must opt in.
pub(crate) const ALLOWED_LOCAL_BYTES: usize = 48 << 10;

impl CudaKernel {
    /// Makes the driver allow launches with `bytes` of local memory. The device's limit was checked before.
    pub(crate) fn allow_local_bytes(&self, bytes: usize) -> Result<(), BackendError> {
        let mut allowed = self.allowed_local_bytes.lock();
        if bytes <= *allowed {
            return Ok(());
        }
        let context = &self.module.context;
        let _entered = context.enter()?;
        let wanted = i32::try_from(bytes).unwrap_or(i32::MAX);
        // SAFETY: the function is of a loaded module, whose context is current.
        unsafe { context.driver.func_set_attribute(self.function, sys::FUNCTION_MAX_DYNAMIC_SHARED_SIZE, wanted) }
            .map_err(|error| context.fail(error))?;
        *allowed = bytes;
        Ok(())
    }
}

impl LoadedKernel for CudaKernel {
    fn info(&self) -> &KernelInfo {
        &self.info
    }

    fn groups_at_a_time(&self, items: usize, local_bytes: usize) -> Result<Option<usize>, BackendError> {
        let context = &self.module.context;
        let _entered = context.enter()?;
        let own_bytes = self.info.group_limits.static_local_bytes;
        // The driver finds no room for so much memory, unless the function was allowed to have it.
        if local_bytes.saturating_add(own_bytes) > ALLOWED_LOCAL_BYTES {
            let limit = max_local_bytes(&context.driver, context.device) as usize;
            if local_bytes > limit.saturating_sub(own_bytes) {
                return Ok(Some(0));
            }
            self.allow_local_bytes(local_bytes)?;
        }
        let (mut blocks, threads) = (0, c_int::try_from(items).unwrap_or(c_int::MAX));
        let asked =
            // SAFETY: the function is of a loaded module, whose context is current.
            unsafe { context.driver.occupancy_max_active_blocks(&raw mut blocks, self.function, threads, local_bytes) };
        asked.map_err(|error| context.fail(error))?;
        Ok(usize::try_from(blocks).ok())
    }
}

impl fmt::Debug for CudaKernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CudaKernel").field("symbol", &self.entry.symbol).finish_non_exhaustive()
    }
}

/// The error for code that the driver does not accept, with the driver's log.
fn refusal(context: &Context, error: DriverError, code: &[u8], log: &str) -> BackendError {
    let mut note = String::new();
    if error.code == code::UNSUPPORTED_PTX_VERSION || (error.code == code::INVALID_PTX && log.contains("version")) {
        let installed = version_text(context.driver.version);
        note = match ptx_version(code) {
            Some((major, minor)) => format!(
                "; the image is PTX {major}.{minor}, which needs a driver for CUDA {} or later, and the installed one is for CUDA {installed}",
                cuda_of_ptx(major, minor)
            ),
            None => format!("; the installed driver is for CUDA {installed}"),
        };
    }
    if !log.is_empty() {
        note.push_str(&format!("; the driver's log: {log}"));
    }
    context.fail(error).with_note(&note)
}

/// The version in the `.version` line of PTX.
fn ptx_version(code: &[u8]) -> Option<(u32, u32)> {
    let head = String::from_utf8_lossy(&code[..code.len().min(4096)]).into_owned();
    let line = head.lines().find_map(|line| line.trim().strip_prefix(".version"))?;
    let (major, minor) = line.trim().split_once('.')?;
    let minor: String = minor.chars().take_while(char::is_ascii_digit).collect();
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// The first CUDA version whose driver accepts that PTX version, as text.
fn cuda_of_ptx(major: u32, minor: u32) -> String {
    match (major, minor) {
        (..=6, _) => "11.0".to_owned(),
        (7, minor) => format!("11.{minor}"),
        (8, minor @ ..=5) => format!("12.{minor}"),
        (8, minor) => format!("12.{}", minor + 1),
        (major, minor) => format!("{}.{minor}", major + 4),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_of_ptx_is_read_from_its_line() {
        assert_eq!(ptx_version(b"// made by a compiler\n.version 8.4\n.target sm_70\n"), Some((8, 4)));
        assert_eq!(ptx_version(b".version 7.7 // text\n"), Some((7, 7)));
        assert_eq!(ptx_version(b"no ptx"), None);
        assert_eq!(ptx_version(b".version x.y"), None);
        assert_eq!(ptx_version(&[0xFF; 3]), None);
    }

    #[test]
    fn every_ptx_version_has_its_first_toolkit() {
        let found = [(6, 5), (7, 0), (7, 8), (8, 4), (8, 6), (8, 8), (9, 0)].map(|(a, b)| cuda_of_ptx(a, b));
        assert_eq!(found, ["11.0", "11.0", "11.8", "12.4", "12.7", "12.9", "13.0"]);
    }
}
