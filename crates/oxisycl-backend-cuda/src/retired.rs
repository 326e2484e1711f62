//! Retired memory: unused, and kept until it can be freed.
//!
//! A driver may free memory only once no kernel of the context runs, and launch nothing meanwhile (the quirk `waiting-free`). A kernel that
//! waits for the host would never end. So memory is put aside here and used again for allocations of the same size. The poller frees it
//! when the device has been idle for a while.
//!
//! Invariant: the poller frees only while no task is accepted. A submission counts its task first, and then checks whether memory is being
//! freed. The poller announces that it frees first, and then checks for tasks. So one of them sees the other.
//!
//! What is asked for when memory is exhausted, or beyond [`MOST_OF_HOST`], is freed at once, with the driver's wait.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use oxisycl_backend::UsmKind;
use parking_lot::Mutex;

use crate::sys::DevicePointer;

/// The most bytes of host memory that may be retired. A failed allocation shows that a device's memory is exhausted, but nothing does so
/// for the host's.
const MOST_OF_HOST: usize = 4 << 30;

/// One allocation of the driver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Block {
    pub(crate) kind: UsmKind,
    pub(crate) base: DevicePointer,
    pub(crate) size: usize,
}

#[derive(Default)]
pub(crate) struct Retired {
    blocks: Mutex<Blocks>,
    n_blocks: AtomicUsize,
    is_freeing: AtomicBool,
    /// Held while one block is freed.
    freeing: Mutex<()>,
}

#[derive(Default)]
struct Blocks {
    by_size: HashMap<(UsmKind, usize), Vec<DevicePointer>>,
    device_bytes: usize,
    host_bytes: usize,
}

impl Blocks {
    fn bytes(&mut self, kind: UsmKind) -> &mut usize {
        if kind == UsmKind::Device { &mut self.device_bytes } else { &mut self.host_bytes }
    }

    fn take(&mut self, key: (UsmKind, usize)) -> Option<Block> {
        let (kind, size) = key;
        let bases = self.by_size.get_mut(&key)?;
        let base = bases.pop()?;
        if bases.is_empty() {
            self.by_size.remove(&key);
        }
        *self.bytes(kind) -= size;
        Some(Block { kind, base, size })
    }
}

impl Retired {
    /// Retires a block. Returns it if too much memory is retired already.
    pub(crate) fn put(&self, block: Block) -> Result<(), Block> {
        let mut blocks = self.blocks.lock();
        let bytes = blocks.bytes(block.kind);
        if block.kind != UsmKind::Device && bytes.saturating_add(block.size) > MOST_OF_HOST {
            return Err(block);
        }
        *bytes += block.size;
        blocks.by_size.entry((block.kind, block.size)).or_default().push(block.base);
        self.n_blocks.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    /// Takes a retired block of exactly that size, to be used again.
    pub(crate) fn take(&self, kind: UsmKind, size: usize) -> Option<Block> {
        // Managed memory remembers the advice that it was given.
        if kind == UsmKind::Shared || self.is_empty() {
            return None;
        }
        let block = self.blocks.lock().take((kind, size))?;
        self.n_blocks.fetch_sub(1, Ordering::SeqCst);
        Some(block)
    }

    /// Takes any retired block, to be freed.
    pub(crate) fn take_any(&self) -> Option<Block> {
        let mut blocks = self.blocks.lock();
        let key = *blocks.by_size.keys().next()?;
        let block = blocks.take(key)?;
        self.n_blocks.fetch_sub(1, Ordering::SeqCst);
        Some(block)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.n_blocks.load(Ordering::SeqCst) == 0
    }

    /// The bytes of device memory that are retired.
    pub(crate) fn device_bytes(&self) -> usize {
        self.blocks.lock().device_bytes
    }

    /// Called by the poller: frees blocks with `free` as long as `is_idle`.
    pub(crate) fn free_while(&self, is_idle: impl Fn() -> bool, free: impl Fn(Block)) {
        while !self.is_empty() {
            let _freeing = self.freeing.lock();
            self.is_freeing.store(true, Ordering::SeqCst);
            let block = if is_idle() { self.take_any() } else { None };
            if let Some(block) = block {
                free(block);
            }
            self.is_freeing.store(false, Ordering::SeqCst);
            if block.is_none() {
                return;
            }
        }
    }

    /// Waits until no block is being freed.
    pub(crate) fn wait_until_freed(&self) {
        drop(self.freeing.lock());
    }

    /// Called by a submission after it has counted its task. If a block is being freed, this waits until that is done; the device is idle
    /// then.
    #[inline]
    pub(crate) fn step_aside(&self) {
        if self.is_freeing.load(Ordering::SeqCst) {
            self.wait_until_freed();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use super::*;

    fn block(kind: UsmKind, base: DevicePointer, size: usize) -> Block {
        Block { kind, base, size }
    }

    #[test]
    fn blocks_are_used_again_by_kind_and_size() {
        let retired = Retired::default();
        for (kind, base) in [(UsmKind::Device, 0x1000), (UsmKind::Host, 0x2000), (UsmKind::Shared, 0x3000)] {
            assert_eq!(retired.put(block(kind, base, 64)), Ok(()));
        }
        assert_eq!(retired.take(UsmKind::Device, 65), None);
        assert_eq!(retired.take(UsmKind::Device, 64), Some(block(UsmKind::Device, 0x1000, 64)));
        assert_eq!(retired.take(UsmKind::Device, 64), None);
        assert_eq!(retired.take(UsmKind::Host, 64), Some(block(UsmKind::Host, 0x2000, 64)));
        assert_eq!(retired.take(UsmKind::Shared, 64), None, "managed memory keeps what it was advised");
        assert_eq!(retired.take_any(), Some(block(UsmKind::Shared, 0x3000, 64)));
        assert!(retired.is_empty() && retired.device_bytes() == 0);
    }

    #[test]
    fn memory_of_the_host_has_a_limit_and_that_of_the_device_has_none() {
        let retired = Retired::default();
        assert_eq!(retired.put(block(UsmKind::Host, 0x1000, MOST_OF_HOST)), Ok(()));
        let refused = block(UsmKind::Shared, 0x2000, 1);
        assert_eq!(retired.put(refused), Err(refused));
        assert_eq!(retired.put(block(UsmKind::Device, 0x3000, 8 * MOST_OF_HOST)), Ok(()));
        assert_eq!(retired.device_bytes(), 8 * MOST_OF_HOST);
    }

    #[test]
    fn freeing_stops_when_a_task_is_accepted() {
        let retired = Retired::default();
        for base in 1..=5 {
            assert_eq!(retired.put(block(UsmKind::Device, base, 64)), Ok(()));
        }
        let (n_asked, freed) = (Cell::new(0), RefCell::new(Vec::new()));
        let is_idle = || {
            n_asked.set(n_asked.get() + 1);
            n_asked.get() <= 3
        };
        retired.free_while(is_idle, |block| freed.borrow_mut().push(block));
        assert_eq!(freed.borrow().len(), 3);
        assert_eq!(retired.device_bytes(), 128);
        retired.free_while(|| true, |block| freed.borrow_mut().push(block));
        assert!(freed.borrow().len() == 5 && retired.is_empty());
        retired.step_aside();
    }

    #[test]
    fn a_submission_waits_for_the_block_that_is_being_freed() {
        let retired = Retired::default();
        assert_eq!(retired.put(block(UsmKind::Device, 1, 64)), Ok(()));
        let (begun, is_freed) = (AtomicBool::new(false), AtomicBool::new(false));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                retired.free_while(
                    || true,
                    |_| {
                        begun.store(true, Ordering::SeqCst);
                        std::thread::sleep(std::time::Duration::from_millis(20));
                        is_freed.store(true, Ordering::SeqCst);
                    },
                );
            });
            while !begun.load(Ordering::SeqCst) {
                std::thread::yield_now();
            }
            retired.step_aside();
            assert!(is_freed.load(Ordering::SeqCst));
        });
    }
}
