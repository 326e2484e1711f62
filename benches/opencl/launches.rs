//! What a launch costs: a kernel that does nothing, on queues with and without order.

use std::error::Error;

use oxisycl::prelude::*;

use crate::Setting;
use crate::protocol::{Bar, Measured, Rounds, Summary, least, resident, seconds};

/// Launches per measurement.
const LAUNCHES: usize = 5000;
/// Launches that are waited for one by one.
const LATENCIES: usize = 1000;

const CASES: [(&str, bool, bool); 3] =
    [("opencl.launch", true, false), ("opencl.launch.out_of_order", false, false), ("opencl.latency", true, true)];

pub(crate) fn run(setting: &Setting, results: &mut Vec<Measured>) -> Result<(), Box<dyn Error>> {
    let nothing = setting.reference.kernel("nothing")?;
    for (name, in_order, one_by_one) in CASES {
        if !setting.options.wants(name) {
            continue;
        }
        let queue = |device: &Device| {
            let builder = Queue::builder().device(device);
            if in_order { builder.in_order().build() } else { builder.build() }
        };
        let (ours, host) = (queue(&setting.opencl)?, queue(&setting.host)?);
        let time = |queue: &Queue| if one_by_one { latency(queue) } else { launch_time(queue) };
        let mut host_times = Vec::new();
        let rounds = Rounds::run(
            setting.options.rounds,
            None,
            || {
                host_times.push(time(&host));
                time(&ours)
            },
            || {
                let reference = &setting.reference;
                least(|| {
                    let time = match one_by_one {
                        true => reference.latency(&nothing, LATENCIES),
                        false => reference.launch_time(&nothing, in_order, LAUNCHES),
                    };
                    time.expect("bare OpenCL launches a kernel that does nothing")
                })
            },
        );
        let bar = if one_by_one { Bar::Information } else { Bar::RatioAtMost(1.3) };
        let measured = rounds.measured(name, "us", "bare OpenCL").bar(bar);
        let measured = measured.beside(format!("{} host device", Summary::of(&host_times[1..])));
        measured.print();
        results.push(measured);
    }
    unfinished(setting, results)
}

/// What the process grows by for each command that has not ended, when a thread submits without waiting.
fn unfinished(setting: &Setting, results: &mut Vec<Measured>) -> Result<(), Box<dyn Error>> {
    const NAME: &str = "opencl.unfinished";
    const COMMANDS: usize = 100_000;
    if !setting.options.wants(NAME) {
        return Ok(());
    }
    let queue = Queue::builder().device(&setting.opencl).in_order().build()?;
    let mut values = Vec::new();
    for _ in 0..setting.options.rounds.min(5) {
        let before = resident();
        for _ in 0..COMMANDS {
            queue.single_task(|_| {})?;
        }
        let unfinished = oxisycl::observe::counters().live_nodes().max(1);
        values.push((resident() - before) / unfinished as f64);
        queue.wait()?;
        eprintln!("      {unfinished} of {COMMANDS} commands were unfinished");
    }
    let measured = Measured::alone(NAME, "B", &values, Bar::Information);
    measured.print();
    results.push(measured);
    Ok(())
}

/// Microseconds of a launch.
fn launch_time(queue: &Queue) -> f64 {
    least(|| {
        let time = seconds(|| {
            for _ in 0..LAUNCHES {
                queue.single_task(|_| {}).expect("an empty kernel is launched");
            }
            queue.wait().expect("the launches succeed");
        });
        time * 1e6 / LAUNCHES as f64
    })
}

/// Microseconds until a kernel has ended.
fn latency(queue: &Queue) -> f64 {
    least(|| {
        let time = seconds(|| {
            for _ in 0..LATENCIES {
                queue.single_task(|_| {}).and_then(|event| event.wait()).expect("an empty kernel runs");
            }
        });
        time * 1e6 / LATENCIES as f64
    })
}
