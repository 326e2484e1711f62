//! What fresh memory is like.

use std::alloc::Layout;

use oxisycl_types::Aspect;

use super::subject::{Subject, copy, row, run};
use oxisycl_backend::{MemoryId, UsmKind};

/// The kinds of allocations that the device has. Buffers need device allocations on every device.
fn kinds(subject: &Subject) -> Vec<UsmKind> {
    let info = subject.device().info();
    let has = |kind: &UsmKind| match kind {
        UsmKind::Device => true,
        UsmKind::Host => info.has(Aspect::UsmHostAllocations),
        UsmKind::Shared => info.has(Aspect::UsmSharedAllocations),
    };
    [UsmKind::Device, UsmKind::Host, UsmKind::Shared].into_iter().filter(has).collect()
}

/// Memory that is asked to be zero is zero, also where other values were before.
pub fn zeroed_memory_is_zero(subject: &Subject) {
    let (queue, device) = (subject.queue(), subject.device());
    let memory = device.memory();
    for kind in kinds(subject) {
        let id = if kind == UsmKind::Device { device.info().memory.id } else { MemoryId::HOST };
        for size in [1, 4096, if cfg!(miri) { 5003 } else { 100_003 }] {
            let layout = Layout::from_size_align(size, 16).expect("a small layout");
            for _ in 0..2 {
                let pointer = memory.allocate(kind, layout, true).expect("a device has some memory");
                let mut bytes = vec![1; size];
                run(&queue, copy(row(id, pointer.as_ptr()), row(MemoryId::HOST, bytes.as_mut_ptr()), size));
                assert!(bytes.iter().all(|byte| *byte == 0), "{kind} memory of {size} bytes is not zero");
                bytes.fill(0xFF);
                run(&queue, copy(row(MemoryId::HOST, bytes.as_mut_ptr()), row(id, pointer.as_ptr()), size));
                // SAFETY: allocated above with these arguments, and both copies have completed.
                unsafe { memory.free(pointer, kind, layout) };
            }
        }
    }
}

/// Allocations are aligned as asked, and do not overlap.
pub fn allocations_are_aligned_and_distinct(subject: &Subject) {
    let memory = subject.device().memory();
    for kind in kinds(subject) {
        let layouts = [(1, 1), (3, 2), (64, 64), (100, 256), (5000, 4096), (1, 1024)];
        let layouts = layouts.map(|(size, align)| Layout::from_size_align(size, align).expect("a small layout"));
        let pointers = layouts.map(|layout| memory.allocate(kind, layout, false).expect("a device has some memory"));
        let mut ranges: Vec<(usize, usize)> = Vec::new();
        for (layout, pointer) in layouts.iter().zip(&pointers) {
            let address = pointer.as_ptr() as usize;
            assert_eq!(address % layout.align(), 0, "{kind} memory is not aligned for {layout:?}");
            ranges.push((address, address + layout.size()));
        }
        ranges.sort_unstable();
        assert!(ranges.windows(2).all(|pair| pair[0].1 <= pair[1].0), "{kind} allocations overlap");
        for (layout, pointer) in layouts.into_iter().zip(pointers) {
            // SAFETY: allocated above with these arguments; no command used it.
            unsafe { memory.free(pointer, kind, layout) };
        }
    }
}
