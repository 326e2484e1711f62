//! Which bundle a command group takes its kernels from.

use super::Handler;
use crate::kernel_bundle::{Executable, KernelBundle};
use crate::{Error, Result};

impl Handler<'_> {
    /// Takes the kernels of this group from `bundle`, and from nowhere else (SYCL 2020 `use_kernel_bundle`). The last of several calls counts.
    /// A launch of a kernel that the bundle does not have for the queue's device is `KernelNotSupported`.
    ///
    /// Errors: `Invalid` if the bundle is of another context than the queue, or if the group has its command already. The same if it has
    /// [set](Self::set_constant) a specialization constant, or read one that the bundle has set.
    ///
    /// ```
    /// use oxisycl::kernel_bundle::{Executable, KernelBundle};
    /// use oxisycl::{KernelId, prelude::*};
    ///
    /// # fn main() -> oxisycl::Result {
    /// let cpu = Device::select(oxisycl::selector::cpu_selector)?;
    /// let queue = Queue::new(&cpu)?;
    /// let kernel = oxisycl::kernel(|_: Item<1>| {});
    /// let id = KernelId::of_range(&kernel);
    /// let bundle = KernelBundle::<Executable>::builder(queue.context()).with_devices(&[cpu]).with_kernels(&[id]).get()?;
    /// queue.submit(|cg| {
    ///     cg.use_bundle(&bundle)?;
    ///     cg.parallel_for(8, kernel)
    /// })?;
    /// let other = queue.submit(|cg| {
    ///     cg.use_bundle(&bundle)?;
    ///     cg.parallel_for(8, |_| {})
    /// });
    /// assert_eq!(other.unwrap_err().code(), ErrorCode::KernelNotSupported);
    /// # Ok(())
    /// # }
    /// ```
    pub fn use_bundle(&mut self, bundle: &KernelBundle<Executable>) -> Result {
        let of_other;
        let why = if bundle.context() != self.queue.context() {
            let devices = bundle.device_names();
            of_other =
                format!("a kernel bundle for {devices}, of another context than that of the queue, cannot be used");
            &of_other
        } else if self.constants.are_set() {
            "a kernel bundle cannot be used: the command group has set a specialization constant"
        } else if [Some(bundle), self.bundle.as_ref()]
            .into_iter()
            .flatten()
            .any(|of| of.has_any_of(self.constants.read()))
        {
            "a kernel bundle cannot be used: the command group has read a specialization constant that a bundle has set"
        } else if self.has_command {
            "a kernel bundle cannot be used: the command group has its command already"
        } else {
            self.bundle = Some(bundle.clone());
            return Ok(());
        };
        let error = Error::invalid(format!("{}: {why}", self.place()));
        self.record(error.clone());
        Err(error)
    }

    /// The group in the words of a message: the name that it was given, and its device.
    pub(super) fn place(&self) -> String {
        let device = self.queue.device().name();
        match self.name {
            Some(name) => format!("kernel \"{name}\" on device \"{device}\""),
            None => format!("a command group on device \"{device}\""),
        }
    }
}
