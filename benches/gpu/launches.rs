//! What a launch costs by itself, in a chain and in a burst, and how long one alone takes.
//!
//! `gpu.launch`, `gpu.launch.out_of_order` and `gpu.chain` are launches one by one, on queues that do not batch. All other queues batch, as by
//! default. Kernels of chains, bursts and mixed chains read and write one float, so that each waits for the one before.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use oxisycl::Result;
use oxisycl::prelude::*;

use crate::cases::{BLOCK4K, LATENCY, OTHER_MIXES, STARTED, TINY, TINY_GRAPH};
use crate::{Measured, best_of};

const LAUNCHES: usize = 20_000;
/// Kernels of the long chain.
const CHAIN: usize = 100_000;
/// What the kernels of a chain add, in turn.
const ADDED: [f32; 3] = [1.0, 2.0, 3.0];
/// Launches of which each one is waited for.
const WAITS: usize = 1000;
/// Single launches for a median.
const SAMPLES: u32 = 101;
/// What the host does between a launch and the wait for it.
const HOST_WORK: Duration = Duration::from_millis(1);

/// Microseconds of a launch.
pub(crate) fn measure(device: &Device, measured: &mut Measured<'_>) -> Result {
    let queue = Queue::builder().device(device).in_order().build()?;
    let unbatched = Queue::builder().device(device).in_order().batching(false).build()?;
    let out_of_order = Queue::builder().device(device).batching(false).build()?;
    measured.add("gpu.launch", || empty_ones(&unbatched))?;
    measured.add("gpu.launch.out_of_order", || empty_ones(&out_of_order))?;
    measured.add_pair(BLOCK4K, || blocks(&unbatched))?;
    measured.add("gpu.chain", || counting(&out_of_order))?;
    if measured.options.wants_any(&[TINY, TINY_GRAPH]) {
        let time = chain(&queue)?;
        measured.add(TINY, || Ok(time))?;
        measured.add(TINY_GRAPH, || Ok(time))?;
    }
    measured.add("gpu.burst.50", || burst(&queue, 50))?;
    measured.add("gpu.burst.10", || burst(&queue, 10))?;
    measured.add("gpu.mixed", || mixed(&queue, 8))?;
    for (name, n_functions) in OTHER_MIXES {
        measured.add(name, || mixed(&queue, n_functions))?;
    }
    measured.add("gpu.latency", || Ok(best_of(10, || wait_for_each(&queue))? / WAITS as f64 * 1e6))?;
    measured.add_pair(LATENCY, || latencies([&queue, &unbatched]))?;
    measured.add_pair(STARTED, || starts([&queue, &unbatched]))
}

fn empty(queue: &Queue) -> Result<Event> {
    queue.single_task(|_| {})
}

fn empty_ones(queue: &Queue) -> Result<f64> {
    let time = best_of(10, || {
        for _ in 0..LAUNCHES {
            empty(queue)?;
        }
        queue.wait()
    });
    Ok(time? / LAUNCHES as f64 * 1e6)
}

/// Microseconds of a launch with arguments of 4 KiB, whose address the kernel gets, and of one with small arguments and 3 us.
fn blocks(queue: &Queue) -> Result<[f64; 2]> {
    /// More than a driver surely takes by value, with what comes with each launch.
    const LARGE: usize = 512;
    const ALLOWED: f64 = 3.0;
    let (mut best, data) = ([f64::INFINITY; 2], Buffer::from_vec(vec![0u64; 64])?);
    for _ in 0..10 {
        best[0] = best[0].min(best_of(1, || with_block::<LARGE>(queue, &data))?);
        best[1] = best[1].min(best_of(1, || with_block::<2>(queue, &data))?);
    }
    assert_eq!(data.to_vec()?[0], LAUNCHES as u64 - 1, "the last launch has its own arguments");
    let [large, small] = best.map(|time| time / LAUNCHES as f64 * 1e6);
    Ok([large, small + ALLOWED])
}

/// Launches, each with a block of so many numbers, of which each work-item reads one.
fn with_block<const N: usize>(queue: &Queue, data: &Buffer<u64, 1>) -> Result {
    for launch in 0..LAUNCHES {
        let block = [launch as u64; N];
        queue.submit(|cg| {
            let data = cg.access(data, Write);
            cg.parallel_for(64, move |item| data.set(item, block[item.index() % N]))
        })?;
    }
    queue.wait()
}

/// Kernels each of which depends on the one before.
fn counting(queue: &Queue) -> Result<f64> {
    let counter = Buffer::from_vec(vec![0u64])?;
    let time = best_of(10, || {
        for _ in 0..LAUNCHES {
            queue.submit(|cg| {
                let counter = cg.access(&counter, ReadWrite);
                cg.parallel_for(1, move |item| counter.update(item, |x| x + 1))
            })?;
        }
        queue.wait()
    })?;
    assert_eq!(counter.to_vec()?, [11 * LAUNCHES as u64]);
    Ok(time / LAUNCHES as f64 * 1e6)
}

/// Kernels of one function on one float, each with the next of [`ADDED`].
struct Chain<'a> {
    queue: &'a Queue,
    data: Buffer<f32, 1>,
    n_launched: usize,
}

impl<'a> Chain<'a> {
    fn new(queue: &'a Queue) -> Result<Self> {
        Ok(Self { queue, data: Buffer::from_vec(vec![0.0; 4])?, n_launched: 0 })
    }

    fn launch(&mut self, count: usize) -> Result {
        for _ in 0..count {
            let added = ADDED[self.n_launched % ADDED.len()];
            self.queue.submit(|cg| {
                let data = cg.access(&self.data, ReadWrite);
                cg.parallel_for(1, move |item| data.update(item, |x| x * 0.5 + added))
            })?;
            self.n_launched += 1;
        }
        Ok(())
    }

    /// Compares with plain Rust. Halving is exact, so that it does not matter how the device adds.
    fn check(self) -> Result {
        let expected = (0..self.n_launched).fold(0.0f32, |x, i| x * 0.5 + ADDED[i % ADDED.len()]);
        assert_eq!(self.data.to_vec()?, [expected, 0.0, 0.0, 0.0], "the chain of kernels agrees with plain Rust");
        Ok(())
    }
}

fn chain(queue: &Queue) -> Result<f64> {
    let mut chain = Chain::new(queue)?;
    let time = best_of(3, || {
        chain.launch(CHAIN)?;
        queue.wait()
    })?;
    chain.check()?;
    Ok(time / CHAIN as f64 * 1e6)
}

/// `size` kernels of a chain and then a wait, again and again.
fn burst(queue: &Queue, size: usize) -> Result<f64> {
    let n_bursts = LAUNCHES / size;
    let mut chain = Chain::new(queue)?;
    let time = best_of(10, || {
        for _ in 0..n_bursts {
            chain.launch(size)?;
            queue.wait()?;
        }
        Ok(())
    })?;
    chain.check()?;
    Ok(time / (n_bursts * size) as f64 * 1e6)
}

fn step<const KIND: u32>(queue: &Queue, data: &Buffer<f32, 1>) -> Result<Event> {
    queue.submit(|cg| {
        let data = cg.access(data, ReadWrite);
        cg.parallel_for(1, move |item| data.update(item, |x| x * 0.5 + KIND as f32))
    })
}

type Step = fn(&Queue, &Buffer<f32, 1>) -> Result<Event>;
#[rustfmt::skip]
const STEPS: [Step; 16] = [
    step::<0>, step::<1>, step::<2>, step::<3>, step::<4>, step::<5>, step::<6>, step::<7>,
    step::<8>, step::<9>, step::<10>, step::<11>, step::<12>, step::<13>, step::<14>, step::<15>,
];

/// A chain of kernels of that many functions in an order that looks random. The reference has the same order.
fn mixed(queue: &Queue, n_functions: u32) -> Result<f64> {
    let data = Buffer::from_vec(vec![0.0f32])?;
    let (mut state, mut expected) = (1u32, 0.0f32);
    let time = best_of(10, || {
        for _ in 0..LAUNCHES {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let kind = (state >> 16) % n_functions;
            STEPS[kind as usize](queue, &data)?;
            expected = expected * 0.5 + kind as f32;
        }
        queue.wait()
    })?;
    assert_eq!(data.to_vec()?, [expected], "the mixed chain agrees with plain Rust");
    Ok(time / LAUNCHES as f64 * 1e6)
}

fn wait_for_each(queue: &Queue) -> Result {
    for _ in 0..WAITS {
        empty(queue)?.wait()?;
    }
    Ok(())
}

/// Microseconds of a launch and the wait for it on each queue, the best of several repetitions in turn.
fn latencies(queues: [&Queue; 2]) -> Result<[f64; 2]> {
    let mut best = [f64::INFINITY; 2];
    for _ in 0..10 {
        for (queue, best) in queues.iter().zip(&mut best) {
            // Warms up by itself.
            *best = best.min(best_of(1, || wait_for_each(queue))?);
        }
    }
    Ok(best.map(|time| time / WAITS as f64 * 1e6))
}

/// Microseconds until a kernel on an idle device has started, if the host works for 1 ms before it waits. The median for each queue, in turn.
///
/// No kernel can read the device's clock. So each writes a number to memory of the host, and the host's work is to look for that number. What is
/// measured begins with the submission and ends when the host sees the number. The host calls nothing of ours meanwhile. A number that it does
/// not see in time counts as 1 ms.
fn starts(queues: [&Queue; 2]) -> Result<[f64; 2]> {
    let mut flag = queues[0].malloc_host::<u32>(1)?;
    // SAFETY: no command uses the allocation yet.
    unsafe { flag.as_mut_slice()?.fill(0) };
    let pointer = flag.pointer();
    // SAFETY: the allocation lives until this function returns, and what uses it until then is atomic.
    let seen = unsafe { AtomicU32::from_ptr(flag.as_ptr()) };
    let mut times = [Vec::new(), Vec::new()];
    // The first samples warm up.
    for sample in 1..=SAMPLES + 5 {
        for (queue, times) in queues.iter().zip(&mut times) {
            queue.wait()?;
            let before = seen.load(Ordering::Acquire);
            let began = Instant::now();
            let event = queue.single_task(move |_| {
                // SAFETY: the allocation lives until the kernel has been waited for, and what else uses it is atomic.
                unsafe { AtomicU32::from_ptr(pointer.as_ptr()) }.store(before + 1, Ordering::Release);
            })?;
            let mut start = None;
            while began.elapsed() < HOST_WORK {
                if start.is_none() && seen.load(Ordering::Acquire) != before {
                    start = Some(began.elapsed());
                }
            }
            event.wait()?;
            assert_eq!(seen.load(Ordering::Acquire), before + 1, "the kernel has written its number");
            if sample > 5 {
                times.push(start.unwrap_or(HOST_WORK).as_secs_f64() * 1e6);
            }
        }
    }
    Ok(times.map(|mut times| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    }))
}
