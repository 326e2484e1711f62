//! The peers of our measurements: rayon, crossbeam's scoped threads and plain loops, written as their users would. Also the yardsticks for
//! the machine's current speed, and figures that AdaptiveCpp reached when measured side by side.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use rayon::prelude::*;

use crate::protocol::{Yardstick, seconds};

/// AdaptiveCpp 24.06 (`generic` / `omp.accelerated`) on two processors of the same kind; see the sibling file of each set of
/// results for the machine.
pub(crate) mod adaptive_cpp {
    /// Microseconds per command group.
    pub(crate) const INDEPENDENT_IN_ORDER: &str = "2.70 / 2.83";
    pub(crate) const INDEPENDENT_IN_ORDER_RANGE: &str = "1.99 / 6.07";
    pub(crate) const INDEPENDENT_OUT_OF_ORDER: &str = "2.17 / 1.85";
    pub(crate) const INDEPENDENT_OUT_OF_ORDER_RANGE: &str = "2.20 / 5.02";
    pub(crate) const CHAIN: &str = "3.45 / 3.81";
    pub(crate) const CHAIN_IN_ORDER: &str = "3.20 / 3.43";
    pub(crate) const RANGED_PAGED: &str = "9.9 / 20.1";
    pub(crate) const RANGED_UNPAGED: &str = "> 6000";
    /// Microseconds for submit and wait.
    pub(crate) const LATENCY: &str = "47.4 / 30.9";
    pub(crate) const LATENCY_IN_ORDER: &str = "35.5 / 30.6";
    /// MB/s through accessors, `generic`.
    pub(crate) const STREAM: [&str; 5] = ["42614", "41730", "41795", "44630", "16571"];
}

/// Empty tasks per measurement of the yardstick.
const SPAWNS: usize = 20_000;
const ROUND_TRIPS: usize = 2_000;

/// Microseconds for one empty task of `rayon::spawn`: spawned by a thread that is not rayon's, executed by one that is, waited for
/// together.
pub(crate) fn empty_spawn() -> f64 {
    static LEFT: AtomicUsize = AtomicUsize::new(0);
    LEFT.store(SPAWNS, Ordering::Relaxed);
    let main = thread::current();
    let time = seconds(|| {
        for _ in 0..SPAWNS {
            rayon::spawn(|| {
                LEFT.fetch_sub(1, Ordering::Release);
            });
        }
        rayon::spawn(move || {
            while LEFT.load(Ordering::Acquire) > 0 {
                std::hint::spin_loop();
            }
            main.unpark();
        });
        while LEFT.load(Ordering::Acquire) > 0 {
            thread::park();
        }
    });
    time * 1e6 / SPAWNS as f64
}

/// Microseconds from one thread to another that is parked and back.
pub(crate) fn ping_pong() -> f64 {
    let turn = AtomicUsize::new(0);
    let pass = |mine: usize, other: &thread::Thread| {
        for round in 0..ROUND_TRIPS {
            let expected = 2 * round + mine;
            while turn.load(Ordering::Acquire) != expected {
                thread::park();
            }
            turn.store(expected + 1, Ordering::Release);
            other.unpark();
        }
    };
    let main = thread::current();
    let mut time = 0.0;
    thread::scope(|scope| {
        let pass = &pass;
        let partner = scope.spawn(move || pass(1, &main));
        time = seconds(|| pass(0, partner.thread()));
    });
    time * 1e6 / ROUND_TRIPS as f64
}

/// The yardstick of throughput.
pub(crate) const EMPTY_SPAWN: Yardstick<'static> = Yardstick { reference: 0.08, measure: &empty_spawn };
/// The yardstick of latency.
pub(crate) const PING_PONG: Yardstick<'static> = Yardstick { reference: 4.0, measure: &ping_pong };

/// Seconds for a chain of tasks, each of which spawns the next.
pub(crate) fn spawn_chain(length: usize) -> f64 {
    fn step<'scope>(scope: &rayon::Scope<'scope>, value: &'scope AtomicUsize, left: usize) {
        value.store(value.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        if left > 1 {
            scope.spawn(move |scope| step(scope, value, left - 1));
        }
    }
    let value = AtomicUsize::new(0);
    let time = seconds(|| rayon::scope(|scope| step(scope, &value, length)));
    assert_eq!(value.load(Ordering::Relaxed), length);
    time
}

/// Seconds for one task per block of `data`, which adds one to the block.
pub(crate) fn spawn_blocks(data: &mut [f32], block: usize) -> f64 {
    seconds(|| {
        rayon::scope(|scope| {
            for block in data.chunks_mut(block) {
                scope.spawn(move |_| block.iter_mut().for_each(|x| *x += 1.0));
            }
        });
    })
}

/// The steps of BabelStream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    Copy,
    Mul,
    Add,
    Triad,
    Dot,
}

pub(crate) const STEPS: [Step; 5] = [Step::Copy, Step::Mul, Step::Add, Step::Triad, Step::Dot];

impl Step {
    /// Arrays that are read or written.
    pub(crate) fn arrays(self) -> usize {
        if matches!(self, Self::Add | Self::Triad) { 3 } else { 2 }
    }
}

pub(crate) const SCALAR: f64 = 0.4;
pub(crate) const START: [f64; 3] = [0.1, 0.2, 0.0];
/// Elements that one task takes where the form of the peer has blocks.
const CHUNK: usize = 1 << 16;

/// The arrays that the peers share.
pub(crate) struct Arrays {
    pub(crate) a: Vec<f64>,
    pub(crate) b: Vec<f64>,
    pub(crate) c: Vec<f64>,
}

impl Arrays {
    /// Filled by all threads, so that each touches memory first.
    pub(crate) fn new(n: usize) -> Self {
        let filled = |value: f64| {
            // Zeroed memory comes untouched from the operating system.
            let mut array = vec![0.0; n];
            array.par_chunks_mut(CHUNK).for_each(|chunk| chunk.fill(value));
            array
        };
        let [a, b, c] = START.map(filled);
        Self { a, b, c }
    }
}

/// The sum of products with eight partial sums, which every implementation uses. The order of additions is part of the result, so the
/// compiler does not vectorise a single sum.
#[inline(always)]
pub(crate) fn dot(xs: &[f64], ys: &[f64]) -> f64 {
    const LANES: usize = 8;
    let mut sums = [0.0; LANES];
    let (x_rows, x_rest) = xs.as_chunks::<LANES>();
    let (y_rows, y_rest) = ys.as_chunks::<LANES>();
    for (x, y) in x_rows.iter().zip(y_rows) {
        for lane in 0..LANES {
            sums[lane] += x[lane] * y[lane];
        }
    }
    let rest: f64 = x_rest.iter().zip(y_rest).map(|(x, y)| x * y).sum();
    sums.iter().sum::<f64>() + rest
}

/// One form of a peer: executes a step, and gives the sum if it is the dot product.
pub(crate) type StreamPeer = fn(&mut Arrays, Step) -> f64;

/// The forms that the bar compares with.
pub(crate) const STREAM_PEERS: [(&str, StreamPeer); 3] =
    [("rayon par_iter", rayon_iter), ("rayon par_chunks", rayon_chunks), ("crossbeam scope", crossbeam)];

/// One thread, one loop.
pub(crate) fn plain(arrays: &mut Arrays, step: Step) -> f64 {
    let Arrays { a, b, c } = arrays;
    run_slices(step, a, b, c)
}

/// A step over parts of the arrays.
fn run_slices(step: Step, a: &mut [f64], b: &mut [f64], c: &mut [f64]) -> f64 {
    match step {
        Step::Copy => c.copy_from_slice(a),
        Step::Mul => b.iter_mut().zip(c).for_each(|(b, c)| *b = SCALAR * *c),
        Step::Add => c.iter_mut().zip(a).zip(b).for_each(|((c, a), b)| *c = *a + *b),
        Step::Triad => a.iter_mut().zip(b).zip(c).for_each(|((a, b), c)| *a = *b + SCALAR * *c),
        Step::Dot => return dot(a, b),
    }
    0.0
}

fn rayon_iter(arrays: &mut Arrays, step: Step) -> f64 {
    let Arrays { a, b, c } = arrays;
    match step {
        Step::Copy => c.par_iter_mut().zip(&*a).for_each(|(c, a)| *c = *a),
        Step::Mul => b.par_iter_mut().zip(&*c).for_each(|(b, c)| *b = SCALAR * *c),
        Step::Add => c.par_iter_mut().zip(&*a).zip(&*b).for_each(|((c, a), b)| *c = *a + *b),
        Step::Triad => a.par_iter_mut().zip(&*b).zip(&*c).for_each(|((a, b), c)| *a = *b + SCALAR * *c),
        Step::Dot => return a.par_iter().zip(&*b).map(|(a, b)| a * b).sum(),
    }
    0.0
}

fn rayon_chunks(arrays: &mut Arrays, step: Step) -> f64 {
    let Arrays { a, b, c } = arrays;
    let chunks = (a.par_chunks_mut(CHUNK), b.par_chunks_mut(CHUNK), c.par_chunks_mut(CHUNK));
    chunks.into_par_iter().map(|(a, b, c)| run_slices(step, a, b, c)).sum()
}

fn crossbeam(arrays: &mut Arrays, step: Step) -> f64 {
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let share = arrays.a.len().div_ceil(threads);
    let parts = arrays.a.chunks_mut(share).zip(arrays.b.chunks_mut(share)).zip(arrays.c.chunks_mut(share));
    crossbeam_utils::thread::scope(|scope| {
        let handles: Vec<_> = parts.map(|((a, b), c)| scope.spawn(move |_| run_slices(step, a, b, c))).collect();
        handles.into_iter().map(|handle| handle.join().expect("a thread of the peer panicked")).sum()
    })
    .expect("a thread of the peer panicked")
}
