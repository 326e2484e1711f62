//! Long chains, many submissions, long waits, idle processes: what costs memory, stack or time when it is done often enough.
//!
//! Each test runs in a process of its own, since memory and time are those of the process.

#[path = "support/child.rs"]
mod child_process;
mod support;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use oxisycl::BufferOptions;
use oxisycl::observe::counters;
use oxisycl::prelude::*;

use child_process::{role, run};
use support::{Gate, alone, eventually, in_order, simulated};

/// A quick build does a tenth.
const N_SUBMISSIONS: usize = if cfg!(debug_assertions) { 100_000 } else { 1_000_000 };
const DEPTH: usize = 100_000;

/// What this program does when one of its tests starts it again.
#[test]
fn child() {
    match role().as_deref() {
        None => {}
        Some("stalls") => stall(),
        Some("idles") => idle(),
        Some("runs_out_of_threads") => run_out_of_threads(),
        Some(memory) if memory.starts_with("memory ") => measure_memory(memory),
        Some(chain) => build_chain(chain),
    }
}

fn run_alone(role: &str) -> child_process::Ended {
    let _alone = alone();
    run(role, &[]).succeeded()
}

fn add_one(queue: &Queue, buffer: &Buffer<i32, 1>) -> oxisycl::Result<Event> {
    queue.submit(|cg| {
        let data = cg.access(buffer, ReadWrite);
        cg.parallel_for(buffer.range(), move |item| data.update(item, |x| x + 1))
    })
}

fn one_element() -> Buffer<i32, 1> {
    Buffer::from_vec(vec![0]).unwrap()
}

fn stall() {
    let queue = Queue::default().unwrap();
    let buffer = one_element();
    let (held, is_held) = channel();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let _host = buffer.host_access(Read).unwrap();
            held.send(()).unwrap();
            std::thread::sleep(Duration::from_millis(11_000));
        });
        is_held.recv().unwrap();
        let event = queue.submit(|cg| {
            cg.name("patient");
            let data = cg.access(&buffer, ReadWrite);
            cg.parallel_for(1, move |item| data.set(item, 1))
        });
        let event = event.unwrap();
        // Both kinds of waits.
        scope.spawn(|| queue.wait().unwrap());
        event.wait().unwrap();
    });
}

#[test]
fn a_wait_of_ten_seconds_says_what_it_waits_for() {
    // Takes no time of the machine, so others may run.
    let ended = run("stalls", &[]).succeeded();
    let reports = ended.reports();
    assert_eq!(reports.len(), 2, "{ended:#?}");
    for report in &reports {
        for part in ["waiting for 10 s for", "\"patient\"", "host accessor", "on device"] {
            assert!(report.contains(part), "{part}: {reports:#?}");
        }
    }
    assert_eq!(reports.iter().filter(|report| report.contains("queue ")).count(), 1, "{reports:#?}");
}

/// Processor time of this process.
fn processor_time() -> Duration {
    // SAFETY: the structure is plain numbers, for which zero is valid, and the call fills it.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        assert_eq!(libc::getrusage(libc::RUSAGE_SELF, &raw mut usage), 0);
        usage
    };
    let duration = |time: libc::timeval| Duration::new(time.tv_sec as u64, time.tv_usec as u32 * 1000);
    duration(usage.ru_utime) + duration(usage.ru_stime)
}

fn idle() {
    static GATE: Gate = Gate::new();
    let (simulated, _control) = simulated(2);
    let buffer = Buffer::from_vec(vec![0; 1000]).unwrap();
    for device in [Device::default().unwrap(), simulated[0].clone(), simulated[1].clone()] {
        for queue in [Queue::new(&device).unwrap(), in_order(&device)] {
            for _ in 0..100 {
                add_one(&queue, &buffer).unwrap();
                queue.submit(|cg| cg.host_task(|_| {})).unwrap();
            }
            queue.wait().unwrap();
        }
    }
    let measure = |name: &str| {
        // Threads that have just worked may look for more for some microseconds.
        std::thread::sleep(Duration::from_millis(20));
        let (began, used) = (Instant::now(), processor_time());
        std::thread::sleep(Duration::from_millis(1500));
        println!("{name}={}", (processor_time() - used).as_secs_f64() / began.elapsed().as_secs_f64());
    };
    measure("after_work");
    // Waiting costs nothing either.
    let queue = Queue::default().unwrap();
    let (open, wait_for_it) = channel::<()>();
    queue.submit(|cg| cg.host_task(move |_| wait_for_it.recv().unwrap())).unwrap();
    let waiting = std::thread::spawn(move || queue.wait());
    measure("while_waiting");
    open.send(()).unwrap();
    waiting.join().unwrap().unwrap();
    GATE.open();
}

#[test]
fn an_idle_process_uses_no_processor() {
    let ended = run_alone("idles");
    for name in ["after_work", "while_waiting"] {
        let share: f64 = ended.value(name).parse().unwrap();
        assert!(share < 0.01, "{name}: {share}");
    }
}

fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() * 1024
}

fn measure_memory(name: &str) {
    let (devices, _control) = simulated(1);
    let host = Device::default().unwrap();
    let (queue, ordered) = (Queue::new(&host).unwrap(), in_order(&host));
    let remote = Queue::new(&devices[0]).unwrap();
    let buffer = Buffer::from_vec(vec![0; 16]).unwrap();
    let paged = BufferOptions::new().page_size(1).from_vec(vec![0; 1000]).unwrap();
    let submit = |i: usize| match name.trim_start_matches("memory ") {
        "independent" => drop(queue.single_task(|_| {}).unwrap()),
        "in order" => drop(ordered.single_task(|_| {}).unwrap()),
        "chain" => drop(add_one(&queue, &buffer).unwrap()),
        "between devices" => drop(add_one(if i.is_multiple_of(2) { &queue } else { &remote }, &buffer).unwrap()),
        "host tasks" => drop(queue.submit(|cg| cg.host_task(|_| {})).unwrap()),
        "host accessors" => drop(buffer.host_access(ReadWrite).unwrap()),
        "pages" => {
            let submitted = queue.submit(|cg| {
                let data = cg.access_range(&paged, ReadWrite, i * 7 % 998, 3);
                cg.parallel_for(3, move |item| data.update(item, |x| x + 1))
            });
            submitted.unwrap();
        }
        "failures" => {
            queue.submit(|cg| cg.host_task(|_| std::panic::resume_unwind(Box::new("quiet")))).unwrap();
        }
        "queues" => {
            let queue = Queue::new(&host).unwrap();
            queue.single_task(|_| {}).unwrap();
        }
        "buffers" => drop(queue.fill(&Buffer::<i32, 1>::uninit(16).unwrap(), 3).unwrap()),
        "usm" => drop(queue.malloc_device::<i32>(16).unwrap()),
        other => panic!("no kind {other}"),
    };
    let is_slow = ["memory host tasks", "memory failures", "memory between devices"].contains(&name);
    let n_submissions = if is_slow { N_SUBMISSIONS / 10 } else { N_SUBMISSIONS };
    let mut before = 0;
    for i in 0..n_submissions + n_submissions / 10 {
        if i == n_submissions / 10 {
            before = resident();
        }
        submit(i);
        if i % 1000 == 999 {
            for queue in [&queue, &ordered, &remote] {
                let _ = queue.wait();
                queue.take_errors();
            }
            // Of queues that are gone, too.
            eventually("every command ends", || counters().live_nodes() == 0);
        }
    }
    println!("growth={}", resident().saturating_sub(before));
}

#[track_caller]
fn assert_memory_does_not_grow(kinds: &[&str]) {
    for kind in kinds {
        let ended = run_alone(&format!("memory {kind}"));
        let growth: usize = ended.value("growth").parse().unwrap();
        assert!(growth < 20 << 20, "{kind}: {growth} bytes");
    }
}

#[test]
fn memory_does_not_grow_with_the_number_of_kernels() {
    assert_memory_does_not_grow(&["independent", "in order", "chain"]);
}

#[test]
fn memory_does_not_grow_with_the_number_of_pages_moved_or_seen() {
    assert_memory_does_not_grow(&["pages", "between devices", "host accessors"]);
}

#[test]
fn memory_does_not_grow_with_the_number_of_objects_made() {
    assert_memory_does_not_grow(&["queues", "buffers", "usm"]);
}

#[test]
fn memory_does_not_grow_with_the_number_of_host_tasks_and_failures() {
    assert_memory_does_not_grow(&["host tasks", "failures"]);
}

/// A long chain of commands, each of which needs the one before, and what holds it all back until it is submitted.
fn build_chain(name: &str) {
    static GATE: Gate = Gate::new();
    static RAN: AtomicUsize = AtomicUsize::new(0);
    let (devices, control) = simulated(1);
    let host = Device::default().unwrap();
    let queue = if name.contains("simulated") { Queue::new(&devices[0]).unwrap() } else { Queue::new(&host).unwrap() };
    let buffer = one_element();
    let gated = |fails: bool| {
        let task = queue.submit(|cg| {
            let _data = cg.access_host(&buffer, ReadWrite);
            cg.host_task(move |_| {
                GATE.pass();
                assert!(!fails, "the first of all");
            })
        });
        task.unwrap();
    };
    let count = || {
        RAN.fetch_add(1, Ordering::Relaxed);
    };
    match name {
        "running" => (0..DEPTH).for_each(|_| drop(add_one(&queue, &buffer).unwrap())),
        "behind a host accessor" | "behind a host accessor, simulated" => {
            let held = buffer.host_access(Read).unwrap();
            (0..DEPTH).for_each(|_| drop(add_one(&queue, &buffer).unwrap()));
            drop(held);
        }
        "on a paused simulated device" => {
            control.pause(0);
            (0..DEPTH).for_each(|_| drop(add_one(&queue, &buffer).unwrap()));
            control.resume(0);
        }
        "behind a failing host task" | "behind a failing host task, simulated" => {
            gated(true);
            (0..DEPTH).for_each(|_| drop(add_one(&queue, &buffer).unwrap()));
            GATE.open();
        }
        "behind a failing kernel" => {
            queue
                .submit(|cg| {
                    let data = cg.access(&buffer, ReadWrite);
                    cg.parallel_for(1, move |item| {
                        data.set(item, 0);
                        GATE.pass();
                        panic!("the first of all")
                    })
                })
                .unwrap();
            GATE.wait_entered();
            (0..DEPTH).for_each(|_| drop(add_one(&queue, &buffer).unwrap()));
            GATE.open();
        }
        "host tasks" => {
            gated(false);
            for _ in 0..DEPTH / 10 {
                let submitted = queue.submit(|cg| {
                    let mut data = cg.access_host(&buffer, ReadWrite);
                    cg.host_task(move |scope| data.slice_mut(scope)[0] += 1)
                });
                submitted.unwrap();
            }
            GATE.open();
        }
        "events" => {
            let mut last = queue.submit(|cg| cg.host_task(|_| GATE.pass())).unwrap();
            for _ in 0..DEPTH {
                let next = queue.submit(|cg| {
                    cg.depends_on(&last);
                    cg.single_task(move |_| count())
                });
                last = next.unwrap();
            }
            GATE.open();
            last.wait().unwrap();
        }
        "many on one" => {
            gated(false);
            for _ in 0..DEPTH {
                let submitted = queue.submit(|cg| {
                    cg.access(&buffer, Read);
                    cg.single_task(move |_| count())
                });
                submitted.unwrap();
            }
            GATE.open();
            add_one(&queue, &buffer).unwrap().wait().unwrap();
        }
        other => panic!("no chain {other}"),
    }
    let waited = queue.wait().map_err(|error| error.to_string());
    let value = buffer.to_vec().map(|data| data[0] as usize + RAN.load(Ordering::Relaxed));
    println!("waited={waited:?}");
    println!("value={:?}", value.map_err(|error| format!("{error:?}")));
    let _ = queue.take_errors();
}

#[test]
fn a_chain_of_a_hundred_thousand_commands_neither_overflows_a_stack_nor_hangs() {
    for (chain, expected) in [
        ("running", DEPTH),
        ("behind a host accessor", DEPTH),
        ("behind a host accessor, simulated", DEPTH),
        ("on a paused simulated device", DEPTH),
        ("host tasks", DEPTH / 10),
        ("events", DEPTH),
        ("many on one", DEPTH + 1),
    ] {
        let ended = run_alone(chain);
        assert_eq!(ended.value("waited"), "Ok(())", "{chain}: {ended:#?}");
        assert_eq!(ended.value("value"), format!("Ok({expected})"), "{chain}: {ended:#?}");
    }
}

#[test]
fn a_chain_of_a_hundred_thousand_commands_behind_a_failure_fails_with_one_root() {
    for chain in ["behind a failing host task", "behind a failing host task, simulated", "behind a failing kernel"] {
        let ended = run_alone(chain);
        assert!(ended.value("waited").contains("the first of all"), "{chain}: {ended:#?}");
        assert!(ended.value("value").contains("the first of all"), "{chain}: {ended:#?}");
        assert!(ended.value("value").len() < 1000, "{chain}: {ended:#?}");
    }
}

/// Lets the process have so little address space that it cannot start many threads.
fn run_out_of_threads() {
    const N_TASKS: usize = 200;
    static GATE: Gate = Gate::new();
    static RAN: AtomicUsize = AtomicUsize::new(0);
    let queue = Queue::default().unwrap();
    queue.single_task(|_| {}).unwrap().wait().unwrap();
    queue.submit(|cg| cg.host_task(|_| {})).unwrap().wait().unwrap();
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = statm.split_whitespace().next().unwrap().parse().unwrap();
    let limit = pages * 4096 + (64 << 20);
    // SAFETY: the structure is valid for the call, which only changes a limit of this process.
    let set = unsafe { libc::setrlimit(libc::RLIMIT_AS, &libc::rlimit { rlim_cur: limit, rlim_max: limit }) };
    assert_eq!(set, 0);
    let task = || {
        queue.submit(|cg| {
            cg.host_task(|_| {
                RAN.fetch_add(1, Ordering::SeqCst);
                GATE.pass();
            })
        })
    };
    let tasks: Vec<_> = (0..N_TASKS).map(|_| task().unwrap()).collect();
    GATE.wait_entered();
    GATE.open();
    let results: Vec<_> = tasks.iter().map(Event::wait).collect();
    let refused = results.iter().filter_map(|result| result.as_ref().err());
    for error in refused.clone() {
        assert!(format!("{error:?}").contains("thread"), "{error:?}");
        assert_eq!(error.code(), ErrorCode::Runtime, "{error:?}");
    }
    let n_refused = refused.count();
    assert!(n_refused > 0, "there were threads for all");
    assert_eq!(RAN.load(Ordering::SeqCst) + n_refused, N_TASKS);
    let _ = queue.take_errors();
    task().unwrap().wait().unwrap();
    queue.wait().unwrap();
}

#[test]
fn host_tasks_for_which_there_is_no_thread_fail_and_the_others_run() {
    let ended = run("runs_out_of_threads", &[("MALLOC_ARENA_MAX", "1")]).succeeded();
    assert!(ended.reports().is_empty(), "{ended:#?}");
}
