//! Memory is taken back, freed and lent out only when nothing uses it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use oxisycl::argument::Keep;
use oxisycl::prelude::*;
use oxisycl::{BufferOptions, FinalData};

use super::{Gate, add_one, devices, eventually, fail, filled, host, refused, simulated, slow};

#[test]
fn a_vector_is_not_taken_back_between_access_and_submit() {
    let queue = Queue::new(&host()).unwrap();
    let buffer = filled(8);
    let mut owner = Some(buffer);
    let event = queue.submit(|cg| {
        let data = cg.access(owner.as_ref().unwrap(), ReadWrite);
        let error = owner.take().unwrap().into_vec().unwrap_err();
        assert_eq!(error.error().code(), ErrorCode::Invalid);
        owner = Some(error.into_buffer());
        refused(owner.as_ref().unwrap().release(cg.queue().device()), ErrorCode::Invalid, "being made");
        cg.parallel_for(8, move |item| data.set(item, 1))
    });
    event.unwrap().wait().unwrap();
    assert_eq!(owner.unwrap().into_vec().unwrap(), [1; 8]);
}

#[test]
fn a_vector_is_not_taken_back_by_another_thread_between_access_and_submit() {
    let queue = Queue::new(&host()).unwrap();
    let buffer = filled(8);
    let mut owner = Some(buffer);
    let event = queue.submit(|cg| {
        let data = cg.access(owner.as_ref().unwrap(), ReadWrite);
        let taken = owner.take().unwrap();
        let device = cg.queue().device().clone();
        let thread = std::thread::spawn(move || {
            refused(taken.release(&device), ErrorCode::Invalid, "being made");
            taken.into_vec().unwrap_err().into_buffer()
        });
        owner = Some(thread.join().unwrap());
        cg.parallel_for(8, move |item| data.update(item, |x| x + 1))
    });
    event.unwrap();
    assert_eq!(owner.unwrap().into_vec().unwrap(), [8; 8]);
}

#[test]
fn an_allocation_is_not_released_or_taken_between_access_and_submit() {
    let (devices, control) = simulated(1);
    let queue = Queue::new(&devices[0]).unwrap();
    let slice = queue.malloc_shared::<u32>(8).unwrap();
    let mut owner = Some(BufferOptions::new().from_usm_nd(slice, 8).unwrap());
    let event = queue.submit(|cg| {
        let buffer = owner.take().unwrap();
        let data = cg.access(&buffer, Write);
        refused(buffer.clone().into_usm(), ErrorCode::Invalid, "into_usm");
        refused(buffer.release(&devices[0]), ErrorCode::Invalid, "being made");
        owner = Some(buffer);
        cg.parallel_for(8, move |item| data.set(item, 3))
    });
    event.unwrap();
    let buffer = owner.unwrap();
    refused(buffer.clone().into_usm(), ErrorCode::Invalid, "a clone");
    let slice = buffer.into_usm().unwrap();
    assert_eq!(slice.to_vec(&queue).unwrap(), [3; 8]);
    assert!(control.live_allocations(0) > 0);
    drop((slice, queue));
    eventually(|| control.live_allocations(0) == 0);
}

#[test]
fn memory_may_be_made_while_a_group_is_recorded() {
    let (devices, _control) = simulated(2);
    let queue = Queue::new(&devices[0]).unwrap();
    let buffer = filled(8);
    let event = queue.submit(|cg| {
        let data = cg.access(&buffer, ReadWrite);
        buffer.reserve(&devices[1])?;
        add_one(&Queue::new(&devices[1])?, &buffer)?;
        cg.parallel_for(8, move |item| data.update(item, |x| x * 2))
    });
    event.unwrap();
    assert_eq!(buffer.into_vec().unwrap(), [16; 8]);
}

#[test]
fn a_group_that_is_given_up_holds_nothing() {
    let queue = Queue::new(&host()).unwrap();
    let buffer = filled(8);
    let submitted = queue.submit(|cg| -> oxisycl::Result {
        cg.access(&buffer, ReadWrite);
        Err(Error::invalid("given up"))
    });
    refused(submitted, ErrorCode::Invalid, "given up");
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        queue.submit(|cg| -> oxisycl::Result {
            cg.access(&buffer, ReadWrite);
            std::panic::resume_unwind(Box::new(()))
        })
    }));
    assert!(caught.is_err());
    assert_eq!(buffer.into_vec().unwrap(), [7; 8]);
}

#[test]
fn a_vector_is_not_taken_back_while_other_views_exist() {
    let queue = Queue::new(&host()).unwrap();
    let buffer = filled(8);
    let sub = buffer.sub_buffer(0, 4).unwrap();
    let buffer = buffer.into_vec().unwrap_err().into_buffer();
    let signed: Buffer<i32, 2> = sub.reinterpret([2, 2]).unwrap();
    drop(sub);
    let buffer = buffer.into_vec().unwrap_err().into_buffer();
    let placeholder = buffer.placeholder(Write);
    drop(signed);
    let buffer = buffer.into_vec().unwrap_err().into_buffer();
    drop(placeholder);
    let guard = buffer.host_access(Read).unwrap();
    let buffer = buffer.into_vec().unwrap_err().into_buffer();
    drop(guard);
    add_one(&queue, &buffer).unwrap();
    assert_eq!(buffer.into_vec().unwrap(), [8; 8]);
}

#[test]
fn a_reinterpretation_gives_back_a_vector_of_its_own_layout() {
    let queue = Queue::new(&host()).unwrap();
    let bytes = Buffer::from_vec(vec![1u64; 8]).unwrap();
    let words: Buffer<u16, 1> = bytes.reinterpret(32).unwrap();
    drop(bytes);
    queue.fill(&words, 0x0203).unwrap();
    // A vector of u64 must not be freed as one of u16.
    let mut data = words.into_vec().unwrap();
    assert_eq!(data, [0x0203; 32]);
    data.push(1);
    data.shrink_to_fit();
    // Nor does a part give back the whole.
    let buffer = filled(8);
    let part = buffer.sub_buffer(2, 3).unwrap();
    drop(buffer);
    assert_eq!(part.into_vec().unwrap(), [7; 3]);
}

#[test]
fn alignment_of_a_reinterpretation_holds_on_every_device() {
    let (devices, _control) = simulated(2);
    for _ in 0..20 {
        let bytes = Buffer::from_vec(vec![0u8; 64]).unwrap();
        let Ok(words) = bytes.reinterpret::<u64, 1>(8) else { continue };
        for device in devices.iter().chain([&host()]) {
            let event = Queue::new(device).unwrap().submit(|cg| {
                let words = cg.access(&words, ReadWrite);
                cg.parallel_for(8, move |item| {
                    assert!(std::ptr::from_ref(words.cell(item)).is_aligned());
                    words.update(item, |x| x + 1);
                })
            });
            event.unwrap().wait().unwrap();
        }
        drop(words);
        assert_eq!(bytes.into_vec().unwrap().iter().map(|&byte| u32::from(byte)).sum::<u32>(), 24);
    }
    // Without elements there is no memory to be aligned, and none that could be misaligned either.
    let empty = Buffer::from_vec_nd(Vec::<u8>::new(), 0).unwrap();
    match empty.reinterpret::<u64, 1>(0) {
        Ok(words) => assert!(words.host_access(Read).unwrap().as_slice().as_ptr().is_aligned()),
        Err(error) => assert_eq!(error.code(), ErrorCode::Invalid),
    }
}

#[test]
fn memory_lives_until_the_last_command_even_if_it_fails() {
    static GATE: Gate = Gate::new();
    let (devices, control) = simulated(1);
    let (queue, other) = (Queue::new(&devices[0]).unwrap(), Queue::new(&host()).unwrap());
    let buffer = filled(64);
    let gate = other.submit(|cg| cg.host_task(|_| GATE.pass())).unwrap();
    let failing = fail(&other, &filled(1)).unwrap();
    assert!(failing.wait().is_err());
    let first = queue.submit(|cg| {
        cg.depends_on(&gate);
        let data = cg.access(&buffer, ReadWrite);
        cg.parallel_for(64, move |item| data.update(item, |x| x + 1))
    });
    let doomed = queue.submit(|cg| {
        let data = cg.access(&buffer, ReadWrite);
        cg.parallel_for(64, move |item| {
            assert!(item.index() != 63);
            data.set(item, 0);
        })
    });
    let after = add_one(&queue, &buffer);
    drop(buffer);
    assert_eq!(control.live_allocations(0), 1, "freed while commands use it");
    GATE.open();
    assert!(first.unwrap().wait().is_ok() && doomed.unwrap().wait().is_err() && after.unwrap().wait().is_err());
    eventually(|| control.live_allocations(0) == 0);
    _ = queue.take_errors();
    _ = other.take_errors();
}

#[test]
fn host_memory_is_given_back_only_after_its_copy() {
    let queue = Queue::new(&slow(50)).unwrap();
    let buffer = filled(1000);
    let submitted = queue.submit_with(|cg| {
        let data = cg.access(&buffer, Read);
        let slot = cg.copy_to_host(data, vec![0; 1000])?;
        assert!(slot.take().is_none(), "the memory is the command's");
        Ok(slot)
    });
    let (event, slot) = submitted.unwrap();
    let clone = slot.clone();
    assert!(slot.take().is_none() && clone.take().is_none());
    // Printing it must not look at memory that the command writes.
    let text = format!("{slot:?}");
    assert!(text.contains("Command") && !text.contains("0, 0"), "{text}");
    event.wait().unwrap();
    assert!(format!("{slot:?}").contains("Free"));
    assert_eq!(clone.take().unwrap(), [7; 1000]);
    assert!(slot.take().is_none(), "taken already");
}

#[test]
fn printing_a_copy_does_not_look_at_its_memory() {
    let queue = Queue::new(&slow(20)).unwrap();
    let copy = queue.copy_to_host(&filled(64), vec![0xABCDu32; 64]).unwrap();
    assert!(!format!("{copy:?}").contains("43981"));
    assert_eq!(copy.wait().unwrap(), [7; 64]);
}

#[test]
fn host_memory_of_a_group_that_was_never_enqueued_is_free() {
    let queue = Queue::new(&host()).unwrap();
    let buffer = filled(8);
    let mut kept = None;
    let submitted = queue.submit(|cg| {
        let data = cg.access(&buffer, Read);
        kept = Some(cg.copy_to_host(data, vec![1; 8])?);
        cg.access(&buffer, Write);
        Ok(())
    });
    refused(submitted, ErrorCode::Accessor, "overlap");
    assert_eq!(kept.unwrap().take().unwrap(), [1; 8]);
}

#[test]
fn memory_that_a_failed_copy_wrote_is_not_given_back() {
    let (devices, control) = simulated(1);
    let queue = Queue::new(&devices[0]).unwrap();
    let buffer = filled(8);
    buffer.reserve(&devices[0]).unwrap();
    // The first copy moves the data to the device, the second one is the command's own.
    control.fail_next(0, oxisycl::simulated::Operation::Copy, 2);
    let (event, slot) = queue
        .submit_with(|cg| {
            let data = cg.access(&buffer, Read);
            cg.copy_to_host(data, vec![0; 8])
        })
        .unwrap();
    assert!(event.wait().is_err());
    assert!(slot.take().is_none() && format!("{slot:?}").contains("Lost"));
    // Memory that was only read is as it was.
    control.fail_next(0, oxisycl::simulated::Operation::Copy, 1);
    let (event, slot) = queue
        .submit_with(|cg| {
            let data = cg.access(&buffer, Write);
            cg.copy_from_host(vec![5; 8], data)
        })
        .unwrap();
    assert!(event.wait().is_err());
    assert_eq!(slot.take().unwrap(), [5; 8]);
    _ = queue.take_errors();
}

#[test]
fn shared_memory_is_read_in_place_and_never_written() {
    let queue = Queue::new(&slow(20)).unwrap();
    let mut shared: Arc<[u32]> = Arc::from([3; 64]);
    let buffer = filled(64);
    let copy = queue.copy_from_host(shared.clone(), &buffer).unwrap();
    assert!(Arc::get_mut(&mut shared).is_none(), "the command reads it");
    assert_eq!(shared[..], [3; 64]);
    assert_eq!(copy.wait().unwrap()[..], [3; 64]);
    Arc::get_mut(&mut shared).unwrap()[0] = 4;
    assert_eq!(buffer.to_vec().unwrap(), [3; 64]);
    let own = Buffer::from_shared_nd(shared.clone(), 64).unwrap();
    add_one(&queue, &own).unwrap();
    assert_eq!((own.to_vec().unwrap()[0], shared[0]), (5, 4));
    static TABLE: [u32; 64] = [9; 64];
    queue.copy_from_host(&TABLE[..], &buffer).unwrap().wait().unwrap();
    add_one(&queue, &buffer).unwrap();
    assert_eq!((buffer.to_vec().unwrap()[63], TABLE[63]), (10, 9));
}

#[test]
fn uses_of_a_usm_slice_come_after_a_copy_that_nobody_could_wait_for() {
    let device = host();
    let (queue, other) = (Queue::builder().device(&device).in_order().build().unwrap(), Queue::new(&device).unwrap());
    let n = if cfg!(miri) { 1 << 8 } else { 1 << 20 };
    let interrupted = || {
        let blocked = filled(4);
        let mut slice = other.malloc_shared::<u32>(n).unwrap();
        let guard = blocked.host_access(ReadWrite).unwrap();
        add_one(&queue, &blocked).unwrap();
        refused(slice.copy_from_slice(&queue, &vec![5; n]), ErrorCode::Invalid, "the wait cannot end");
        (slice, guard)
    };
    let (slice, guard) = interrupted();
    drop(guard);
    assert!(slice.to_vec(&other).unwrap().iter().all(|&x| x == 5), "read before the copy");
    let (mut slice, guard) = interrupted();
    drop(guard);
    slice.copy_from_slice(&other, &vec![6; n]).unwrap();
    queue.wait().unwrap();
    assert!(slice.to_vec(&other).unwrap().iter().all(|&x| x == 6), "overwritten by the older copy");
    let (slice, guard) = interrupted();
    drop(guard);
    let buffer = BufferOptions::new().from_usm_nd(slice, n).unwrap();
    assert!(buffer.host_access(Read).unwrap().iter().all(|&x| x == 5), "used before the copy");
    let (slice, guard) = interrupted();
    refused(BufferOptions::new().from_usm_nd(slice, n), ErrorCode::Invalid, "the wait cannot end");
    let (slice, second_guard) = interrupted();
    refused(slice.to_vec(&other), ErrorCode::Invalid, "the wait cannot end");
    drop(slice);
    drop((guard, second_guard));
    queue.wait().unwrap();
    other.wait().unwrap();
}

#[test]
fn a_destination_may_be_replaced_while_the_old_one_is_dropped() {
    struct Replaces(Buffer<u32, 1>, Arc<Mutex<Vec<u32>>>);
    impl Drop for Replaces {
        fn drop(&mut self) {
            let seen = self.1.clone();
            self.0.set_final_data(FinalData::call(move |data| seen.lock().unwrap().extend(data.unwrap())));
        }
    }
    let seen = Arc::default();
    let buffer = filled(4);
    let guard = Replaces(buffer.clone(), Arc::clone(&seen));
    buffer.set_final_data(FinalData::call(move |_| drop(guard)));
    buffer.set_final_data(FinalData::none());
    assert!(seen.lock().unwrap().is_empty());
    drop(buffer);
    assert_eq!(*seen.lock().unwrap(), [7; 4]);
}

#[test]
fn buffers_may_be_dropped_in_the_command_that_uses_them() {
    for device in devices() {
        let queue = Queue::new(&device).unwrap();
        for n in 0..4 {
            let buffer = filled(100);
            if n % 2 == 0 {
                add_one(&queue, &buffer).unwrap();
            }
            let event = queue.submit(move |cg| {
                let data = cg.access_host(&buffer, Read);
                cg.host_task(move |scope| {
                    drop(buffer);
                    assert!(data.slice(scope).iter().all(|&x| x == 8 - n % 2));
                })
            });
            event.unwrap().wait().unwrap();
        }
    }
}

#[test]
fn ranges_without_elements_do_no_harm_wherever_they_lie() {
    for device in devices() {
        let queue = Queue::new(&device).unwrap();
        let buffer = Buffer::from_vec_nd(vec![7u32; 20], [4, 5]).unwrap();
        for (range, offset) in [([0, 5], [4, 0]), ([4, 0], [0, 5]), ([0, 0], [4, 5])] {
            let event = queue.submit(|cg| {
                let data = cg.access_range(&buffer, ReadWrite, offset, range);
                let view = cg.access_range(&buffer, Read, offset, range);
                cg.single_task(move |task| {
                    assert_eq!((view.view(task).iter().count(), data.cells(task).range()), (0, Range::new(range)));
                })
            });
            event.unwrap().wait().unwrap();
            let event = queue.submit(|cg| {
                let mut data = cg.access_host_range(&buffer, ReadWrite, offset, range);
                cg.host_task(move |scope| {
                    assert!(data.slice(scope).is_empty());
                    assert!(data.slice_mut(scope).is_empty());
                })
            });
            event.unwrap().wait().unwrap();
            let event = queue.submit(|cg| {
                let data = cg.access_range(&buffer, Write, offset, range);
                cg.fill(data, 1)
            });
            event.unwrap().wait().unwrap();
            let mut host = buffer.host_access_range(ReadWrite, offset, range).unwrap();
            assert_eq!((host.to_slice().map(<[u32]>::len), host.iter().count()), (Some(0), 0));
            host.for_each_mut(|_, _| unreachable!());
        }
        assert_eq!(buffer.to_vec().unwrap(), [7; 20]);
    }
}

#[test]
fn buffers_without_elements_may_have_any_extent() {
    let queue = Queue::new(&host()).unwrap();
    let huge = usize::MAX;
    let buffer = Buffer::<u8, 3>::uninit([0, huge, huge]).unwrap();
    for offset in [[0, 64, 0], [0, 1, huge - 63], [0, huge, huge], [0, huge / 2 + 1, 2]] {
        let part = buffer.sub_buffer(offset, [0, 0, 0]).unwrap();
        for view in [&buffer, &part] {
            let offset = if view == &part { [0; 3] } else { offset };
            let event = queue.submit(|cg| {
                let data = cg.access_range(view, Read, offset, [0; 3]);
                cg.single_task(move |task| assert_eq!(data.view(task).iter().count(), 0))
            });
            event.unwrap().wait().unwrap();
            let event = queue.submit(|cg| {
                let mut data = cg.access_host_range(view, ReadWrite, offset, [0; 3]);
                cg.host_task(move |scope| {
                    // A slice at address zero would not be `Some`.
                    assert!(Some(data.slice(scope)).is_some_and(<[u8]>::is_empty));
                    assert!(Some(data.slice_mut(scope)).is_some_and(|slice| slice.is_empty()));
                })
            });
            event.unwrap().wait().unwrap();
            let host = view.host_access_range(Read, offset, [0; 3]).unwrap();
            assert!(host.to_slice().is_some_and(<[u8]>::is_empty));
        }
    }
}

#[test]
fn owners_among_arguments_are_read_where_they_are_and_dropped_after_the_command() {
    let (queue, sums) = (Queue::new(&host()).unwrap(), filled(4));
    let (counted, shared): (Arc<u32>, Arc<[u32]>) = (Arc::new(5), Arc::from([1, 2, 3, 4]));
    let vectors = (vec![10u32, 20, 30, 40], vec![1000u32; 4].into_boxed_slice());
    let arguments = (vectors, Box::new(100u32), counted.clone(), (shared.clone(), "abcd".to_owned()), sums.write());
    let kernel =
        queue.parallel_for_with(4, arguments, |item, ((vector, slice), boxed, counted, (shared, text), sums)| {
            let i = item.index();
            sums.set(item, vector[i] + slice[i] + *boxed + *counted + shared[i] + u32::from(text.as_bytes()[i] - b'a'));
        });
    kernel.unwrap().wait().unwrap();
    assert_eq!(sums.to_vec().unwrap(), [1116, 1128, 1140, 1152]);
    eventually(|| Arc::strong_count(&counted) == 1 && Arc::strong_count(&shared) == 1);
}

/// Waits for two commands of a device when it is dropped. The second is its own, which ends when it is dropped.
struct Patient {
    other: Event,
    own: Arc<Mutex<Option<Event>>>,
    has_waited: Arc<AtomicBool>,
}

impl Drop for Patient {
    fn drop(&mut self) {
        self.other.wait().unwrap();
        loop {
            if let Some(own) = self.own.lock().unwrap().clone() {
                let error = own.wait().unwrap_err();
                assert_eq!(error.code(), ErrorCode::Invalid, "{error}");
                break;
            }
            std::thread::yield_now();
        }
        self.has_waited.store(true, Ordering::Release);
    }
}

#[test]
fn an_owner_that_waits_for_its_device_when_it_is_dropped_holds_up_nothing() {
    let device = slow(5);
    let queues = [0, 1].map(|_| Queue::new(&device).unwrap());
    let (own, has_waited) = (Arc::new(Mutex::new(None)), Arc::new(AtomicBool::new(false)));
    let other = add_one(&queues[1], &filled(8)).unwrap();
    let patient = Patient { other, own: own.clone(), has_waited: has_waited.clone() };
    let event = queues[0].parallel_for_with(1, Keep(patient), |_, ()| {}).unwrap();
    // More for the device to do, which ends while the owner waits.
    let later = add_one(&queues[0], &filled(8)).unwrap();
    *own.lock().unwrap() = Some(event.clone());
    event.wait().unwrap();
    later.wait().unwrap();
    eventually(|| has_waited.load(Ordering::Acquire));
}
