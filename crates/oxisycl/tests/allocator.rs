//! Containers whose memory is in USM allocations.

#![cfg(all(feature = "allocator", feature = "simulated"))]

mod support;

use std::alloc::Layout;

use allocator_api2::alloc::Allocator;
use allocator_api2::boxed::Box;
use allocator_api2::vec::Vec;
use hashbrown::HashMap;
use oxisycl::observe::counters;
use oxisycl::prelude::*;
use oxisycl::simulated::{SimulatedConfig, Simulator};
use oxisycl::usm::{AllocatorKind, Host, PointerKind, Shared, UsmAllocator, UsmPointer, pointer_kind};

use support::{alone, eventually};

fn device() -> Device {
    Simulator::new(SimulatedConfig::new(1)).unwrap().devices()[0].clone()
}

/// Grows a vector, uses it in a kernel, and drops it while the kernel runs.
fn use_vector<K: AllocatorKind>(queue: &Queue, kind: PointerKind) {
    let before = counters();
    let allocator = UsmAllocator::<K>::new(queue).unwrap();
    let mut numbers = Vec::new_in(allocator.clone());
    (0..1000u32).for_each(|i| numbers.push(i));
    assert_eq!(pointer_kind(numbers.as_ptr(), queue.context()), kind);
    assert_eq!(pointer_kind(&raw const numbers[999], queue.context()), kind);
    let pointer = UsmPointer::new(numbers.as_mut_ptr());
    let event = queue.parallel_for(1000, move |item: Item<1>| {
        // SAFETY: each work-item uses an element of its own, and the vector is not used before the event is complete.
        unsafe { pointer.write(item.index(), 2 * pointer.read(item.index())) }
    });
    event.unwrap().wait().unwrap();
    assert!((0..1000).zip(&numbers).all(|(i, number)| *number == 2 * i));
    let boxed = Box::new_in(7u64, allocator.clone());
    assert_eq!((*boxed, boxed.as_ptr_kind(queue)), (7, kind));
    let late = queue.parallel_for(1000, move |item: Item<1>| {
        // SAFETY: the memory is freed after the commands that were submitted before.
        unsafe { pointer.write(item.index(), 1) }
    });
    drop((numbers, boxed, allocator));
    late.unwrap().wait().unwrap();
    let left = || {
        let since = counters() - before;
        since.usm_allocations - since.usm_frees
    };
    assert!((counters() - before).usm_allocations > 2, "a vector that grows allocates anew");
    eventually("the memory is freed", || left() == 0);
}

/// The kind of a box's memory.
trait Kind {
    fn as_ptr_kind(&self, queue: &Queue) -> PointerKind;
}

impl<T, K: AllocatorKind> Kind for Box<T, UsmAllocator<K>> {
    fn as_ptr_kind(&self, queue: &Queue) -> PointerKind {
        pointer_kind(&raw const **self, queue.context())
    }
}

#[test]
fn vectors_and_boxes_have_their_memory_in_allocations() {
    let _alone = alone();
    for device in [device(), Device::select(oxisycl::selector::cpu_selector).unwrap()] {
        let queue = Queue::new(&device).unwrap();
        use_vector::<Host>(&queue, PointerKind::Host);
        use_vector::<Shared>(&queue, PointerKind::Shared);
    }
}

#[test]
fn maps_and_elements_of_no_size_work() {
    let _alone = alone();
    let queue = Queue::new(&device()).unwrap();
    let allocator = UsmAllocator::<Shared>::new(&queue).unwrap();
    let mut map = HashMap::new_in(allocator.clone());
    for i in 0..500u32 {
        map.insert(i, format!("{i}"));
    }
    assert!((0..500).all(|i| map[&i] == i.to_string()));
    let mut nothing = Vec::new_in(allocator);
    nothing.extend([(); 10]);
    assert_eq!(nothing.len(), 10);
}

#[test]
fn memory_is_aligned_as_the_allocator_says() {
    let _alone = alone();
    let queue = Queue::new(&device()).unwrap();
    let allocator = UsmAllocator::<Host>::with_alignment(&queue, 4096).unwrap();
    for n in [1usize, 3, 100] {
        let mut bytes = Vec::with_capacity_in(n, allocator.clone());
        bytes.resize(n, 1u8);
        assert!(bytes.as_ptr().addr().is_multiple_of(4096));
    }
    let error = UsmAllocator::<Host>::with_alignment(&queue, 24).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Invalid);
}

#[test]
fn allocators_are_equal_by_context_device_and_alignment() {
    let _alone = alone();
    let queue = Queue::new(&device()).unwrap();
    let one = UsmAllocator::<Shared>::new(&queue).unwrap();
    assert!(one == one.clone() && one == UsmAllocator::new(&queue).unwrap());
    assert!(one != UsmAllocator::with_alignment(&queue, 64).unwrap());
    assert!(one != UsmAllocator::new(&Queue::new(&device()).unwrap()).unwrap());
}

/// What the trait `Allocator` asks of allocators that are equal.
#[test]
fn memory_is_freed_by_an_allocator_that_is_equal_and_outlives_its_own() {
    let _alone = alone();
    let queue = Queue::new(&device()).unwrap();
    let layout = Layout::new::<[u64; 100]>();
    for is_dropped in [false, true] {
        let before = counters();
        let left = || {
            let since = counters() - before;
            since.usm_allocations - since.usm_frees
        };
        let (one, other) = (UsmAllocator::<Shared>::new(&queue).unwrap(), UsmAllocator::new(&queue).unwrap());
        assert!(one == other);
        let memory = one.allocate(layout).unwrap().cast::<[u64; 100]>();
        let one = (!is_dropped).then_some(one);
        assert_eq!(left(), 1, "the memory outlives the allocator it is of");
        // SAFETY: memory of that size, which is freed once, by an allocator that is equal.
        unsafe {
            memory.write([7; 100]);
            assert_eq!(memory.read(), [7; 100]);
            other.deallocate(memory.cast(), layout);
        }
        eventually("the memory is freed", || left() == 0);
        drop(one);
    }
}

#[test]
fn a_device_without_the_kind_is_refused_and_lack_of_memory_is_an_error() {
    let _alone = alone();
    let config = SimulatedConfig::new(1).usm(&[oxisycl::UsmKind::Host]).memory(1 << 20);
    let device = Simulator::new(config).unwrap().devices()[0].clone();
    let queue = Queue::new(&device).unwrap();
    let error = UsmAllocator::<Shared>::new(&queue).unwrap_err();
    assert_eq!(error.code(), ErrorCode::FeatureNotSupported);
    assert!(error.to_string().contains(device.name()), "{error}");
    let mut bytes = Vec::<u8, _>::new_in(UsmAllocator::<Host>::new(&queue).unwrap());
    assert!(bytes.try_reserve(usize::MAX / 4).is_err());
}
