//! What a launch costs: a kernel that does nothing, on queues with and without order.

use std::error::Error;
use std::process::{Command, Stdio};

use oxisycl::prelude::*;

use crate::Setting;
use crate::protocol::{Bar, Measured, Rounds, Summary, least, resident, seconds};

/// Says that this process measures memory, prints the value and ends.
pub(crate) const CHILD: &str = "--unfinished";

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
        let bar = if one_by_one { Bar::Information } else { Bar::RatioAtMost(1.12) };
        let measured = rounds.measured(name, "us", "bare OpenCL").bar(bar);
        let measured = measured.beside(format!("{} host device", Summary::of(&host_times[1..])));
        measured.print();
        results.push(measured);
    }
    unfinished(setting, results)
}

/// What the process grows by for each command that has not ended. Each value is of a process of its own, whose allocator has no free
/// memory of earlier commands.
fn unfinished(setting: &Setting, results: &mut Vec<Measured>) -> Result<(), Box<dyn Error>> {
    const NAME: &str = "memory.unfinished";
    /// Bytes.
    const MOST: f64 = 1536.0;
    if !setting.options.wants(NAME) {
        return Ok(());
    }
    let mut values = Vec::new();
    for _ in 0..setting.options.rounds.min(5) {
        let any = if setting.opencl.is_cpu() { &[][..] } else { &["--any"] };
        let child = Command::new(std::env::current_exe()?).arg(CHILD).args(any).stderr(Stdio::inherit()).output()?;
        let value = String::from_utf8(child.stdout)?;
        values.push(value.trim().parse().map_err(|_| format!("the process that measures {NAME} failed"))?);
    }
    let measured = Measured::alone(NAME, "B", &values, Bar::AtMost(MOST));
    measured.print();
    results.push(measured);
    Ok(())
}

/// Bytes for each of many commands behind a kernel that takes some seconds.
pub(crate) fn bytes_per_unfinished(device: &Device) -> oxisycl::Result<f64> {
    const COMMANDS: usize = 100_000;
    const STEPS: u32 = 1 << 30;
    let queue = Queue::builder().device(device).in_order().build()?;
    let state = Buffer::from_vec(vec![1u32])?;
    let long = |steps: u32| {
        queue.submit(|cg| {
            let state = cg.access(&state, ReadWrite);
            cg.parallel_for(1, move |item| {
                state.update(item, |mut x| {
                    for _ in 0..steps {
                        x ^= x << 13;
                        x ^= x >> 17;
                        x ^= x << 5;
                    }
                    x
                })
            })
        })
    };
    // Has both kernels loaded, and the threads started.
    long(1)?.wait()?;
    queue.single_task(|_| {})?.wait()?;
    let gate = long(STEPS)?;
    let before = resident();
    for _ in 0..COMMANDS {
        queue.single_task(|_| {})?;
    }
    let bytes = resident() - before;
    assert!(!gate.is_complete(), "commands ended while others were submitted");
    queue.wait()?;
    Ok(bytes / COMMANDS as f64)
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
