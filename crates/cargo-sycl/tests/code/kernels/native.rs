//! Kernels that have native code for a level, and others that must not have it. Prints what they compute, as bits, and how a panic looks. A
//! program that aborts in a panic does so if it has an argument.

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, Ordering};

use oxisycl::group::{Fixed1, Local, Private};
use oxisycl::observe;
use oxisycl::operator::Sum;
use oxisycl::prelude::*;

const N: usize = 1000;
const ITEMS: usize = 64;

/// Exists once in the program.
static COUNT: AtomicU32 = AtomicU32::new(0);
const WEIGHTS: [u16; 4] = [3, 1, 4, 7];
const FACTORS: [f32; 4] = [0.1, 1.7, -2.3, 1e-3];

thread_local! {
    static LAST: Cell<usize> = const { Cell::new(0) };
}

fn main() -> oxisycl::Result {
    let queue = Queue::default()?;
    println!("fused {:016x}", fused(&queue)?);
    println!("plane {:016x}", plane(&queue)?);
    println!("groups {:016x}", groups(&queue)?);
    println!("library {:016x}", library(&queue)?);
    println!("iterated {:016x}", iterated(&queue)?);
    println!("paired {:016x}", paired(&queue)?);
    println!("tallied {:016x}", tallied(&queue)?);
    counted(&queue)?;
    println!("counted {}", COUNT.load(Ordering::Relaxed));
    remembered(&queue)?;
    if cfg!(panic = "unwind") || std::env::args().len() > 1 {
        println!("failed {}", failing(&queue)?.wait().expect_err("it panics"));
        println!("outside {}", outside(&queue)?.wait().expect_err("it panics"));
        println!("beyond {}", beyond(&queue)?.wait().expect_err("it panics"));
    }
    eprintln!("native launches: {}", observe::counters().native_kernels);
    Ok(())
}

fn hash<T: Copy>(values: &[T], bits: impl Fn(T) -> u64) -> u64 {
    values.iter().fold(0xcbf2_9ce4_8422_2325, |hash, value| (hash ^ bits(*value)).wrapping_mul(0x0100_0000_01b3))
}

/// A fused product, a root, a function of C, and a table.
fn fused(queue: &Queue) -> oxisycl::Result<u64> {
    let input = Buffer::from_elements((0..N).map(|i| i as f32 * 0.37))?;
    let output = Buffer::from_elements((0..N).map(|_| 0f32))?;
    queue.submit(|cg| {
        let (input, output) = (cg.access(&input, Read), cg.access(&output, ReadWrite));
        cg.parallel_for(N, move |item| {
            let x = input.get(item);
            let y = x.mul_add(FACTORS[item.index() % FACTORS.len()], 0.5) * x + 0.25;
            output.set(item, y.abs().sqrt() + x.sin());
        })
    })?;
    Ok(hash(&output.into_vec()?, |value| value.to_bits().into()))
}

/// Two dimensions, and elements of others.
fn plane(queue: &Queue) -> oxisycl::Result<u64> {
    let input = Buffer::from_elements((0..N).map(|i| (i as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15)))?;
    let output = Buffer::from_vec_nd(vec![0u64; 25 * 40], [25, 40])?;
    queue.submit(|cg| {
        let (input, output) = (cg.access(&input, Read), cg.access(&output, ReadWrite));
        cg.parallel_for([25, 40], move |item| {
            let all = input.view(item);
            let (y, x) = (item.id()[0], item.id()[1]);
            let at = y * 40 + x;
            output.set(item, all[at].rotate_left(x as u32) ^ all[N - 1 - at] / (y as u64 + 1));
        })
    })?;
    Ok(hash(&output.into_vec()?, |value| value))
}

/// A loop that work-items leave one by one, in two places, and an element that only some of them read.
fn iterated(queue: &Queue) -> oxisycl::Result<u64> {
    let input = Buffer::from_elements((0..N).map(|i| i as f32 * 0.0021 - 1.9))?;
    let output = Buffer::from_elements((0..N).map(|_| 0f32))?;
    queue.submit(|cg| {
        let (input, output) = (cg.access(&input, Read), cg.access(&output, ReadWrite));
        cg.parallel_for(N, move |item| {
            let all = input.view(item);
            let (start, mut x, mut n) = (input.get(item), 0f32, 0);
            while n < item.index() % 90 {
                x = x * x + start;
                if x > 4.0 {
                    break;
                }
                n += 1;
            }
            if n % 3 == 1 {
                x += all[N - 1 - n];
            }
            output.set(item, x + n as f32);
        })
    })?;
    Ok(hash(&output.into_vec()?, |value| value.to_bits().into()))
}

/// Pairs of two slices, and a square root as the crate `libm` has it. For slices of `u16`, the standard library has the function that tells their length.
fn paired(queue: &Queue) -> oxisycl::Result<u64> {
    let input = Buffer::from_elements((0..N).map(|i| i as f32 * 0.37 - 5.0))?;
    let output = Buffer::from_elements((0..N).map(|_| 0f32))?;
    queue.submit(|cg| {
        let (input, output) = (cg.access(&input, Read), cg.access(&output, ReadWrite));
        cg.parallel_for(N - WEIGHTS.len(), move |item| {
            let own = &input.view(item).as_slice()[item.index()..][..WEIGHTS.len()];
            let sum: f32 = WEIGHTS.iter().zip(own).map(|(weight, x)| f32::from(*weight) * x).sum();
            output.set(item, root(sum.abs()));
        })
    })?;
    Ok(hash(&output.into_vec()?, |value| value.to_bits().into()))
}

#[inline(always)]
fn root(mut x: f32) -> f32 {
    // SAFETY: all processors of this kind have the instruction, which only computes.
    unsafe { std::arch::asm!("sqrtss {x}, {x}", x = inout(xmm_reg) x, options(nostack, nomem, pure)) };
    x
}

/// Functions of C, of which some work-items call one, and atomic operations.
fn tallied(queue: &Queue) -> oxisycl::Result<u64> {
    let (counts, highest) = (Buffer::from_vec(vec![0u32; 10])?, Buffer::from_vec(vec![0u64; 10])?);
    queue.submit(|cg| {
        let (counts, highest) = (cg.access(&counts, Atomic), cg.access(&highest, Atomic));
        cg.parallel_for(N, move |item| {
            let logarithm = item.index() as f64 * 2f64.log10();
            let mut digit = 10f64.powf(logarithm.fract());
            if item.index() % 3 == 1 {
                digit = digit.atan().exp();
            }
            counts.fetch_add(item, digit as usize, 1);
            highest.fetch_max(item, digit as usize, item.index() as u64);
        })
    })?;
    Ok(hash(&counts.into_vec()?, |value| value.into()) ^ hash(&highest.into_vec()?, |value| value))
}

/// Phases of groups, and an algorithm.
fn groups(queue: &Queue) -> oxisycl::Result<u64> {
    let numbers = Buffer::from_vec((0..256u32).collect())?;
    queue.submit(|cg| {
        let numbers = cg.access(&numbers, ReadWrite);
        let memory = (Local::<u32, ITEMS>::new(), Private::new(0u32));
        cg.parallel_for_work_group(4, Fixed1::<ITEMS>, memory, move |mut group, (mut tile, mut own)| {
            group.for_each(&mut tile, move |item, slot| *slot = numbers.get(item.global()).wrapping_mul(3));
            group.for_each((&tile, &mut own), move |item, (tile, own)| *own = tile[ITEMS - 1 - item.local_linear_id()]);
            let sum = group.reduce(&own, Sum);
            group.for_each(&own, move |item, own| numbers.set(item.global(), *own ^ sum));
        })
    })?;
    Ok(hash(&numbers.into_vec()?, |value| value.into()))
}

/// The standard library with allocations, its output, and that of OxiSYCL.
fn library(queue: &Queue) -> oxisycl::Result<u64> {
    let output = Buffer::from_elements((0..N).map(|_| 0u64))?;
    queue.submit(|cg| {
        let output = cg.access(&output, ReadWrite);
        cg.parallel_for(N, move |item| {
            let mut digits: Vec<u64> = item.index().to_string().bytes().map(u64::from).collect();
            digits.sort_unstable();
            if item.index() == 77 {
                oxisycl::println!("item {} has {} digits", item.index(), digits.len());
            }
            output.set(item, digits.iter().fold(0, |all, digit| all * 10 + digit));
        })
    })?;
    Ok(hash(&output.into_vec()?, |value| value))
}

fn counted(queue: &Queue) -> oxisycl::Result {
    queue.parallel_for(N, |_: Item<1>| {
        COUNT.fetch_add(1, Ordering::Relaxed);
    })?;
    queue.wait()
}

fn remembered(queue: &Queue) -> oxisycl::Result {
    queue.parallel_for(N, |item: Item<1>| LAST.set(LAST.get().max(item.index())))?;
    queue.wait()
}

/// Panics in one work-item, with a vector alive.
fn failing(queue: &Queue) -> oxisycl::Result<Event> {
    queue.parallel_for(N, |item: Item<1>| {
        let index = item.index();
        let digits = index.to_string();
        assert!(index != 500, "item {index} has {} digits", digits.len());
    })
}

/// Panics for an index that is outside, with the buffer's name.
fn outside(queue: &Queue) -> oxisycl::Result<Event> {
    let numbers = Buffer::from_elements(0..N as u32)?;
    queue.submit(|cg| {
        let numbers = cg.access(&numbers, Read);
        cg.single_task(move |task| {
            let view = numbers.view(task);
            let far = view[0] as usize + N;
            assert_eq!(view[far], 7);
        })
    })
}

/// Panics in the last work-items, for an index that is outside.
fn beyond(queue: &Queue) -> oxisycl::Result<Event> {
    let numbers = Buffer::from_elements(0..N as u32)?;
    let output = Buffer::from_elements(0..N as u32)?;
    queue.submit(|cg| {
        let (numbers, output) = (cg.access(&numbers, Read), cg.access(&output, ReadWrite));
        cg.parallel_for(N, move |item| output.set(item, numbers.view(item)[item.index() + 3]))
    })
}
