//! The print buffers of a queue's launches: memory of the device that kernels write, and of the host that it is copied to when the
//! launch has ended.
//!
//! Invariants: a buffer belongs to one launch at a time. A launch that finds none free is held back on the host behind the last user of the
//! one that comes next in turn; as users are all older than it, that one ends without it. Nothing is allocated before the first launch
//! that may print. The content of a buffer is never trusted.

use std::ptr::NonNull;
use std::sync::{Arc, Weak};

use oxisycl_backend::{BackendError, KernelOutput, UsmKind};
use oxisycl_image::{PanicSite, Printed, read_print_buffer};
use oxisycl_types::PrintHeader;
use parking_lot::{Mutex, MutexGuard};

use crate::context::Context;
use crate::emitter::Emitter;
use crate::error::Result;
use crate::task::Task;
use crate::transfer::copy_row;

/// Most launches of a queue that print at the same time.
const MOST_BUFFERS: usize = 16;

/// A print buffer of one launch.
#[derive(Clone)]
pub(crate) struct PrintBuffer(Arc<Parts>);

struct Parts {
    context: Arc<Context>,
    device: NonNull<u8>,
    /// As many bytes on the host.
    host: NonNull<[u8]>,
    /// What the buffer begins with before a launch.
    header: PrintHeader,
}

// SAFETY: addresses of memory that `Parts` alone frees, used by one launch at a time.
unsafe impl Send for Parts {}
// SAFETY: as above.
unsafe impl Sync for Parts {}

impl PrintBuffer {
    fn new(context: &Arc<Context>, capacity: u32) -> Result<Self> {
        let size = size_of::<PrintHeader>() + capacity as usize;
        let device = context.allocate(UsmKind::Device, size, align_of::<PrintHeader>())?;
        let host = NonNull::from(Box::leak(vec![0u8; size].into_boxed_slice()));
        let header = PrintHeader { used: 0, capacity, n_lost: 0, reserved: 0 };
        Ok(Self(Arc::new(Parts { context: context.clone(), device, host, header })))
    }

    /// What the kernel is given.
    pub(crate) fn address(&self) -> u64 {
        self.0.device.as_ptr().expose_provenance() as u64
    }

    /// Empties the buffer on the device, before the launch.
    pub(crate) fn clear(&self, emitter: &mut Emitter<'_>) -> Result<()> {
        let header = (&raw const self.0.header).cast();
        // SAFETY: the buffer belongs to this launch, whose task keeps it and with it the header.
        unsafe { copy_row(emitter, header, self.0.device.as_ptr(), size_of::<PrintHeader>()) }
    }

    /// Copies the buffer to the host, after the launch.
    pub(crate) fn fetch(&self, emitter: &mut Emitter<'_>) -> Result<()> {
        let host = self.0.host;
        // SAFETY: both are as large as the buffer, and belong to this launch, whose task keeps them.
        unsafe { copy_row(emitter, self.0.device.as_ptr(), host.as_ptr().cast(), host.len()) }
    }

    /// Tells what the launch has printed. It has ended.
    pub(crate) fn read(&self, sites: &[PanicSite], tell: &mut dyn FnMut(KernelOutput<'_>)) {
        // SAFETY: memory of this buffer, written by the copy, which has ended.
        let bytes = unsafe { self.0.host.as_ref() };
        let Printed { n_lost, n_unreadable } =
            read_print_buffer(bytes, sites, &mut |text| tell(KernelOutput::Text(text)));
        if n_unreadable > 0 {
            tell(KernelOutput::Unreadable { bytes: n_unreadable });
        }
        if n_lost > 0 {
            tell(KernelOutput::Lost { count: n_lost, capacity: self.0.header.capacity });
        }
    }
}

impl Drop for Parts {
    fn drop(&mut self) {
        // A lost device may write still.
        if self.context.is_foreign() || self.context.is_lost() {
            return;
        }
        // SAFETY: allocated and leaked by `new`; tasks keep their buffer until they have ended.
        unsafe {
            self.context.free(self.device);
            drop(Box::from_raw(self.host.as_ptr()));
        }
    }
}

pub(crate) struct PrintPool {
    context: Arc<Context>,
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
    user: Weak<Task>,
}

/// A buffer for a launch that is being enqueued. No other launch of the queue gets one as long as this exists.
pub(crate) struct Reservation<'p> {
    state: MutexGuard<'p, State>,
    index: usize,
}

impl PrintPool {
    /// An empty pool of buffers with so many bytes for records.
    pub(crate) fn new(context: Arc<Context>, capacity: u32) -> Self {
        Self { context, capacity: capacity.min(PrintHeader::MAX_CAPACITY), state: Mutex::default() }
    }

    /// A buffer that is free, else a new one, else the one whose turn it is.
    pub(crate) fn reserve(&self) -> Result<Reservation<'_>, BackendError> {
        let mut state = self.state.lock();
        let free = state.slots.iter().position(|slot| slot.open_user().is_none());
        let index = match free {
            Some(index) => index,
            None if state.slots.len() < MOST_BUFFERS => {
                let buffer = PrintBuffer::new(&self.context, self.capacity);
                let buffer = buffer.map_err(|error| self.context.fail(error))?;
                state.slots.push(Slot { buffer, user: Weak::new() });
                state.slots.len() - 1
            }
            None => (state.last + 1) % MOST_BUFFERS,
        };
        Ok(Reservation { state, index })
    }
}

impl Slot {
    /// The launch that uses it, if it has not ended.
    fn open_user(&self) -> Option<Arc<Task>> {
        self.user.upgrade().filter(|task| !task.has_ended())
    }
}

impl Reservation<'_> {
    pub(crate) fn buffer(&self) -> PrintBuffer {
        self.state.slots[self.index].buffer.clone()
    }

    /// The launch that still uses the buffer.
    pub(crate) fn open_user(&self) -> Option<Arc<Task>> {
        self.state.slots[self.index].open_user()
    }

    /// Gives the buffer to a launch that was accepted.
    pub(crate) fn set_user(&mut self, task: &Arc<Task>) {
        let index = self.index;
        self.state.slots[index].user = Arc::downgrade(task);
        self.state.last = index;
    }
}
