//! Kernels that panic in one work-item, which the arguments name. Prints how each panic looks, and what is there after it.

use std::env;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use oxisycl::group::{Fixed1, Private};
use oxisycl::observe;
use oxisycl::prelude::*;

/// No multiple of any number of lanes.
const N: usize = 1003;
/// How many rows there are, and their length.
const ROWS: [usize; 2] = [59, 17];
const ITEMS: usize = 32;
const GROUPS: usize = 16;

fn main() -> oxisycl::Result {
    let queue = Queue::default()?;
    for at in env::args().skip(1) {
        let at: usize = at.parse().expect("the number of a work-item");
        // Shared with a command group and with a buffer, until they end.
        let owner = Arc::new(AtomicUsize::new(0));
        for (name, failed) in [
            ("in_rows", in_rows(&queue, at, &owner)?),
            ("in_planes", in_planes(&queue, at)?),
            ("in_phases", in_phases(&queue, at)?),
            ("beside_a_guard", beside_a_guard(&queue, at)?),
        ] {
            println!("{name} {at}: {failed}");
        }
        println!("owners {}, told of {} failure", Arc::strong_count(&owner), owner.load(Ordering::Relaxed));
    }
    eprintln!("native launches: {}", observe::counters().native_kernels);
    Ok(())
}

/// The error of a launch that fails.
fn error_of(submitted: oxisycl::Result<Event>) -> oxisycl::Result<Error> {
    Ok(submitted?.wait().expect_err("a work-item panics"))
}

fn in_rows(queue: &Queue, at: usize, owner: &Arc<AtomicUsize>) -> oxisycl::Result<Error> {
    let numbers = Buffer::from_elements((0..N).map(|i| i as f32))?;
    let shared = Arc::clone(owner);
    let count_failure = move |data: oxisycl::Result<Vec<f32>>| {
        shared.fetch_add(usize::from(data.is_err()), Ordering::Relaxed);
    };
    numbers.set_final_data(oxisycl::FinalData::call(count_failure));
    let captured = Arc::clone(owner);
    error_of(queue.submit(|cg| {
        // Ends with the command group, and not with the kernel.
        let _captured = captured;
        let numbers = cg.access(&numbers, ReadWrite);
        cg.parallel_for(N, move |item| {
            let (start, mut x) = (numbers.get(item) * 1e-3, 0.0);
            for n in 0..item.index() % 9 {
                assert!(item.index() != at || n < 3, "item {} of {N}, in round {n}", item.index());
                x = x * x + start;
            }
            // What has fewer rounds.
            assert!(item.index() != at, "item {} of {N}", item.index());
            numbers.set(item, x);
        })
    }))
}

fn in_planes(queue: &Queue, at: usize) -> oxisycl::Result<Error> {
    let numbers = Buffer::from_vec_nd(vec![1.0f32; N], ROWS)?;
    error_of(queue.submit(|cg| {
        let numbers = cg.access(&numbers, ReadWrite);
        cg.parallel_for(ROWS, move |item| {
            let [y, x] = item.id().into();
            assert!(y * ROWS[1] + x != at, "row {y}, column {x}");
            numbers.update(item, |number| number * 3.0 + x as f32);
        })
    }))
}

fn in_phases(queue: &Queue, at: usize) -> oxisycl::Result<Error> {
    let numbers = Buffer::from_vec(vec![1.0f32; GROUPS * ITEMS])?;
    error_of(queue.submit(|cg| {
        let numbers = cg.access(&numbers, ReadWrite);
        cg.parallel_for_work_group(GROUPS, Fixed1::<ITEMS>, Private::new(0f32), move |mut group, mut own| {
            group.for_each(&mut own, move |item, own| *own = numbers.get(item.global()) * 2.0);
            group.for_each(&own, move |item, own| {
                let id = item.global().index();
                assert!(id != at % (GROUPS * ITEMS), "item {id} of a phase");
                numbers.set(item.global(), *own * *own + 1.0);
            });
        })
    }))
}

/// Says what it holds when the work-item that panics drops it.
struct Guard {
    is_last: bool,
    number: u32,
}

impl Drop for Guard {
    fn drop(&mut self) {
        if self.is_last {
            oxisycl::println!("dropped with {}", self.number);
        }
    }
}

/// The work-item that panics drops what it has.
fn beside_a_guard(queue: &Queue, at: usize) -> oxisycl::Result<Error> {
    let numbers = Buffer::from_vec(vec![1u32; N])?;
    error_of(queue.submit(|cg| {
        let numbers = cg.access(&numbers, ReadWrite);
        cg.parallel_for(N, move |item| {
            let mut guard = Guard { is_last: item.index() == at, number: numbers.get(item) };
            guard.number += item.index() as u32;
            assert!(item.index() != at, "item {} has {}", item.index(), guard.number);
            numbers.set(item, guard.number);
        })
    }))
}
