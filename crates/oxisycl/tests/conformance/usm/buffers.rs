//! Buffers over USM allocations, and back.

use oxisycl::UsmKind;
use oxisycl::prelude::*;
use oxisycl::usm::UsmSlice;

use crate::harness::{Env, tests};
use crate::support::{Gate, code, counted, doubled, iota, negated, plus_one, read_on, touch, update, write_positions};

tests![
    a_buffer_takes_over_an_allocation_with_its_data,
    a_buffer_gives_its_allocation_back_with_the_newest_data,
    into_usm_waits_for_submitted_commands,
    into_usm_of_another_buffer_is_refused,
    into_usm_fails_while_another_handle_exists,
    the_number_of_elements_must_be_that_of_the_range,
    a_buffer_of_no_elements_takes_over_an_empty_allocation,
    an_allocation_is_freed_with_its_buffer,
    a_buffer_over_a_pointer_uses_the_memory,
    a_buffer_over_uninitialised_memory_moves_nothing_from_it,
    a_buffer_over_a_pointer_does_not_free_it,
    a_buffer_over_usm_serves_all_devices,
];

const KINDS: [UsmKind; 3] = [UsmKind::Device, UsmKind::Host, UsmKind::Shared];

/// An allocation that holds `0, 1, 2, ..`.
fn filled(queue: &Queue, kind: UsmKind, n: usize) -> UsmSlice<i32> {
    let mut slice = queue.malloc(kind, n).unwrap();
    slice.copy_from_slice(queue, &iota(n)).unwrap();
    slice
}

fn a_buffer_takes_over_an_allocation_with_its_data(env: &Env) {
    let queue = env.queue();
    for kind in KINDS {
        let buffer = BufferOptions::new().from_usm_nd(filled(&queue, kind, 12), [3, 4]).unwrap();
        assert!(buffer.is_current_on(env.device()), "{kind}");
        assert_eq!(read_on(&queue, &buffer), iota(12), "{kind}");
        update(&queue, &buffer, plus_one);
        assert_eq!(buffer.to_vec().unwrap(), (1..13).collect::<Vec<_>>(), "{kind}");
    }
}

fn a_buffer_gives_its_allocation_back_with_the_newest_data(env: &Env) {
    let queue = env.queue();
    for kind in KINDS {
        let slice = filled(&queue, kind, 12);
        let pointer = slice.as_ptr();
        let buffer = BufferOptions::new().from_usm_nd(slice, 12).unwrap();
        update(&env.other_queue(), &buffer, |x| x * 3);
        buffer.host_access(ReadWrite).unwrap()[0] = -5;
        let slice = buffer.into_usm().unwrap();
        assert_eq!((slice.as_ptr(), slice.kind(), slice.len()), (pointer, kind, 12));
        let mut expected: Vec<i32> = iota(12).iter().map(|x| x * 3).collect();
        expected[0] = -5;
        assert_eq!(slice.to_vec(&queue).unwrap(), expected, "{kind}");
    }
}

fn into_usm_waits_for_submitted_commands(env: &Env) {
    let queue = env.queue();
    let buffer = BufferOptions::new().from_usm_nd(filled(&queue, UsmKind::Device, 4), 4).unwrap();
    let gate = Gate::writing(&queue, &buffer);
    update(&queue, &buffer, plus_one);
    gate.open_later();
    assert_eq!(buffer.into_usm().unwrap().to_vec(&queue).unwrap(), [1, 2, 3, 4]);
}

fn into_usm_of_another_buffer_is_refused(env: &Env) {
    let buffer = Buffer::from_vec(iota(4)).unwrap();
    update(&env.queue(), &buffer, plus_one);
    assert_eq!(code(buffer.into_usm()), ErrorCode::Invalid);
    assert_eq!(code(Buffer::<i32, 1>::uninit(4).unwrap().into_usm()), ErrorCode::Invalid);
}

fn into_usm_fails_while_another_handle_exists(env: &Env) {
    let queue = env.queue();
    let buffer = BufferOptions::new().from_usm_nd(filled(&queue, UsmKind::Device, 64), 64).unwrap();
    let copy = buffer.clone();
    assert_eq!(code(buffer.into_usm()), ErrorCode::Invalid);
    let host = copy.host_access(Read).unwrap();
    let copy_of_copy = copy.clone();
    assert_eq!(code(copy.into_usm()), ErrorCode::Invalid);
    drop(host);
    assert_eq!(copy_of_copy.into_usm().unwrap().to_vec(&queue).unwrap(), iota(64));
}

fn the_number_of_elements_must_be_that_of_the_range(env: &Env) {
    let queue = env.queue();
    for range in [[2, 2], [3, 3], [0, 4]] {
        let result = BufferOptions::new().from_usm_nd(filled(&queue, UsmKind::Device, 8), range);
        assert_eq!(code(result), ErrorCode::Invalid);
    }
}

fn a_buffer_of_no_elements_takes_over_an_empty_allocation(env: &Env) {
    let queue = env.queue();
    let buffer = BufferOptions::new().from_usm_nd(queue.malloc_device::<i32>(0).unwrap(), 0).unwrap();
    update(&queue, &buffer, |x| x).wait().unwrap();
    assert!(buffer.to_vec().unwrap().is_empty());
}

fn an_allocation_is_freed_with_its_buffer(env: &Env) {
    let queue = env.queue();
    let (since, ()) = counted(|| {
        let buffer = BufferOptions::new().from_usm_nd(filled(&queue, UsmKind::Device, 8), 8).unwrap();
        let gate = Gate::writing(&queue, &buffer);
        let last = update(&queue, &buffer, plus_one);
        let (since, ()) = counted(|| {
            drop(buffer);
            std::thread::sleep(std::time::Duration::from_millis(5));
        });
        assert_eq!(since.usm_frees, 0);
        gate.open();
        last.wait().unwrap();
        queue.wait().unwrap();
    });
    assert_eq!((since.usm_allocations, since.buffer_allocations), (1, 0));
}

fn a_buffer_over_a_pointer_uses_the_memory(env: &Env) {
    let queue = env.queue();
    for kind in KINDS {
        let slice = filled(&queue, kind, 12);
        // SAFETY: the allocation outlives the buffer and its commands, nobody else uses it meanwhile, and it holds the data.
        let buffer = unsafe {
            BufferOptions::new().page_size([1, 2]).from_usm_pointer(slice.as_ptr(), [3, 4], env.device(), true)
        };
        let buffer = buffer.unwrap();
        assert_eq!(buffer.usm_pointer(env.device()), Some(slice.as_ptr()));
        let (since, ()) = counted(|| update(&queue, &buffer, plus_one).wait().unwrap());
        assert_eq!((since.buffer_allocations, since.transfers()), (0, 0), "{kind}");
        update(&env.other_queue(), &buffer, doubled);
        touch(&queue, &buffer).wait().unwrap();
        drop(buffer);
        assert_eq!(slice.to_vec(&queue).unwrap(), iota(12).iter().map(|x| (x + 1) * 2).collect::<Vec<_>>(), "{kind}");
    }
}

fn a_buffer_over_uninitialised_memory_moves_nothing_from_it(env: &Env) {
    let queue = env.queue();
    let slice = queue.malloc_device::<i32>(8).unwrap();
    // SAFETY: as in the test above; the memory counts as holding no data.
    let buffer = unsafe { BufferOptions::new().from_usm_pointer(slice.as_ptr(), 8, env.device(), false) }.unwrap();
    let (since, ()) = counted(|| {
        touch(&env.other_queue(), &buffer).wait().unwrap();
        write_positions(&env.other_queue(), &buffer, 0).wait().unwrap();
    });
    assert_eq!(since.transfers(), 0);
    let (since, ()) = counted(|| touch(&queue, &buffer).wait().unwrap());
    // A detour needs memory on the host.
    let hops = env.hops(env.other_device(), env.device());
    assert_eq!((since.transfers(), since.buffer_allocations), (hops, hops - 1));
    drop(buffer);
    assert_eq!(slice.to_vec(&queue).unwrap(), iota(8));
}

fn a_buffer_over_a_pointer_does_not_free_it(env: &Env) {
    let queue = env.queue();
    let slice = filled(&queue, UsmKind::Device, 8);
    let (since, ()) = counted(|| {
        for _ in 0..3 {
            // SAFETY: as in the tests above, one buffer after the other.
            let buffer = unsafe { BufferOptions::new().from_usm_pointer(slice.as_ptr(), 8, env.device(), true) };
            update(&queue, &buffer.unwrap(), plus_one).wait().unwrap();
        }
    });
    assert_eq!((since.usm_frees, since.buffer_frees, since.buffer_allocations), (0, 0, 0));
    assert_eq!(slice.to_vec(&queue).unwrap(), (3..11).collect::<Vec<_>>());
}

fn a_buffer_over_usm_serves_all_devices(env: &Env) {
    let queue = env.other_queue();
    for kind in KINDS {
        let buffer = BufferOptions::new().page_size(4).from_usm_nd(filled(&queue, kind, 16), 16).unwrap();
        for round in 0..2 {
            update(&env.queue(), &buffer, plus_one);
            crate::support::update_range(&env.third_queue(), &buffer, 4 * round, 4, |x| x * 10);
            update(&queue, &buffer, negated);
        }
        let expected = (0..16).map(|i: i32| {
            let first = if i < 4 { -(i + 1) * 10 } else { -(i + 1) };
            let second = if (4..8).contains(&i) { (first + 1) * 10 } else { first + 1 };
            -second
        });
        assert_eq!(buffer.to_vec().unwrap(), expected.collect::<Vec<_>>(), "{kind}");
    }
}
