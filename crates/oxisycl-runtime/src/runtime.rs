//! The process's one runtime: the devices there are, and the settings of the environment.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use oxisycl_backend::{Backend, BackendError, Batching, Device, Platform};
use oxisycl_types::{BackendKind, ErrorCode};

use crate::graph::set_in_kernel;
use crate::observe::{graph_dump, trace};
use crate::selector::DeviceFilter;
use crate::{Error, Result, fork, plug_ins, process_end, program, queue_settings};

/// What the facade wires together.
pub struct Wiring {
    /// All backends by kind, the one with the host device first.
    pub backends: Vec<(BackendKind, Box<dyn Backend>)>,
    /// Whether the calling thread is executing a kernel.
    pub in_kernel: fn() -> bool,
}

/// The devices of the process.
pub struct Runtime {
    host: Arc<dyn Device>,
    platforms: Vec<Arc<Platform>>,
    filter: Option<DeviceFilter>,
    print_buffer: u32,
    batching: Batching,
}

static RUNTIME: OnceLock<Result<Runtime>> = OnceLock::new();

/// The runtime, made from `wiring` at the first call. A wrong environment variable is an error at every call.
///
/// # Safety
/// The first device of the host's backend works on the host's own memory, and `in_kernel` tells the truth on every
/// thread. The runtime refuses what a kernel must not do by that answer.
pub unsafe fn get_or_init(wiring: impl FnOnce() -> Result<Wiring>) -> Result<&'static Runtime> {
    let new = || {
        plug_ins::keep_runtime_loaded()?;
        oxisycl_backend::process_end::begin();
        Runtime::new(wiring()?)
    };
    RUNTIME.get_or_init(new).as_ref().map_err(Clone::clone)
}

/// The runtime, if it has been made.
pub fn get() -> Option<&'static Runtime> {
    RUNTIME.get().and_then(|runtime| runtime.as_ref().ok())
}

impl Runtime {
    fn new(wiring: Wiring) -> Result<Self> {
        let filter = match std::env::var("OXISYCL_DEVICE_SELECTOR") {
            Ok(value) => {
                let filter = DeviceFilter::parse(&value);
                Some(filter.map_err(|error| Error::new(ErrorCode::Platform, error.to_string()))?)
            }
            Err(std::env::VarError::NotPresent) => None,
            Err(error) => {
                return Err(Error::with_source(
                    ErrorCode::Platform,
                    "OXISYCL_DEVICE_SELECTOR is not valid unicode",
                    error,
                ));
            }
        };
        let mut platforms = Vec::new();
        let mut host = None;
        for (kind, backend) in &wiring.backends {
            let found = backend.platforms().map_err(|error| match error {
                // Names all there is to name.
                BackendError::Setting { .. } => Error::new(ErrorCode::Platform, error.to_string()),
                _ => Error::with_source(ErrorCode::Platform, format!("backend {kind}: {error}"), error),
            })?;
            if *kind == BackendKind::Host {
                host = found.iter().flat_map(|platform| platform.devices()).next();
            }
            platforms.extend(found);
        }
        let host = host.ok_or_else(|| Error::new(ErrorCode::Platform, "the host backend has no device"))?;
        let print_buffer = queue_settings::print_buffer_from_env()?;
        let batching = queue_settings::batching_from_env()?;
        start_recorders()?;
        if let Some(cache) = program::disk_cache_from_env()? {
            program::programs().use_disk_cache(cache);
        }
        program::programs().limit_compiling(program::compile_limit_from_env()?);
        program::programs().specialize(program::specialize_from_env()?);
        program::programs().set_host_code(program::host_code_from_env(host.native_levels())?);
        program::programs().set_load_ahead(program::load_ahead_from_env()?);
        fork::watch();
        process_end::watch(process_end::Settings::from_env()?);
        set_in_kernel(wiring.in_kernel);
        Ok(Self { host, platforms, filter, print_buffer, batching })
    }

    /// The device whose memory is the host's.
    pub fn host(&self) -> &Arc<dyn Device> {
        &self.host
    }

    /// All platforms, whether or not the environment hides their devices.
    pub fn platforms(&self) -> &[Arc<Platform>] {
        &self.platforms
    }

    /// Bytes for the output of one launch, unless its queue says otherwise.
    pub fn print_buffer(&self) -> u32 {
        self.print_buffer
    }

    /// Whether small kernels may be handed over together, unless their queue says that they may not.
    pub fn batching(&self) -> Batching {
        self.batching
    }

    /// What `OXISYCL_DEVICE_SELECTOR` leaves visible; `None` if it is not set.
    pub fn filter(&self) -> Option<&DeviceFilter> {
        self.filter.as_ref()
    }
}

fn start_recorders() -> Result {
    let unwritable = |variable: &str, path: &PathBuf, error: std::io::Error| {
        let message = format!("{variable}: cannot write \"{}\": {error}", path.display());
        Error::with_source(ErrorCode::Platform, message, error)
    };
    if let Some(path) = std::env::var_os("OXISYCL_TRACE").map(PathBuf::from) {
        trace().start(&path).map_err(|error| unwritable("OXISYCL_TRACE", &path, error))?;
    }
    if let Some(path) = std::env::var_os("OXISYCL_GRAPH").map(PathBuf::from) {
        graph_dump().start(Some(&path)).map_err(|error| unwritable("OXISYCL_GRAPH", &path, error))?;
    }
    Ok(())
}
