//! The print buffers of a queue's launches: memory of the device that kernels write, and pinned memory that it is copied to when the
//! launch has ended.
//!
//! Invariants: a buffer belongs to one launch at a time. A launch that finds none free is held back on the host behind the last user of the
//! one that comes next in turn; as users are all older than it, that one ends without it. Nothing is allocated before the first launch
//! that may print. The content of a buffer is never trusted.

use std::ptr::{self, NonNull};
use std::sync::{Arc, Weak};

use oxisycl_backend::{BackendError, KernelOutput, UsmKind};
use oxisycl_image::{PanicSite, Printed, read_print_buffer};
use oxisycl_types::PrintHeader;
use parking_lot::{Mutex, MutexGuard};

use crate::emitter::Emitter;
use crate::error::DriverError;
use crate::gpu::Gpu;
use crate::memory;
use crate::retired::Block;
use crate::sys::DevicePointer;
use crate::task::CudaTask;

/// Most launches of a queue that print at the same time.
const MOST_BUFFERS: usize = 16;

/// A print buffer of one launch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PrintBuffer {
    device: DevicePointer,
    host: NonNull<u8>,
    capacity: u32,
}

// SAFETY: addresses of memory of the pool, used by one launch at a time.
unsafe impl Send for PrintBuffer {}
// SAFETY: as above.
unsafe impl Sync for PrintBuffer {}

impl PrintBuffer {
    /// What the kernel is given.
    pub(crate) fn address(self) -> u64 {
        self.device
    }

    fn size(self) -> usize {
        size_of::<PrintHeader>() + self.capacity as usize
    }

    /// Empties the buffer on the device, before the launch.
    pub(crate) fn clear(self, emitter: &mut Emitter<'_>) -> Result<(), DriverError> {
        let words = size_of::<PrintHeader>() / 4;
        let capacity = self.device + std::mem::offset_of!(PrintHeader, capacity) as u64;
        // SAFETY: the header is within the buffer, which belongs to this launch.
        emitter.call(|driver, stream| unsafe { driver.memset_d32_async(self.device, 0, words, stream) })?;
        // SAFETY: as above.
        emitter.call(|driver, stream| unsafe { driver.memset_d32_async(capacity, self.capacity, 1, stream) })
    }

    /// Copies the buffer to the host, after the launch.
    pub(crate) fn fetch(self, emitter: &mut Emitter<'_>) -> Result<(), DriverError> {
        let host = self.host.as_ptr() as DevicePointer;
        // SAFETY: both are as large as the buffer, and belong to this launch.
        emitter.call(|driver, stream| unsafe { driver.memcpy_async(host, self.device, self.size(), stream) })
    }

    /// Tells what the launch has printed. It has ended.
    pub(crate) fn read(self, sites: &[PanicSite], tell: &mut dyn FnMut(KernelOutput<'_>)) {
        // SAFETY: pinned memory of the pool of that size, written by the copy, which has ended.
        let bytes = unsafe { std::slice::from_raw_parts(self.host.as_ptr(), self.size()) };
        let Printed { n_lost, n_unreadable } =
            read_print_buffer(bytes, sites, &mut |text| tell(KernelOutput::Text(text)));
        if n_unreadable > 0 {
            tell(KernelOutput::Unreadable { bytes: n_unreadable });
        }
        if n_lost > 0 {
            tell(KernelOutput::Lost { count: n_lost, capacity: self.capacity });
        }
    }
}

pub(crate) struct PrintPool {
    core: Arc<Gpu>,
    capacity: u32,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    slots: Vec<Slot>,
    /// The slot that was used last.
    last: usize,
}

struct Slot {
    buffer: PrintBuffer,
    /// The last launch that got it.
    user: Weak<CudaTask>,
}

/// A buffer for a launch that is being enqueued. No other launch of the queue gets one as long as this exists.
pub(crate) struct Reservation<'p> {
    state: MutexGuard<'p, State>,
    index: usize,
}

impl PrintPool {
    /// An empty pool of buffers with so many bytes for records.
    pub(crate) fn new(core: Arc<Gpu>, capacity: u32) -> Self {
        Self { core, capacity: capacity.min(PrintHeader::MAX_CAPACITY), state: Mutex::default() }
    }

    /// A buffer that is free, else a new one, else the one whose turn it is.
    pub(crate) fn reserve(&self) -> Result<Reservation<'_>, BackendError> {
        let mut state = self.state.lock();
        let free = state.slots.iter().position(|slot| slot.open_user().is_none());
        let index = match free {
            Some(index) => index,
            None if state.slots.len() < MOST_BUFFERS => {
                let buffer = self.allocate()?;
                state.slots.push(Slot { buffer, user: Weak::new() });
                state.slots.len() - 1
            }
            None => (state.last + 1) % MOST_BUFFERS,
        };
        Ok(Reservation { state, index })
    }

    fn allocate(&self) -> Result<PrintBuffer, BackendError> {
        let core = &self.core;
        let _entered = core.context.enter()?;
        let size = size_of::<PrintHeader>() + self.capacity as usize;
        let make = |kind| memory::take_or_make(core, kind, size).map_err(|error| core.context.fail(error));
        let device = make(UsmKind::Device)?;
        // The device's part is of no use alone.
        let host =
            make(UsmKind::Host).inspect_err(|_| core.retire(Block { kind: UsmKind::Device, base: device, size }))?;
        match NonNull::new(ptr::with_exposed_provenance_mut::<u8>(host as usize)) {
            Some(host) => {
                // The pages are the driver's, with whatever was in them.
                // SAFETY: memory of that size, which nobody else has.
                unsafe { host.write_bytes(0, size) };
                Ok(PrintBuffer { device, host, capacity: self.capacity })
            }
            None => {
                let what = "pinned memory at address zero".to_owned();
                Err(BackendError::Unsupported { device: core.context.name.clone(), what })
            }
        }
    }
}

impl Slot {
    /// The launch that uses it, if it has not ended.
    fn open_user(&self) -> Option<Arc<CudaTask>> {
        self.user.upgrade().filter(|task| !task.has_ended())
    }
}

impl Reservation<'_> {
    pub(crate) fn buffer(&self) -> PrintBuffer {
        self.state.slots[self.index].buffer
    }

    /// The launch that still uses the buffer.
    pub(crate) fn open_user(&self) -> Option<Arc<CudaTask>> {
        self.state.slots[self.index].open_user()
    }

    /// Gives the buffer to a launch that was accepted.
    pub(crate) fn set_user(&mut self, task: &Arc<CudaTask>) {
        let index = self.index;
        self.state.slots[index].user = Arc::downgrade(task);
        self.state.last = index;
    }
}

impl Drop for PrintPool {
    fn drop(&mut self) {
        let slots = std::mem::take(&mut self.state.get_mut().slots);
        if self.core.context.is_foreign() {
            return;
        }
        // Allocated by `allocate`; launches hold their queue, and with it the pool, until they have ended.
        for Slot { buffer, .. } in slots {
            let (size, host) = (buffer.size(), buffer.host.as_ptr() as DevicePointer);
            self.core.retire(Block { kind: UsmKind::Device, base: buffer.device, size });
            self.core.retire(Block { kind: UsmKind::Host, base: host, size });
        }
    }
}
