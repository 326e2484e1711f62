use core::fmt;

/// What kind of hardware a device is (SYCL 2020 section 4.6.4, `info::device_type`).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum DeviceType {
    /// A CPU.
    Cpu,
    /// A GPU.
    Gpu,
    /// Any other accelerator; also the default type of a simulated device.
    Accelerator,
    /// A device with fixed functions only.
    Custom,
}

impl DeviceType {
    /// The name used in `OXISYCL_DEVICE_SELECTOR` and in listings.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Gpu => "gpu",
            Self::Accelerator => "accelerator",
            Self::Custom => "custom",
        }
    }
}

impl fmt::Display for DeviceType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
