//! When commands run and complete.

use std::sync::{Arc, Mutex};

use super::kernels::{Affine, Gate};
use super::subject::{
    DeviceBytes, Issued, Probe, Subject, TestQueue, bytes_of, copy, issue, issue_after, line, numbers_of, row, run,
};
use crate::harness::scaled;
use oxisycl_backend::{
    Advice, Command, Completion, Dependency, Event, EventStatus, FillCommand, FillPattern, MemoryId, Outcome,
    QueueOptions, now,
};

/// Commands of every kind complete once, and then their events are complete.
pub fn every_command_completes_once(subject: &Subject) {
    let queue = subject.queue();
    let (a, b) = (DeviceBytes::new(subject.device(), 256), DeviceBytes::new(subject.device(), 256));
    let shared = DeviceBytes::shared(subject.device(), 256);
    let fill = FillCommand { target: a.row(), pattern: FillPattern::from_slice(&[1; 4]), extent: [1, 1, 64] };
    let mut commands = vec![
        Command::Marker,
        Command::from(fill),
        copy(a.row(), b.row(), 256),
        subject.affine(Affine { values: b.as_ptr().cast(), factor: 2, summand: 0 }, line(64)),
    ];
    if let Some(shared) = &shared {
        let (pointer, size) = (shared.as_ptr(), 256);
        commands.push(Command::Prefetch { pointer, size });
        commands.push(Command::Advise { pointer, size, advice: Advice::ReadMostly });
        commands.push(Command::Advise { pointer, size, advice: Advice::Reset });
    }
    let mut issued: Vec<Issued> = Vec::new();
    for command in commands {
        let dependencies: Vec<Dependency> = issued.last().map(Issued::data).into_iter().collect();
        issued.push(issue(&queue, command, &dependencies));
    }
    let last = issue(&queue, Command::Marker, &issued.iter().map(Issued::order).collect::<Vec<_>>());
    last.probe.succeed(&queue);
    for command in &issued {
        command.probe.succeed(&queue);
        assert_eq!(command.event.status(), EventStatus::Complete);
    }
    assert_eq!(numbers_of(&b.download(&queue))[63], 0x0202_0202 + 63);
    for command in issued.iter().chain([&last]) {
        assert_eq!(command.probe.count(), 1, "a command completes once");
    }
}

/// Each of many commands on the same numbers sees what the one before it did.
pub fn a_chain_runs_in_order(subject: &Subject) {
    const LINKS: u32 = scaled(300);
    let queue = subject.queue();
    let memory = DeviceBytes::upload(subject.device(), &queue, &bytes_of(&[1; 32]));
    let mut issued: Vec<Issued> = Vec::new();
    let mut expected: Vec<u32> = vec![1; 32];
    for link in 0..LINKS {
        let arguments = Affine { values: memory.as_ptr().cast(), factor: 2 * link + 3, summand: link };
        let dependencies: Vec<Dependency> = issued.last().map(Issued::data).into_iter().collect();
        issued.push(issue(&queue, subject.affine(arguments, line(32)), &dependencies));
        for (index, value) in expected.iter_mut().enumerate() {
            *value = value.wrapping_mul(2 * link + 3).wrapping_add(link).wrapping_add(index as u32);
        }
    }
    for command in issued {
        command.probe.succeed(&queue);
    }
    assert_eq!(numbers_of(&memory.download(&queue)), expected);
}

/// A queue that keeps the order itself does so for commands of every kind. Kernels change numbers that copies bring from the host and take
/// back.
pub fn an_in_order_queue_keeps_the_order_that_it_promises(subject: &Subject) {
    const LINKS: u32 = scaled(100);
    let queue = subject.in_order_queue();
    let memory = DeviceBytes::new(subject.device(), 128);
    let sources: Vec<[u32; 32]> = (0..LINKS).map(|link| [link; 32]).collect();
    let mut targets = vec![[0u32; 32]; LINKS as usize];
    let host = |pointer: *mut u8| row(MemoryId::HOST, pointer);
    let mut issued: Vec<Issued> = Vec::new();
    let mut push = |command| {
        let earlier = issued.last().map(|last: &Issued| last.event.clone());
        issued.push(issue_after(&queue, command, &[], earlier));
    };
    for (link, (source, target)) in sources.iter().zip(&mut targets).enumerate() {
        let arguments = Affine { values: memory.as_ptr().cast(), factor: 3, summand: link as u32 };
        push(copy(host(source.as_ptr().cast_mut().cast()), memory.row(), 128));
        push(subject.affine(arguments, line(32)));
        push(Command::Marker);
        push(subject.affine(arguments, line(32)));
        push(copy(memory.row(), host(target.as_mut_ptr().cast()), 128));
    }
    for command in &issued {
        command.probe.succeed(&queue);
    }
    for (link, target) in targets.iter().enumerate() {
        let (link, step) = (link as u32, |x: u32, index: u32| x * 3 + index);
        let expected: [u32; 32] = std::array::from_fn(|i| step(step(link, i as u32 + link), i as u32 + link));
        assert_eq!(*target, expected, "after link {link}");
    }
}

/// Two commands that wait for one, and one that waits for both.
pub fn a_diamond_joins(subject: &Subject) {
    let queue = subject.queue();
    for round in 0..scaled(50) {
        let memories = [0; 3].map(|_| DeviceBytes::new(subject.device(), 64));
        let [top, left, right] = &memories;
        let pattern = FillPattern::from_slice(&round.to_ne_bytes());
        let first = issue(&queue, Command::from(FillCommand { target: top.row(), pattern, extent: [1, 1, 16] }), &[]);
        let a = issue(&queue, copy(top.row(), left.row(), 64), &[first.data()]);
        let b = issue(&queue, copy(top.row(), right.row(), 64), &[first.data()]);
        let joined = issue(&queue, Command::Marker, &[a.data(), b.data()]);
        let arguments = Affine { values: left.as_ptr().cast(), factor: 2, summand: 1 };
        let last = issue(&queue, subject.affine(arguments, line(16)), &[joined.data()]);
        for command in [&first, &a, &b, &joined, &last] {
            command.probe.succeed(&queue);
        }
        assert_eq!(numbers_of(&right.download(&queue)), [round; 16]);
        assert_eq!(numbers_of(&left.download(&queue))[15], 2 * round + 1 + 15);
    }
}

/// An event may stand in the list more than once, also with both kinds, and may be complete already.
pub fn dependencies_may_repeat_and_be_complete(subject: &Subject) {
    let queue = subject.queue();
    let memory = DeviceBytes::upload(subject.device(), &queue, &bytes_of(&[1; 8]));
    let step = |factor| subject.affine(Affine { values: memory.as_ptr().cast(), factor, summand: 1 }, line(8));
    let done = issue(&queue, step(2), &[]);
    done.probe.succeed(&queue);
    let first = issue(&queue, step(3), &[done.data(), done.data(), done.order()]);
    let list = [first.order(), done.data(), first.data(), first.data(), done.order(), first.order()];
    let second = issue(&queue, step(5), &list);
    second.probe.succeed(&queue);
    first.probe.succeed(&queue);
    assert_eq!(numbers_of(&memory.download(&queue))[0], ((2 + 1) * 3 + 1) * 5 + 1);
    assert_eq!((first.probe.count(), second.probe.count()), (1, 1));
}

/// A marker completes, after everything that it waits for.
pub fn a_marker_waits(subject: &Subject) {
    const SIZE: usize = if cfg!(miri) { 1 << 10 } else { 1 << 16 };
    let queue = subject.queue();
    run(&queue, Command::Marker);
    let memory = DeviceBytes::new(subject.device(), SIZE);
    for value in 0..scaled(20) as u8 {
        let pattern = FillPattern::from_slice(&[value]);
        let fill = Command::from(FillCommand { target: memory.row(), pattern, extent: [1, 1, SIZE] });
        let work = issue(&queue, fill, &[]);
        let marker = issue(&queue, Command::Marker, &[work.data()]);
        marker.probe.succeed(&queue);
        // Who runs ahead may report the work after what came behind it. It has ended all the same.
        if !subject.runs_ahead() {
            assert_eq!(work.event.status(), EventStatus::Complete, "a marker completed before its dependency");
        }
        work.probe.succeed(&queue);
        assert_eq!(memory.download(&queue)[..8], [value; 8]);
    }
}

/// `issue` returns although a dependency has not completed, and the command completes only after it.
pub fn issue_does_not_wait(subject: &Subject) {
    let gate = Gate::new(subject);
    let queue = subject.queue();
    let blocked = issue(&queue, subject.gate(&gate), &[]);
    let marker = issue(&queue, Command::Marker, &[blocked.data()]);
    let mut chain = vec![marker];
    for _ in 0..scaled(100) {
        let before = [chain[0].order(), chain[chain.len() - 1].data()];
        chain.push(issue(&queue, Command::Marker, &before));
    }
    assert_eq!(blocked.probe.count(), 0);
    assert!(chain.iter().all(|command| command.probe.count() == 0), "a command overtook its dependency");
    assert!(chain.iter().all(|command| command.event.status() != EventStatus::Complete));
    gate.open();
    for command in chain.iter().rev().chain([&blocked]) {
        command.probe.succeed(&queue);
    }
}

/// Issues another command each time one completes.
struct Again {
    queue: TestQueue,
    events: Mutex<Vec<Arc<dyn Event>>>,
    left: Mutex<u32>,
    last: Arc<Probe>,
}

impl Completion for Again {
    unsafe fn complete(self: Arc<Self>, _outcome: Outcome) {
        let left = {
            let mut left = self.left.lock().expect("not poisoned");
            *left -= 1;
            *left
        };
        let completion: Arc<dyn Completion> = if left == 0 { self.last.clone() } else { self.clone() };
        // SAFETY: a marker uses no memory.
        let event = unsafe { self.queue.issue(Command::Marker, &[], completion) };
        self.events.lock().expect("not poisoned").extend(event.ok());
    }
}

/// A completion may call `issue`: no lock of the backend is held.
pub fn a_completion_may_issue(subject: &Subject) {
    const COMMANDS: u32 = scaled(64);
    let queue = subject.queue();
    let last = Arc::new(Probe::default());
    let again = Arc::new(Again {
        queue: queue.clone(),
        events: Mutex::default(),
        left: Mutex::new(COMMANDS),
        last: last.clone(),
    });
    // SAFETY: a marker uses no memory.
    let first = unsafe { queue.issue(Command::Marker, &[], again.clone()) }.expect("a queue accepts commands");
    last.succeed(&queue);
    // The last event may still be on its way from `issue` to the list.
    let events = again.events.lock().expect("not poisoned").clone();
    assert!(events.len() as u32 >= COMMANDS - 1);
    assert_eq!(first.status(), EventStatus::Complete);
}

/// Threads that issue at the same time do not disturb each other.
pub fn threads_may_share_a_queue(subject: &Subject) {
    const THREADS: usize = 4;
    const COMMANDS: u32 = scaled(100);
    let queue = subject.queue();
    let memory = DeviceBytes::upload(subject.device(), &queue, &bytes_of(&[0; THREADS]));
    let first = issue(&queue, Command::Marker, &[]);
    let address = memory.as_ptr() as usize;
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (queue, first) = (&queue, &first);
            scope.spawn(move || {
                let values = (address as *mut u32).wrapping_add(thread);
                let mut chain: Vec<Issued> = Vec::new();
                for _ in 0..COMMANDS {
                    let mut before = vec![first.order()];
                    before.extend(chain.last().map(Issued::data));
                    let command = subject.affine(Affine { values, factor: 1, summand: 1 }, line(1));
                    chain.push(issue(queue, command, &before));
                }
                for command in chain {
                    command.probe.succeed(queue);
                }
            });
        }
    });
    assert_eq!(numbers_of(&memory.download(&queue)), [COMMANDS; THREADS]);
}

/// With profiling there are times, which end after they begin and follow each other along dependencies.
pub fn profiling_gives_times(subject: &Subject) {
    let device = subject.device();
    let options = QueueOptions { profiling: true, ..QueueOptions::default() };
    let queue = subject.queue_with(options);
    let memory = DeviceBytes::upload(device, &queue, &bytes_of(&[0; 64]));
    let before = now();
    let step = || subject.affine(Affine { values: memory.as_ptr().cast(), factor: 1, summand: 1 }, line(64));
    let first = issue(&queue, step(), &[]);
    let second = issue(&queue, step(), &[first.data()]);
    let times = [&first, &second].map(|command| command.probe.succeed(&queue).times.expect("times are recorded"));
    let after = now();
    let order = [before, times[0].start, times[0].end, times[1].start, times[1].end, after];
    assert!(order.is_sorted(), "times are out of order: {order:?}");
}
