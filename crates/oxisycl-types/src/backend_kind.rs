use core::fmt;

/// The backend a platform, device or queue belongs to (SYCL 2020 section 4.1).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
#[non_exhaustive]
pub enum BackendKind {
    /// The CPU the program runs on; kernels are native code of the program.
    Host,
    /// Simulated discrete devices with their own memory, for tests.
    Simulated,
    /// NVIDIA GPUs through the CUDA driver.
    Cuda,
    /// Devices of an OpenCL driver.
    OpenCl,
}

impl BackendKind {
    /// The name used in `OXISYCL_DEVICE_SELECTOR` and in listings.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Simulated => "simulated",
            Self::Cuda => "cuda",
            Self::OpenCl => "opencl",
        }
    }
}

impl fmt::Display for BackendKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
