//! Device images that are loaded on a device.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use crate::BackendError;

/// A device image whose code is loaded on a device. Unloaded when the object and all its kernels are gone.
pub trait Module: Send + Sync {
    /// The kernel with this symbol. `Driver` if the code has none.
    fn kernel(&self, symbol: &str) -> Result<Arc<dyn LoadedKernel>, BackendError>;

    /// The driver's binary of the image's code, for [`Device::load`](crate::Device::load) in a later process. `None` if the driver has no
    /// such call, or caches binaries itself.
    fn binary(&self) -> Option<Vec<u8>> {
        None
    }
}

/// A kernel that its device can launch. Opaque except to queues of its own backend.
///
/// Keeps its module loaded: commands hold it until they have completed (soundness rule 9).
pub trait LoadedKernel: Any + fmt::Debug + Send + Sync {
    /// The requirements of its launches, and the limits of its code.
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

/// The requirements of a kernel's launches, and the limits of its code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KernelInfo {
    /// Whether its launches need a print buffer of their queue.
    pub may_print: bool,
    /// The work-groups that its code allows, within the limits of the device.
    pub group_limits: KernelGroupLimits,
    /// Work-items of a group per dimension, the innermost last, if the kernel fixes or states them, else zeros.
    pub group: [u32; 3],
    /// Work-items of a sub-group if the kernel states them, else 0.
    pub sub_group: u32,
    /// The preferred multiple of the number of work-items in a group.
    pub preferred_multiple: usize,
    /// The preferred number of work-items in a group, if the driver reports it.
    pub preferred_items: Option<usize>,
    /// Bytes of private memory of each work-item beside registers, if the driver reports it.
    pub private_bytes: Option<usize>,
    /// Registers of a work-item, of 4 bytes each, if the driver reports it.
    pub registers: Option<usize>,
    /// Work-items of its largest sub-groups, if the driver reports it.
    pub sub_group_size: Option<usize>,
    /// Most sub-groups of a group, if the driver reports it.
    pub max_sub_groups: Option<usize>,
}

impl KernelInfo {
    /// The value for a kernel of which nothing is known.
    pub const NOTHING: Self = Self {
        may_print: false,
        group_limits: KernelGroupLimits { items: usize::MAX, static_local_bytes: 0, bytes_of_element: 0 },
        group: [0; 3],
        sub_group: 0,
        preferred_multiple: 1,
        preferred_items: None,
        private_bytes: None,
        registers: None,
        sub_group_size: None,
        max_sub_groups: None,
    };
}

/// The limits that a kernel's code sets for its work-groups.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KernelGroupLimits {
    /// Most work-items of a group.
    pub items: usize,
    /// Bytes of local memory that the code itself uses, out of those that the device has for a group.
    pub static_local_bytes: usize,
    /// Bytes of the largest value that its algorithms combine. A launch adds
    /// [`GroupSize::scratch_bytes`](oxisycl_types::GroupSize::scratch_bytes) of local memory for it.
    pub bytes_of_element: usize,
}
