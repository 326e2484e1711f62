//! Runs kernel code, and converts a panic in it to a report.
//!
//! Owns the thread-local record of which kernel the thread is in. Invariant: while an entry function runs, the record
//! points to a live frame on the thread's own stack. Otherwise it points to the frame outside it, or to none.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use oxisycl_backend::KernelCommand;
use oxisycl_types::{GroupSize, HostChunk};

use crate::waiting::WAITING;

/// A report of a panic in a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PanicReport {
    pub(crate) message: String,
    pub(crate) location: Option<String>,
    pub(crate) item: Option<(u8, [usize; 3])>,
}

/// One kernel chunk that a thread is executing.
pub(crate) struct Frame {
    pub(crate) command: *const KernelCommand,
    pub(crate) chunk: *const HostChunk,
    /// The panic's location, written by the panic hook.
    pub(crate) location: RefCell<Option<String>>,
    outer: *const Frame,
}

thread_local! {
    static KEPT: RefCell<Vec<Line>> = const { RefCell::new(Vec::new()) };
    static CURRENT: Cell<*const Frame> = const { Cell::new(ptr::null()) };
}

/// Whether the calling thread is executing kernel code. Costs one thread-local read.
#[inline]
pub fn in_kernel() -> bool {
    CURRENT.with(|current| !current.get().is_null())
}

/// Calls `f` with the innermost kernel chunk that the calling thread executes, if there is one.
pub(crate) fn with_frame(f: impl FnOnce(&Frame)) {
    let frame = CURRENT.try_with(Cell::get).unwrap_or(ptr::null());
    if !frame.is_null() {
        // SAFETY: a non-null record points to the frame of a `run_chunk` further up this thread's stack, by the invariant above.
        f(unsafe { &*frame });
    }
}

/// Runs the units `begin..end` of a launch.
///
/// # Safety
/// `end` is at most the launch's size, and the promises of `Queue::issue` hold for the command.
#[inline]
pub(crate) unsafe fn run_chunk(command: &KernelCommand, begin: usize, end: usize) -> Result<(), PanicReport> {
    debug_assert!(!std::thread::panicking(), "`Pool::help` refuses, and other threads run nothing else");
    let mut chunk = HostChunk::new(begin, end).with_waiting(&WAITING);
    let bytes = command.group.map_or(0, |group| group.host_bytes);
    let mut memory = GroupMemory::of_thread(bytes);
    if let Some(memory) = &mut memory {
        chunk.group_memory = memory.first();
    }
    let outer = CURRENT.with(Cell::get);
    let frame = Frame { command, chunk: &raw const chunk, location: RefCell::new(None), outer };
    CURRENT.with(|current| current.set(&raw const frame));
    // SAFETY: by the contract of `Queue::issue`, the issuer promises that the argument block belongs to the entry and that its accessors
    // are valid. The chunk is one of the launch.
    let ended = catch_unwind(AssertUnwindSafe(|| unsafe { command.run(&chunk) }));
    CURRENT.with(|current| current.set(frame.outer));
    if let Some(memory) = memory {
        memory.keep();
    }
    match ended {
        Ok(()) => Ok(()),
        Err(payload) => {
            let report = PanicReport {
                message: message_of(&*payload),
                location: frame.location.take(),
                item: Some((command.range.dimensions, chunk.item.get())),
            };
            discard(payload);
            Err(report)
        }
    }
}

/// Memory of one group at a time, initialised. A thread keeps it for the next launch. A kernel that runs another launch's chunk, while it
/// waits at group scope, finds none and makes its own.
struct GroupMemory(Vec<Line>);

/// A unit of [`GroupMemory`].
#[derive(Clone, Copy)]
#[repr(align(64))]
pub(crate) struct Line(#[expect(dead_code, reason = "only its address is used")] [u8; GroupSize::ALIGNMENT]);

impl Line {
    pub(crate) const ZERO: Self = Self([0; GroupSize::ALIGNMENT]);
}

impl GroupMemory {
    /// The most group memory that a thread keeps, in bytes.
    const MAX_KEPT: usize = 16 << 20;

    fn of_thread(bytes: usize) -> Option<Self> {
        if bytes == 0 {
            return None;
        }
        // Not if the thread is ending.
        let mut lines = KEPT.try_with(RefCell::take).unwrap_or_default();
        // Zeroed each time: padding in values of an earlier kernel has left bytes that are not initialised.
        lines.clear();
        lines.resize(bytes.div_ceil(GroupSize::ALIGNMENT), Line::ZERO);
        Some(Self(lines))
    }

    fn first(&mut self) -> *mut u8 {
        self.0.as_mut_ptr().cast()
    }

    fn keep(self) {
        if self.0.capacity() * size_of::<Line>() <= Self::MAX_KEPT {
            let _ = KEPT.try_with(|kept| *kept.borrow_mut() = self.0);
        }
    }
}

/// The message of a panic, from its payload.
pub(crate) fn message_of(payload: &(dyn Any + Send)) -> String {
    if let Some(text) = payload.downcast_ref::<&'static str>() {
        (*text).to_owned()
    } else if let Some(text) = payload.downcast_ref::<String>() {
        text.clone()
    } else {
        "panic payload of unknown type".to_owned()
    }
}

/// Drops a panic's payload, also one whose destructor panics.
pub(crate) fn discard(payload: Box<dyn Any + Send>) {
    if let Err(another) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        std::mem::forget(another);
    }
}
