use core::fmt;

/// The error codes of SYCL 2020 (section 4.13.2, `sycl::errc`).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ErrorCode {
    /// Something went wrong at run time that no other code describes.
    Runtime,
    /// A kernel failed: it panicked, or a command it depends on did.
    Kernel,
    /// An accessor was used in a way its mode, range or buffer does not allow.
    Accessor,
    /// An nd-range or launch range is not valid for the device.
    NdRange,
    /// An event was used in a way it does not allow.
    Event,
    /// A kernel argument is not valid.
    KernelArgument,
    /// A device image could not be built.
    Build,
    /// A parameter or a state is not valid for the operation.
    Invalid,
    /// Memory could not be allocated.
    MemoryAllocation,
    /// A platform or its environment is not usable.
    Platform,
    /// Profiling information is not available.
    Profiling,
    /// The device lacks an optional feature.
    FeatureNotSupported,
    /// The kernel cannot run on the device.
    KernelNotSupported,
    /// Objects of different backends were mixed.
    BackendMismatch,
}

impl ErrorCode {
    /// The specification's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Runtime => "runtime",
            Self::Kernel => "kernel",
            Self::Accessor => "accessor",
            Self::NdRange => "nd_range",
            Self::Event => "event",
            Self::KernelArgument => "kernel_argument",
            Self::Build => "build",
            Self::Invalid => "invalid",
            Self::MemoryAllocation => "memory_allocation",
            Self::Platform => "platform",
            Self::Profiling => "profiling",
            Self::FeatureNotSupported => "feature_not_supported",
            Self::KernelNotSupported => "kernel_not_supported",
            Self::BackendMismatch => "backend_mismatch",
        }
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
