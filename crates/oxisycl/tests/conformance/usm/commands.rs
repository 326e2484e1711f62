//! Commands on pointers: copies, fills, hints (J7, J8, E8).

use oxisycl::prelude::*;
use oxisycl::usm::UsmSlice;
use oxisycl::{Advice, UsmKind};

use crate::harness::{Env, queue_on, tests};
use crate::support::{Gate, assert_held_back, code, counted, iota};

tests![
    memcpy_works_between_all_kinds_of_memory,
    memcpy_works_on_parts,
    memcpy_works_between_two_devices,
    memcpy_works_on_odd_sizes,
    commands_on_no_bytes_do_nothing,
    memset_sets_every_byte,
    fill_stores_elements_of_every_width,
    fill_stores_structs,
    fill_touches_nothing_else,
    fill_of_an_overflowing_size_is_refused,
    prefetch_and_advice_are_accepted,
    every_kind_of_advice_is_accepted_for_every_kind_of_allocation,
    advice_is_ordered_by_events,
    commands_wait_for_events,
    commands_of_the_handler_count_as_the_one_command,
    an_in_order_queue_runs_commands_one_after_the_other,
];

const KINDS: [UsmKind; 3] = [UsmKind::Device, UsmKind::Host, UsmKind::Shared];

/// Copies and waits.
///
/// # Safety
/// As for `Queue::memcpy`.
unsafe fn copy_bytes<T, U>(queue: &Queue, target: *mut T, source: *const U, bytes: usize) {
    // SAFETY: the caller's contract.
    unsafe { queue.memcpy(target.cast(), source.cast(), bytes) }.unwrap().wait().unwrap();
}

fn memcpy_works_between_all_kinds_of_memory(env: &Env) {
    let queue = env.queue();
    let data: Vec<i32> = iota(33);
    for from in KINDS {
        for to in KINDS {
            let (source, target) = (queue.malloc::<i32>(from, 33).unwrap(), queue.malloc::<i32>(to, 33).unwrap());
            let mut back = vec![0; 33];
            // SAFETY: all places have 132 bytes, and each copy is waited for.
            unsafe {
                copy_bytes(&queue, source.as_ptr(), data.as_ptr(), 132);
                copy_bytes(&queue, target.as_ptr(), source.as_ptr(), 132);
                copy_bytes(&queue, back.as_mut_ptr(), target.as_ptr(), 132);
            }
            assert_eq!(back, data, "{from} to {to}");
        }
    }
    // Ordinary memory on both sides.
    let mut copy = vec![0; 33];
    // SAFETY: as above.
    unsafe { copy_bytes(&queue, copy.as_mut_ptr(), data.as_ptr(), 132) };
    assert_eq!(copy, data);
}

fn memcpy_works_on_parts(env: &Env) {
    let queue = env.queue();
    let mut slice = queue.malloc_device::<i32>(10).unwrap();
    slice.copy_from_slice(&queue, &iota(10)).unwrap();
    let source = [70, 71, 72];
    // SAFETY: both places are valid for the bytes and do not overlap; each command is waited for.
    unsafe {
        queue.memcpy(slice.as_ptr().add(4).cast(), source.as_ptr().add(1).cast(), 8).unwrap().wait().unwrap();
        queue.memcpy(slice.as_ptr().cast(), slice.as_ptr().add(7).cast(), 12).unwrap().wait().unwrap();
    }
    assert_eq!(slice.to_vec(&queue).unwrap(), [7, 8, 9, 3, 71, 72, 6, 7, 8, 9]);
}

fn memcpy_works_between_two_devices(env: &Env) {
    let [one, other] = env.neighbours().map(queue_on);
    let mut source = one.malloc_device::<i32>(10).unwrap();
    source.copy_from_slice(&one, &iota(10)).unwrap();
    for via in [&one, &other] {
        let target = other.malloc_device::<i32>(10).unwrap();
        // SAFETY: both places are valid for the bytes; the command is waited for.
        let copy = unsafe { via.memcpy(target.as_ptr().cast(), source.as_ptr().cast_const().cast(), 40) };
        copy.unwrap().wait().unwrap();
        assert_eq!(target.to_vec(&other).unwrap(), iota(10));
    }
}

fn memcpy_works_on_odd_sizes(env: &Env) {
    let queue = env.queue();
    let data: Vec<u8> = (0..100_003usize).map(|i| (i * 31 % 251) as u8).collect();
    for n_bytes in [1, 2, 3, 15, 17, 4097, 100_003] {
        let slice = queue.malloc_device::<u8>(n_bytes).unwrap();
        // SAFETY: both places are valid for the bytes; the command is waited for.
        unsafe { queue.memcpy(slice.as_ptr(), data.as_ptr(), n_bytes) }.unwrap().wait().unwrap();
        assert!(slice.to_vec(&queue).unwrap() == data[..n_bytes], "{n_bytes}");
    }
}

fn commands_on_no_bytes_do_nothing(env: &Env) {
    let queue = env.queue();
    let nowhere = std::ptr::dangling_mut::<u8>();
    // SAFETY: there is nothing to access.
    let events = unsafe {
        [queue.memcpy(nowhere, nowhere, 0), queue.memset(nowhere, 1, 0), queue.fill_usm(nowhere.cast::<u64>(), 1, 0)]
    };
    for event in events {
        event.unwrap().wait().unwrap();
    }
}

fn memset_sets_every_byte(env: &Env) {
    let queue = env.queue();
    for kind in KINDS {
        let mut slice: UsmSlice<u32> = queue.malloc(kind, 9).unwrap();
        slice.copy_from_slice(&queue, &[0; 9]).unwrap();
        // SAFETY: the bytes are inside the allocation; the command is waited for.
        unsafe { queue.memset(slice.as_ptr().cast::<u8>().add(2), 0xAB, 31) }.unwrap().wait().unwrap();
        let mut expected = [0u8; 36];
        expected[2..33].fill(0xAB);
        assert_eq!(bytemuck::cast_slice::<u32, u8>(&slice.to_vec(&queue).unwrap()), expected, "{kind}");
    }
}

fn fill_stores_elements_of_every_width(env: &Env) {
    fn check<const N: usize>(env: &Env) {
        let queue = env.queue();
        let value: [u8; N] = std::array::from_fn(|i| 1 + i as u8);
        for n_elements in [1, 2, 7, 64, 1001] {
            for kind in KINDS {
                let slice: UsmSlice<[u8; N]> = queue.malloc(kind, n_elements).unwrap();
                // SAFETY: the elements are inside the allocation; the command is waited for.
                unsafe { queue.fill_usm(slice.as_ptr(), value, n_elements) }.unwrap().wait().unwrap();
                assert!(
                    slice.to_vec(&queue).unwrap().iter().all(|element| *element == value),
                    "{N} {n_elements} {kind}"
                );
            }
        }
    }
    check::<1>(env);
    check::<2>(env);
    check::<3>(env);
    check::<4>(env);
    check::<8>(env);
    check::<12>(env);
    check::<16>(env);
    check::<24>(env);
    check::<100>(env);
}

fn fill_stores_structs(env: &Env) {
    #[derive(Clone, Copy, PartialEq, Debug, DeviceCopyable)]
    struct Padded {
        flag: u8,
        weight: f64,
    }
    let queue = env.queue();
    let slice = queue.malloc_device::<[f64; 2]>(5).unwrap();
    let value = Padded { flag: 3, weight: -0.5 };
    let seen = Buffer::from_vec(vec![false; 5]).unwrap();
    let pointer = oxisycl::usm::UsmPointer::new(slice.as_ptr().cast::<Padded>());
    // SAFETY: five elements of 16 bytes are inside the allocation, which is aligned for them; the commands are ordered.
    let fill = unsafe { queue.fill_usm(pointer.as_ptr(), value, 5) }.unwrap();
    let kernel = queue.submit(|cg| {
        cg.depends_on(&fill);
        let seen = cg.access(&seen, Write);
        // SAFETY: as above.
        cg.parallel_for(5, move |item| seen.set(item, unsafe { pointer.read(item.index()) } == value))
    });
    kernel.unwrap();
    assert_eq!(seen.to_vec().unwrap(), [true; 5]);
}

fn fill_touches_nothing_else(env: &Env) {
    let queue = env.queue();
    let mut slice = queue.malloc_device::<i32>(10).unwrap();
    slice.copy_from_slice(&queue, &iota(10)).unwrap();
    // SAFETY: the elements are inside the allocation; the command is waited for.
    let (since, ()) = counted(|| unsafe { queue.fill_usm(slice.as_ptr().add(3), -1, 4) }.unwrap().wait().unwrap());
    assert_eq!(since.fills, 1);
    assert_eq!(slice.to_vec(&queue).unwrap(), [0, 1, 2, -1, -1, -1, -1, 7, 8, 9]);
}

fn fill_of_an_overflowing_size_is_refused(env: &Env) {
    let queue = env.queue();
    let slice = queue.malloc_device::<u64>(1).unwrap();
    // SAFETY: it is refused.
    let result = unsafe { queue.fill_usm(slice.as_ptr(), 1, usize::MAX / 4) };
    assert_eq!(code(result), ErrorCode::Invalid);
}

fn prefetch_and_advice_are_accepted(env: &Env) {
    let queue = env.queue();
    let mut slice = queue.malloc_shared::<i32>(1000).unwrap();
    slice.copy_from_slice(&queue, &iota(1000)).unwrap();
    let bytes = slice.as_ptr().cast::<u8>();
    // SAFETY: the bytes are inside a shared allocation that lives to the end.
    unsafe {
        queue.prefetch(bytes, 4000).unwrap().wait().unwrap();
        queue.prefetch(bytes.add(8), 12).unwrap().wait().unwrap();
        queue.mem_advise(bytes, 4000, Advice::Reset).unwrap().wait().unwrap();
        let hinted = queue.submit(|cg| cg.mem_advise(bytes, 100, Advice::Reset));
        hinted.unwrap().wait().unwrap();
    }
    assert_eq!(slice.to_vec(&queue).unwrap(), iota(1000));
}

fn every_kind_of_advice_is_accepted_for_every_kind_of_allocation(env: &Env) {
    let queue = env.queue();
    for kind in [UsmKind::Device, UsmKind::Host, UsmKind::Shared] {
        let mut slice = queue.malloc::<i32>(kind, 100).unwrap();
        slice.copy_from_slice(&queue, &iota(100)).unwrap();
        let bytes = slice.as_ptr().cast::<u8>();
        let pointer = slice.pointer();
        for advice in [Advice::ReadMostly, Advice::PreferDevice, Advice::PreferHost, Advice::Reset] {
            // SAFETY: the bytes are inside an allocation that lives to the end.
            unsafe {
                queue.mem_advise(bytes, 400, advice).unwrap().wait().unwrap();
                queue.mem_advise(bytes.add(4), 8, advice).unwrap().wait().unwrap();
                queue.mem_advise(bytes, 0, advice).unwrap().wait().unwrap();
            }
            // A hint: what was advised against still works.
            // SAFETY: each work-item uses its own element, and the hints have ended.
            let kernel = queue.parallel_for(100, move |item| unsafe {
                pointer.write(item.index(), pointer.read(item.index()) + 1);
            });
            kernel.unwrap().wait().unwrap();
        }
        assert_eq!(slice.to_vec(&queue).unwrap(), (4..104).collect::<Vec<_>>(), "{kind}");
    }
}

fn advice_is_ordered_by_events(env: &Env) {
    let queue = env.queue();
    let slice = queue.malloc_shared::<i32>(4).unwrap();
    let gate = Gate::new(&queue, |_| {});
    let advice = queue.submit(|cg| {
        cg.depends_on(gate.event());
        // SAFETY: the allocation lives until the command has ended.
        unsafe { cg.mem_advise(slice.as_ptr().cast(), 16, Advice::PreferHost) }
    });
    let advice = advice.unwrap();
    let after = queue.submit(|cg| {
        cg.depends_on(&advice);
        // SAFETY: as above.
        unsafe { cg.prefetch(slice.as_ptr().cast(), 16) }
    });
    let after = after.unwrap();
    assert_held_back(&after);
    gate.open();
    after.wait().unwrap();
    assert!(advice.is_complete());
}

fn commands_wait_for_events(env: &Env) {
    let queue = env.queue();
    let slice = queue.malloc_device::<i32>(4).unwrap();
    let pointer = slice.as_ptr();
    let gate = Gate::new(&queue, |_| {});
    let source = [5, 6];
    // SAFETY: the places are valid for the bytes, the commands are ordered by events, and the last is waited for.
    let last = unsafe {
        let fill = queue.submit(|cg| {
            cg.depends_on(gate.event());
            cg.fill_usm(pointer, 1, 4)
        });
        let fill = fill.unwrap();
        let copy = queue.submit(|cg| {
            cg.depends_on(&fill);
            cg.memcpy(pointer.add(1).cast(), source.as_ptr().cast(), 8)
        });
        let copy = copy.unwrap();
        queue.submit(|cg| {
            cg.depends_on(&copy);
            cg.memset(pointer.add(2).cast(), 0, 4)
        })
    };
    let last = last.unwrap();
    assert_held_back(&last);
    gate.open();
    last.wait().unwrap();
    assert_eq!(slice.to_vec(&queue).unwrap(), [1, 5, 0, 1]);
}

fn commands_of_the_handler_count_as_the_one_command(env: &Env) {
    let queue = env.queue();
    let slice = queue.malloc_device::<i32>(4).unwrap();
    let (since, result) = counted(|| {
        queue.submit(|cg| {
            // SAFETY: it is refused.
            unsafe {
                cg.memset(slice.as_ptr().cast(), 0, 16)?;
                cg.fill_usm(slice.as_ptr(), 1, 4)
            }
        })
    });
    assert_eq!((code(result), since.nodes), (ErrorCode::Invalid, 0));
}

fn an_in_order_queue_runs_commands_one_after_the_other(env: &Env) {
    let queue = env.in_order_queue();
    let [a, b] = [(); 2].map(|()| queue.malloc_device::<i32>(64).unwrap());
    let pointer = a.pointer();
    let mut back = vec![0; 64];
    // SAFETY: the places are valid for the bytes, and the queue runs one command after the other.
    unsafe {
        queue.fill_usm(a.as_ptr(), 5, 64).unwrap();
        queue.parallel_for(64, move |item| pointer.write(item.index(), pointer.read(item.index()) + 1)).unwrap();
        queue.memcpy(b.as_ptr().cast(), a.as_ptr().cast(), 256).unwrap();
        queue.memset(a.as_ptr().cast(), 0, 256).unwrap();
        queue.memcpy(back.as_mut_ptr().cast(), b.as_ptr().cast(), 256).unwrap();
    }
    queue.wait().unwrap();
    assert_eq!(back, [6; 64]);
    assert_eq!(a.to_vec(&queue).unwrap(), [0; 64]);
}
