/// How a command uses the data behind an accessor (SYCL 2020 section 4.7.6.2).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum AccessMode {
    /// Only reads.
    Read,
    /// Only writes; elements that are not written keep their value.
    Write,
    /// Reads and writes.
    ReadWrite,
}

impl AccessMode {
    /// Whether the command may modify data. Two accesses conflict only if one of them writes.
    pub const fn writes(self) -> bool {
        !matches!(self, Self::Read)
    }
}

/// Where the data of an accessor is used (SYCL 2020 section 4.7.6.3).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Target {
    /// In a kernel on the queue's device.
    Device,
    /// In a host task.
    HostTask,
}
