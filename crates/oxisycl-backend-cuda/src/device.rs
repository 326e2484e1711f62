//! One GPU.

use std::ffi::c_void;
use std::sync::{Arc, Weak};

use oxisycl_backend::{
    BackendError, Device, DeviceInfo, LoadedKernel, Memory, Module, NativeHandle, Queue, QueueOptions, RawModule,
    Source,
};
use oxisycl_image::DeviceImage;

use crate::device_state::DeviceState;
use crate::foreign;
use crate::lane;
use crate::module::CudaModule;
use crate::raw_kernel::CudaRawModule;
use crate::sys::{self, RawStream, code};

pub(crate) struct CudaDevice {
    pub(crate) state: Arc<DeviceState>,
    info: DeviceInfo,
    memory: Arc<dyn Memory>,
}

impl CudaDevice {
    pub(crate) fn new(state: Arc<DeviceState>, info: DeviceInfo) -> Self {
        let memory = state.memory.clone();
        Self { state, info, memory }
    }
}

// SAFETY: the driver's word; memory and queues are of the one GPU that the object stands for.
unsafe impl Device for CudaDevice {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn memory(&self) -> &Arc<dyn Memory> {
        &self.memory
    }

    fn create_queue(&self, options: &QueueOptions) -> Result<Arc<dyn Queue>, BackendError> {
        Ok(Arc::new(lane::create_queue(&self.state, *options)?))
    }

    unsafe fn adopt_queue(&self, native: *mut c_void, options: &QueueOptions) -> Result<Arc<dyn Queue>, BackendError> {
        let stream = RawStream(native);
        // SAFETY: by the contract of this function.
        unsafe { foreign::check_stream(&self.state.context, stream) }?;
        Ok(Arc::new(lane::adopt_queue(&self.state, stream, *options)?))
    }

    fn native_handle(&self, handle: NativeHandle) -> Option<*mut c_void> {
        match handle {
            NativeHandle::Queue => None,
            NativeHandle::Device => Some(std::ptr::without_provenance_mut(self.state.context.device as usize)),
            NativeHandle::Context => Some(self.state.share()),
        }
    }

    unsafe fn load(&self, image: &DeviceImage, _binary: Option<&[u8]>) -> Result<Arc<dyn Module>, BackendError> {
        if !self.info.image_targets.contains(&image.target) {
            let what = format!("device images for {}", image.target);
            return Err(BackendError::Unsupported { device: self.info.name.clone(), what });
        }
        // SAFETY: by the contract of this function.
        let load = || unsafe { CudaModule::load_image(&self.state.context, image) };
        let is_lack_of_memory = |error: &BackendError| matches!(error, BackendError::Driver { code, .. } if *code == i64::from(code::OUT_OF_MEMORY));
        let module = load().or_else(|error| {
            if !is_lack_of_memory(&error) {
                return Err(error);
            }
            self.state.memory.free_retired();
            load().map_err(|error| match is_lack_of_memory(&error) {
                // Unlike what is wrong with the code, this may be better the next time.
                true => BackendError::OutOfMemory {
                    device: self.info.name.clone(),
                    requested: image.code.len(),
                    available: None,
                },
                false => error,
            })
        })?;
        Ok(Arc::new(ModuleHandle(Arc::new(Used { module: Arc::new(module), device: Arc::downgrade(&self.state) }))))
    }

    unsafe fn load_source(&self, source: &Source<'_>) -> Result<Arc<dyn RawModule>, BackendError> {
        let context = &self.state.context;
        let module = match source {
            // SAFETY: by the contract of this function.
            Source::Ptx(ptx) => unsafe { CudaRawModule::load(context, ptx) },
            // SAFETY: as above.
            Source::Native(handle) => unsafe { CudaRawModule::borrowed(context, sys::RawModule(*handle)) },
            _ => {
                let (device, what) = (self.info.name.clone(), source.name().to_owned());
                return Err(BackendError::Unsupported { device, what });
            }
        };
        Ok(Arc::new(module?))
    }
}

/// A module whose kernels keep it alive.
struct ModuleHandle(Arc<Used>);

impl Module for ModuleHandle {
    fn kernel(&self, symbol: &str) -> Result<Arc<dyn LoadedKernel>, BackendError> {
        self.0.module.kernel(symbol, self.0.clone())
    }
}

/// Owner of a module that may be launched from. It lives as long as the module's handle or a kernel. Graphs keep only the module alive, and
/// are released when this is dropped.
struct Used {
    module: Arc<CudaModule>,
    device: Weak<DeviceState>,
}

impl Drop for Used {
    fn drop(&mut self) {
        if let Some(device) = self.device.upgrade() {
            device.release(&self.module);
        }
    }
}
