//! Addresses of buffers are USM pointers (S-R8 to S-R12, S-R17, S-R18).

use oxisycl::UsmKind;
use oxisycl::prelude::*;
use oxisycl::usm::{PointerKind, UsmPointer, pointer_device, pointer_kind};

use crate::harness::{Env, queue_on, tests};
use crate::support::{code, counted, doubled, iota, plus_one, read_on, touch, update, write_positions};

tests![
    an_address_from_one_kernel_is_valid_in_the_next,
    memory_of_a_buffer_is_device_memory,
    memory_of_a_buffer_belongs_to_its_device,
    memory_of_a_vector_is_known_as_well,
    addresses_inside_a_buffer_are_known,
    an_address_is_unknown_after_the_buffer,
    an_address_is_unknown_after_release,
    usm_commands_work_on_the_memory_of_a_buffer,
    an_address_stays_valid_whatever_happens_to_the_buffer,
    a_buffer_over_host_or_shared_memory_is_bound_to_one_device,
    a_buffer_over_device_memory_allocates_nothing_there,
    memory_of_the_host_device_can_be_used_by_the_host,
    stale_data_is_read_outside_the_page_range_without_a_fault,
];

fn an_address_from_one_kernel_is_valid_in_the_next(env: &Env) {
    let queue = env.queue();
    let buffer = Buffer::<i32, 1>::uninit(100).unwrap();
    write_positions(&queue, &buffer, 0);
    let slot = queue.malloc_device::<u64>(1).unwrap();
    let pointer = slot.pointer();
    let first = queue.submit(|cg| {
        let data = cg.access(&buffer, ReadWrite);
        cg.single_task(move |task| {
            data.set_at(task, 7, 70);
            // SAFETY: the slot lives until the end of the test, and the second kernel waits for this one.
            unsafe { pointer.write(0, data.as_ptr() as u64) };
        })
    });
    // The buffer is used elsewhere in between.
    update(&env.other_queue(), &buffer, plus_one);
    let seen = Buffer::<i32, 1>::uninit(3).unwrap();
    let second = queue.submit(|cg| {
        cg.depends_on(&first?);
        // The accessor brings the data and orders the kernel; the address comes from the first kernel.
        let (data, seen) = (cg.access(&buffer, ReadWrite), cg.access(&seen, Write));
        cg.single_task(move |task| {
            // SAFETY: as above; the address is that of the buffer's 100 elements on this device.
            unsafe {
                let address = pointer.read(0) as *mut i32;
                seen.set_at(task, 0, *address.add(7));
                seen.set_at(task, 1, *address.add(99));
                *address.add(8) = -8;
            }
            seen.set_at(task, 2, data.get_at(task, 8));
        })
    });
    second.unwrap();
    assert_eq!(seen.to_vec().unwrap(), [71, 100, -8]);
    assert_eq!(buffer.to_vec().unwrap()[8], -8);
}

fn memory_of_a_buffer_is_device_memory(env: &Env) {
    let buffer = Buffer::<i32, 1>::uninit(100).unwrap();
    for device in env.devices() {
        let queue = queue_on(device);
        write_positions(&queue, &buffer, 0).wait().unwrap();
        let pointer = buffer.usm_pointer(device).unwrap();
        assert_eq!(pointer_kind(pointer, queue.context()), PointerKind::Device);
    }
}

fn memory_of_a_buffer_belongs_to_its_device(env: &Env) {
    let buffer = Buffer::<i32, 1>::uninit(100).unwrap();
    for device in env.devices() {
        let queue = queue_on(device);
        touch(&queue, &buffer).wait().unwrap();
        let pointer = buffer.usm_pointer(device).unwrap();
        assert_eq!(pointer_device(pointer, queue.context()).unwrap(), *device);
    }
    // A context without the device does not know the memory.
    let third = Context::new(std::slice::from_ref(env.third_device())).unwrap();
    let pointer = buffer.usm_pointer(env.device()).unwrap();
    assert_eq!(pointer_kind(pointer, &third), PointerKind::Unknown);
    assert_eq!(code(pointer_device(pointer, &third)), ErrorCode::Invalid);
}

fn memory_of_a_vector_is_known_as_well(env: &Env) {
    if !env.is_host() {
        env.skip("the vector is not the device's memory");
    }
    let queue = env.queue();
    let buffer = Buffer::from_vec(iota(8)).unwrap();
    let pointer = buffer.usm_pointer(env.device()).unwrap();
    assert_eq!(pointer_kind(pointer, queue.context()), PointerKind::Device);
    assert_eq!(pointer_device(pointer.wrapping_add(7), queue.context()).unwrap(), *env.device());
    let data = buffer.into_vec().unwrap();
    assert_eq!(data.as_ptr(), pointer.cast_const());
    assert_eq!(pointer_kind(pointer, queue.context()), PointerKind::Unknown);
}

fn addresses_inside_a_buffer_are_known(env: &Env) {
    let queue = env.queue();
    let buffer = Buffer::<i32, 1>::uninit(100).unwrap();
    buffer.reserve(env.device()).unwrap();
    let pointer = buffer.usm_pointer(env.device()).unwrap();
    for inside in [pointer.wrapping_add(50), pointer.wrapping_add(99)] {
        assert_eq!(pointer_kind(inside, queue.context()), PointerKind::Device);
        assert_eq!(pointer_device(inside, queue.context()).unwrap(), *env.device());
    }
    assert_eq!(pointer_kind(pointer.wrapping_byte_add(399), queue.context()), PointerKind::Device);
    let part = buffer.sub_buffer(32, 32).unwrap();
    assert_eq!(part.usm_pointer(env.device()), Some(pointer.wrapping_add(32)));
}

fn an_address_is_unknown_after_the_buffer(env: &Env) {
    let queue = env.queue();
    let buffer = Buffer::<i32, 1>::uninit(100).unwrap();
    write_positions(&queue, &buffer, 0).wait().unwrap();
    let pointer = buffer.usm_pointer(env.device()).unwrap();
    drop(buffer);
    assert_eq!(pointer_kind(pointer, queue.context()), PointerKind::Unknown);
}

fn an_address_is_unknown_after_release(env: &Env) {
    let queue = env.queue();
    let buffer = Buffer::<i32, 1>::uninit(100).unwrap();
    buffer.reserve(env.device()).unwrap();
    let pointer = buffer.usm_pointer(env.device()).unwrap();
    buffer.release(env.device()).unwrap();
    assert_eq!(pointer_kind(pointer, queue.context()), PointerKind::Unknown);
    assert_eq!(buffer.usm_pointer(env.device()), None);
}

fn usm_commands_work_on_the_memory_of_a_buffer(env: &Env) {
    let queue = env.queue();
    let buffer = Buffer::<i32, 1>::uninit(8).unwrap();
    write_positions(&queue, &buffer, 0).wait().unwrap();
    let pointer = buffer.usm_pointer(env.device()).unwrap();
    // SAFETY: the buffer lives to the end, its commands have ended, and each call is waited for.
    unsafe {
        queue.fill_usm(pointer.add(2), 9, 3).unwrap().wait().unwrap();
        queue.memset(pointer.add(5).cast(), 0, 4).unwrap().wait().unwrap();
        queue.memcpy(pointer.add(6).cast(), pointer.cast_const().add(1).cast(), 8).unwrap().wait().unwrap();
        queue.memcpy(pointer.cast(), [77i32].as_ptr().cast(), 4).unwrap().wait().unwrap();
    }
    assert_eq!(read_on(&queue, &buffer), [77, 1, 9, 9, 9, 0, 1, 9]);
    let slice = queue.malloc_device::<i32>(8).unwrap();
    // SAFETY: as above; both have 8 elements.
    unsafe { queue.memcpy(slice.as_ptr().cast(), pointer.cast_const().cast(), 32) }.unwrap().wait().unwrap();
    assert_eq!(slice.to_vec(&queue).unwrap(), [77, 1, 9, 9, 9, 0, 1, 9]);
}

fn an_address_stays_valid_whatever_happens_to_the_buffer(env: &Env) {
    let queue = env.queue();
    let buffer = Buffer::<i32, 1>::uninit(8).unwrap();
    write_positions(&queue, &buffer, 0).wait().unwrap();
    let pointer = UsmPointer::new(buffer.usm_pointer(env.device()).unwrap());
    for round in 1..4 {
        update(&env.other_queue(), &buffer, plus_one);
        drop(buffer.host_access(ReadWrite).unwrap());
        touch(&queue, &buffer).wait().unwrap();
        let seen = queue.malloc_device::<i32>(1).unwrap();
        let to = seen.pointer();
        // SAFETY: the touch has brought the data and ended, and nobody writes it now.
        queue.single_task(move |_| unsafe { to.write(0, pointer.read(7)) }).unwrap().wait().unwrap();
        assert_eq!(seen.to_vec(&queue).unwrap(), [7 + round]);
    }
}

fn a_buffer_over_host_or_shared_memory_is_bound_to_one_device(env: &Env) {
    let queue = env.queue();
    for (kind, expected) in [(UsmKind::Host, PointerKind::Host), (UsmKind::Shared, PointerKind::Shared)] {
        let mut slice = queue.malloc::<i32>(kind, 8).unwrap();
        slice.copy_from_slice(&queue, &iota(8)).unwrap();
        let pointer = slice.as_ptr();
        let buffer = BufferOptions::new().from_usm_nd(slice, 8).unwrap();
        assert_eq!(buffer.usm_pointer(env.device()), Some(pointer));
        assert!(!buffer.is_allocated_on(env.other_device()));
        let (since, ()) = counted(|| update(&queue, &buffer, plus_one).wait().unwrap());
        assert_eq!((since.buffer_allocations, since.transfers()), (0, 0), "{kind}");
        let (since, ()) = counted(|| update(&env.other_queue(), &buffer, doubled).wait().unwrap());
        let hops = env.hops(env.device(), env.other_device());
        let counts = (since.buffer_allocations, since.transfers(), since.transferred_bytes());
        assert_eq!(counts, (hops, hops, 32 * hops), "{kind}");
        assert_eq!(pointer_kind(pointer, queue.context()), expected);
        assert_eq!(buffer.to_vec().unwrap(), iota(8).iter().map(|x| (x + 1) * 2).collect::<Vec<_>>());
    }
}

fn a_buffer_over_device_memory_allocates_nothing_there(env: &Env) {
    let queue = env.queue();
    let slice = queue.malloc_device::<i32>(8).unwrap();
    let pointer = slice.as_ptr();
    let (since, buffer) = counted(|| {
        let buffer = BufferOptions::new().from_usm_nd(slice, [2, 4]).unwrap();
        update(&queue, &buffer, |_| 3).wait().unwrap();
        buffer
    });
    assert_eq!((since.buffer_allocations, since.transfers()), (0, 0));
    assert_eq!(buffer.usm_pointer(env.device()), Some(pointer));
    assert_eq!(buffer.to_vec().unwrap(), [3; 8]);
}

fn memory_of_the_host_device_can_be_used_by_the_host(env: &Env) {
    if !env.is_host() {
        env.skip("not a device of the host's memory");
    }
    let buffer = Buffer::<i32, 1>::uninit(8).unwrap();
    write_positions(&env.queue(), &buffer, 0).wait().unwrap();
    let pointer = buffer.usm_pointer(env.device()).unwrap();
    // SAFETY: the buffer lives, has 8 elements in the host's memory, and nobody writes them now.
    assert_eq!(unsafe { std::slice::from_raw_parts(pointer, 8) }, iota(8));
    let (since, host) = counted(|| buffer.host_access(Read).unwrap());
    assert_eq!(host.as_ptr(), pointer.cast_const());
    assert_eq!((since.buffer_allocations, since.transfers()), (0, 0));
}

fn stale_data_is_read_outside_the_page_range_without_a_fault(env: &Env) {
    let buffer = BufferOptions::new().page_size(4).uninit::<i32>(16).unwrap();
    write_positions(&env.queue(), &buffer, 0);
    update(&env.other_queue(), &buffer, |x| x + 100);
    let seen = Buffer::<i32, 1>::uninit(16).unwrap();
    let kernel = env.queue().submit(|cg| {
        let (part, seen) = (cg.access_range(&buffer, Read, 8, 4), cg.access(&seen, Write));
        cg.parallel_for(16, move |item| {
            // SAFETY: the allocation has 16 elements, which nobody writes now.
            seen.set(item, unsafe { *part.as_ptr().add(item.index()) });
        })
    });
    kernel.unwrap();
    let seen = seen.to_vec().unwrap();
    assert_eq!(seen[8..12], [108, 109, 110, 111]);
    for (i, &x) in seen.iter().enumerate() {
        assert!(x == i as i32 || x == i as i32 + 100, "neither the old nor the new value at {i}: {x}");
    }
}
