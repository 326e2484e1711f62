//! Making, freeing and asking about allocations.

use std::alloc::Layout;
use std::sync::atomic::{AtomicU32, Ordering};

use oxisycl::UsmKind;
use oxisycl::atomic::{Acquire, Relaxed, Release, Scope};
use oxisycl::prelude::*;
use oxisycl::simulated::{SimulatedConfig, Simulator};
use oxisycl::usm::{PointerKind, UsmPointer, UsmSlice, free, malloc_raw, pointer_device, pointer_kind};

use crate::harness::{Env, queue_on, tests};
use crate::support::{Gate, code, counted, iota};

tests![
    every_kind_can_be_used_by_kernels,
    the_shortcuts_make_their_kind,
    an_allocation_says_what_it_is,
    host_and_shared_allocations_are_used_by_the_host,
    a_device_allocation_is_not_used_by_the_host_unless_it_can,
    elements_have_their_alignment,
    an_alignment_may_be_asked_for,
    an_impossible_alignment_is_refused,
    a_size_that_overflows_is_refused,
    an_allocation_of_no_elements_is_possible,
    exhausted_memory_is_an_error,
    an_allocation_is_freed_on_drop,
    host_and_kernel_count_together,
    host_and_kernel_pass_messages,
    an_owner_may_be_dropped_before_its_commands_run,
    an_owner_may_be_dropped_after_its_queue,
    an_owner_moves_between_threads,
    pointer_kinds_are_told,
    pointers_into_the_middle_are_known,
    foreign_pointers_are_unknown,
    pointers_of_another_context_are_unknown,
    pointers_are_unknown_after_the_allocation,
    the_device_of_a_pointer_is_told,
    raw_allocations_are_freed_by_hand,
    freeing_what_is_none_is_refused,
    a_device_outside_the_context_is_refused,
    a_host_allocation_ignores_the_device,
    copies_to_and_from_slices_move_every_element,
    a_copy_of_another_length_is_refused,
    ; once:
    a_missing_kind_is_an_error,
];

const KINDS: [UsmKind; 3] = [UsmKind::Device, UsmKind::Host, UsmKind::Shared];

fn every_kind_can_be_used_by_kernels(env: &Env) {
    let queue = env.queue();
    for kind in KINDS {
        let slice: UsmSlice<i32> = queue.malloc(kind, 100).unwrap();
        let pointer = slice.pointer();
        // SAFETY: each work-item uses its own element, and the second kernel is submitted after the first has ended.
        let write = queue.parallel_for(100, move |item| unsafe { pointer.write(item.index(), item.index() as i32) });
        write.unwrap().wait().unwrap();
        let double = queue.parallel_for(100, move |item| {
            // SAFETY: as above.
            unsafe { pointer.write(item.index(), pointer.read(item.index()) * 2) }
        });
        double.unwrap().wait().unwrap();
        assert_eq!(slice.to_vec(&queue).unwrap(), iota(100).iter().map(|x| 2 * x).collect::<Vec<_>>(), "{kind}");
    }
}

fn the_shortcuts_make_their_kind(env: &Env) {
    let queue = env.queue();
    assert_eq!(queue.malloc_device::<u8>(1).unwrap().kind(), UsmKind::Device);
    assert_eq!(queue.malloc_host::<u8>(1).unwrap().kind(), UsmKind::Host);
    assert_eq!(queue.malloc_shared::<u8>(1).unwrap().kind(), UsmKind::Shared);
}

fn an_allocation_says_what_it_is(env: &Env) {
    let queue = env.queue();
    let (since, slice) = counted(|| queue.malloc_device::<f64>(7).unwrap());
    assert_eq!((since.usm_allocations, since.buffer_allocations), (1, 0));
    assert_eq!((slice.len(), slice.is_empty(), slice.kind()), (7, false, UsmKind::Device));
    assert_eq!(slice.context(), queue.context());
    assert_eq!(slice.pointer().as_ptr(), slice.as_ptr());
    if let Some(control) = env.control() {
        assert_eq!((control.live_allocations(0), control.allocated_bytes(0)), (1, 56));
    }
}

fn host_and_shared_allocations_are_used_by_the_host(env: &Env) {
    let queue = env.queue();
    for kind in [UsmKind::Host, UsmKind::Shared] {
        let mut slice: UsmSlice<i32> = queue.malloc(kind, 8).unwrap();
        // SAFETY: no command uses it.
        unsafe { slice.as_mut_slice() }.unwrap().copy_from_slice(&iota(8));
        let pointer = slice.pointer();
        // SAFETY: each work-item uses its own element.
        let kernel = queue.parallel_for(8, move |item| unsafe {
            pointer.write(item.index(), pointer.read(item.index()) + 100);
        });
        kernel.unwrap().wait().unwrap();
        // SAFETY: the command has ended.
        assert_eq!(unsafe { slice.as_slice() }.unwrap(), (100..108).collect::<Vec<_>>(), "{kind}");
    }
}

fn a_device_allocation_is_not_used_by_the_host_unless_it_can(env: &Env) {
    let queue = env.queue();
    let mut slice = queue.malloc_device::<i32>(8).unwrap();
    slice.copy_from_slice(&queue, &iota(8)).unwrap();
    if env.is_host() {
        // SAFETY: no command uses it.
        assert_eq!(unsafe { slice.as_slice() }.unwrap(), iota(8));
        return;
    }
    // SAFETY: no command uses it.
    assert_eq!(code(unsafe { slice.as_slice() }.map(<[i32]>::len)), ErrorCode::Invalid);
    // SAFETY: as above.
    assert_eq!(code(unsafe { slice.as_mut_slice() }.map(|slice| slice.len())), ErrorCode::Invalid);
}

fn elements_have_their_alignment(env: &Env) {
    #[derive(Clone, Copy, DeviceCopyable)]
    #[repr(C, align(512))]
    struct Wide([u8; 512]);
    // SAFETY: an array of bytes as long as its alignment.
    unsafe impl bytemuck::Zeroable for Wide {}
    // SAFETY: as above.
    unsafe impl bytemuck::Pod for Wide {}
    let queue = env.queue();
    for kind in KINDS {
        assert_eq!(queue.malloc::<Wide>(kind, 3).unwrap().as_ptr().addr() % 512, 0);
        assert_eq!(queue.malloc::<u64>(kind, 3).unwrap().as_ptr().addr() % 8, 0);
    }
}

fn an_alignment_may_be_asked_for(env: &Env) {
    let queue = env.queue();
    for kind in KINDS {
        for align in [1, 2, 64, 256, 4096] {
            let slice: UsmSlice<u32> = queue.aligned_alloc(kind, 5, align).unwrap();
            assert_eq!(slice.as_ptr().addr() % align.max(4), 0, "{kind} {align}");
        }
    }
}

fn an_impossible_alignment_is_refused(env: &Env) {
    for align in [0, 3, 48, usize::MAX] {
        let result = env.queue().aligned_alloc::<u8>(UsmKind::Device, 5, align);
        assert_eq!(code(result), ErrorCode::Invalid, "{align}");
        let result = env.queue().aligned_alloc::<u64>(UsmKind::Host, 5, align);
        assert_eq!(code(result), ErrorCode::Invalid, "{align}");
    }
}

fn a_size_that_overflows_is_refused(env: &Env) {
    for kind in KINDS {
        assert_eq!(code(env.queue().malloc::<u64>(kind, usize::MAX / 4)), ErrorCode::Invalid);
        assert_eq!(code(env.queue().malloc::<u8>(kind, usize::MAX)), ErrorCode::Invalid);
    }
}

fn an_allocation_of_no_elements_is_possible(env: &Env) {
    let queue = env.queue();
    for kind in KINDS {
        let mut slice: UsmSlice<u64> = queue.malloc(kind, 0).unwrap();
        assert!(slice.is_empty() && slice.as_ptr().is_aligned());
        slice.copy_from_slice(&queue, &[]).unwrap();
        assert!(slice.to_vec(&queue).unwrap().is_empty());
        assert_eq!(pointer_kind(slice.as_ptr(), queue.context()), PointerKind::Unknown);
    }
}

fn exhausted_memory_is_an_error(env: &Env) {
    let queue = env.queue();
    for kind in KINDS {
        assert_eq!(code(queue.malloc::<u8>(kind, 1 << 55)), ErrorCode::MemoryAllocation, "{kind}");
    }
    let simulator = Simulator::new(SimulatedConfig::new(1).memory(1000)).unwrap();
    let queue = queue_on(&simulator.devices()[0]);
    let first = queue.malloc_device::<u8>(600).unwrap();
    assert_eq!(code(queue.malloc_device::<u8>(600)), ErrorCode::MemoryAllocation);
    drop(first);
    queue.malloc_device::<u8>(1000).unwrap();
}

fn a_missing_kind_is_an_error() {
    let simulator = Simulator::new(SimulatedConfig::new(1).usm(&[UsmKind::Device])).unwrap();
    let queue = queue_on(&simulator.devices()[0]);
    assert!(!queue.device().has(Aspect::UsmSharedAllocations) && queue.device().has(Aspect::UsmDeviceAllocations));
    assert_eq!(code(queue.malloc_shared::<u8>(1)), ErrorCode::FeatureNotSupported);
    assert_eq!(code(queue.malloc_host::<u8>(1)), ErrorCode::FeatureNotSupported);
    assert_eq!(queue.malloc_device::<u8>(1).unwrap().len(), 1);
}

fn an_allocation_is_freed_on_drop(env: &Env) {
    let queue = env.queue();
    let (since, ()) = counted(|| {
        for kind in KINDS {
            drop(queue.malloc::<u64>(kind, 100).unwrap());
        }
    });
    assert_eq!((since.usm_allocations, since.usm_frees), (3, 3));
}

/// Calls `check` for each kind of memory on which atomic operations of host and kernels work together, as the device says.
fn with_common_atomics(env: &Env, check: impl Fn(&Queue, UsmKind)) {
    let aspects =
        [(UsmKind::Host, Aspect::UsmAtomicHostAllocations), (UsmKind::Shared, Aspect::UsmAtomicSharedAllocations)];
    let kinds: Vec<_> = aspects.into_iter().filter(|(_, aspect)| env.device().has(*aspect)).collect();
    if kinds.is_empty() {
        env.skip("the device says of no memory that atomic operations of host and kernels work together");
    }
    kinds.into_iter().for_each(|(kind, _)| check(&env.queue(), kind));
}

fn host_and_kernel_count_together(env: &Env) {
    const ITEMS: usize = 20_000;
    const EACH: u32 = 8;
    with_common_atomics(env, |queue, kind| {
        let mut words: UsmSlice<u32> = queue.malloc(kind, 2).unwrap();
        words.copy_from_slice(queue, &[0; 2]).unwrap();
        let pointer = words.pointer();
        // SAFETY: elements of the allocation, which are accessed by atomic operations only until the event is complete.
        let counter = |index| unsafe { AtomicU32::from_ptr(pointer.as_ptr().wrapping_add(index)) };
        let event = queue.parallel_for(ITEMS, move |item: Item<1>| {
            // SAFETY: as above.
            let counters =
                unsafe { (pointer.atomic_ref(item, 0), AtomicU32::from_ptr(pointer.as_ptr().wrapping_add(1))) };
            for _ in 0..EACH {
                counters.0.with_scope(Scope::System).fetch_add(1, Relaxed);
                counters.1.fetch_add(1, Ordering::Relaxed);
            }
        });
        let event = event.unwrap();
        // From before the kernel begins until it has ended.
        let mut by_host = 0;
        while by_host == 0 || !event.is_complete() {
            (0..2).for_each(|index| _ = counter(index).fetch_add(1, Ordering::Relaxed));
            by_host += 1;
        }
        event.wait().unwrap();
        let total = ITEMS as u32 * EACH + by_host;
        assert_eq!(words.to_vec(queue).unwrap(), [total; 2], "{kind}: {by_host} by the host");
    });
}

/// Both write and say so. Who sees that the other one has written sees what it wrote.
fn host_and_kernel_pass_messages(env: &Env) {
    const N: usize = 8192;
    let message = |i: usize| i as u32 * 7 + 1;
    with_common_atomics(env, |queue, kind| {
        // Messages of the kernel and their flags, those of the host, and how many arrived as something else.
        let mut words: UsmSlice<u32> = queue.malloc(kind, 4 * N + 1).unwrap();
        words.copy_from_slice(queue, &[0; 4 * N + 1]).unwrap();
        let pointer = words.pointer();
        let event = queue.parallel_for(N, move |item: Item<1>| {
            let i = item.index();
            // SAFETY: elements of the allocation. A message has one writer, and is read behind its flag, which is accessed atomically.
            unsafe {
                pointer.write(i, message(i));
                pointer.atomic_ref(item, N + i).with_scope(Scope::System).store(1, Release);
                let flag = pointer.atomic_ref(item, 3 * N + i).with_scope(Scope::System);
                if flag.load(Acquire) == 1 && pointer.read(2 * N + i) != message(i) {
                    pointer.atomic_ref(item, 4 * N).fetch_add(1, Relaxed);
                }
            }
        });
        let event = event.unwrap();
        // SAFETY: as above.
        let flag = |index| unsafe { AtomicU32::from_ptr(pointer.as_ptr().wrapping_add(index)) };
        for i in (0..N).rev() {
            // SAFETY: as above.
            unsafe { pointer.write(2 * N + i, message(i)) };
            flag(3 * N + i).store(1, Ordering::Release);
            for i in [i, N - 1 - i].into_iter().filter(|i| flag(N + i).load(Ordering::Acquire) == 1) {
                // SAFETY: as above.
                assert_eq!(unsafe { pointer.read(i) }, message(i), "{kind}: message {i}");
            }
        }
        event.wait().unwrap();
        let words = words.to_vec(queue).unwrap();
        assert_eq!(words[4 * N], 0, "{kind}: messages of the host");
        assert!((0..N).all(|i| words[i] == message(i) && words[N + i] == 1), "{kind}");
    });
}

fn an_owner_may_be_dropped_before_its_commands_run(env: &Env) {
    let queue = env.queue();
    let before = oxisycl::observe::counters();
    let result = Buffer::<i32, 1>::uninit(1).unwrap();
    let gate = Gate::new(&queue, |_| {});
    let reader = {
        let slice = queue.malloc_device::<i32>(64).unwrap();
        let pointer = slice.pointer();
        let writer = queue.submit(|cg| {
            cg.depends_on(gate.event());
            // SAFETY: the allocation is freed after the last command submitted before the drop.
            cg.parallel_for(64, move |item| unsafe { pointer.write(item.index(), 3) })
        });
        let reader = queue.submit(|cg| {
            cg.depends_on(&writer?);
            let result = cg.access(&result, Write);
            // SAFETY: as above.
            cg.single_task(move |task| result.set_at(task, 0, (0..64).map(|i| unsafe { pointer.read(i) }).sum()))
        });
        reader.unwrap()
    };
    std::thread::sleep(std::time::Duration::from_millis(5));
    assert_eq!((oxisycl::observe::counters() - before).usm_frees, 0);
    gate.open();
    reader.wait().unwrap();
    assert_eq!(result.to_vec().unwrap(), [192]);
    queue.wait().unwrap();
    let began = std::time::Instant::now();
    while (oxisycl::observe::counters() - before).usm_frees == 0 {
        assert!(began.elapsed().as_secs() < 10, "the allocation is never freed");
        std::thread::yield_now();
    }
}

fn an_owner_may_be_dropped_after_its_queue(env: &Env) {
    let (since, ()) = counted(|| {
        let slice = {
            let queue = env.queue();
            let slice = queue.malloc_device::<i32>(8).unwrap();
            let pointer = slice.pointer();
            // SAFETY: the allocation is freed after the commands submitted before its drop.
            queue.parallel_for(8, move |item| unsafe { pointer.write(item.index(), 3) }).unwrap();
            slice
        };
        let queue = env.queue();
        drop(slice);
        queue.wait().unwrap();
    });
    assert_eq!(since.usm_allocations, 1);
}

fn an_owner_moves_between_threads(env: &Env) {
    let queue = env.queue();
    let mut slice = queue.malloc_device::<i32>(8).unwrap();
    slice.copy_from_slice(&queue, &iota(8)).unwrap();
    let data = std::thread::scope(|scope| {
        let queue = &queue;
        scope.spawn(move || slice.to_vec(queue).unwrap()).join().unwrap()
    });
    assert_eq!(data, iota(8));
}

fn pointer_kinds_are_told(env: &Env) {
    let queue = env.queue();
    for (kind, expected) in KINDS.into_iter().zip([PointerKind::Device, PointerKind::Host, PointerKind::Shared]) {
        let slice: UsmSlice<i32> = queue.malloc(kind, 8).unwrap();
        assert_eq!(pointer_kind(slice.as_ptr(), queue.context()), expected);
        assert_eq!(pointer_kind(slice.as_ptr().cast::<u8>(), queue.context()), expected);
    }
}

fn pointers_into_the_middle_are_known(env: &Env) {
    let queue = env.queue();
    let slice = queue.malloc_shared::<u16>(100).unwrap();
    let first = slice.as_ptr().cast::<u8>();
    for offset in [1, 100, 199] {
        assert_eq!(pointer_kind(first.wrapping_add(offset), queue.context()), PointerKind::Shared);
        assert_eq!(pointer_device(first.wrapping_add(offset), queue.context()).unwrap(), *env.device());
    }
    assert_eq!(pointer_kind(first.wrapping_add(200), queue.context()), PointerKind::Unknown);
    assert_eq!(pointer_kind(first.wrapping_sub(1), queue.context()), PointerKind::Unknown);
}

fn foreign_pointers_are_unknown(env: &Env) {
    let queue = env.queue();
    let (on_stack, on_heap) = (5i32, Box::new(6i32));
    for pointer in [&raw const on_stack, &raw const *on_heap, std::ptr::null(), std::ptr::dangling()] {
        assert_eq!(pointer_kind(pointer, queue.context()), PointerKind::Unknown);
        assert_eq!(code(pointer_device(pointer, queue.context())), ErrorCode::Invalid);
    }
}

fn pointers_of_another_context_are_unknown(env: &Env) {
    let queue = env.queue();
    let own = Context::new(std::slice::from_ref(env.device())).unwrap();
    for kind in KINDS {
        let slice: UsmSlice<i32> = queue.malloc(kind, 8).unwrap();
        assert_eq!(pointer_kind(slice.as_ptr(), &own), PointerKind::Unknown);
        assert_eq!(code(pointer_device(slice.as_ptr(), &own)), ErrorCode::Invalid);
    }
}

fn pointers_are_unknown_after_the_allocation(env: &Env) {
    let queue = env.queue();
    for kind in KINDS {
        let slice: UsmSlice<i32> = queue.malloc(kind, 8).unwrap();
        let pointer = slice.as_ptr();
        drop(slice);
        assert_eq!(pointer_kind(pointer, queue.context()), PointerKind::Unknown);
    }
}

fn the_device_of_a_pointer_is_told(env: &Env) {
    for device in env.devices() {
        let queue = queue_on(device);
        for kind in [UsmKind::Device, UsmKind::Shared] {
            let slice: UsmSlice<i32> = queue.malloc(kind, 8).unwrap();
            assert_eq!(pointer_device(slice.as_ptr(), queue.context()).unwrap(), *device);
        }
        let slice = queue.malloc_host::<i32>(8).unwrap();
        assert_eq!(pointer_device(slice.as_ptr(), queue.context()).unwrap(), queue.context().devices()[0]);
    }
}

fn raw_allocations_are_freed_by_hand(env: &Env) {
    let queue = env.queue();
    for kind in KINDS {
        let layout = Layout::from_size_align(400, 128).unwrap();
        let (since, ()) = counted(|| {
            let pointer = malloc_raw(kind, layout, env.device(), queue.context()).unwrap();
            assert_eq!(pointer.addr() % 128, 0);
            assert_ne!(pointer_kind(pointer, queue.context()), PointerKind::Unknown);
            // SAFETY: the allocation has 400 bytes, and the command is waited for before it is freed.
            unsafe {
                queue.memset(pointer, 7, 400).unwrap().wait().unwrap();
                free(pointer).unwrap();
            }
            assert_eq!(pointer_kind(pointer, queue.context()), PointerKind::Unknown);
        });
        assert_eq!((since.usm_allocations, since.usm_frees), (1, 1));
    }
}

fn freeing_what_is_none_is_refused(env: &Env) {
    let queue = env.queue();
    let layout = Layout::from_size_align(64, 64).unwrap();
    let pointer = malloc_raw(UsmKind::Device, layout, env.device(), queue.context()).unwrap();
    let slice = queue.malloc_device::<u8>(8).unwrap();
    let mut value = 0u8;
    // SAFETY: no command uses any of these.
    unsafe {
        free(std::ptr::null_mut()).unwrap();
        assert_eq!(code(free(&raw mut value)), ErrorCode::Invalid);
        assert_eq!(code(free(pointer.wrapping_add(1))), ErrorCode::Invalid);
        assert_eq!(code(free(slice.as_ptr())), ErrorCode::Invalid);
        free(pointer).unwrap();
        assert_eq!(code(free(pointer)), ErrorCode::Invalid);
    }
}

fn a_device_outside_the_context_is_refused(env: &Env) {
    let context = Context::new(std::slice::from_ref(env.device())).unwrap();
    let layout = Layout::from_size_align(64, 64).unwrap();
    for kind in [UsmKind::Device, UsmKind::Shared] {
        assert_eq!(code(malloc_raw(kind, layout, env.other_device(), &context)), ErrorCode::Invalid, "{kind}");
    }
}

fn a_host_allocation_ignores_the_device(env: &Env) {
    // One device of another simulator, one of the own context, and one that has no host allocations itself.
    let foreign = Simulator::new(SimulatedConfig::new(1).usm(&[UsmKind::Device])).unwrap();
    let context = Context::new(std::slice::from_ref(env.device())).unwrap();
    let queue = Queue::builder().device(env.device()).context(&context).build().unwrap();
    let layout = Layout::from_size_align(4, 4).unwrap();
    for device in [env.device(), &foreign.devices()[0]] {
        let pointer = malloc_raw(UsmKind::Host, layout, device, &context).unwrap().cast::<i32>();
        assert_eq!(pointer_kind(pointer, &context), PointerKind::Host);
        assert_eq!(pointer_device(pointer, &context).unwrap(), *env.device());
        let address = UsmPointer::new(pointer);
        // SAFETY: the allocation has one element, and the kernel has ended before the host reads and frees it.
        unsafe {
            queue.single_task(move |_| address.write(0, 7)).unwrap().wait().unwrap();
            assert_eq!(pointer.read(), 7);
            free(pointer.cast()).unwrap();
        }
    }
    let without = Context::new(&foreign.devices()).unwrap();
    assert_eq!(code(malloc_raw(UsmKind::Host, layout, env.device(), &without)), ErrorCode::FeatureNotSupported);
}

fn copies_to_and_from_slices_move_every_element(env: &Env) {
    let queue = env.queue();
    for kind in KINDS {
        let mut slice: UsmSlice<[u8; 3]> = queue.malloc(kind, 50).unwrap();
        let data: Vec<[u8; 3]> = (0..50).map(|i| [i, i + 1, i * 2]).collect();
        slice.copy_from_slice(&queue, &data).unwrap();
        assert_eq!(slice.to_vec(&queue).unwrap(), data, "{kind}");
    }
}

fn a_copy_of_another_length_is_refused(env: &Env) {
    let queue = env.queue();
    let mut slice = queue.malloc_device::<i32>(8).unwrap();
    assert_eq!(code(slice.copy_from_slice(&queue, &iota(7))), ErrorCode::Invalid);
    assert_eq!(code(slice.copy_from_slice(&queue, &iota(9))), ErrorCode::Invalid);
    slice.copy_from_slice(&queue, &iota(8)).unwrap();
}
