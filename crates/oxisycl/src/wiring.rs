//! Brings the runtime and the backends together; the only place that names concrete backends.

use oxisycl_backend::Backend;
use oxisycl_backend_host::HostBackend;
use oxisycl_runtime::runtime::{Runtime, Wiring, get_or_init};

use crate::{BackendKind, Result, environment};

/// The process's runtime, made at the first call.
pub(crate) fn runtime() -> Result<&'static Runtime> {
    let wiring = || {
        environment::report_unknown();
        oxisycl_device::print::set_native_output(oxisycl_runtime::output::print);
        oxisycl_device::buffer_name::set_buffer_names(oxisycl_runtime::memory::write_buffer_name);
        // Devices are listed in this order. Between devices that a selector scores equally, the first one is selected: the host device
        // comes before an OpenCL device for the same processor.
        #[allow(unused_mut, reason = "only mutated with the features for other backends")]
        let mut backends: Vec<(BackendKind, Box<dyn Backend>)> =
            vec![(BackendKind::Host, Box::new(HostBackend::new()))];
        // Without a driver it has no platform.
        #[cfg(feature = "cuda")]
        backends.push((BackendKind::Cuda, Box::new(oxisycl_backend_cuda::CudaBackend::new())));
        #[cfg(feature = "opencl")]
        backends.push((BackendKind::OpenCl, Box::new(oxisycl_backend_opencl::OpenClBackend::new())));
        #[cfg(feature = "simulated")]
        if let Some(simulated) = crate::simulated::from_env()? {
            backends.push((BackendKind::Simulated, simulated));
        }
        Ok(Wiring { backends, in_kernel: oxisycl_backend_host::in_kernel })
    };
    // SAFETY: the host backend's devices work on the host's memory, and its function knows on which threads kernels run.
    unsafe { get_or_init(wiring) }
}
