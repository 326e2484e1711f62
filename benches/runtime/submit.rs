//! What a command group costs: recorded, submitted, executed, with its share of the final wait.

use std::thread;
use std::time::Instant;

use oxisycl::prelude::*;
use oxisycl::{BufferOptions, Result};

use crate::arguments::Options;
use crate::peers::{self, EMPTY_SPAWN, PING_PONG, adaptive_cpp};
use crate::protocol::{Bar, Measured, Rounds, Summary, Yardstick, least, seconds};

/// Command groups per measurement.
const GROUPS: usize = 20_000;
/// Elements of each of the disjoint ranges.
const BLOCK: usize = 64;
/// Submissions per measurement of the latency.
const LATENCIES: usize = 2_000;

pub(crate) fn run(options: &Options, results: &mut Vec<Measured>) -> Result {
    let out_of_order = Queue::default()?;
    let in_order = Queue::builder().in_order().build()?;
    independent(options, results, &in_order, &out_of_order);
    chain(options, results, &in_order, &out_of_order);
    ranged(options, results, &out_of_order);
    latency(options, results, &in_order, &out_of_order);
    threads(options, results, &in_order, &out_of_order);
    Ok(())
}

/// What is asked of one case.
struct Case {
    name: &'static str,
    bar: Bar,
    adaptive_cpp: &'static str,
    peer: &'static str,
}

/// Measures both, in microseconds.
fn measure(
    options: &Options,
    results: &mut Vec<Measured>,
    case: &Case,
    yardstick: &Yardstick<'_>,
    ours: &mut dyn FnMut() -> f64,
    peer: &mut dyn FnMut() -> f64,
) {
    if !options.wants(case.name) {
        return;
    }
    let rounds = Rounds::run(options.rounds, Some(yardstick), || least(&mut *ours), || least(&mut *peer));
    let measured = rounds.measured(case.name, "us", case.peer).bar(case.bar).beside(case.adaptive_cpp);
    let measured = measured.drift(rounds.drift(yardstick));
    measured.print();
    results.push(measured);
}

/// Microseconds per command group of `GROUPS` that `submit` submits.
fn per_group(queue: &Queue, submit: impl Fn(&Queue, usize)) -> f64 {
    let time = seconds(|| {
        for group in 0..GROUPS {
            submit(queue, group);
        }
        queue.wait().expect("the commands succeed");
    });
    time * 1e6 / GROUPS as f64
}

fn submit_single(queue: &Queue) {
    queue.submit(|cg| cg.single_task(|_| {})).expect("an empty command is submitted");
}

fn submit_range(queue: &Queue) {
    queue.submit(|cg| cg.parallel_for([1], |_| {})).expect("an empty command is submitted");
}

fn independent(options: &Options, results: &mut Vec<Measured>, in_order: &Queue, out_of_order: &Queue) {
    let bar = Bar::ScaledAtMost(0.45);
    let case = |name, bar, adaptive_cpp| Case { name, bar, adaptive_cpp, peer: "rayon spawn" };
    type Run = fn(&Queue);
    let cases: [(Case, &Queue, Run); 4] = [
        (case("submit.independent.in_order", bar, adaptive_cpp::INDEPENDENT_IN_ORDER), in_order, submit_single),
        (
            case("submit.independent.out_of_order", bar, adaptive_cpp::INDEPENDENT_OUT_OF_ORDER),
            out_of_order,
            submit_single,
        ),
        (
            case("submit.independent.in_order.range", Bar::Information, adaptive_cpp::INDEPENDENT_IN_ORDER_RANGE),
            in_order,
            submit_range,
        ),
        (
            case(
                "submit.independent.out_of_order.range",
                Bar::Information,
                adaptive_cpp::INDEPENDENT_OUT_OF_ORDER_RANGE,
            ),
            out_of_order,
            submit_range,
        ),
    ];
    for (case, queue, submit) in &cases {
        let mut ours = || per_group(queue, |queue, _| submit(queue));
        measure(options, results, case, &EMPTY_SPAWN, &mut ours, &mut peers::empty_spawn);
    }
}

fn chain(options: &Options, results: &mut Vec<Measured>, in_order: &Queue, out_of_order: &Queue) {
    let cases = [
        ("submit.chain", out_of_order, Bar::ScaledAtMost(0.8), adaptive_cpp::CHAIN),
        ("submit.chain.in_order", in_order, Bar::Information, adaptive_cpp::CHAIN_IN_ORDER),
    ];
    for (name, queue, bar, adaptive_cpp) in cases {
        let case = Case { name, bar, adaptive_cpp, peer: "rayon spawn from task" };
        let mut ours = || {
            let buffer = Buffer::from_vec(vec![0u64]).expect("a buffer of one element");
            let time = per_group(queue, |queue, _| {
                let submitted = queue.submit(|cg| {
                    let value = cg.access(&buffer, ReadWrite);
                    cg.parallel_for([1], move |item| value.update(item, |x| x + 1))
                });
                submitted.expect("the command is submitted");
            });
            assert_eq!(buffer.to_vec().expect("the commands succeeded"), [GROUPS as u64]);
            time
        };
        let mut peer = || peers::spawn_chain(GROUPS) * 1e6 / GROUPS as f64;
        measure(options, results, &case, &EMPTY_SPAWN, &mut ours, &mut peer);
    }
}

fn ranged(options: &Options, results: &mut Vec<Measured>, queue: &Queue) {
    let n = GROUPS * BLOCK;
    let cases = [
        ("submit.ranged.paged", BufferOptions::new().page_size([BLOCK]), adaptive_cpp::RANGED_PAGED),
        ("submit.ranged.unpaged", BufferOptions::new(), adaptive_cpp::RANGED_UNPAGED),
    ];
    let mut data = vec![0f32; n];
    for (name, buffer_options, adaptive_cpp) in cases {
        let case = Case { name, bar: Bar::ScaledAtMost(2.5), adaptive_cpp, peer: "rayon spawn per block" };
        let mut ours = || {
            // A new buffer each time: its state is one region at first, and one per range in the end.
            let buffer = buffer_options.from_vec(vec![0f32; n]).expect("a buffer");
            let time = per_group(queue, |queue, group| {
                let submitted = queue.submit(|cg| {
                    let block = cg.access_range(&buffer, ReadWrite, [group * BLOCK], [BLOCK]);
                    cg.parallel_for([BLOCK], move |item| block.update(item, |x| x + 1.0))
                });
                submitted.expect("the command is submitted");
            });
            assert!(buffer.to_vec().expect("the commands succeeded").iter().all(|x| *x == 1.0));
            time
        };
        let mut peer = || peers::spawn_blocks(&mut data, BLOCK) * 1e6 / GROUPS as f64;
        measure(options, results, &case, &EMPTY_SPAWN, &mut ours, &mut peer);
    }
}

fn latency(options: &Options, results: &mut Vec<Measured>, in_order: &Queue, out_of_order: &Queue) {
    let single: fn(&Queue) -> Result<Event> = |queue| queue.submit(|cg| cg.single_task(|_| {}));
    let range: fn(&Queue) -> Result<Event> = |queue| queue.submit(|cg| cg.parallel_for([1024], |_| {}));
    let bar = Bar::ScaledAtMost(8.0);
    let cases = [
        ("submit.latency", out_of_order, single, bar, adaptive_cpp::LATENCY),
        ("submit.latency.in_order", in_order, single, bar, adaptive_cpp::LATENCY_IN_ORDER),
        ("submit.latency.range", out_of_order, range, Bar::Information, "- / 100"),
    ];
    for (name, queue, submit, bar, adaptive_cpp) in cases {
        let case = Case { name, bar, adaptive_cpp, peer: "park ping-pong" };
        let mut ours = || {
            let mut times = Vec::with_capacity(LATENCIES);
            for _ in 0..LATENCIES {
                let start = Instant::now();
                submit(queue).and_then(|event| event.wait()).expect("the command succeeds");
                times.push(start.elapsed().as_secs_f64() * 1e6);
            }
            Summary::of(&times).median
        };
        measure(options, results, &case, &PING_PONG, &mut ours, &mut peers::ping_pong);
    }
}

/// Eight threads submit to one queue what one thread submits otherwise.
fn threads(options: &Options, results: &mut Vec<Measured>, in_order: &Queue, out_of_order: &Queue) {
    const THREADS: usize = 8;
    for (name, queue) in [("submit.threads8", out_of_order), ("submit.threads8.in_order", in_order)] {
        if !options.wants(name) {
            continue;
        }
        // Command groups per microsecond.
        let throughput = |threads: usize| {
            let time = least(|| {
                seconds(|| {
                    thread::scope(|scope| {
                        for _ in 0..threads {
                            scope.spawn(|| (0..GROUPS / threads).for_each(|_| submit_single(queue)));
                        }
                    });
                    queue.wait().expect("the commands succeed");
                })
            });
            GROUPS as f64 / (time * 1e6)
        };
        let rounds = Rounds::run(options.rounds, None, || throughput(THREADS), || throughput(1));
        let measured = rounds.measured(name, "1/us", "one thread").bar(Bar::RatioAtLeast(0.7));
        measured.print();
        results.push(measured);
    }
}
