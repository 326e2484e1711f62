//! The entrance to the CUDA backend, and its platform.

use std::ffi::c_int;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use oxisycl_backend::{Backend, BackendError, Device, Platform, PlatformInfo};
use oxisycl_types::BackendKind;

use crate::context::{Context, FirstLoss};
use crate::device::CudaDevice;
use crate::device_state::DeviceState;
use crate::error::version_text;
use crate::info::{Facts, LEAST_SM, device_info};
use crate::peers::{self, Peers};
use crate::stack::call_stack_from_env;
use crate::sys::{self, Driver, LoadFailure};

/// The CUDA backend: one platform with all NVIDIA GPUs that the driver reports, or none without a driver.
#[derive(Default)]
pub struct CudaBackend {
    library: Option<PathBuf>,
    call_stack: Option<usize>,
    platform: OnceLock<Result<Option<Arc<Platform>>, BackendError>>,
}

impl CudaBackend {
    /// A backend on the system's driver, which is loaded when `platforms` is first called.
    pub fn new() -> Self {
        Self::default()
    }

    /// A backend on another driver library, for tests and for unusual installations.
    ///
    /// # Safety
    /// The library implements the CUDA driver API.
    pub unsafe fn with_library(path: impl AsRef<Path>) -> Self {
        Self { library: Some(path.as_ref().to_owned()), ..Self::default() }
    }

    /// Sets the bytes of stack that a work-item has for calls that are recursive or go through pointers. Overrides `OXISYCL_CALL_STACK`.
    #[must_use]
    pub fn call_stack(mut self, bytes: usize) -> Self {
        self.call_stack = Some(bytes);
        self
    }

    fn open(&self) -> Result<Option<Arc<Platform>>, BackendError> {
        // A wrong value is an error also where there is no driver.
        let call_stack = self.call_stack.map_or_else(call_stack_from_env, Ok)?;
        let path = self.library.as_ref().map(|path| path.as_os_str());
        // SAFETY: the library is the one that the system calls the driver, or the caller of `with_library` has vouched for it.
        let driver = match unsafe { sys::load(path) } {
            Ok(driver) => driver,
            Err(LoadFailure::Absent(reason)) => {
                tracing::debug!("no CUDA platform: {reason}");
                return Ok(None);
            }
            Err(LoadFailure::Unusable { call, code, meaning }) => {
                return Err(BackendError::Driver { call, code: i64::from(code), name: meaning });
            }
        };
        let devices = open_devices(&driver, call_stack)?;
        if devices.is_empty() {
            tracing::debug!("no CUDA platform: the driver shows no device that can be used");
            return Ok(None);
        }
        let info = PlatformInfo {
            backend: BackendKind::Cuda,
            name: "NVIDIA CUDA".to_owned(),
            vendor: "NVIDIA Corporation".to_owned(),
            version: format!("CUDA {}", version_text(driver.version)),
        };
        Ok(Some(Arc::new(Platform::new(info, devices))))
    }
}

impl Backend for CudaBackend {
    fn platforms(&self) -> Result<Vec<Arc<Platform>>, BackendError> {
        self.platform.get_or_init(|| self.open()).clone().map(|platform| platform.into_iter().collect())
    }
}

fn open_devices(driver: &Arc<Driver>, call_stack: usize) -> Result<Vec<Arc<dyn Device>>, BackendError> {
    let mut count = 0;
    // SAFETY: writes a number.
    unsafe { driver.device_get_count(&raw mut count) }.map_err(|error| error.to_backend(driver))?;
    let first_loss = FirstLoss::default();
    // A device that cannot be used does not take the others with it.
    let leave_out = |ordinal, reason: String| tracing::debug!("CUDA device {ordinal} is left out: {reason}");
    let (mut contexts, mut opened) = (Vec::new(), Vec::new());
    for ordinal in 0..count {
        match open_context(driver, ordinal, &first_loss, call_stack) {
            Ok((context, facts)) => {
                contexts.push(context.clone());
                opened.push((ordinal, context, facts));
            }
            Err(reason) => leave_out(ordinal, reason),
        }
    }
    let peers = Arc::new(Peers::new(&contexts));
    let mut devices: Vec<Arc<dyn Device>> = Vec::new();
    for (ordinal, context, facts) in opened {
        let open = || {
            let mut info = device_info(driver, context.device, &facts).map_err(|error| error.to_backend(driver))?;
            info.memory.id = context.memory;
            info.peer_memories = peers::memories(&context, &contexts);
            Ok::<_, BackendError>(CudaDevice::new(
                DeviceState::new(context, peers.clone(), facts.has_managed_memory)?,
                info,
            ))
        };
        match open() {
            Ok(device) => devices.push(Arc::new(device)),
            Err(error) => leave_out(ordinal, error.to_string()),
        }
    }
    Ok(devices)
}

/// The context of a device. The error says why the device cannot be used.
fn open_context(
    driver: &Arc<Driver>,
    ordinal: c_int,
    first_loss: &FirstLoss,
    call_stack: usize,
) -> Result<(Arc<Context>, Facts), String> {
    let to_text = |error: crate::error::DriverError| error.to_backend(driver).to_string();
    let mut device = 0;
    // SAFETY: writes a handle; the ordinal is below the count.
    unsafe { driver.device_get(&raw mut device, ordinal) }.map_err(to_text)?;
    let facts = Facts::of(driver, device).map_err(to_text)?;
    if facts.sm < LEAST_SM {
        return Err(format!(
            "\"{}\" has compute capability sm_{}, at least sm_{LEAST_SM} is needed",
            facts.name, facts.sm
        ));
    }
    if !facts.has_unified_addressing {
        return Err(format!("\"{}\" has no unified addressing", facts.name));
    }
    let context = Context::new(driver.clone(), device, facts.name.clone(), first_loss.clone(), call_stack);
    Ok((Arc::new(context.map_err(to_text)?), facts))
}
