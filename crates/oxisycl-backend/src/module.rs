//! Device images that a device has taken.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use crate::BackendError;

/// A device image whose code is loaded on a device. Unloaded when the object and all its kernels are gone.
pub trait Module: Send + Sync {
    /// The kernel with this symbol. `Driver` if the code has none.
    fn kernel(&self, symbol: &str) -> Result<Arc<dyn LoadedKernel>, BackendError>;

    /// What the driver made of the image's code, to be given to [`Device::load`](crate::Device::load) in a later
    /// process. `None` if the driver does not give it away, or keeps it itself.
    fn binary(&self) -> Option<Vec<u8>> {
        None
    }
}

/// A kernel that its device can launch. Only queues of the backend that made it know what is in it.
///
/// Keeps its module loaded: commands hold it until they have completed (soundness rule 9).
pub trait LoadedKernel: Any + fmt::Debug + Send + Sync {
    /// What its launches need, and what its code allows.
    fn info(&self) -> KernelInfo {
        KernelInfo::default()
    }
}

/// What the launches of a loaded kernel need, and what its code allows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct KernelInfo {
    /// Whether its launches need a print buffer of their queue.
    pub may_print: bool,
    /// What work-groups its code allows, within the limits of the device.
    pub group_limits: KernelGroupLimits,
}

/// The limits that a kernel's code sets for its work-groups.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KernelGroupLimits {
    /// Most work-items of a group.
    pub items: usize,
    /// Bytes of local memory that the code itself takes, of those that the device has for a group.
    pub static_local_bytes: usize,
    /// Bytes of the largest value that its algorithms combine, which a launch adds [`GroupSize::scratch_bytes`](oxisycl_types::GroupSize::scratch_bytes) of
    /// local memory for.
    pub bytes_of_element: usize,
}

impl Default for KernelGroupLimits {
    /// No limits.
    fn default() -> Self {
        Self { items: usize::MAX, static_local_bytes: 0, bytes_of_element: 0 }
    }
}
