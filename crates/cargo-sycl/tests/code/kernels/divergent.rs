//! Kernels over nd-ranges and groups, with barriers and algorithms that are proved or refused: those called `refused` have a warning each, the others none.

use std::sync::atomic::{AtomicU32, Ordering};

use oxisycl::group::nd::NdItem;
use oxisycl::group::{Fixed1, Local};
use oxisycl::operator::Sum;
use oxisycl::prelude::*;

const SIZE: usize = 64;
type Item64<'wi, 'cg> = NdItem<'wi, 'cg, 1, Fixed1<SIZE>>;

fn main() -> oxisycl::Result {
    let queue = Queue::default()?;
    let numbers = Buffer::from_vec(vec![1u32; SIZE])?;
    refused(&queue, &numbers)?;
    proved(&queue, &numbers)?;
    refused_at_group_scope(&queue)?;
    refused_for_its_heap(&queue, &numbers)?;
    proved_at_group_scope(&queue, &numbers)?;
    queue.wait()
}

/// A barrier in a function of its own.
fn meet(item: &mut Item64<'_, '_>) {
    item.group().barrier();
}

fn meet_twice(item: &mut Item64<'_, '_>) {
    meet(item);
    meet(item);
}

fn refused(queue: &Queue, numbers: &Buffer<u32, 1>) -> oxisycl::Result {
    let (range, way) = ((SIZE, Fixed1::<SIZE>), 1);
    // Some work-items only.
    queue.parallel_for_nd_range(range, (), |mut item, ()| {
        if item.is_leader() {
            item.group().barrier();
        }
    })?;
    // Two places.
    queue.parallel_for_nd_range(range, (), |mut item, ()| {
        if item.local_linear_id() % 2 == 0 {
            item.group().barrier();
        } else {
            meet(&mut item);
        }
    })?;
    // Some have left.
    queue.parallel_for_nd_range(range, (), |mut item, ()| {
        if item.global_linear_id() > 70 {
            return;
        }
        meet(&mut item);
    })?;
    // A number of rounds for each.
    queue.parallel_for_nd_range(range, (), |mut item, ()| {
        for _ in 0..item.local_linear_id() {
            meet(&mut item);
        }
    })?;
    // A loop that some leave.
    queue.parallel_for_nd_range(range, (), |mut item, ()| {
        let mut n = item.local_linear_id();
        loop {
            if n % 7 == 3 {
                break;
            }
            n += 1;
            item.group().barrier();
        }
    })?;
    // What one work-item reads of memory that changes.
    queue.submit(|cg| {
        let numbers = cg.access(numbers, ReadWrite);
        cg.parallel_for_nd_range(range, (), move |mut item, ()| {
            if numbers.get(item.global()) > 0 {
                item.group().barrier();
            }
        })
    })?;
    // What an atomic operation gives.
    queue.submit(|cg| {
        let numbers = cg.access(numbers, Atomic);
        cg.parallel_for_nd_range(range, (), move |mut item, ()| {
            if numbers.fetch_add(item.global(), 0, 1) < 40 {
                item.group().reduce(1u32, Sum);
            }
        })
    })?;
    // A result that each work-item has of its own.
    queue.parallel_for_nd_range(range, (), |mut item, ()| {
        let before = item.group().exclusive_scan(1u32, Sum);
        if before < 10 {
            item.group().barrier();
        }
    })?;
    // An own element of local memory.
    queue.parallel_for_nd_range(range, Local::<u32, SIZE>::new(), |mut item, tile| {
        let own = item.local_linear_id();
        // SAFETY: own elements.
        unsafe { tile.set(own, own as u32) };
        item.group().barrier();
        // SAFETY: nothing is written behind the barrier.
        if unsafe { tile.get(own) } < 3 {
            item.group().barrier();
        }
    })?;
    // The address of a variable.
    queue.parallel_for_nd_range(range, (), |mut item, ()| {
        let own = std::hint::black_box(item.local_linear_id());
        if (&raw const own) as usize % 256 < 128 {
            item.group().barrier();
        }
    })?;
    // A source of its own for each.
    queue.parallel_for_nd_range(range, (), |mut item, ()| {
        let own = item.local_linear_id();
        item.group().broadcast(1u32, own);
    })?;
    // A function that is called by its address.
    queue.parallel_for_nd_range(range, (), move |mut item, ()| {
        let ways: [fn(&mut Item64<'_, '_>); 2] = [meet, meet_twice];
        ways[way](&mut item);
    })?;
    Ok(())
}

fn proved(queue: &Queue, numbers: &Buffer<u32, 1>) -> oxisycl::Result {
    let range = (SIZE, Fixed1::<SIZE>);
    let (often, twice) = (5, true);
    // Captures, and a function.
    queue.parallel_for_nd_range(range, (), move |mut item, ()| {
        for _ in 0..often {
            meet(&mut item);
            if twice {
                meet(&mut item);
            }
        }
    })?;
    // Work-items that part in between, and some that panic.
    queue.parallel_for_nd_range(range, (), |mut item, ()| {
        let mut n = item.local_linear_id();
        for _ in 0..8 {
            while n % 3 != 0 {
                n += 1;
            }
            assert!(n < 100, "{n}");
            item.group().barrier();
        }
    })?;
    // The position of the group, and both arms.
    queue.parallel_for_nd_range(range, (), |mut item, ()| {
        if item.group_id()[0] % 2 == 0 {
            item.group().barrier();
        } else {
            item.group().reduce(1u32, Sum);
        }
    })?;
    // Results that are the same for all.
    queue.parallel_for_nd_range(range, (), |mut item, ()| {
        let mut n = item.local_linear_id();
        while item.group().any(n > 0) {
            n /= 2;
        }
        let first = item.group().broadcast(n, 0);
        if first > item.group().reduce(n, Sum) {
            item.group().barrier();
        }
    })?;
    // What one work-item has read, once all have it.
    queue.submit(|cg| {
        let numbers = cg.access(numbers, Read);
        cg.parallel_for_nd_range(range, (), move |mut item, ()| {
            let own = numbers.get(item.global());
            for _ in 0..item.group().broadcast(own, 3) {
                item.group().barrier();
            }
        })
    })?;
    // An element of local memory that all read.
    queue.parallel_for_nd_range(range, Local::<u32, SIZE>::new(), |mut item, tile| {
        let own = item.local_linear_id();
        // SAFETY: own elements.
        unsafe { tile.set(own, own as u32) };
        item.group().barrier();
        // SAFETY: nothing is written behind the barrier.
        for _ in 0..unsafe { tile.get(7) } {
            item.group().barrier();
        }
    })?;
    Ok(())
}

/// A number of an address, from a function that calls itself. It is too large to be inlined, even once.
fn number(of: &u32, n: usize) -> usize {
    let mut sum = n;
    if n < 2 {
        return (&raw const *of).addr();
    }
    sum = sum.rotate_left(2) ^ number(of, n / 2);
    sum = sum.rotate_left(3) ^ number(of, n / 3);
    sum = sum.rotate_left(4) ^ number(of, n / 4);
    sum = sum.rotate_left(5) ^ number(of, n / 5);
    sum = sum.rotate_left(6) ^ number(of, n / 6);
    sum = sum.rotate_left(7) ^ number(of, n / 7);
    sum = sum.rotate_left(8) ^ number(of, n / 8);
    sum = sum.rotate_left(9) ^ number(of, n / 9);
    sum = sum.rotate_left(10) ^ number(of, n / 10);
    sum = sum.rotate_left(11) ^ number(of, n / 11);
    sum = sum.rotate_left(12) ^ number(of, n / 12);
    sum = sum.rotate_left(13) ^ number(of, n / 13);
    sum = sum.rotate_left(14) ^ number(of, n / 14);
    sum = sum.rotate_left(15) ^ number(of, n / 15);
    sum = sum.rotate_left(16) ^ number(of, n / 16);
    sum = sum.rotate_left(17) ^ number(of, n / 17);
    sum
}

/// A number of numbers.
fn steps(n: usize) -> usize {
    if n < 2 { 1 } else { steps(n / 2) ^ steps(n / 3).rotate_left(1) }
}

/// Every work-item of a group has variables of its own, so that their addresses differ.
fn refused_at_group_scope(queue: &Queue) -> oxisycl::Result {
    queue.parallel_for_work_group(1, Fixed1::<SIZE>, Local::<u32, SIZE>::new(), |mut group, mut tile| {
        let own = std::hint::black_box(group.linear_id());
        if (&raw const own) as usize % 256 < 128 {
            group.for_each(&mut tile, |_, slot| *slot = 1);
        }
        group.for_each(&mut tile, |_, slot| *slot += 1);
    })?;
    // A comparison of two variables.
    queue.parallel_for_work_group(1, Fixed1::<SIZE>, Local::<u32, SIZE>::new(), |mut group, mut tile| {
        let (first, second) = (std::hint::black_box(1u32), std::hint::black_box(2u32));
        if (&raw const first) < (&raw const second) {
            group.for_each(&mut tile, |_, slot| *slot = 1);
        }
        group.for_each(&mut tile, |_, slot| *slot += 1);
    })?;
    // A comparison of a variable whose address was in memory with a number.
    let pivot = std::hint::black_box(1usize << 30);
    queue.parallel_for_work_group(1, Fixed1::<SIZE>, Local::<u32, SIZE>::new(), move |mut group, mut tile| {
        let (first, second) = (std::hint::black_box(1u32), std::hint::black_box(2u32));
        let addresses = std::hint::black_box([&raw const first, &raw const second]);
        if addresses[group.linear_id() % 2] < std::ptr::without_provenance(pivot) {
            group.for_each(&mut tile, |_, slot| *slot = 1);
        }
        group.for_each(&mut tile, |_, slot| *slot += 1);
    })?;
    // A number that a function makes of it.
    queue.parallel_for_work_group(1, Fixed1::<SIZE>, Local::<u32, SIZE>::new(), move |mut group, mut tile| {
        let own = std::hint::black_box(1u32);
        if number(&own, group.linear_id()) % 256 < 128 {
            group.for_each(&mut tile, |_, slot| *slot = 1);
        }
        group.for_each(&mut tile, |_, slot| *slot = 2);
    })?;
    Ok(())
}

/// Every work-item of a group has a heap of its own, in which phases may have allocated.
fn refused_for_its_heap(queue: &Queue, numbers: &Buffer<u32, 1>) -> oxisycl::Result {
    let n = std::hint::black_box(8);
    // A distance that depends on what a phase has allocated.
    queue.submit(|cg| {
        let numbers = cg.access(numbers, ReadWrite);
        cg.parallel_for_work_group(1, Fixed1::<SIZE>, Local::<u32, SIZE>::new(), move |mut group, mut tile| {
            let first = vec![1u32; n];
            group.for_each((), move |item, ()| {
                if item.local_linear_id() % 2 == 0 {
                    let own: Vec<u32> = (0..n as u32).collect();
                    numbers.set(item.global(), own[n / 2]);
                    std::mem::forget(own);
                }
            });
            let second = vec![2u32; n];
            if second.as_ptr().addr().wrapping_sub(first.as_ptr().addr()) < 4 * n + 64 {
                group.for_each(&mut tile, |_, slot| *slot = 1);
            }
            let sum = first[n / 2] + second[n / 2];
            group.for_each(&mut tile, move |item, slot| numbers.set(item.global(), *slot + sum));
        })
    })?;
    // A number that a phase leaves in memory of group scope.
    queue.parallel_for_work_group(1, Fixed1::<SIZE>, Local::<u32, SIZE>::new(), |mut group, mut tile| {
        let cell: &'static AtomicU32 = Box::leak(Box::new(AtomicU32::new(0)));
        group.for_each((), move |item, ()| cell.store(item.local_linear_id() as u32, Ordering::Relaxed));
        if cell.load(Ordering::Relaxed) % 2 == 0 {
            group.for_each(&mut tile, |_, slot| *slot = 1);
        }
        group.for_each(&mut tile, |_, slot| *slot += 1);
    })?;
    // Memory of group scope that phases share, also where no barrier is left between them.
    queue.submit(|cg| {
        let numbers = cg.access(numbers, Write);
        cg.parallel_for_work_group(1, Fixed1::<SIZE>, (), move |mut group, ()| {
            let cell: &'static AtomicU32 = Box::leak(Box::new(AtomicU32::new(0)));
            group.for_each((), move |_, ()| _ = cell.fetch_add(1, Ordering::Relaxed));
            group.for_each((), move |item, ()| numbers.set(item.global(), cell.load(Ordering::Relaxed)));
        })
    })?;
    Ok(())
}

/// Addresses within one variable are no secret: an iterator compares them.
fn proved_at_group_scope(queue: &Queue, numbers: &Buffer<u32, 1>) -> oxisycl::Result {
    queue.submit(|cg| {
        let numbers = cg.access(numbers, ReadWrite);
        cg.parallel_for_work_group(1, Fixed1::<SIZE>, Local::<u32, SIZE>::new(), move |mut group, mut tile| {
            for step in std::hint::black_box([3u32, 1, 2]).iter().copied() {
                group.for_each(&mut tile, move |item, slot| *slot = numbers.get(item.global()) + step);
                group.for_each(&tile, move |item, tile| numbers.set(item.global(), tile[SIZE - 1 - item.local_linear_id()]));
            }
        })
    })?;
    // A function of numbers that calls itself.
    queue.parallel_for_work_group(1, Fixed1::<SIZE>, Local::<u32, SIZE>::new(), |mut group, mut tile| {
        for _ in 0..steps(group.linear_id() + 9) % 4 {
            group.for_each(&mut tile, |item, slot| *slot = steps(item.local_linear_id()) as u32);
        }
        group.for_each(&mut tile, |_, slot| *slot += 1);
    })?;
    // Memory of the heap that a phase keeps.
    queue.submit(|cg| {
        let numbers = cg.access(numbers, ReadWrite);
        cg.parallel_for_work_group(1, Fixed1::<SIZE>, Local::<u32, SIZE>::new(), move |mut group, mut tile| {
            for _ in 0..2 {
                group.for_each(&mut tile, move |item, slot| {
                    let n = numbers.get(item.global()) as usize;
                    let own: &'static [u32] = vec![3; n].leak();
                    *slot = own[n / 2];
                });
                group.for_each(&tile, move |item, tile| numbers.set(item.global(), tile[SIZE - 1 - item.local_linear_id()]));
            }
        })
    })?;
    Ok(())
}
