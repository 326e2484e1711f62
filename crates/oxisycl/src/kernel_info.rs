//! What is known of kernels on a device (SYCL 2020 section 4.11.13.1), and of the groups that launches may have.

use oxisycl_backend::KernelInfo as BackendInfo;
use oxisycl_image::StatedNeeds;
use oxisycl_runtime::graph::forbid_blocking;
use oxisycl_types::{ErrorCode, Range};

use crate::{Device, Error, KernelId, Result};

/// What is known of a kernel on a device, see [`Device::kernel_info`] and [`KernelObject::info`](crate::kernel_bundle::KernelObject::info).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct KernelInfo {
    /// Most work-items of a group (`work_group_size`).
    pub max_work_group_size: usize,
    /// Work-items of a group, if the kernel states them or its image allows no others (`compile_work_group_size`). Unused leading dimensions are 1.
    pub compile_work_group_size: Option<Range<3>>,
    /// Work-items of a sub-group, if the kernel states them (`compile_sub_group_size`).
    pub compile_sub_group_size: Option<usize>,
    /// The number of work-items in a group is best a multiple of this (`preferred_work_group_size_multiple`).
    pub preferred_work_group_size_multiple: usize,
    /// Work-items of a group with which a device is used best, if its driver says so. Launches over ranges have such groups.
    pub preferred_work_group_size: Option<usize>,
    /// Bytes of memory that each work-item has for itself, beside registers, if the driver says so (`private_mem_size`).
    pub private_memory_size: Option<usize>,
    /// Bytes of local memory that the kernel's code takes itself, beside what a launch asks for.
    pub local_memory_size: usize,
    /// Registers of 4 bytes that each work-item has, if the driver says so.
    pub registers: Option<usize>,
    /// Most sub-groups of a group (`max_num_sub_groups`).
    pub max_num_sub_groups: usize,
    /// Work-items of its largest sub-groups, if the driver says so (`max_sub_group_size`).
    pub max_sub_group_size: Option<usize>,
}

impl KernelInfo {
    /// Of a kernel that is loaded as `info` says, or that has no image on the device.
    pub(crate) fn new(device: &Device, info: Option<&BackendInfo>, stated: &StatedNeeds) -> Self {
        // Without an image, what its attribute states is all that there is.
        let (group, sub_group) = info.map_or((stated.group, stated.sub_group), |info| (info.group, info.sub_group));
        let info = info.unwrap_or(&BackendInfo::NOTHING);
        let of_device = device.info();
        let largest_sub_group = || of_device.sub_group_sizes.iter().copied().max();
        Self {
            max_work_group_size: info.group_limits.items.min(of_device.max_work_group_size),
            preferred_work_group_size_multiple: info.preferred_multiple,
            preferred_work_group_size: info.preferred_items,
            private_memory_size: info.private_bytes,
            local_memory_size: info.group_limits.static_local_bytes,
            registers: info.registers,
            compile_work_group_size: (group != [0; 3]).then(|| Range(group.map(|items| items as usize))),
            compile_sub_group_size: (sub_group != 0).then_some(sub_group as usize),
            max_num_sub_groups: info.max_sub_groups.unwrap_or(of_device.max_num_sub_groups as usize),
            max_sub_group_size: info.sub_group_size.or_else(largest_sub_group),
        }
    }
}

/// Groups that every device takes in one launch: backends cut launches into as many grids as that needs.
const MAX_GROUPS: usize = i32::MAX as usize;

impl Device {
    /// What is known of a kernel on this device (SYCL 2020 `info::kernel_device_specific`). Loads the kernel, as [`load_kernels`](Self::load_kernels) does.
    ///
    /// Errors: what a launch of the kernel would fail with.
    ///
    /// ```
    /// use oxisycl::KernelId;
    /// use oxisycl::prelude::*;
    ///
    /// fn square(item: Item<1>) {
    ///     oxisycl::println!("{}", item.index() * item.index());
    /// }
    ///
    /// # fn main() -> oxisycl::Result {
    /// let device = Device::select(oxisycl::selector::cpu_selector)?;
    /// let info = device.kernel_info(&KernelId::of_range(&square))?;
    /// let multiple = info.preferred_work_group_size_multiple;
    /// println!("groups of up to {}, best a multiple of {multiple}", info.max_work_group_size);
    /// # Ok(())
    /// # }
    /// ```
    pub fn kernel_info(&self, kernel: &KernelId) -> Result<KernelInfo> {
        forbid_blocking("kernel_info")?;
        let code = kernel.load(self)?;
        Ok(KernelInfo::new(self, code.as_ref().map(|code| code.info()), kernel.stated()))
    }

    /// How many groups of a kernel a compute unit executes at a time, if the driver says so: the kernel's occupancy. The groups have `work_group_size`
    /// work-items, and `local_memory_size` bytes of local memory beside those of the kernel's code.
    ///
    /// Errors: what a launch of the kernel would fail with. `NdRange` if groups of the kernel cannot be of that size.
    ///
    /// ```
    /// use oxisycl::KernelId;
    /// use oxisycl::group::Fixed1;
    /// use oxisycl::group::nd::NdItem;
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// fn kernel(item: NdItem<'_, '_, 1, Fixed1<64>>, (): ()) {
    ///     assert!(item.local_linear_id() < 64);
    /// }
    /// let id = KernelId::of_nd_range(&(1024, Fixed1::<64>), &(), &kernel);
    /// let device = Device::select(oxisycl::selector::cpu_selector)?;
    /// if let Some(groups) = device.active_work_groups(&id, 64, 0)? {
    ///     println!("{} work-items of a compute unit at a time", 64 * groups);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn active_work_groups(
        &self,
        kernel: &KernelId,
        work_group_size: usize,
        local_memory_size: usize,
    ) -> Result<Option<usize>> {
        let limit = self.kernel_info(kernel)?.max_work_group_size;
        if !(1..=limit).contains(&work_group_size) {
            return Err(Error::new(
                ErrorCode::NdRange,
                format!(
                    "kernel \"{}\" on device \"{}\": work-groups of {work_group_size} work-items, expected 1 to {limit}",
                    kernel.name(),
                    self.name()
                ),
            ));
        }
        let Some(code) = kernel.load(self)? else { return Ok(None) };
        Ok(code.groups_at_a_time(work_group_size, local_memory_size)?)
    }

    /// Groups that a launch may have in each dimension (`max_work_group_range` of KHR's work-group queries), if they are no more than
    /// [`max_work_group_range_size`](Self::max_work_group_range_size) in all. Devices may take more.
    pub fn max_work_group_range<const D: usize>(&self) -> Range<D> {
        Range([MAX_GROUPS; D])
    }

    /// Groups that a launch may have in all (`max_work_group_range_size` of KHR's work-group queries). Devices may take more.
    pub fn max_work_group_range_size(&self) -> usize {
        MAX_GROUPS
    }
}
