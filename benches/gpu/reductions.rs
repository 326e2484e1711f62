//! Sums of buffers beside CUB's, several reductions at once beside one, and algorithms of a group beside those of a block.
//!
//! Times of sums are the device's, on both sides.

use std::time::Duration;

use oxisycl::Result;
use oxisycl::group::{Fixed1, Private};
use oxisycl::operator::{Max, Min, Sum};
use oxisycl::prelude::*;
use oxisycl::reduction::reduction;

use crate::cases::{SMALL, SUM3, SUMS};
use crate::{Measured, best_of};

/// Sizes of the sums whose mean counts, as powers of two.
const LARGE: std::ops::RangeInclusive<u32> = 20..=27;
/// Sizes below them.
const BELOW: [u32; 5] = [0, 8, 12, 16, 19];
/// Of sums and of a group's algorithms.
const N: usize = 1 << 27;
const REPETITIONS: usize = 20;
/// Groups that are checked.
const PLACES: usize = 1000;

pub(crate) fn measure(device: &Device, measured: &mut Measured<'_>) -> Result {
    let queue = Queue::builder().device(device).in_order().profiling().build()?;
    let mut random = measured.random();
    if measured.options.wants_any(&[SUMS[0], SUMS[1], SMALL, SUM3[0]]) {
        let values: Vec<f64> = (0..N).map(|_| (random.next() >> 11) as f64 / (1u64 << 53) as f64).collect();
        let buffer = Buffer::from_slice(&values)?;
        let gigabytes = |size: u32| (size_of::<f64>() << size) as f64 / 1e9;
        let rate = |size| Ok(gigabytes(size) / sum(&queue, &values, size)?.as_secs_f64());
        measured.add(SUMS[0], || rate(*LARGE.end()))?;
        measured.add(SUMS[1], || mean(LARGE.map(rate)))?;
        measured
            .add(SMALL, || mean(BELOW.into_iter().map(|size| Ok(sum(&queue, &values, size)?.as_secs_f64() * 1e6))))?;
        measured.add_pair(SUM3, || {
            let one = || sum_of(&queue, &buffer);
            let three = || three_of(&queue, &buffer);
            Ok([shortest(three)?, shortest(one)?].map(|time| time.as_secs_f64() * 1e6))
        })?;
    }
    if measured.options.wants_any(&["gpu.blockscan", "gpu.blockreduce"]) {
        let values: Vec<u32> = (0..N).map(|_| random.next() as u32).collect();
        let (from, to) = (Buffer::from_slice(&values)?, Buffer::from_vec(vec![0; N])?);
        // Their times are those of waiting, as the peer's are, so nothing is recorded for profiles.
        let queue = Queue::builder().device(device).in_order().build()?;
        let gigabytes = (N * size_of::<u32>()) as f64 / 1e9;
        measured.add("gpu.blockscan", || {
            let mut best = f64::INFINITY;
            for (items, run) in [(128, scan::<128> as Kernel), (256, scan::<256>), (512, scan::<512>)] {
                best = best.min(best_of(REPETITIONS, || run(&queue, &from, &to))?);
                let found = to.to_vec()?;
                for _ in 0..PLACES {
                    let first = random.below(N / items) * items;
                    let sums = values[first..][..items].iter().scan(0u32, |sum, value| {
                        *sum = sum.wrapping_add(*value);
                        Some(*sum)
                    });
                    let found = found[first..][..items].iter().copied();
                    assert!(sums.eq(found), "group {} of {items} scans as plain Rust does", first / items);
                }
            }
            Ok(2.0 * gigabytes / best)
        })?;
        measured.add("gpu.blockreduce", || {
            let mut best = f64::INFINITY;
            for (items, run) in [(128, total::<128> as Kernel), (256, total::<256>), (512, total::<512>)] {
                best = best.min(best_of(REPETITIONS, || run(&queue, &from, &to))?);
                let found = to.to_vec()?;
                for _ in 0..PLACES {
                    let group = random.below(N / items);
                    let sum = values[group * items..][..items].iter().fold(0u32, |sum, value| sum.wrapping_add(*value));
                    assert_eq!(found[group], sum, "group {group} of {items} adds as plain Rust does");
                }
            }
            Ok(gigabytes / best)
        })?;
    }
    Ok(())
}

/// The geometric mean.
fn mean(values: impl Iterator<Item = Result<f64>>) -> Result<f64> {
    let (mut sum, mut count) = (0.0, 0.0);
    for value in values {
        sum += value?.ln();
        count += 1.0;
    }
    Ok((sum / count).exp())
}

/// The shortest time of a command on the device.
fn shortest(run: impl Fn() -> Result<Event>) -> Result<Duration> {
    let mut best = Duration::MAX;
    for _ in 0..=REPETITIONS {
        let event = run()?;
        event.wait()?;
        best = best.min(event.profile()?.duration());
    }
    Ok(best)
}

/// The time of a sum of so many numbers, as a power of two. It is compared with one that plain Rust adds up.
fn sum(queue: &Queue, values: &[f64], size: u32) -> Result<Duration> {
    let values = &values[..1 << size];
    let buffer = Buffer::from_slice(values)?;
    let expected: f64 = values.iter().sum();
    let found = queue.reduce(&buffer, Sum)?.get()?;
    assert!((found - expected).abs() <= expected * 1e-9, "{found} on the device, {expected} in plain Rust");
    shortest(|| Ok(queue.reduce(&buffer, Sum)?.event().clone()))
}

fn sum_of(queue: &Queue, buffer: &Buffer<f64, 1>) -> Result<Event> {
    let sum = Buffer::uninit(1)?;
    queue.submit(|cg| {
        let values = cg.access(buffer, Read);
        let into = reduction(cg.access(&sum, Write.no_init()), Sum);
        cg.parallel_reduce(N, into, move |item, sum| *sum += values.get(item))
    })
}

fn three_of(queue: &Queue, buffer: &Buffer<f64, 1>) -> Result<Event> {
    let [sum, least, most] = [Buffer::uninit(1)?, Buffer::uninit(1)?, Buffer::uninit(1)?];
    queue.submit(|cg| {
        let values = cg.access(buffer, Read);
        let into = (
            reduction(cg.access(&sum, Write.no_init()), Sum),
            reduction(cg.access(&least, Write.no_init()), Min),
            reduction(cg.access(&most, Write.no_init()), Max),
        );
        cg.parallel_reduce(N, into, move |item, (sum, least, most)| {
            let value = values.get(item);
            *sum += value;
            least.combine(value);
            most.combine(value);
        })
    })
}

type Kernel = fn(&Queue, &Buffer<u32, 1>, &Buffer<u32, 1>) -> Result;

/// Sums up to each element of its group.
fn scan<const ITEMS: usize>(queue: &Queue, from: &Buffer<u32, 1>, to: &Buffer<u32, 1>) -> Result {
    let kernel = queue.submit(|cg| {
        let (from, to) = (cg.access(from, Read), cg.access(to, Write.no_init()));
        cg.parallel_for_work_group(N / ITEMS, Fixed1::<ITEMS>, Private::new(0u32), move |mut group, mut own| {
            group.for_each(&mut own, move |item, own| *own = from.get(item.global()));
            group.inclusive_scan(&mut own, Sum);
            group.for_each(&own, move |item, own| to.set(item.global(), *own));
        })
    });
    kernel?.wait()
}

/// The sum of each group's elements.
fn total<const ITEMS: usize>(queue: &Queue, from: &Buffer<u32, 1>, to: &Buffer<u32, 1>) -> Result {
    let kernel = queue.submit(|cg| {
        let (from, to) = (cg.access(from, Read), cg.access(to, Atomic));
        cg.parallel_for_work_group(N / ITEMS, Fixed1::<ITEMS>, Private::new(0u32), move |mut group, mut own| {
            group.for_each(&mut own, move |item, own| *own = from.get(item.global()));
            let sum = group.reduce(&own, Sum);
            let id = group.linear_id();
            group.for_each((), move |item, ()| {
                if item.local_linear_id() == 0 {
                    to.store(item, id, sum);
                }
            });
        })
    });
    kernel?.wait()
}
