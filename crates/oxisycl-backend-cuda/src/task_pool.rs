//! The memory of tasks, used again and again.
//!
//! Tasks are made by threads that submit and end on another thread. An allocator serves such a pattern badly: both threads want the
//! same lock, once per command. Here memory travels back in batches. Invariant: memory in the pool holds no task.

use std::cell::RefCell;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::task::CudaTask;

/// Memory for one task, with nobody else who knows it.
type Spare = Arc<MaybeUninit<CudaTask>>;

/// How many travel at once.
const BATCH: usize = 64;
/// How many the process keeps.
const MOST: usize = 2048;

static SPARES: Mutex<Vec<Spare>> = Mutex::new(Vec::new());

thread_local! {
    /// A part of the pool, for the thread that submits.
    static NEAR: RefCell<Vec<Spare>> = const { RefCell::new(Vec::new()) };
}

/// A task in memory of the pool, or in new memory if there is none.
#[inline]
pub(crate) fn make(task: impl FnOnce() -> CudaTask) -> Arc<CudaTask> {
    let mut spare = take().unwrap_or_else(Arc::new_uninit);
    let Some(memory) = Arc::get_mut(&mut spare) else { return Arc::new(task()) };
    memory.write(task());
    // SAFETY: written just now.
    unsafe { spare.assume_init() }
}

fn take() -> Option<Spare> {
    let taken = NEAR.try_with(|near| {
        let mut near = near.borrow_mut();
        if near.is_empty() {
            let mut spares = SPARES.lock();
            let first = spares.len().saturating_sub(BATCH);
            near.extend(spares.drain(first..));
        }
        near.pop()
    });
    // The thread is ending.
    taken.ok().flatten()
}

/// Collects the memory of tasks that have ended.
#[derive(Default)]
pub(crate) struct Bin(Vec<Spare>);

impl Bin {
    /// Drops a task, and keeps its memory if nobody else has the task.
    pub(crate) fn add(&mut self, mut task: Arc<CudaTask>) {
        if Arc::get_mut(&mut task).is_none() {
            return;
        }
        let task = Arc::into_raw(task);
        // SAFETY: nobody else has the task (just asked), so it may be dropped in place; afterwards its memory is used as
        // `MaybeUninit` of the same type, which has the same layout and needs no value.
        self.0.push(unsafe {
            ptr::drop_in_place(task.cast_mut());
            Arc::from_raw(task.cast::<MaybeUninit<CudaTask>>())
        });
        if self.0.len() >= BATCH {
            self.empty();
        }
    }

    fn empty(&mut self) {
        let mut spares = SPARES.lock();
        let room = MOST.saturating_sub(spares.len()).min(self.0.len());
        spares.extend(self.0.drain(..room));
        drop(spares);
        self.0.clear();
    }
}

impl Drop for Bin {
    fn drop(&mut self) {
        if !self.0.is_empty() {
            self.empty();
        }
    }
}
