//! Groups hand out each of their elements once, whatever their kernels catch, forget or try to start.

use std::mem::forget;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytemuck::AnyBitPattern;
use oxisycl::group::{Fixed1, Local, LocalSlice, Private, Rows};
use oxisycl::operator::Sum;
use oxisycl::prelude::*;
use oxisycl::reduction::{reduction, reduction_without_identity};

use super::{devices, filled, host, refused};

/// As large as a `u64`, with three bytes that nothing initialises.
#[derive(Clone, Copy, DeviceCopyable, AnyBitPattern)]
#[repr(C)]
struct Padded(u8, u32);

/// A panic without a message on standard error.
fn fail<T>() -> T {
    resume_unwind(Box::new("on purpose"))
}

#[test]
fn memory_of_an_earlier_kernel_has_values_of_any_type() {
    for device in devices() {
        let queue = Queue::new(&device).unwrap();
        // Small memory is on the stack of a chunk. A thread keeps large memory.
        for len in [8, 2056] {
            let event = queue.submit(|cg| {
                let memory = LocalSlice::<Padded>::new(len);
                cg.parallel_for_work_group(2, Fixed1::<2>, memory, move |mut group, mut tile| {
                    group.for_each_of(len, &mut tile, |_, slot| *slot = Padded(1, 2));
                })
            });
            event.unwrap().wait().unwrap();
            let seen = [0, 1].map(|_| Buffer::from_vec(vec![0u64; 4]).unwrap());
            let event = queue.submit(|cg| {
                let seen = [cg.access(&seen[0], Write), cg.access(&seen[1], Write)];
                let memory = LocalSlice::<u64>::new(len);
                cg.parallel_for_work_group(2, Fixed1::<2>, memory, move |mut group, tile| {
                    for seen in seen {
                        group.for_each(&tile, move |item, tile| {
                            seen.set(item.global(), tile.iter().fold(0, |all, value| all ^ value));
                        });
                    }
                })
            });
            event.unwrap().wait().unwrap();
            // Nobody says which values these are. They do not change.
            let [first, second] = seen.map(|seen| seen.into_vec().unwrap());
            assert_eq!(first, second);
        }
    }
}

#[test]
fn a_panic_of_a_phase_that_is_caught_leaves_each_work_item_its_own() {
    for device in devices() {
        let queue = Queue::new(&device).unwrap();
        let (before, after) = (filled(16), filled(16));
        let event = queue.submit(|cg| {
            let [before, after] = [&before, &after].map(|buffer| cg.access(buffer, Write));
            let memory = (Local::<u32, 8>::new(), Private::new(5u32));
            cg.parallel_for_work_group(2, Fixed1::<8>, memory, move |mut group, (mut tile, mut own)| {
                group.for_each(&mut tile, |_, slot| *slot = 1);
                let phase = catch_unwind(AssertUnwindSafe(|| {
                    group.for_each((&mut tile, &mut own), |item, (slot, own)| {
                        if item.local_linear_id() == 5 {
                            fail::<()>();
                        }
                        (*slot, *own) = (2, 50);
                    });
                }));
                let algorithm = catch_unwind(AssertUnwindSafe(|| group.reduce(&own, |_: u32, _: u32| fail())));
                assert!(phase.is_err() && algorithm.is_err());
                group.for_each((&tile, &own), move |item, (tile, own)| {
                    before.set(item.global(), tile[item.local_linear_id()] + *own);
                });
                group.for_each((&mut tile, &mut own), |item, (slot, own)| {
                    (*slot, *own) = (item.local_linear_id() as u32, 1000);
                });
                let sum = group.reduce(&own, Sum);
                group.for_each(&tile, move |item, tile| after.set(item.global(), sum + tile[item.local_linear_id()]));
            })
        });
        event.unwrap().wait().unwrap();
        for (index, value) in before.into_vec().unwrap().into_iter().enumerate() {
            assert!(value == 6 || (value == 52 && index % 8 != 5), "{index}: {value}");
        }
        assert_eq!(after.into_vec().unwrap(), (0..16).map(|index| 8000 + index % 8).collect::<Vec<u32>>());
    }
}

#[test]
fn forgotten_groups_tiles_and_work_items_leave_their_memory_to_the_next_group() {
    for device in devices() {
        let queue = Queue::new(&device).unwrap();
        let results = filled(32);
        let event = queue.submit(|cg| {
            let results = cg.access(&results, Write);
            let memory = (Local::<u32, 8>::new(), Private::new(5u32));
            cg.parallel_for_work_group(4, Fixed1::<8>, memory, move |mut group, (mut tile, mut own)| {
                group.for_each((&mut tile, &mut own), move |item, (slot, own)| {
                    *own += 1;
                    *slot = *own;
                    results.set(item.global(), *slot);
                    forget((item, vec![*own]));
                });
                forget((group, tile, own, vec![0u8]));
            })
        });
        event.unwrap().wait().unwrap();
        queue
            .parallel_for_nd_range((32, Fixed1::<8>), (), |item, ()| forget((item, vec![0u8])))
            .unwrap()
            .wait()
            .unwrap();
        assert_eq!(results.into_vec().unwrap(), [6; 32]);
    }
}

#[test]
fn phases_and_operators_start_and_await_nothing() {
    static INSIDE: OnceLock<(Queue, Buffer<u32, 1>)> = OnceLock::new();
    static TRIED: AtomicUsize = AtomicUsize::new(0);
    fn tries() {
        let (queue, buffer) = INSIDE.get().unwrap();
        refused(queue.submit(|cg| cg.single_task(|_| ())), ErrorCode::Invalid, "inside a kernel");
        refused(queue.wait(), ErrorCode::Invalid, "inside a kernel");
        refused(buffer.host_access(Read).map(drop), ErrorCode::Invalid, "inside a kernel");
        TRIED.fetch_add(1, Ordering::SeqCst);
    }
    INSIDE.set((Queue::new(&host()).unwrap(), filled(4))).unwrap();
    // Otherwise waiting would not block.
    let reading = INSIDE.get().unwrap().1.host_access(ReadWrite).unwrap();
    let left = INSIDE.get().unwrap().0.submit(|cg| {
        let data = cg.access(&INSIDE.get().unwrap().1, ReadWrite);
        cg.parallel_for(4, move |item| data.set(item, 1))
    });
    for device in devices() {
        let queue = Queue::new(&device).unwrap();
        let event = queue.submit(|cg| {
            cg.parallel_for_work_group(1, Fixed1::<4>, Private::new(1u32), move |mut group, mut own| {
                tries();
                group.for_each(&mut own, |_, _| tries());
                let add = |a: u32, b: u32| {
                    tries();
                    a + b
                };
                assert_eq!(group.reduce(&own, add), 4);
            })
        });
        event.unwrap().wait().unwrap();
        let event = queue.parallel_for_nd_range((4, Fixed1::<1>), (), |mut item, ()| {
            tries();
            item.group().barrier();
            tries();
        });
        event.unwrap().wait().unwrap();
        // Once for the group, once for each work-item, and at least for three operations.
        assert!(TRIED.swap(0, Ordering::SeqCst) >= 1 + 4 + 3 + 8);
    }
    assert!(reading.iter().all(|value| *value == 7));
    drop(reading);
    left.unwrap().wait().unwrap();
}

#[test]
fn threads_of_a_phase_write_what_it_lends() {
    for device in devices() {
        let queue = Queue::new(&device).unwrap();
        let results = filled(8);
        let event = queue.submit(|cg| {
            let results = cg.access(&results, Write);
            cg.parallel_for_work_group(2, Fixed1::<4>, Local::<u32, 16>::new(), move |mut group, mut tile| {
                group.for_each(Rows(&mut tile, 4), |_, row| {
                    let (one, other) = row.split_at_mut(2);
                    std::thread::scope(|scope| {
                        scope.spawn(|| one.fill(1));
                        other.fill(20);
                    });
                });
                group.for_each(&tile, move |item, tile| results.set(item.global(), tile.iter().sum()));
            })
        });
        event.unwrap().wait().unwrap();
        assert_eq!(results.into_vec().unwrap(), [4 * (2 + 40); 8]);
    }
}

/// Exchanges values of several types of one size, in groups of `N` work-items.
fn exchange_in_turn<const N: usize>() {
    for device in devices() {
        let results = filled(2 * N);
        let event = Queue::new(&device).unwrap().submit(|cg| {
            let results = cg.access(&results, Write);
            cg.parallel_for_nd_range((2 * N, Fixed1::<N>), (), move |mut item, ()| {
                let own = item.local_linear_id() as u32;
                let mut sum = 0;
                for round in 0..4u32 {
                    sum += item.group().broadcast(Padded(1, own), N - 1).1;
                    sum += item.group().reduce(u64::from(round), Sum) as u32;
                    sum += item.group().select([own, 1], N - 1 - own as usize)[0];
                    sum += item.group().sub_group::<4>().inclusive_scan(1u64, Sum) as u32;
                }
                results.set(item.global(), sum);
            })
        });
        event.unwrap().wait().unwrap();
        let expected = |own: usize| 4 * (N - 1) + 6 * N + 4 * (N - 1 - own) + 4 * (own % 4 + 1);
        assert_eq!(results.into_vec().unwrap(), (0..2 * N).map(|n| expected(n % N) as u32).collect::<Vec<_>>());
    }
}

#[test]
fn values_of_several_types_are_never_mistaken_for_each_other() {
    exchange_in_turn::<1>();
    // Miri knows no stacks of work-items.
    if !cfg!(miri) {
        exchange_in_turn::<8>();
    }
}

#[test]
fn a_buffer_that_is_dropped_by_a_panic_has_what_groups_wrote() {
    const GROUPS: usize = if cfg!(miri) { 8 } else { 2000 };
    for device in devices() {
        let queue = Queue::new(&device).unwrap();
        let mut data = vec![0u32; 8 * GROUPS];
        let caught = catch_unwind(AssertUnwindSafe(|| {
            let buffer = Buffer::from_slice_mut_nd(&mut data, 8 * GROUPS).unwrap();
            let event = queue.submit(|cg| {
                let data = cg.access(&buffer, ReadWrite);
                cg.parallel_for_work_group(GROUPS, Fixed1::<8>, Private::new(1u32), move |mut group, own| {
                    let sum = group.reduce(&own, Sum);
                    group.for_each((), move |item, ()| data.update(item.global(), |x| x + sum));
                })
            });
            event.unwrap();
            if !cfg!(miri) {
                let event = queue.submit(|cg| {
                    let data = cg.access(&buffer, ReadWrite);
                    cg.parallel_for_nd_range((8 * GROUPS, Fixed1::<8>), (), move |mut item, ()| {
                        let sum = item.group().reduce(1u32, Sum);
                        data.update(item.global(), |x| x + sum);
                    })
                });
                event.unwrap();
            }
            fail::<()>();
        }));
        assert!(caught.is_err());
        let expected = if cfg!(miri) { 8 } else { 16 };
        assert!(data.iter().all(|value| *value == expected), "{data:?}");
    }
}

#[test]
fn reductions_outlive_what_is_dropped_or_forgotten_of_them() {
    for device in devices() {
        let queue = Queue::new(&device).unwrap();
        let (first, second) = (Buffer::from_vec(vec![0u32]).unwrap(), Buffer::from_vec(vec![0u32]).unwrap());
        let event = queue.submit(|cg| {
            let into = (reduction(cg.access(&first, Write), Sum), reduction(cg.access(&second, Write), Sum));
            cg.parallel_reduce(100, into, |item, (first, second)| {
                *first += 1;
                *second += 2;
                if item.index() % 2 == 0 {
                    std::mem::swap(first, second);
                }
            })
        });
        drop(event.unwrap());
        let failed = Buffer::from_vec(vec![3u32]).unwrap();
        let event = queue.submit(|cg| {
            let into = reduction_without_identity(cg.access(&failed, ReadWrite), |_: u32, _: u32| fail());
            cg.parallel_reduce(100, into, |_, sum| sum.combine(1))
        });
        refused(event.unwrap().wait(), ErrorCode::Kernel, "on purpose");
        refused(failed.to_vec(), ErrorCode::Kernel, "on purpose");
        let numbers = filled(1000);
        forget(queue.reduce(&numbers, Sum).unwrap());
        drop(queue.reduce(&numbers, Sum).unwrap());
        let reduced = queue.reduce(&numbers, Sum).unwrap();
        drop(numbers);
        assert_eq!(reduced.get().unwrap(), 7000);
        assert_eq!(first.into_vec().unwrap()[0] + second.into_vec().unwrap()[0], 300);
        _ = queue.take_errors();
    }
}

#[test]
fn sizes_that_overflow_reach_no_memory() {
    const HALF: usize = usize::MAX / 2;
    for device in devices() {
        let queue = Queue::new(&device).unwrap();
        for len in [usize::MAX, usize::MAX / 8 + 1, usize::MAX / 8 - 7] {
            let memory = (LocalSlice::<u64>::new(len), Local::<u64, 8>::new());
            let event = queue.submit(|cg| cg.parallel_for_work_group(1, Fixed1::<8>, memory, |_, _| ()));
            refused(event, ErrorCode::MemoryAllocation, "local memory");
        }
        let event = queue.submit(|cg| cg.parallel_for_work_group([HALF, 3], Range::new([2, 4]), (), |_, ()| ()));
        refused(event, ErrorCode::NdRange, "");
        let event = queue.submit(|cg| {
            cg.parallel_for_work_group(1, Fixed1::<8>, Local::<u32, 8>::new(), move |mut group, mut tile| {
                group.for_each(Rows(&mut tile, HALF), |_, row| row.fill(1));
            })
        });
        refused(event.unwrap().wait(), ErrorCode::Kernel, "");
        let event = queue.submit(|cg| {
            cg.parallel_for_work_group(1, Fixed1::<8>, Local::<u32, 8>::new(), move |mut group, mut tile| {
                group.for_each_of([HALF, 3], &mut tile, |_, slot| *slot = 1);
            })
        });
        refused(event.unwrap().wait(), ErrorCode::Kernel, "");
        _ = queue.take_errors();
    }
}
