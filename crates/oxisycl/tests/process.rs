//! The end of the process with work pending, statics, what is told at the end, and `panic = "abort"`.

#[path = "process/abort.rs"]
mod abort;
#[path = "support/child.rs"]
mod child_process;
mod support;

use std::cell::RefCell;
use std::sync::OnceLock;
use std::time::Duration;

use oxisycl::FinalData;
use oxisycl::prelude::*;

use child_process::{role, run};
use support::{Gate, eventually, in_order, simulated};

/// What this program does when one of its tests starts it again.
#[test]
fn child() {
    match role().as_deref() {
        None => {}
        Some("returns_from_main") => leave_work_pending(),
        Some("exits") => {
            leave_work_pending();
            std::process::exit(7);
        }
        Some("exits_in_a_storm") => exit_in_a_storm(),
        Some("exits_in_a_host_task") => exit_in_a_host_task(),
        Some("statics") => fill_statics(),
        Some("fails_silently") => fail_silently(),
        Some("fails_and_exits") => {
            fail_silently();
            std::process::exit(7);
        }
        Some("fails_with_a_handler") => fail_with_a_handler(),
        Some("fails_after_main") => fail_after_main(),
        Some("fails_and_drops_the_queue") => fail_and_drop_the_queue(),
        Some("fails_and_waits") => fail_and_wait(),
        Some("fails_and_waits_without_the_queue") => fail_and_wait_without_the_queue(),
        Some("fails_unseen_without_the_queue") => fail_unseen_without_the_queue(),
        Some("fails_on_many_lines") => fail_on_many_lines(),
        Some("uses_a_wrong_index") => use_a_wrong_index(),
        Some(other) => panic!("no role {other}"),
    }
}

/// Commands that never end, and commands that wait for them, on all kinds of devices and queues.
fn leave_work_pending() {
    static GATE: Gate = Gate::new();
    let (simulated, _control) = simulated(1);
    for device in [Device::default().unwrap(), simulated[0].clone()] {
        let queue = in_order(&device);
        queue.single_task(|_| GATE.pass()).unwrap();
        let buffer = Buffer::from_vec(vec![1; 100]).unwrap();
        queue.fill(&buffer, 2).unwrap();
        let task = Queue::new(&device).unwrap().submit(|cg| cg.host_task(|_| GATE.pass()));
        let blocked = Queue::new(&device).unwrap().submit(|cg| {
            cg.depends_on(&task.unwrap());
            let data = cg.access(&buffer, ReadWrite);
            cg.parallel_for(100, move |item| data.set(item, 3))
        });
        std::mem::forget((blocked.unwrap(), buffer));
    }
    eventually("the kernels run", || GATE.n_entered() >= 3);
}

#[test]
fn main_may_return_with_work_pending() {
    let ended = run("returns_from_main", &[]).succeeded();
    // It waits for one second. What is above that is for a machine with other work.
    assert!(ended.elapsed > Duration::from_secs(1) && ended.elapsed < Duration::from_secs(10), "{ended:#?}");
    let reports = ended.reports();
    assert_eq!(reports.len(), 1, "{ended:#?}");
    assert!(
        reports[0].contains("the process ends while") && reports[0].contains("commands are pending"),
        "{reports:?}"
    );
}

#[test]
fn the_process_may_exit_with_work_pending() {
    let ended = run("exits", &[]);
    assert_eq!(ended.status.code(), Some(7), "{ended:#?}");
    assert_eq!(ended.reports().len(), 1, "{ended:#?}");
}

fn exit_in_a_storm() {
    let (simulated, _control) = simulated(1);
    let host = Device::default().unwrap();
    for i in 0..4 {
        let queue = Queue::new(if i == 3 { &simulated[0] } else { &host }).unwrap();
        std::thread::spawn(move || {
            let buffer = Buffer::from_vec(vec![1u64; 1000]).unwrap();
            loop {
                let submitted = queue.submit(|cg| {
                    let data = cg.access(&buffer, ReadWrite);
                    cg.parallel_for(1000, move |item| data.update(item, |x| x + 1))
                });
                submitted.unwrap();
                queue.submit(|cg| cg.host_task(|_| {})).unwrap();
            }
        });
    }
    std::thread::sleep(Duration::from_millis(30));
    std::process::exit(3);
}

#[test]
fn the_process_may_exit_while_every_thread_works() {
    for _ in 0..5 {
        let ended = run("exits_in_a_storm", &[]);
        assert_eq!(ended.status.code(), Some(3), "{ended:#?}");
    }
}

fn exit_in_a_host_task() {
    let queue = Queue::default().unwrap();
    let task = queue.submit(|cg| cg.host_task(|_| std::process::exit(5))).unwrap();
    task.wait().unwrap();
}

#[test]
fn a_host_task_may_exit_the_process() {
    let ended = run("exits_in_a_host_task", &[]);
    assert_eq!(ended.status.code(), Some(5), "{ended:#?}");
}

static STATIC: OnceLock<(Context, Queue, Buffer<i32, 1>, Event)> = OnceLock::new();

thread_local! {
    static LOCAL: RefCell<Option<(Queue, Buffer<i32, 1>)>> = const { RefCell::new(None) };
}

fn fill_statics() {
    let device = Device::default().unwrap();
    let context = Context::new(std::slice::from_ref(&device)).unwrap();
    let queue = Queue::builder().context(&context).build().unwrap();
    let buffer = Buffer::from_vec(vec![1; 10]).unwrap();
    let event = queue.fill(&buffer, 5).unwrap();
    let (_, queue, buffer, event) = STATIC.get_or_init(|| (context, queue, buffer, event));
    queue.fill(buffer, 6).unwrap();
    event.wait().unwrap();
    let local = Buffer::from_vec(vec![1; 10]).unwrap();
    local.set_final_data(FinalData::call(|data| println!("local={:?}", data.map(|data| data[0]))));
    queue.fill(&local, 7).unwrap();
    LOCAL.set(Some((queue.clone(), local)));
    // Another thread has some of its own, which end with it.
    std::thread::spawn(|| {
        let (_, queue, buffer, _) = STATIC.get().unwrap();
        LOCAL.set(Some((queue.clone(), buffer.clone())));
    })
    .join()
    .unwrap();
    assert_eq!(buffer.to_vec().unwrap(), [6; 10]);
    queue.wait().unwrap();
}

#[test]
fn queues_and_buffers_may_be_in_statics_and_thread_locals() {
    let ended = run("statics", &[]).succeeded();
    assert!(ended.reports().is_empty(), "{ended:#?}");
}

fn fail_silently() {
    let queue = Queue::default().unwrap();
    let event = queue.submit(|cg| {
        cg.name("unseen");
        cg.parallel_for(1, |_| panic!("nobody asked"))
    });
    let event = event.unwrap();
    let task = queue.submit(|cg| cg.host_task(|_| panic!("nobody asked either"))).unwrap();
    eventually("both end", || event.is_complete() && task.is_complete());
    std::mem::forget(queue);
}

#[test]
fn an_error_that_nobody_saw_is_one_line_at_the_end_of_the_process() {
    let ended = run("fails_silently", &[]).panicked();
    let reports = ended.reports();
    assert_eq!(reports.len(), 2, "{ended:#?}");
    let of_kernel: Vec<_> =
        reports.iter().filter(|line| line.contains("nobody asked") && !line.contains("either")).collect();
    assert_eq!(of_kernel.len(), 1, "{ended:#?}");
    for part in ["kernel error", "\"unseen\"", "work-item [0]", "process.rs:"] {
        assert!(of_kernel[0].contains(part), "{part}: {of_kernel:?}");
    }
    assert!(
        reports.iter().any(|line| line.contains("host task") && line.contains("nobody asked either")),
        "{ended:#?}"
    );
}

/// The last errors are on their way to the handler when the process ends.
fn fail_with_a_handler() {
    let tasks = (0..20).map(|_| {
        let queue = Queue::builder().handler(|_| {}).build().unwrap();
        queue.submit(|cg| cg.host_task(|_| panic!("handled"))).unwrap()
    });
    let tasks: Vec<Event> = tasks.collect();
    eventually("all end", || tasks.iter().all(Event::is_complete));
}

#[test]
fn what_a_handler_is_about_to_get_is_neither_printed_nor_unseen() {
    for _ in 0..10 {
        let ended = run("fails_with_a_handler", &[]).succeeded();
        assert!(ended.reports().is_empty(), "{ended:#?}");
    }
}

/// Returns while the kernel still runs.
fn fail_after_main() {
    let queue = Queue::default().unwrap();
    let kernel = queue.submit(|cg| {
        cg.parallel_for(1, |_| {
            std::thread::sleep(Duration::from_millis(200));
            panic!("after main")
        })
    });
    kernel.unwrap();
    // Begins when the kernel has ended, and fails with it.
    queue.submit(|cg| cg.host_task(|_| panic!("after the kernel"))).unwrap();
}

#[test]
fn what_panics_within_a_second_of_the_end_is_told_and_decides_the_status() {
    let ended = run("fails_after_main", &[]).panicked();
    for text in ["after main", "after the kernel"] {
        assert_eq!(ended.reports().iter().filter(|line| line.contains(text)).count(), 1, "{text}: {ended:#?}");
    }
    assert_eq!(ended.reports().len(), 2, "{ended:#?}");
}

#[test]
fn the_status_of_the_process_may_be_left_to_the_program() {
    let ended = run("fails_silently", &[("OXISYCL_EXIT_CODE", "0")]).succeeded();
    assert_eq!(ended.reports().len(), 2, "{ended:#?}");
}

#[test]
fn a_status_of_failure_is_kept() {
    let ended = run("fails_and_exits", &[]);
    assert_eq!(ended.status.code(), Some(7), "{ended:#?}");
    assert_eq!(ended.reports().len(), 2, "{ended:#?}");
}

fn fail_and_drop_the_queue() {
    for i in 0..20 {
        let queue = Queue::default().unwrap();
        queue.submit(|cg| cg.host_task(move |_| panic!("error number {i}."))).unwrap();
    }
    eventually("all end", || oxisycl::observe::counters().live_nodes() == 0);
}

#[test]
fn an_error_of_a_dropped_queue_without_a_handler_is_one_line() {
    let ended = run("fails_and_drops_the_queue", &[]).panicked();
    assert_eq!(ended.reports().len(), 20, "{ended:#?}");
    for i in 0..20 {
        let text = format!("error number {i}.");
        assert_eq!(ended.reports().iter().filter(|line| line.contains(&text)).count(), 1, "{i}: {ended:#?}");
    }
}

fn fail_on_many_lines() {
    let queue = Queue::default().unwrap();
    queue.submit(|cg| cg.host_task(|_| assert_eq!([1, 2], [3, 4], "first line\nsecond line"))).unwrap();
    drop(queue);
    eventually("the task ends", || oxisycl::observe::counters().live_nodes() == 0);
    // What `drop` cannot return.
    let mut data = [1, 2];
    let host = {
        let borrowed = Buffer::from_slice_mut_nd(&mut data, 2).unwrap();
        borrowed.host_access(Read).unwrap()
    };
    drop(host);
    let vector = std::sync::Arc::new(std::sync::Mutex::new(vec![5]));
    let buffer = Buffer::from_vec(vec![1, 2]).unwrap();
    buffer.set_final_data(FinalData::weak(std::sync::Arc::downgrade(&vector)));
    let host = buffer.host_access(Read).unwrap();
    drop(buffer);
    drop(host);
    assert_eq!((data, vector.lock().unwrap().clone()), ([1, 2], vec![5]));
}

#[test]
fn every_report_is_one_line_even_at_the_very_end() {
    let ended = run("fails_on_many_lines", &[]).panicked();
    let mut reports = ended.reports();
    reports.sort_unstable();
    assert_eq!(reports.len(), 3, "{ended:#?}");
    assert!(reports[0].starts_with("oxisycl: final data of buffer "), "{reports:#?}");
    assert!(reports[1].starts_with("oxisycl: kernel error: host task"), "{reports:#?}");
    for part in ["first line", "second line", "left: [1, 2]", "right: [3, 4]"] {
        assert!(reports[1].contains(part), "{part}: {reports:#?}");
    }
    assert!(reports[2].starts_with("oxisycl: write-back of borrowed buffer "), "{reports:#?}");
}

fn fail_and_wait() {
    let queue = Queue::default().unwrap();
    queue.single_task(|_| panic!("told by the queue")).unwrap();
    queue.wait().unwrap_err();
    let event = queue.single_task(|_| panic!("told by the event")).unwrap();
    event.wait().unwrap_err();
    queue.single_task(|_| panic!("taken")).unwrap().wait().unwrap_err();
    queue.take_errors();
    drop(queue);
}

#[test]
fn an_error_that_a_wait_returned_is_not_printed_again() {
    let ended = run("fails_and_waits", &[]).succeeded();
    assert!(ended.reports().is_empty(), "{ended:#?}");
}

/// Submits something that fails to a queue that is gone before anybody can wait, and returns when it has failed.
fn failed(submit: impl FnOnce(&Queue) -> oxisycl::Result<Event>) -> Event {
    let queue = Queue::default().unwrap();
    let event = submit(&queue).unwrap();
    drop(queue);
    eventually("it ends", || event.is_complete());
    event
}

fn fail_writing(buffer: &Buffer<i32, 1>) -> Event {
    failed(|queue| {
        queue.submit(|cg| {
            let data = cg.access(buffer, ReadWrite);
            cg.parallel_for(1, move |item| {
                data.set(item, 1);
                panic!("writing")
            })
        })
    })
}

fn fail_and_wait_without_the_queue() {
    for in_time in [true, false] {
        let event = failed(|queue| queue.single_task(|_| panic!("kernel")));
        let task = failed(|queue| queue.submit(|cg| cg.host_task(|_| panic!("host task"))));
        if !in_time {
            // A report on its way would be out by now.
            std::thread::sleep(Duration::from_millis(50));
        }
        event.wait().unwrap_err();
        support::block_on(task).unwrap_err();
        // As often as one asks.
        event.wait().unwrap_err();
    }
    // A wait that has begun.
    let queue = in_order(&Device::default().unwrap());
    let late = queue.submit(|cg| {
        cg.host_task(|_| {
            std::thread::sleep(Duration::from_millis(20));
            panic!("late")
        })
    });
    drop(queue);
    late.unwrap().wait().unwrap_err();
    // What was to be written is asked for instead of the event.
    let buffer = Buffer::from_vec(vec![0]).unwrap();
    drop(fail_writing(&buffer));
    buffer.to_vec().unwrap_err();
    drop(fail_writing(&Buffer::from_vec(vec![0]).unwrap()).wait());
    // Statics live on after this.
    static KEPT: OnceLock<Event> = OnceLock::new();
    KEPT.get_or_init(|| failed(|queue| queue.single_task(|_| panic!("kept")))).wait().unwrap_err();
}

#[test]
fn an_error_of_a_dropped_queue_is_returned_or_printed_but_never_both() {
    let ended = run("fails_and_waits_without_the_queue", &[]).succeeded();
    assert!(ended.reports().is_empty(), "{ended:#?}");
}

fn fail_unseen_without_the_queue() {
    drop(failed(|queue| queue.single_task(|_| panic!("event 1."))));
    let queue = in_order(&Device::default().unwrap());
    let event = queue.single_task(|_| panic!("in order 2.")).unwrap();
    eventually("it ends", || event.is_complete());
    drop((queue, event));
    let buffer = Buffer::from_vec(vec![0]).unwrap();
    drop(fail_writing(&buffer));
    // Nobody has asked, but the buffer would still tell.
    std::thread::sleep(Duration::from_millis(20));
    drop(buffer);
    // Told at the end of the process.
    std::mem::forget(failed(|queue| queue.single_task(|_| panic!("forgotten 3."))));
    static KEPT: OnceLock<Event> = OnceLock::new();
    KEPT.get_or_init(|| failed(|queue| queue.single_task(|_| panic!("kept 4."))));
    // Dependent failures are told like others, up to a number.
    let gate = Queue::default().unwrap();
    let (open, is_open) = std::sync::mpsc::channel::<()>();
    let first = gate.submit(|cg| {
        cg.host_task(move |_| {
            let _ = is_open.recv();
            panic!("root 5.")
        })
    });
    let first = first.unwrap();
    let queue = Queue::default().unwrap();
    for _ in 0..300 {
        let dependent = queue.submit(|cg| {
            cg.depends_on(&first);
            cg.single_task(|_| {})
        });
        dependent.unwrap();
    }
    drop((queue, gate, open));
    eventually("all end", || oxisycl::observe::counters().live_nodes() == 0);
}

#[test]
fn an_error_of_a_dropped_queue_that_nobody_asks_for_is_printed_once() {
    for _ in 0..5 {
        let ended = run("fails_unseen_without_the_queue", &[]).panicked();
        let reports = ended.reports();
        for text in ["event 1.", "in order 2.", "writing", "forgotten 3.", "kept 4."] {
            assert_eq!(reports.iter().filter(|line| line.contains(text)).count(), 1, "{text}: {ended:#?}");
        }
        let of_root = reports.iter().filter(|line| line.contains("root 5."));
        assert_eq!(of_root.count(), 1 + 256, "{ended:#?}");
        assert_eq!(reports.iter().filter(|line| line.contains("44 more commands")).count(), 1, "{ended:#?}");
        assert_eq!(reports.len(), 5 + 257 + 1, "{ended:#?}");
    }
}

fn use_a_wrong_index() {
    let (simulated, _control) = simulated(1);
    for device in [Device::default().unwrap(), simulated[0].clone()] {
        let weights = Buffer::from_vec(vec![1.0f32; 8]).unwrap().named("weights");
        let result = Buffer::from_vec(vec![0.0f32; 9]).unwrap();
        let event = Queue::new(&device).unwrap().submit(|cg| {
            let (weights, result) = (cg.access(&weights, Read), cg.access(&result, Write));
            cg.parallel_for(9, move |item| result.set(item, weights.view(item)[item.index()]))
        });
        println!("error={:?}", event.unwrap().wait().unwrap_err());
    }
}

#[test]
fn a_panic_is_printed_with_the_name_of_the_buffer_as_in_its_error() {
    let ended = run("uses_a_wrong_index", &[]).succeeded();
    let messages: Vec<&str> = ended.stdout.lines().filter_map(|line| Some(&line[line.find("index [8]")?..])).collect();
    assert_eq!(messages.len(), 2, "{ended:#?}");
    for message in messages {
        assert!(message.contains("\"weights\" of f32 with range [8]"), "{ended:#?}");
        assert!(
            ended.stderr.lines().any(|line| message.starts_with(line) && line.contains("\"weights\"")),
            "{ended:#?}"
        );
    }
}
