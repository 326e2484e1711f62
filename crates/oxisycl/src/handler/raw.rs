//! Launching kernels from source and built-in kernels, with arguments by index (SYCL 2020 `set_args`).

use oxisycl_backend::{Command, RawLaunch, RawRefusal, RawValue};
use oxisycl_runtime::graph::KeptAlive;
use oxisycl_types::{ErrorCode, NdRange};

use super::Handler;
use crate::argument::Kept;
use crate::source_bundle::{RawArgument, RawKernel};
use crate::{Error, Result};

impl<'cg> Handler<'cg> {
    /// Launches a kernel of a [`SourceBundle`](crate::source_bundle::SourceBundle). With an extent of zero it does not run, and the event completes after
    /// the dependencies. The last dimension of the range is the innermost one: `get_global_id(0)` of OpenCL and `x` of CUDA.
    ///
    /// Accessors among the arguments stand for the group's requirements, as in other kernels. What the kernel prints, and an error that it traps with,
    /// is the driver's business.
    ///
    /// Errors, all before anything is enqueued. `Invalid` if the kernel is for another context or device than the queue's. `NdRange` if groups are not
    /// whole, or larger than the kernel or the device allows. `KernelArgument` if the number or the size of arguments is not that of the kernel's
    /// parameters. NVIDIA's drivers know these from CUDA 12.4 on, and before nothing is compared. `MemoryAllocation` for more local memory than the device has.
    ///
    /// # Safety
    /// The kernel uses the memory of accessors among the arguments, as their modes and ranges say. Other memory that it uses is valid, and not in
    /// conflicting use, until the command has ended. Arguments are of the types of the kernel's parameters. The kernel does not wait for this
    /// program.
    pub unsafe fn launch_raw<const D: usize>(
        &mut self,
        kernel: &RawKernel,
        range: NdRange<D>,
        arguments: impl IntoIterator<Item = RawArgument<'cg>>,
    ) -> Result {
        const { assert!(D >= 1 && D <= 3, "a range has 1, 2 or 3 dimensions") };
        let arguments: Vec<RawValue> = arguments.into_iter().map(|argument| argument.value).collect();
        let (global, local) = (range.global_range(), range.local_range());
        let shown = format!("{:?} in work-groups of {:?}", global.0, local.0);
        let is_whole = (0..D).all(|d| local.0[d] > 0 && global.0[d].is_multiple_of(local.0[d]));
        let (global, local) = (global.embed(), local.embed());
        self.command("a kernel", |handler| {
            handler.push_raw(kernel, (D as u8, &shown, is_whole), global, local, arguments)
        })
    }

    fn push_raw(
        &mut self,
        kernel: &RawKernel,
        (dimensions, shown, is_whole): (u8, &str, bool),
        global: [usize; 3],
        local: [usize; 3],
        arguments: Vec<RawValue>,
    ) -> Result {
        let (device, name) = (self.queue.device(), kernel.name());
        let refuse =
            |code, what: String| Error::new(code, format!("kernel \"{name}\" on device \"{}\": {what}", device.name()));
        let own = kernel.bundle();
        if own.device() != device || own.context() != self.queue.context() {
            let what =
                format!("its bundle is for device \"{}\" in the context that it was made for", own.device().name());
            return Err(refuse(ErrorCode::Invalid, what));
        }
        if !is_whole {
            let what = format!("a range of {shown} work-items, which are not whole groups");
            return Err(refuse(ErrorCode::NdRange, what));
        }
        let items = local.iter().try_fold(1usize, |items, n| items.checked_mul(*n));
        let limits = kernel.limits().group_limits;
        let limit = limits.items.min(device.info().max_work_group_size);
        if items.is_none_or(|items| items > limit) {
            let what = format!("a range of {shown} work-items, the limit of the kernel's code is {limit} for a group");
            return Err(refuse(ErrorCode::NdRange, what));
        }
        let sizes = device.info().max_work_item_sizes;
        if let Some(d) = (0..3).find(|d| local[*d] > sizes[*d]) {
            let (limit, d) = (sizes[d], d + usize::from(dimensions) - 3);
            let what = format!("a range of {shown} work-items, the limit is {limit} for a group in dimension {d}");
            return Err(refuse(ErrorCode::NdRange, what));
        }
        if global.iter().try_fold(1usize, |items, n| items.checked_mul(*n)).is_none() {
            return Err(refuse(ErrorCode::NdRange, format!("a range of {shown} work-items, more than can be counted")));
        }
        let bytes = arguments.iter().try_fold(0usize, |sum, argument| match argument {
            RawValue::Local(bytes) => sum.checked_add(*bytes),
            _ => Some(sum),
        });
        let limit = device.info().local_mem_size.saturating_sub(limits.static_local_bytes as u64);
        if bytes.is_none_or(|bytes| bytes as u64 > limit) {
            let found = bytes.map_or("more bytes than can be counted".to_owned(), |bytes| format!("{bytes} bytes"));
            let own = limits.static_local_bytes;
            let what = format!(
                "local memory of {found} for each work-group, the limit is {limit} beside the {own} that its code has"
            );
            return Err(refuse(ErrorCode::MemoryAllocation, what));
        }
        let launch =
            RawLaunch { dimensions, groups: std::array::from_fn(|d| global[d] / local[d].max(1)), local, arguments };
        kernel.inner().check(&launch).map_err(|refusal| match refusal {
            RawRefusal::Arguments(what) => refuse(ErrorCode::KernelArgument, what),
            RawRefusal::Range(what) => refuse(ErrorCode::NdRange, what),
            RawRefusal::Backend(error) => Error::from(error),
        })?;
        self.group.commands.push(if global.contains(&0) {
            Command::Marker
        } else {
            let name = self.name.unwrap_or(name).to_owned();
            // Not by the command, which a poller drops: to unload code may wait for the device.
            self.group.kept_alive.push(KeptAlive::Loan(Box::new(Kept(kernel.clone()))));
            Command::Native(Box::new(kernel.inner().clone().command(name, launch)))
        });
        Ok(())
    }
}
