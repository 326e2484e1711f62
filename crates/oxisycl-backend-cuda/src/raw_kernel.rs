//! Kernels of a program's own PTX, launched with arguments by index.

use std::ffi::c_void;
use std::fmt;
use std::sync::Arc;

use oxisycl_backend::driver::ImageFacts;
use oxisycl_backend::{
    BackendError, KernelGroupLimits, KernelInfo, NativeCommand, NativeQueue, RawKernel, RawLaunch, RawModule,
    RawRefusal, RawValue,
};
use parking_lot::Mutex;

use crate::context::Context;
use crate::module::{ALLOWED_LOCAL_BYTES, CudaModule, WARP};
use crate::sys::{self, RawFunction, RawStream, code};

/// Blocks of a grid in each dimension, the innermost last.
const MAX_BLOCKS: [usize; 3] = [65_535, 65_535, i32::MAX as usize];

/// Loaded PTX.
pub(crate) struct CudaRawModule(Arc<CudaModule>);

struct CudaRawKernel {
    module: Arc<CudaModule>,
    name: String,
    function: RawFunction,
    /// Bytes of each parameter; `None` with a driver that does not tell.
    parameters: Option<Vec<usize>>,
    info: KernelInfo,
    /// The bytes of local memory that the driver currently allows for a launch.
    allowed_local_bytes: Mutex<usize>,
}

impl CudaRawModule {
    /// Loads PTX.
    ///
    /// # Safety
    /// The user has vouched for the code.
    pub(crate) unsafe fn load(context: &Arc<Context>, ptx: &str) -> Result<Self, BackendError> {
        // SAFETY: by the contract of this function.
        let module = unsafe { CudaModule::load(context, ptx.as_bytes(), ImageFacts::default()) }?;
        Ok(Self(Arc::new(module)))
    }

    /// Code that other code has loaded.
    ///
    /// # Safety
    /// Null, or a live module of the context, which lives until the result, its kernels and their commands are gone.
    pub(crate) unsafe fn borrowed(context: &Arc<Context>, raw: sys::RawModule) -> Result<Self, BackendError> {
        if raw == sys::RawModule::NULL {
            let (device, found) = (context.name.clone(), format!("{:p}", raw.0));
            let expected = format!("a module of context {:p}", context.raw.0);
            return Err(BackendError::Handle { device, what: "module", found, expected });
        }
        // SAFETY: by the contract of this function.
        Ok(Self(Arc::new(unsafe { CudaModule::borrowed(context, raw) })))
    }
}

impl RawModule for CudaRawModule {
    fn native_handle(&self) -> *mut c_void {
        self.0.raw().0
    }

    fn kernel(&self, name: &str) -> Result<Option<Arc<dyn RawKernel>>, BackendError> {
        let context = &self.0.context;
        let _entered = context.enter()?;
        let function = match self.0.function(name) {
            Ok(function) => function,
            Err(error) if error.code == code::NOT_FOUND => return Ok(None),
            Err(error) => return Err(context.fail(error)),
        };
        let attribute = |attribute| {
            let mut value = 0;
            // SAFETY: the function is of a loaded module, whose context is current.
            unsafe { context.driver.func_get_attribute(&raw mut value, attribute, function) }
                .map_err(|error| context.fail(error))?;
            Ok::<_, BackendError>(usize::try_from(value).unwrap_or(0))
        };
        let (items, static_local_bytes) =
            (attribute(sys::FUNCTION_MAX_THREADS)?.max(1), attribute(sys::FUNCTION_SHARED_SIZE)?);
        let info = KernelInfo {
            group_limits: KernelGroupLimits { items, static_local_bytes, bytes_of_element: 0 },
            preferred_multiple: WARP,
            private_bytes: Some(attribute(sys::FUNCTION_LOCAL_SIZE)?),
            registers: Some(attribute(sys::FUNCTION_REGISTERS)?),
            sub_group_size: Some(WARP),
            max_sub_groups: Some(items.div_ceil(WARP)),
            ..KernelInfo::NOTHING
        };
        Ok(Some(Arc::new(CudaRawKernel {
            module: self.0.clone(),
            name: name.to_owned(),
            function,
            parameters: parameters(context, function),
            info,
            allowed_local_bytes: Mutex::new(ALLOWED_LOCAL_BYTES.saturating_sub(static_local_bytes)),
        })))
    }
}

/// The bytes of each parameter of a function. The context is current.
fn parameters(context: &Context, function: RawFunction) -> Option<Vec<usize>> {
    let mut sizes = Vec::new();
    loop {
        let (mut offset, mut size) = (0, 0);
        // SAFETY: the function is of a loaded module, whose context is current.
        let asked =
            unsafe { context.driver.func_get_param_info(function, sizes.len(), &raw mut offset, &raw mut size) }?;
        match asked {
            Ok(()) => sizes.push(size),
            // There is none of that index.
            Err(_) => return Some(sizes),
        }
    }
}

impl CudaRawKernel {
    fn check_arguments(&self, launch: &RawLaunch) -> Result<(), RawRefusal> {
        let Some(parameters) = &self.parameters else { return Ok(()) };
        let sizes: Vec<(usize, usize)> = passed(launch).map(|(index, value)| (index, value.len())).collect();
        if sizes.len() != parameters.len() {
            let (expected, found) = (parameters.len(), sizes.len());
            return Err(RawRefusal::Arguments(format!("{found} arguments, and its code has {expected} parameters")));
        }
        let wrong = sizes.iter().zip(parameters).find(|((_, found), expected)| found != *expected);
        wrong.map_or(Ok(()), |((index, found), expected)| {
            Err(RawRefusal::Arguments(format!("argument {index} is {found} bytes, and its parameter is {expected}")))
        })
    }

    /// Makes the driver allow launches with `bytes` of local memory.
    fn allow_local_bytes(&self, bytes: usize) -> Result<(), BackendError> {
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

/// The arguments that are parameters, with their indices: memory of a group is none.
fn passed(launch: &RawLaunch) -> impl Iterator<Item = (usize, &[u8])> {
    launch.arguments.iter().enumerate().filter_map(|(index, value)| match value {
        RawValue::Bytes(bytes) => Some((index, bytes.as_slice())),
        // SAFETY: a number is as many bytes as its size says, and any of them are bytes.
        RawValue::Pointer(address) => Some((index, unsafe {
            std::slice::from_raw_parts(std::ptr::from_ref(address).cast::<u8>(), size_of::<usize>())
        })),
        RawValue::Local(_) => None,
    })
}

/// The local memory of a group: that of all arguments together, which is one block. `None` if it cannot be counted.
fn local_bytes(launch: &RawLaunch) -> Option<usize> {
    launch.arguments.iter().try_fold(0usize, |sum, value| match value {
        RawValue::Local(bytes) => sum.checked_add(*bytes),
        _ => Some(sum),
    })
}

impl RawKernel for CudaRawKernel {
    fn native_handle(&self) -> *mut c_void {
        self.function.0
    }

    fn info(&self) -> &KernelInfo {
        &self.info
    }

    fn check(&self, launch: &RawLaunch) -> Result<(), RawRefusal> {
        self.check_arguments(launch)?;
        if let Some(d) = (0..3).find(|d| launch.groups[*d] > MAX_BLOCKS[*d]) {
            let (found, limit) = (launch.groups[d], MAX_BLOCKS[d]);
            return Err(RawRefusal::Range(format!("{found} work-groups in one dimension, the limit is {limit}")));
        }
        let too_much = || RawRefusal::Range("more local memory than can be counted".to_owned());
        let bytes = local_bytes(launch).ok_or_else(too_much)?;
        self.allow_local_bytes(bytes).map_err(RawRefusal::Backend)
    }

    fn command(self: Arc<Self>, name: String, launch: RawLaunch) -> NativeCommand {
        let kernel = self;
        let work = move |native: NativeQueue| {
            let context = &kernel.module.context;
            let narrow = |sizes: [usize; 3]| sizes.map(|size| u32::try_from(size).unwrap_or(u32::MAX));
            let ([grid_z, grid_y, grid_x], [block_z, block_y, block_x]) = (narrow(launch.groups), narrow(launch.local));
            let shared = local_bytes(&launch).and_then(|bytes| u32::try_from(bytes).ok()).unwrap_or(u32::MAX);
            let pointer = |(_, value): (usize, &[u8])| value.as_ptr().cast_mut().cast::<c_void>();
            let mut parameters: Vec<*mut c_void> = passed(&launch).map(pointer).collect();
            // SAFETY: who issues the command keeps the function loaded, and its context is current. There is one pointer for each parameter, to as many
            // bytes as it has; `check` has compared them, or the user has vouched for them. The driver copies them.
            let launched = unsafe {
                context.driver.launch_kernel(
                    kernel.function,
                    grid_x,
                    grid_y,
                    grid_z,
                    block_x,
                    block_y,
                    block_z,
                    shared,
                    RawStream(native.queue),
                    parameters.as_mut_ptr(),
                    std::ptr::null_mut(),
                )
            };
            // A lost device is found by the poller: locks are held here.
            launched
                .map_err(|error| error.to_backend(&context.driver).with_note(&format!(" (kernel \"{}\")", kernel.name)))
        };
        NativeCommand::new(name, Box::new(work))
    }
}

impl fmt::Debug for CudaRawKernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CudaRawKernel").field("name", &self.name).finish_non_exhaustive()
    }
}
