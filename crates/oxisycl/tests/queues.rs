//! Queues: the order of commands, barriers, idle and dropped queues.

mod support;

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use oxisycl::prelude::*;

use support::{Gate, add_one, eventually, filled, in_order, refused, scaled, simulated, watchdog};

#[test]
fn a_dropped_queue_event_or_context_neither_waits_nor_cancels() {
    static GATE: Gate = Gate::new();
    static RAN: AtomicUsize = AtomicUsize::new(0);
    let _watchdog = watchdog();
    let device = Device::default().unwrap();
    let context = Context::new(std::slice::from_ref(&device)).unwrap();
    for in_order in [true, false] {
        let builder = Queue::builder().device(&device).context(&context);
        let queue = if in_order { builder.in_order() } else { builder }.build().unwrap();
        // Host tasks, so that no thread of the pool is held up and kernels can wait behind them.
        let task = queue.submit(|cg| cg.host_task(|_| GATE.pass())).unwrap();
        let kernel = queue.submit(|cg| {
            cg.depends_on(&task);
            cg.single_task(|_| _ = RAN.fetch_add(1, Ordering::SeqCst))
        });
        kernel.unwrap();
        drop(queue);
    }
    let kernel = Queue::builder().device(&device).context(&context).build().unwrap().single_task(|_| {
        GATE.pass();
        RAN.fetch_add(1, Ordering::SeqCst);
    });
    GATE.wait_entered();
    drop((kernel, context, device));
    assert_eq!(RAN.load(Ordering::SeqCst), 0, "the drops came first");
    GATE.open();
    eventually("everything that was submitted runs", || RAN.load(Ordering::SeqCst) == 3);
}

#[test]
fn a_queue_is_idle_before_its_first_and_after_its_last_command() {
    static GATE: Gate = Gate::new();
    let _watchdog = watchdog();
    for _ in 0..scaled(100) {
        let queue = Queue::default().unwrap();
        assert!(queue.is_idle());
        for _ in 0..10 {
            queue.single_task(|_| {}).unwrap();
        }
        queue.wait().unwrap();
        assert!(queue.is_idle(), "right after a wait");
    }
    let queue = Queue::default().unwrap();
    let task = queue.submit(|cg| cg.host_task(|_| GATE.pass())).unwrap();
    // Asking must not cost memory: this is what a polling loop does.
    for _ in 0..scaled(100_000) {
        assert!(!queue.is_idle());
    }
    GATE.open();
    eventually("the queue becomes idle", || queue.is_idle());
    assert!(task.is_complete());
}

#[test]
fn flushed_commands_run_although_nobody_waits() {
    static RAN: AtomicUsize = AtomicUsize::new(0);
    let (devices, _control) = simulated(1);
    for (i, device) in [Device::default().unwrap(), devices[0].clone()].iter().enumerate() {
        let queue = Queue::new(device).unwrap();
        queue.single_task(|_| _ = RAN.fetch_add(1, Ordering::SeqCst)).unwrap();
        queue.flush().unwrap();
        eventually("the kernel runs", || RAN.load(Ordering::SeqCst) == i + 1);
    }
}

#[test]
fn a_barrier_completes_after_its_events() {
    static GATE: Gate = Gate::new();
    let _watchdog = watchdog();
    let (queue, other) = (Queue::default().unwrap(), Queue::default().unwrap());
    let task = other.submit(|cg| cg.host_task(|_| GATE.pass())).unwrap();
    let barrier = queue.submit_barrier([&task, &Event::default()]).unwrap();
    let free = queue.single_task(|_| {}).unwrap();
    free.wait().unwrap();
    assert!(!barrier.is_complete() && !queue.is_idle());
    GATE.open();
    barrier.wait().unwrap();
    assert!(task.is_complete());
    let failing = queue.single_task(|_| panic!("under the barrier")).unwrap();
    failing.wait().unwrap_err();
    refused(queue.submit_barrier([&failing]), ErrorCode::Event, &["under the barrier"]);
}

#[test]
fn a_barrier_on_an_in_order_queue_completes_after_everything_before() {
    static GATE: Gate = Gate::new();
    let _watchdog = watchdog();
    let queue = in_order(&Device::default().unwrap());
    let task = queue.submit(|cg| cg.host_task(|_| GATE.pass())).unwrap();
    let barrier = queue.submit_barrier([]).unwrap();
    let after = queue.single_task(|_| {}).unwrap();
    std::thread::sleep(Duration::from_millis(10));
    assert!(!barrier.is_complete() && !after.is_complete());
    GATE.open();
    after.wait().unwrap();
    assert!(task.is_complete() && barrier.is_complete());
}

#[test]
fn an_in_order_queue_runs_kernels_fills_copies_and_host_tasks_in_order() {
    static STEP: AtomicU32 = AtomicU32::new(0);
    static WRONG: AtomicUsize = AtomicUsize::new(0);
    fn expect(step: u32) {
        let seen = STEP.fetch_add(1, Ordering::SeqCst);
        WRONG.fetch_add(usize::from(seen != step), Ordering::SeqCst);
    }
    let _watchdog = watchdog();
    let (devices, _control) = simulated(1);
    for device in [Device::default().unwrap(), devices[0].clone()] {
        let queue = in_order(&device);
        STEP.store(0, Ordering::SeqCst);
        for i in 0..scaled(100) as u32 {
            queue.single_task(move |_| expect(3 * i)).unwrap();
            queue.submit(|cg| cg.host_task(move |_| expect(3 * i + 1))).unwrap();
            // Buffers do not loosen the order.
            let unrelated = filled(1);
            queue.fill(&unrelated, 1).unwrap();
            let submitted = queue.submit(|cg| {
                cg.access(&unrelated, ReadWrite);
                cg.single_task(move |_| expect(3 * i + 2))
            });
            submitted.unwrap();
        }
        queue.wait().unwrap();
        assert_eq!((STEP.load(Ordering::SeqCst), WRONG.load(Ordering::SeqCst)), (3 * scaled(100) as u32, 0));
    }
}

#[test]
fn a_failed_command_does_not_stop_an_in_order_queue() {
    static RAN: AtomicUsize = AtomicUsize::new(0);
    let _watchdog = watchdog();
    let queue = in_order(&Device::default().unwrap());
    queue.single_task(|_| panic!("one of them")).unwrap();
    queue.submit(|cg| cg.host_task(|_| panic!("another"))).unwrap();
    let after = queue.single_task(|_| _ = RAN.fetch_add(1, Ordering::SeqCst)).unwrap();
    after.wait().unwrap();
    assert_eq!(RAN.load(Ordering::SeqCst), 1);
    for panic in ["one of them", "another"] {
        refused(queue.wait(), ErrorCode::Kernel, &[panic]);
    }
}

#[test]
fn dependencies_hold_across_queues_contexts_and_backends() {
    static GATE: Gate = Gate::new();
    static ORDER: AtomicUsize = AtomicUsize::new(0);
    let _watchdog = watchdog();
    let ((first, _a), (second, _b)) = (simulated(1), simulated(1));
    let host = Device::default().unwrap();
    let start = Queue::new(&host).unwrap().submit(|cg| cg.host_task(|_| GATE.pass())).unwrap();
    let mut last = start;
    for (i, device) in [&first[0], &host, &second[0], &first[0], &second[0], &host].into_iter().enumerate() {
        let next = Queue::new(device).unwrap().submit(|cg| {
            cg.depends_on_all([&last]);
            cg.single_task(move |_| _ = ORDER.compare_exchange(i, i + 1, Ordering::SeqCst, Ordering::SeqCst))
        });
        last = next.unwrap();
    }
    GATE.open();
    last.wait().unwrap();
    assert_eq!(ORDER.load(Ordering::SeqCst), 6);
}

#[test]
fn commands_on_one_buffer_run_in_order_of_submission_across_queues() {
    // Under Miri each costs a second.
    const N_COMMANDS: usize = if cfg!(miri) { 12 } else { 60 };
    let _watchdog = watchdog();
    let (devices, _control) = simulated(2);
    let queues: Vec<Queue> =
        [&Device::default().unwrap(), &devices[0], &devices[1]].map(|device| Queue::new(device).unwrap()).into();
    let buffer = filled(64);
    for i in 0..N_COMMANDS {
        let submitted = queues[i % 3].submit(|cg| {
            let data = cg.access(&buffer, ReadWrite);
            cg.parallel_for(64, move |item| data.update(item, |x| x.wrapping_mul(31).wrapping_add(i as i32)))
        });
        submitted.unwrap();
    }
    let expected = (0..N_COMMANDS).fold(7i32, |x, i| x.wrapping_mul(31).wrapping_add(i as i32));
    assert_eq!(buffer.into_vec().unwrap(), [expected; 64]);
}

#[test]
fn submitting_does_not_wait_for_the_device() {
    let _watchdog = watchdog();
    let (devices, control) = simulated(1);
    control.pause(0);
    let queue = Queue::new(&devices[0]).unwrap();
    let buffer = filled(scaled(1 << 16));
    let began = Instant::now();
    let last = (0..scaled(100)).fold(None, |_, _| Some(add_one(&queue, &buffer))).unwrap();
    assert!(began.elapsed() < Duration::from_secs(5) && !last.is_complete());
    control.resume(0);
    last.wait().unwrap();
    assert_eq!(buffer.into_vec().unwrap()[0], 7 + scaled(100) as i32);
}
