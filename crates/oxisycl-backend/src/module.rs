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
    fn info(&self) -> &KernelInfo {
        &KernelInfo::NOTHING
    }

    /// How many work-groups of `_items` work-items a compute unit executes at a time. Each group has `_local_bytes` bytes of local memory
    /// beside those of the kernel's code. `None` if the driver does not say.
    ///
    /// # Errors
    /// The errors of the driver.
    fn groups_at_a_time(&self, _items: usize, _local_bytes: usize) -> Result<Option<usize>, BackendError> {
        Ok(None)
    }
}

/// What the launches of a loaded kernel need, and what its code allows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KernelInfo {
    /// Whether its launches need a print buffer of their queue.
    pub may_print: bool,
    /// What work-groups its code allows, within the limits of the device.
    pub group_limits: KernelGroupLimits,
    /// The number of work-items in a group is best a multiple of this.
    pub preferred_multiple: usize,
    /// Work-items of a group that use the device best, if the driver says so.
    pub preferred_items: Option<usize>,
    /// Bytes of memory that each work-item has for itself beside registers, if the driver says so.
    pub private_bytes: Option<usize>,
    /// Registers of a work-item, of 4 bytes, if the driver says so.
    pub registers: Option<usize>,
}

impl KernelInfo {
    /// Of a kernel of which nothing is known.
    pub const NOTHING: Self = Self {
        may_print: false,
        group_limits: KernelGroupLimits { items: usize::MAX, static_local_bytes: 0, bytes_of_element: 0 },
        preferred_multiple: 1,
        preferred_items: None,
        private_bytes: None,
        registers: None,
    };
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
