//! What is left behind: memory after many submissions, and very long chains.
//!
//! Each is measured in a process of its own, whose allocator has no free memory of earlier cases that could hide growth.

use std::process::{Command, Stdio};
use std::sync::mpsc;

use oxisycl::prelude::*;
use oxisycl::{BufferOptions, Result, observe};

use crate::arguments::Options;
use crate::protocol::{Bar, Measured, resident, seconds};

const SUBMISSIONS: usize = 1_000_000;
const CHAIN: usize = 100_000;
const MIB: f64 = 1024.0 * 1024.0;

/// Says that this process measures one value, prints it and ends.
pub(crate) const CHILD: &str = "--child";

struct Case {
    name: &'static str,
    unit: &'static str,
    bar: Bar,
    measure: fn() -> Result<f64>,
}

const CASES: [Case; 7] = [
    Case { name: "memory.million", unit: "MiB", bar: Bar::AtMost(20.0), measure: million },
    Case { name: "memory.million.waits", unit: "MiB", bar: Bar::AtMost(20.0), measure: million_waits },
    Case { name: "memory.chain", unit: "ms", bar: Bar::Information, measure: chain },
    Case { name: "memory.chain.blocked", unit: "ms", bar: Bar::Information, measure: chain_blocked },
    Case { name: "memory.chain.delayed", unit: "ms", bar: Bar::Information, measure: chain_delayed },
    Case { name: "memory.unfinished.blocked", unit: "B", bar: Bar::AtMost(1536.0), measure: unfinished_blocked },
    Case { name: "memory.unfinished.delayed", unit: "B", bar: Bar::AtMost(1536.0), measure: unfinished_delayed },
];

pub(crate) fn run(options: &Options, results: &mut Vec<Measured>) -> Result {
    for case in CASES.iter().filter(|case| options.wants(case.name)) {
        let n_runs = if case.unit == "ms" { options.rounds } else { options.rounds.min(5) };
        let values: Option<Vec<f64>> = (0..n_runs).map(|_| in_child(case.name)).collect();
        let Some(values) = values else {
            eprintln!("  {}: the process that measured it failed", case.name);
            continue;
        };
        let measured = Measured::alone(case.name, case.unit, &values, case.bar);
        measured.print();
        results.push(measured);
    }
    Ok(())
}

/// The value that a new process measures. A hang shows as one.
fn in_child(name: &str) -> Option<f64> {
    let output =
        Command::new(std::env::current_exe().ok()?).args([CHILD, name]).stderr(Stdio::inherit()).output().ok()?;
    String::from_utf8(output.stdout).ok()?.trim().parse().ok()
}

/// Measures one case in this process and prints the value.
pub(crate) fn run_child(name: &str) -> Result {
    if let Some(case) = CASES.iter().find(|case| case.name == name) {
        println!("{}", (case.measure)()?);
    }
    Ok(())
}

/// Growth over many command groups of three kinds.
fn growth(wait_every: usize) -> Result<f64> {
    let queue = Queue::default()?;
    let buffer = BufferOptions::new().page_size([64]).from_vec(vec![0u32; 6400])?;
    let submit = |number: usize| {
        match number % 3 {
            0 => queue.submit(|cg| cg.single_task(|_| {})),
            1 => queue.submit(|cg| {
                let all = cg.access(&buffer, ReadWrite);
                cg.parallel_for([1], move |item| all.update(item, |x| x.wrapping_add(1)))
            }),
            _ => queue.submit(|cg| {
                let part = cg.access_range(&buffer, ReadWrite, [number % 100 * 64], [64]);
                cg.parallel_for([64], move |item| part.update(item, |x| x.wrapping_add(1)))
            }),
        }
        .map(drop)
    };
    let run = |count: usize| -> Result<u64> {
        let mut most = 0;
        for number in 0..count {
            submit(number)?;
            if number % 1_000 == 0 {
                most = most.max(observe::counters().live_nodes());
            }
            if number % wait_every == wait_every - 1 {
                queue.wait()?;
            }
        }
        queue.wait()?;
        Ok(most)
    };
    run(10_000)?;
    let before = resident() / MIB;
    let most = run(SUBMISSIONS)?;
    let growth = resident() / MIB - before;
    // Commands that wait for a processor need memory, too: other work on the machine shows here.
    eprintln!("      {growth:.1} MiB; up to {most} commands were unfinished at the same time");
    Ok(growth)
}

fn million() -> Result<f64> {
    growth(usize::MAX)
}

fn million_waits() -> Result<f64> {
    growth(1_000)
}

/// What a chain took.
struct Chain {
    milliseconds: f64,
    /// What the process grew by for each command while all of them were there.
    bytes_per_command: f64,
}

/// Submits a chain and waits for it; `first` and `release` frame it.
fn chain_after(first: impl FnOnce(&Queue, &Buffer<u64, 1>) -> Result, release: impl FnOnce()) -> Result<Chain> {
    let queue = Queue::default()?;
    let buffer = Buffer::from_vec(vec![0u64])?;
    // Starts the threads.
    queue.single_task(|_| {})?.wait()?;
    first(&queue, &buffer)?;
    let mut result = Ok(());
    let (before, mut after) = (resident(), 0.0);
    let time = seconds(|| {
        result = (0..CHAIN).try_for_each(|_| {
            let submitted = queue.submit(|cg| {
                let value = cg.access(&buffer, ReadWrite);
                cg.parallel_for([1], move |item| value.update(item, |x| x + 1))
            });
            submitted.map(drop)
        });
        after = resident();
        release();
        result = result.clone().and_then(|()| queue.wait());
    });
    result?;
    assert_eq!(buffer.to_vec()?, [CHAIN as u64]);
    let bytes_per_command = (after - before) / CHAIN as f64;
    Ok(Chain { milliseconds: time * 1e3, bytes_per_command })
}

/// Executed while it grows.
fn chain() -> Result<f64> {
    Ok(chain_after(|_, _| Ok(()), || {})?.milliseconds)
}

fn chain_blocked() -> Result<f64> {
    Ok(blocked()?.milliseconds)
}

fn chain_delayed() -> Result<f64> {
    Ok(delayed()?.milliseconds)
}

fn unfinished_blocked() -> Result<f64> {
    Ok(blocked()?.bytes_per_command)
}

fn unfinished_delayed() -> Result<f64> {
    Ok(delayed()?.bytes_per_command)
}

/// All links are with the device before the first one may run.
fn blocked() -> Result<Chain> {
    use std::sync::atomic::{AtomicBool, Ordering};
    static OPEN: AtomicBool = AtomicBool::new(false);
    let first = |queue: &Queue, buffer: &Buffer<u64, 1>| {
        let gate = queue.submit(|cg| {
            let value = cg.access(buffer, ReadWrite);
            cg.parallel_for([1], move |item| {
                while !OPEN.load(Ordering::Acquire) {
                    std::thread::yield_now();
                }
                value.update(item, |x| x);
            })
        });
        gate.map(drop)
    };
    chain_after(first, || OPEN.store(true, Ordering::Release))
}

/// All links are with the scheduler, which waits for a host task, before the first one may run.
fn delayed() -> Result<Chain> {
    let (open, gate) = mpsc::channel::<()>();
    let first = |queue: &Queue, buffer: &Buffer<u64, 1>| {
        let task = queue.submit(|cg| {
            let _value = cg.access_host(buffer, ReadWrite);
            cg.host_task(move |_| {
                let _ = gate.recv();
            })
        });
        task.map(drop)
    };
    chain_after(first, || drop(open))
}
