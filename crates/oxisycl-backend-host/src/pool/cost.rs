//! The cost of kernels' work-items, as measured in earlier launches.
//!
//! A launch that is done in a few microseconds is slower when it is shared. The number of work-items alone does not
//! decide. A kernel with one heavy item per processor must be shared, and one with a thousand light ones must not. So a
//! small table remembers the time per item of each kernel that ran. It is a hint: entries may collide, and threads
//! overwrite each other's.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use super::work::Work;

const SLOTS: usize = 256;
/// Launches that are expected to take less than this run on one thread.
const SHARE_ABOVE_NS: f32 = 8_000.0;
/// Transfers of fewer bytes than this run on one thread.
const SHARE_ABOVE_BYTES: usize = 1 << 20;
/// The fixed cost of a chunk, in nanoseconds.
const CHUNK_OVERHEAD_NS: u64 = 60;

pub(crate) struct CostTable {
    /// Upper half: tag of the kernel; lower half: nanoseconds per item as `f32` bits. Zero is an empty slot.
    slots: Box<[AtomicU64; SLOTS]>,
}

impl CostTable {
    pub(crate) fn new() -> Self {
        Self { slots: Box::new([const { AtomicU64::new(0) }; SLOTS]) }
    }

    /// Whether the work should run on one thread. A kernel that was never seen is shared.
    #[inline]
    pub(crate) fn is_light(&self, work: &Work<'_>, total: usize) -> bool {
        match work {
            _ if total <= 1 => true,
            Work::Kernel(_) => self.look_up(work).is_some_and(|cost| cost * total as f32 <= SHARE_ABOVE_NS),
            Work::Copy(_) => total < SHARE_ABOVE_BYTES,
            Work::Fill(fill) => total * fill.pattern.len() < SHARE_ABOVE_BYTES,
            Work::Nothing => true,
        }
    }

    /// The measured nanoseconds per item of a kernel; `None` if it has not run yet.
    pub(crate) fn look_up(&self, work: &Work<'_>) -> Option<f32> {
        let Work::Kernel(kernel) = work else { return None };
        let (slot, tag) = self.slot(kernel.descriptor.host_entry as usize);
        let value = slot.load(Ordering::Relaxed);
        (value >> 32 == tag).then(|| f32::from_bits(value as u32))
    }

    /// Records that all `total` items of a launch took `nanoseconds` together.
    #[inline]
    pub(crate) fn note(&self, work: &Work<'_>, total: usize, nanoseconds: u64) {
        let Work::Kernel(kernel) = work else { return };
        let (slot, tag) = self.slot(kernel.descriptor.host_entry as usize);
        let before = slot.load(Ordering::Relaxed);
        let known = if before >> 32 == tag { f32::from_bits(before as u32) } else { -1.0 };
        // Falls slowly, so that one light launch does not hide the heavy ones.
        let cost = (nanoseconds as f32 / total.max(1) as f32).max(known * 0.5);
        // Small changes are not worth a write to a line that all threads read.
        if (cost - known).abs() > 0.25 * known.abs() {
            slot.store(tag << 32 | u64::from(cost.to_bits()), Ordering::Relaxed);
        }
    }

    fn slot(&self, entry: usize) -> (&AtomicU64, u64) {
        let hash = (entry as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let tag = (hash >> 32) | 1;
        (&self.slots[(hash >> 20) as usize % SLOTS], tag)
    }
}

/// Measures a kernel's chunk; does nothing for other work.
#[derive(Clone, Copy)]
pub(crate) struct Stopwatch(Option<Instant>);

impl Stopwatch {
    /// A watch that runs if the work is a kernel of more than one item.
    #[inline]
    pub(crate) fn start(work: &Work<'_>, total: usize) -> Self {
        Self((total > 1 && matches!(work, Work::Kernel(_))).then(Instant::now))
    }

    /// Nanoseconds that the items took; `None` if the watch did not run.
    #[inline]
    pub(crate) fn stop(self) -> Option<u64> {
        let elapsed = self.0?.elapsed().as_nanos();
        Some(u64::try_from(elapsed).unwrap_or(u64::MAX).saturating_sub(CHUNK_OVERHEAD_NS))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use oxisycl_backend::Command;
    use oxisycl_types::{HostChunk, LaunchRange};

    use super::*;
    use crate::tests::support::{kernel, range};

    unsafe fn one(_: *const u8, _: &LaunchRange, _: &HostChunk) {
        std::hint::black_box(1);
    }
    unsafe fn two(_: *const u8, _: &LaunchRange, _: &HostChunk) {
        std::hint::black_box(2);
    }

    #[test]
    fn an_unknown_kernel_of_several_items_is_shared_and_a_single_item_is_not() {
        let table = CostTable::new();
        let command = kernel(&(), one, range(2));
        assert!(!table.is_light(&Work::of(&command), 2));
        assert!(table.is_light(&Work::of(&command), 1));
        assert!(table.is_light(&Work::of(&Command::Marker), 0));
    }

    #[test]
    fn a_kernel_becomes_light_at_once_and_heavy_at_once_but_light_again_slowly() {
        let table = CostTable::new();
        let (a, b) = (kernel(&(), one, range(100)), kernel(&(), two, range(100)));
        let (a, b) = (Work::of(&a), Work::of(&b));
        table.note(&a, 100, 100);
        assert!(table.is_light(&a, 100) && table.is_light(&a, 1000) && !table.is_light(&a, 1_000_000));
        assert!(table.look_up(&b).is_none_or(|cost| cost == 1.0));
        table.note(&a, 100, 100_000_000);
        assert!(!table.is_light(&a, 100));
        table.note(&a, 100, 100);
        assert!(!table.is_light(&a, 100));
        (0..40).for_each(|_| table.note(&a, 100, 100));
        assert!(table.is_light(&a, 100));
    }

    #[test]
    fn a_kernel_without_cost_stays_light() {
        let table = CostTable::new();
        let command = kernel(&(), one, range(100));
        let work = Work::of(&command);
        (0..3).for_each(|_| table.note(&work, 100, 0));
        assert!(table.is_light(&work, 1 << 40));
    }
}
