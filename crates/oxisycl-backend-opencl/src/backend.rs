//! The entrance to the OpenCL backend, and its platforms.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use oxisycl_backend::{Backend, BackendError, Device, Platform, PlatformInfo};
use oxisycl_types::BackendKind;

use crate::device::{ClDevice, Found};
use crate::error::{ClError, check};
use crate::info;
use crate::query::Asked;
use crate::sharing::SharingKind;
use crate::sys::{Functions, Handle, Object, code};
use crate::unusable::UnusableDevice;

type Platforms = Vec<Arc<Platform>>;

/// The OpenCL backend: the platforms that the loader reports, or none without a loader.
#[derive(Default)]
pub struct OpenClBackend {
    library: Option<PathBuf>,
    sharing: SharingKind,
    platforms: OnceLock<Result<Platforms, BackendError>>,
}

impl OpenClBackend {
    /// A backend on the system's loader, which is loaded when `platforms` is first called.
    pub fn new() -> Self {
        Self::default()
    }

    /// A backend on another loader or driver, for tests and for unusual installations.
    ///
    /// # Safety
    /// The library implements OpenCL.
    pub unsafe fn with_library(path: impl AsRef<Path>) -> Self {
        Self { library: Some(path.as_ref().to_owned()), ..Self::default() }
    }

    /// Shares memory only by this kind; devices that lack it are not usable.
    #[must_use]
    pub fn sharing(mut self, kind: SharingKind) -> Self {
        self.sharing = kind;
        self
    }

    fn open(&self) -> Result<Platforms, BackendError> {
        let path = self.library.as_ref().map(|path| path.as_os_str());
        // SAFETY: the library is the one that the system calls OpenCL's loader, or the caller of `with_library` has vouched for it.
        let functions = match unsafe { Functions::load(path) } {
            Ok(functions) => Arc::new(functions),
            Err(reason) => {
                tracing::debug!("no OpenCL platform: the loader cannot be used: {reason}");
                return Ok(Vec::new());
            }
        };
        self.open_all(&functions)
    }

    /// The platforms of a loaded library.
    pub(crate) fn open_all(&self, functions: &Arc<Functions>) -> Result<Platforms, BackendError> {
        let handles = match platform_handles(functions) {
            Ok(handles) => handles,
            Err(error) if error.code == code::PLATFORM_NOT_FOUND => Vec::new(),
            // Other backends go on.
            Err(error) => {
                tracing::warn!("no OpenCL platform: {}", error.to_backend());
                return Ok(Vec::new());
            }
        };
        if handles.is_empty() {
            tracing::debug!("no OpenCL platform: the loader knows no driver");
        }
        let mut platforms: Platforms = Vec::new();
        for handle in handles {
            let asked = Asked::platform(functions, handle);
            let info = PlatformInfo {
                backend: BackendKind::OpenCl,
                name: asked.text(code::PLATFORM_NAME),
                vendor: asked.text(code::PLATFORM_VENDOR),
                version: asked.text(code::PLATFORM_VERSION),
            };
            match device_handles(functions, handle) {
                Ok(devices) => {
                    let open = |device| open_device(functions, handle, device, self.sharing);
                    let devices: Vec<_> = devices.into_iter().map(open).collect();
                    platforms.push(Arc::new(Platform::new(info, devices)));
                }
                // One platform does not take the others with it.
                Err(error) => tracing::debug!("OpenCL platform \"{}\" is left out: {}", info.name, error.to_backend()),
            }
        }
        Ok(platforms)
    }
}

impl Backend for OpenClBackend {
    fn platforms(&self) -> Result<Platforms, BackendError> {
        self.platforms.get_or_init(|| self.open()).clone()
    }
}

fn platform_handles(functions: &Functions) -> Result<Vec<Object>, ClError> {
    let mut count = 0;
    let get = |n: u32, handles: *mut Handle, count: *mut u32| {
        // SAFETY: room for as many handles as are said.
        check("clGetPlatformIDs", unsafe { (functions.clGetPlatformIDs)(n, handles, count) })
    };
    get(0, std::ptr::null_mut(), &raw mut count)?;
    if count == 0 {
        return Ok(Vec::new());
    }
    let mut handles = vec![std::ptr::null_mut(); count as usize];
    get(count, handles.as_mut_ptr(), std::ptr::null_mut())?;
    Ok(handles.into_iter().map(Object).collect())
}

fn device_handles(functions: &Functions, platform: Object) -> Result<Vec<Object>, ClError> {
    let get = |n: u32, handles: *mut Handle, count: *mut u32| {
        // SAFETY: a live platform, and room for as many handles as are said.
        let result = unsafe { (functions.clGetDeviceIDs)(platform.0, code::ALL_DEVICES, n, handles, count) };
        check("clGetDeviceIDs", result)
    };
    let mut count = 0;
    get(0, std::ptr::null_mut(), &raw mut count)?;
    let mut handles = vec![std::ptr::null_mut(); count as usize];
    get(count, handles.as_mut_ptr(), std::ptr::null_mut())?;
    Ok(handles.into_iter().map(Object).collect())
}

fn open_device(functions: &Arc<Functions>, platform: Object, device: Object, sharing: SharingKind) -> Arc<dyn Device> {
    let asked = Asked::device(functions, device);
    let found = Found { functions, platform, device, sharing };
    let opened = info::image_targets(asked).and_then(|targets| ClDevice::open(&found, targets));
    match opened {
        Ok(device) => Arc::new(device),
        Err(reason) => {
            tracing::debug!("OpenCL device \"{}\" cannot be used: {reason}", asked.text(code::DEVICE_NAME));
            Arc::new(UnusableDevice::new(asked, reason))
        }
    }
}
