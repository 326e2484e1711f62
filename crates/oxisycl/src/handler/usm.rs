//! Commands on USM pointers. All are `unsafe`: nothing but events and in-order queues orders them.

use std::any::Any;

use oxisycl_backend::{Advice, Command, CopyCommand, FillCommand, MemoryId, PitchedBox};
use oxisycl_device::DeviceCopyable;
use oxisycl_runtime::graph::KeptAlive;
use oxisycl_runtime::memory::pointer_info;
use oxisycl_types::ErrorCode;

use super::Handler;
use super::copy::pattern_of;
use crate::{Error, Result};

/// The memory that a pointer belongs to; the host's for pointers that are not ours.
fn memory_of(pointer: *const u8) -> MemoryId {
    pointer_info(pointer as usize).map_or(MemoryId::HOST, |info| info.memory)
}

fn line(pointer: *mut u8, bytes: usize) -> PitchedBox {
    PitchedBox { memory: memory_of(pointer), pointer, row_pitch: bytes, slice_pitch: bytes }
}

/// An address that a host task may carry to another thread.
struct Address(*mut u8);
// SAFETY: an address; its use is covered by the contract of the function that made it.
unsafe impl Send for Address {}

impl Handler<'_> {
    /// Keeps `value` alive until the command has completed.
    pub(crate) fn hold(&mut self, value: impl Any + Send) {
        self.group.kept_alive.push(KeptAlive::Other(Box::new(value)));
    }

    /// Copies bytes between any two places: USM allocations of any kind, and host memory.
    ///
    /// Errors: `Invalid` for a second command in the group; `FeatureNotSupported` if the queue's device cannot copy between the
    /// two memories.
    ///
    /// # Safety
    /// Until the command completes, both pointers are valid for `bytes`, and the places do not overlap. No command or
    /// thread that is not ordered with it writes the source or accesses the target.
    pub unsafe fn memcpy(&mut self, target: *mut u8, source: *const u8, bytes: usize) -> Result {
        self.command("memcpy", |handler| {
            if bytes == 0 {
                return Ok(());
            }
            let (source, target) = (line(source.cast_mut(), bytes), line(target, bytes));
            let device = handler.queue.device().backend_device();
            if device.info().can_copy(source.memory, target.memory) {
                let copy = CopyCommand { source, target, extent: [1, 1, bytes] };
                handler.group.commands.push(Command::from(copy));
                return Ok(());
            }
            if source.memory == MemoryId::HOST && target.memory == MemoryId::HOST {
                let (source, target) = (Address(source.pointer), Address(target.pointer));
                handler.group.host_task = Some(Box::new(move || {
                    let (source, target) = (source, target);
                    // SAFETY: the caller's contract.
                    unsafe { source.0.copy_to_nonoverlapping(target.0, bytes) }
                }));
                return Ok(());
            }
            Err(Error::new(
                ErrorCode::FeatureNotSupported,
                format!(
                    "device \"{}\" cannot copy from memory {} to memory {}",
                    device.info().name,
                    source.memory.number(),
                    target.memory.number()
                ),
            ))
        })
    }

    /// Sets every byte to `value`.
    ///
    /// Errors: `Invalid` for a second command in the group.
    ///
    /// # Safety
    /// Until the command completes, the pointer is valid for `bytes` on the queue's device. No command or thread that
    /// is not ordered with it accesses them. Afterwards the bytes are valid values of the type they are read as.
    pub unsafe fn memset(&mut self, target: *mut u8, value: u8, bytes: usize) -> Result {
        // SAFETY: the caller's contract.
        unsafe { self.fill_usm(target, value, bytes) }
    }

    /// Stores `value` to `len` elements.
    ///
    /// Errors: `Invalid` for a second command in the group, or if the size overflows.
    ///
    /// # Safety
    /// Until the command completes, the pointer is valid and aligned for the elements on the queue's device. No command
    /// or thread that is not ordered with it accesses them.
    pub unsafe fn fill_usm<T: DeviceCopyable>(&mut self, target: *mut T, value: T, len: usize) -> Result {
        self.command("a fill", |handler| {
            let bytes = len.checked_mul(size_of::<T>());
            let bytes = bytes.ok_or_else(|| Error::invalid(format!("a fill of {len} elements overflows")))?;
            if bytes > 0 {
                let target = line(target.cast(), bytes);
                let fill = FillCommand { target, pattern: pattern_of(&value), extent: [1, 1, len] };
                handler.group.commands.push(Command::from(fill));
            }
            Ok(())
        })
    }

    /// A hint that the bytes will be used on the queue's device.
    ///
    /// Errors: `Invalid` for a second command in the group.
    ///
    /// # Safety
    /// Until the command completes, the pointer is valid for `bytes` of a shared allocation.
    pub unsafe fn prefetch(&mut self, pointer: *mut u8, bytes: usize) -> Result {
        self.command("a prefetch", |handler| {
            handler.group.commands.push(Command::Prefetch { pointer, size: bytes });
            Ok(())
        })
    }

    /// A hint on how the bytes are used; [`Advice::Reset`] takes earlier hints back.
    ///
    /// Errors: `Invalid` for a second command in the group.
    ///
    /// # Safety
    /// Until the command completes, the pointer is valid for `bytes` of a shared allocation.
    pub unsafe fn mem_advise(&mut self, pointer: *mut u8, bytes: usize, advice: Advice) -> Result {
        self.command("mem_advise", |handler| {
            handler.group.commands.push(Command::Advise { pointer, size: bytes, advice });
            Ok(())
        })
    }
}
