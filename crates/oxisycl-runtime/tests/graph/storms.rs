//! Many threads that submit, access on the host and end commands at the same time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use oxisycl_backend::QueueOptions;
use oxisycl_backend_testing::recording::RecordingConfig;
use oxisycl_types::AccessMode::{Read, ReadWrite};

use crate::support::{Buffer, Change, World, eventually, host};

/// Numbers without visible order.
struct Sequence(u64);

impl Sequence {
    fn next(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % n
    }
}

/// Ends commands until told to stop, from two threads and in different orders.
fn with_workers(world: &World, f: impl FnOnce()) {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for worker in 0..2 {
            let (stop, world) = (&stop, &world);
            scope.spawn(move || {
                let mut random = Sequence(worker);
                while !stop.load(Ordering::Acquire) {
                    match worker {
                        0 => world.recorder.complete_all(),
                        _ => {
                            let ready = world.recorder.ready();
                            if !ready.is_empty() {
                                // Another thread may be faster; then nothing happens.
                                world.recorder.try_complete(ready[random.next(ready.len())]);
                            }
                        }
                    }
                    std::thread::yield_now();
                }
            });
        }
        f();
        stop.store(true, Ordering::Release);
    });
}

#[test]
fn every_increment_of_a_storm_counts() {
    storm(&World::new(3));
}

#[test]
fn every_increment_of_a_storm_counts_where_queues_take_few_commands() {
    storm(&World::with(RecordingConfig::new(3).taking(2)));
    storm(&World::with(RecordingConfig::new(3).taking(3).keeping_order()));
}

fn storm(world: &World) {
    const THREADS: usize = 4;
    // An interpreter that looks for data races needs fewer steps, and has no time for more.
    const STEPS: usize = if cfg!(miri) { 12 } else { 400 };
    let other = world.other_context();
    let buffers: Vec<Buffer> =
        (0..4).map(|n| if n % 2 == 0 { Buffer::new(16) } else { Buffer::paged(16, 4) }.initialized()).collect();
    let (world_ref, buffers_ref, other_ref) = (world, &buffers, &other);
    with_workers(world, || {
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                scope.spawn(move || {
                    let mut random = Sequence(thread as u64 + 10);
                    let queues = [
                        world_ref.queue(0),
                        world_ref.in_order_queue(1),
                        world_ref.queue_in(other_ref, 2, QueueOptions::default()),
                    ];
                    let mut last = None;
                    for step in 0..STEPS {
                        let (queue, first) = (&queues[random.next(3)], random.next(4));
                        let second = (first + 1 + random.next(3)) % 4;
                        match step % 16 {
                            5 => {
                                let access = host(&buffers_ref[first], ReadWrite).unwrap();
                                let numbers = access.pointer().cast::<u32>();
                                for index in 0..16 {
                                    // SAFETY: the accessor covers the buffer, and nobody else uses it meanwhile.
                                    unsafe { *numbers.add(index) += 1 };
                                }
                            }
                            9 => drop(host(&buffers_ref[first], Read).unwrap()),
                            11 => {
                                let group = queue.group().read(&buffers_ref[first]).read(&buffers_ref[second]);
                                group.host_task(|| {});
                            }
                            _ => {
                                let mut group = queue.group();
                                if step % 7 == 0 {
                                    group = last.iter().fold(group, |group, node| group.after(node));
                                }
                                let group = group.access(&buffers_ref[first], ReadWrite, false, Change::Add(1));
                                last = Some(group.read(&buffers_ref[second]).kernel("step"));
                            }
                        }
                    }
                    for queue in &queues {
                        queue.queue.wait().unwrap();
                    }
                });
            }
        });
    });
    let total: u32 = buffers
        .iter()
        .map(|buffer| {
            let numbers = buffer.read(world);
            let n_changes = numbers[0];
            assert!(
                numbers.iter().enumerate().all(|(index, number)| *number == n_changes + index as u32),
                "{numbers:?}"
            );
            n_changes
        })
        .sum();
    let changes_of_a_thread = (0..STEPS).filter(|step| ![9, 11].contains(&(step % 16))).count();
    assert_eq!(total as usize, THREADS * changes_of_a_thread);
}

#[test]
fn buffers_dropped_in_a_storm_are_freed() {
    const THREADS: u64 = 4;
    let world = World::new(2);
    let world_ref = &world;
    with_workers(&world, || {
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                scope.spawn(move || {
                    let mut random = Sequence(thread);
                    let queues = [world_ref.queue(0), world_ref.queue(1)];
                    for _ in 0..if cfg!(miri) { 2 } else { 300 } {
                        let buffer = Buffer::new(8).initialized();
                        for _ in 0..random.next(4) {
                            queues[random.next(2)].update("step", &buffer);
                        }
                        if random.next(4) == 0 {
                            drop(host(&buffer, Read).unwrap());
                        }
                        let garbage = Arc::new(());
                        world_ref.context.discard(garbage);
                    }
                    for queue in &queues {
                        queue.queue.wait().unwrap();
                    }
                });
            }
        });
    });
    eventually(|| (0..2).all(|device| world.recorder.n_allocations(world.memory(device)) == 0));
}
