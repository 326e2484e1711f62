//! How long `submit` may take while the devices have plenty to do and other threads want the processors: section 8.1 of the semantics.
//!
//! The pause is looked for where it must be, in each run of 64 submissions: the longest of them counts. The peer spins for 0.1 ms instead,
//! beside the same busy threads. If it takes longer, the system has given its processor to other threads. A value far below 0.1 ms says
//! that few runs had a pause, since no command had ended after the one before.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Instant;
use std::{hint, thread};

use oxisycl::prelude::*;
use oxisycl::{Result, observe};

use crate::arguments::Options;
use crate::protocol::{Bar, Measured, Rounds, seconds};

/// Threads that want a processor all the time.
const BUSY: usize = 4;
/// Commands that are unfinished when the submissions begin.
const PENDING: u64 = 20_000;
/// Commands ahead that no thread pauses for.
const PAUSES_BEYOND: u64 = 8192;
/// The semantics promises one pause at most in so many submissions.
const RUN: usize = 64;
const RUNS: usize = 200;
/// Microseconds of other work between two submissions. Without it the run would be over before the device's threads get a processor.
const BETWEEN: f64 = 10.0;
/// Microseconds of a pause.
const PROMISED: f64 = 100.0;
/// What the longest of 64 submissions may take without a pause, in microseconds: memory that grows costs some.
const NO_PAUSE: f64 = 50.0;
/// Steps of a kernel, which takes about 20 us, so that more than 8192 are unfinished to the end.
const STEPS: u32 = 10_000;

/// The longest submissions of runs, in microseconds.
struct Longest {
    /// What nine of ten runs stay below. In the tenth the system may have taken the processor away.
    usual: f64,
    largest: f64,
}

impl Longest {
    fn of(mut times: Vec<f64>) -> Self {
        times.sort_by(f64::total_cmp);
        Self { usual: times[times.len() * 9 / 10], largest: times[times.len() - 1] }
    }
}

pub(crate) fn run(options: &Options, results: &mut Vec<Measured>) -> Result {
    const NAMES: [&str; 3] = ["submit.pause", "submit.pause.largest", "submit.pause.held"];
    if !options.wants_any(&NAMES) {
        return Ok(());
    }
    let queue = Queue::default()?;
    type Value = fn(&Longest) -> f64;
    type Measure = fn(&Queue) -> Longest;
    let cases: [(&str, Bar, Value, Measure); 3] = [
        (NAMES[0], Bar::AtMost(PROMISED), |longest| longest.usual, executed),
        // The longest of 12 800 has met the system's own pauses, as the peer's has.
        (NAMES[1], Bar::RatioAtMost(2.0), |longest| longest.largest, executed),
        (NAMES[2], Bar::AtMost(NO_PAUSE), |longest| longest.usual, held),
    ];
    for (name, bar, value, measure) in cases.into_iter().filter(|(name, ..)| options.wants(name)) {
        let rounds = Rounds::run(options.rounds, None, || value(&measure(&queue)), || value(&spins()));
        let measured = rounds.measured(name, "us", "spin of 0.1 ms").bar(bar);
        measured.print();
        results.push(measured);
    }
    Ok(())
}

/// Does something beside threads that keep the processors busy.
fn beside_busy_threads<R>(act: impl FnOnce() -> R) -> R {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..BUSY {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    hint::spin_loop();
                }
            });
        }
        let result = act();
        is_over.store(true, Ordering::Relaxed);
        result
    })
}

fn submit(queue: &Queue, buffer: &Buffer<u32, 1>) {
    let submitted = queue.submit(|cg| {
        let value = cg.access(buffer, ReadWrite);
        cg.parallel_for([1], move |item| {
            value.update(item, |mut x| {
                for _ in 0..STEPS {
                    x ^= x << 13;
                    x ^= x >> 17;
                    x ^= x << 5;
                }
                x
            })
        })
    });
    submitted.expect("the command is submitted");
}

/// What holds commands back until it is dropped.
type Gate = mpsc::Sender<()>;

/// Submits commands that a host task holds back: they all are unfinished, and the submissions before the measured ones did not pause.
fn held_back(queue: &Queue, buffer: &Buffer<u32, 1>) -> Gate {
    let (open, gate) = mpsc::channel();
    let task = queue.submit(|cg| {
        let _value = cg.access_host(buffer, ReadWrite);
        cg.host_task(move |_| {
            let _ = gate.recv();
        })
    });
    task.expect("the host task is submitted");
    (0..PENDING).for_each(|_| submit(queue, buffer));
    open
}

/// Submits to a queue that has so many commands; before that, `start` gets what holds those back.
fn longest_after(queue: &Queue, start: fn(Gate) -> Option<Gate>) -> Longest {
    let buffer = Buffer::from_vec(vec![1]).expect("a buffer of one element");
    let gate = start(held_back(queue, &buffer));
    let times = beside_busy_threads(|| {
        let timed = || {
            spin(BETWEEN);
            seconds(|| submit(queue, &buffer)) * 1e6
        };
        let run = || (0..RUN).map(|_| timed()).fold(0.0, f64::max);
        (0..RUNS).map(|_| run()).collect::<Vec<f64>>()
    });
    let unfinished = observe::counters().live_nodes();
    // With fewer the runtime has no reason to pause.
    assert!(unfinished > PAUSES_BEYOND, "only {unfinished} commands are unfinished in the end");
    drop(gate);
    queue.wait().expect("the commands succeed");
    Longest::of(times)
}

/// While the device executes them.
fn executed(queue: &Queue) -> Longest {
    longest_after(queue, |gate| {
        let before = observe::counters().live_nodes();
        drop(gate);
        while observe::counters().live_nodes() == before {
            thread::yield_now();
        }
        None
    })
}

/// While a host task keeps them all from being executed, so that a pause would help nobody.
fn held(queue: &Queue) -> Longest {
    longest_after(queue, Some)
}

fn spins() -> Longest {
    Longest::of(beside_busy_threads(|| (0..RUNS).map(|_| seconds(|| spin(PROMISED)) * 1e6).collect()))
}

fn spin(microseconds: f64) {
    let start = Instant::now();
    while start.elapsed().as_secs_f64() * 1e6 < microseconds {
        hint::spin_loop();
    }
}
