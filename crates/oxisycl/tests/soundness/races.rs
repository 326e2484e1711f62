//! Threads, host accessors, transfers and commands that meet at one buffer do so in order.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use oxisycl::prelude::*;

use super::{Gate, add_one, devices, filled, host, refused, simulated, slow};

#[test]
fn a_host_accessor_holds_back_commands_and_transfers() {
    for device in devices() {
        let queue = Queue::new(&device).unwrap();
        let buffer = filled(64);
        add_one(&queue, &buffer).unwrap();
        let mut host = buffer.host_access(ReadWrite).unwrap();
        let events = [add_one(&queue, &buffer).unwrap(), queue.update_host(&buffer).unwrap()];
        for (i, element) in host.as_mut_slice().iter_mut().enumerate() {
            assert_eq!(*element, 8);
            *element = i as u32;
        }
        assert!(events.iter().all(|event| !event.is_complete()));
        refused(events[0].wait(), ErrorCode::Invalid, "the wait cannot end");
        drop(host);
        assert!(buffer.into_vec().unwrap().into_iter().eq(1..65));
    }
}

#[test]
fn a_host_accessor_to_one_page_is_not_disturbed_by_the_others() {
    let (devices, _control) = simulated(1);
    let queue = Queue::new(&devices[0]).unwrap();
    let buffer = BufferOptions::new().page_size(8).from_vec(vec![7u32; 64]).unwrap();
    add_one(&queue, &buffer).unwrap();
    let mut middle = buffer.host_access_range(ReadWrite, 16, 8).unwrap();
    for round in 0..10 {
        let part = buffer.sub_buffer(32, 16).unwrap();
        let event = queue.submit(|cg| {
            let data = cg.access(&part, ReadWrite);
            cg.parallel_for(16, move |item| data.update(item, |x| x + 1))
        });
        middle.as_mut_slice().iter_mut().for_each(|x| *x += 1);
        // Moves pages on both sides of the one that is held.
        assert_eq!(buffer.host_access_range(Read, 8, 8).unwrap()[0], 8);
        assert_eq!(buffer.host_access_range(Read, 32, 16).unwrap()[0], 9 + round);
        event.unwrap().wait().unwrap();
    }
    drop(middle);
    let data = buffer.into_vec().unwrap();
    assert!(
        data.iter().enumerate().all(|(i, &x)| x == if (16..24).contains(&i) || (32..48).contains(&i) { 18 } else { 8 })
    );
}

#[test]
fn a_host_accessor_in_the_closure_of_its_own_group_comes_before_the_command() {
    for device in devices() {
        let queue = Queue::new(&device).unwrap();
        let buffer = filled(8);
        let mut kept = None;
        let event = queue.submit(|cg| {
            let data = cg.access(&buffer, ReadWrite);
            buffer.host_access(ReadWrite)?.as_mut_slice()[0] = 1;
            let mut host = buffer.host_access(ReadWrite)?;
            host[1] = 2;
            kept = Some(host);
            cg.parallel_for(8, move |item| data.update(item, |x| x * 10))
        });
        let mut host = kept.unwrap();
        assert_eq!(host[1], 2);
        host[2] = 3;
        assert!(!event.as_ref().unwrap().is_complete());
        drop(host);
        event.unwrap();
        assert_eq!(buffer.into_vec().unwrap(), [10, 20, 30, 70, 70, 70, 70, 70]);
    }
}

#[test]
fn groups_may_be_recorded_inside_each_other() {
    let queues: Vec<Queue> = devices().iter().map(|device| Queue::new(device).unwrap()).collect();
    let buffer = filled(8);
    let event = queues[0].submit(|outer| {
        let data = outer.access(&buffer, ReadWrite);
        queues[1].submit(|inner| {
            let data = inner.access(&buffer, ReadWrite);
            add_one(&queues[0], &buffer)?.wait()?;
            inner.parallel_for(8, move |item| data.update(item, |x| x * 2))
        })?;
        outer.parallel_for(8, move |item| data.update(item, |x| x + 100))
    });
    event.unwrap();
    assert_eq!(buffer.into_vec().unwrap(), [116; 8]);
}

#[test]
fn a_host_task_that_submits_does_not_reach_what_it_submitted() {
    // That its scope does not open the accessors is a matter of types; here that the order holds.
    for device in devices() {
        let queue = Queue::new(&device).unwrap();
        let buffer = filled(64);
        let (inner_queue, inner_buffer) = (queue.clone(), buffer.clone());
        let event = queue.submit(|cg| {
            let mut data = cg.access_host(&buffer, ReadWrite);
            cg.host_task(move |scope| {
                let inner = inner_queue.submit(|cg| {
                    let mut data = cg.access_host(&inner_buffer, ReadWrite);
                    cg.host_task(move |scope| data.slice_mut(scope).iter_mut().for_each(|x| *x *= 2))
                });
                inner.unwrap();
                data.slice_mut(scope).iter_mut().for_each(|x| *x += 1);
            })
        });
        event.unwrap().wait().unwrap();
        assert_eq!(buffer.into_vec().unwrap(), [16; 64]);
    }
}

#[test]
fn threads_and_devices_that_use_one_buffer_lose_nothing() {
    let (mut devices, _control) = simulated(2);
    devices.push(host());
    let n_rounds = if cfg!(miri) { 4 } else { 100 };
    let buffer = BufferOptions::new().page_size(16).from_vec(vec![0u32; 64]).unwrap();
    let (low, high) = (buffer.sub_buffer(0, 32).unwrap(), buffer.sub_buffer(32, 32).unwrap());
    let (low, high) = (&low, &high);
    std::thread::scope(|scope| {
        for device in &devices {
            scope.spawn(|| {
                let queue = Queue::new(device).unwrap();
                for _ in 0..n_rounds {
                    for part in [low, high] {
                        add_one(&queue, part).unwrap();
                    }
                }
            });
        }
        for part in [low, high] {
            scope.spawn(move || {
                for _ in 0..n_rounds {
                    part.host_access(ReadWrite).unwrap().for_each_mut(|_, x| *x += 1);
                    let seen = part.to_vec().unwrap();
                    assert!(seen.iter().all(|&x| x == seen[0]), "half of a command is visible: {seen:?}");
                }
            });
        }
    });
    assert_eq!(buffer.to_vec().unwrap(), vec![4 * n_rounds; 64]);
}

#[test]
fn atomics_of_all_work_items_add_up() {
    for device in devices() {
        let queue = Queue::new(&device).unwrap();
        let n = if cfg!(miri) { 64 } else { 100_000 };
        let (sums, maximum) = (filled(3), Buffer::from_vec(vec![0.0f64]).unwrap());
        for _ in 0..2 {
            let event = queue.submit(|cg| {
                let (sums, maximum) = (cg.access(&sums, Atomic), cg.access(&maximum, Atomic));
                cg.parallel_for(n, move |item| {
                    sums.fetch_add(item, item.index() % 3, 1);
                    maximum.fetch_max(item, 0, item.index() as f64);
                })
            });
            event.unwrap();
        }
        assert_eq!(sums.into_vec().unwrap().iter().sum::<u32>(), 21 + 2 * n as u32);
        assert_eq!(maximum.into_vec().unwrap(), [(n - 1) as f64]);
    }
}

#[test]
fn an_event_that_is_seen_complete_makes_its_writes_visible() {
    for device in devices() {
        let queue = Queue::new(&device).unwrap();
        for _ in 0..if cfg!(miri) { 2 } else { 50 } {
            let shared = Arc::new(AtomicU32::new(0));
            let copy = queue.copy_to_host(&filled(100), vec![0; 100]).unwrap();
            let event = copy.event().clone();
            let told = shared.clone();
            let thread = std::thread::spawn(move || {
                while !event.is_complete() {
                    std::thread::yield_now();
                }
                told.store(1, Ordering::Release);
            });
            while shared.load(Ordering::Acquire) == 0 {
                std::thread::yield_now();
            }
            assert_eq!(copy.wait().unwrap(), [7; 100]);
            thread.join().unwrap();
        }
    }
}

#[test]
fn a_command_on_a_slow_device_is_waited_for_by_everyone() {
    let device = slow(30);
    let queue = Queue::new(&device).unwrap();
    let buffer = filled(64);
    add_one(&queue, &buffer).unwrap();
    let other = Queue::new(&host()).unwrap();
    add_one(&other, &buffer).unwrap();
    add_one(&queue, &buffer).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| assert_eq!(buffer.to_vec().unwrap(), [10; 64]));
        }
    });
    buffer.release(&device).unwrap();
    assert_eq!(buffer.into_vec().unwrap(), [10; 64]);
}

#[test]
fn a_buffer_may_be_released_while_other_threads_use_it() {
    static STOP: Gate = Gate::new();
    let (devices, _control) = simulated(1);
    let queue = Queue::new(&devices[0]).unwrap();
    let buffer = filled(256);
    let n_rounds = if cfg!(miri) { 3 } else { 200 };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..n_rounds {
                add_one(&queue, &buffer).unwrap();
                assert_eq!(buffer.host_access(Read).unwrap().as_slice().len(), 256);
            }
            STOP.open();
        });
        scope.spawn(|| {
            while !STOP.0.load(Ordering::Acquire) {
                // Refused while somebody records a group, while a command uses it, or while only the device has the data.
                _ = buffer.release(&devices[0]);
            }
        });
    });
    assert_eq!(buffer.to_vec().unwrap(), vec![7 + n_rounds; 256]);
}
