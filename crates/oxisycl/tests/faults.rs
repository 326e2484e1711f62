//! Every operation of a longer program fails once, each in a run of its own. Every failure surfaces with one root, nothing hangs,
//! nothing leaks, and no buffer ever shows wrong data.

mod support;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use oxisycl::BufferOptions;
use oxisycl::observe::counters;
use oxisycl::prelude::*;
use oxisycl::simulated::{Operation, SimulatedConfig, SimulatedControl, Simulator};

use support::{alone, eventually, watchdog};

const N: usize = 64;
const OPERATIONS: [Operation; 5] =
    [Operation::Launch, Operation::Copy, Operation::Fill, Operation::Allocate, Operation::Other];

/// What a buffer should hold: `None` where nobody wrote.
type Model = [Option<i32>; N];

/// What a successful step does to the models of the buffers.
type Effect = Box<dyn Fn(&mut [Model; 4])>;

/// A program over four buffers and a USM allocation, on two simulated devices and the host, that goes on after errors.
struct Program {
    queues: [Queue; 3],
    buffers: [Buffer<i32, 1>; 4],
    asynchronous: Arc<Mutex<Vec<Error>>>,
    /// Errors that calls returned.
    returned: Vec<Error>,
    /// Commands whose end decides what the buffers hold.
    pending: Vec<(Event, Effect)>,
    models: [Model; 4],
}

impl Program {
    fn new(devices: &[Device]) -> Self {
        let asynchronous = Arc::new(Mutex::new(Vec::new()));
        let queue = |device: &Device, is_in_order: bool| {
            let list = asynchronous.clone();
            let builder = Queue::builder().device(device).handler(move |errors| list.lock().unwrap().extend(errors));
            if is_in_order { builder.in_order() } else { builder }.build().unwrap()
        };
        let host = Device::select(oxisycl::selector::cpu_selector).unwrap();
        let queues = [queue(&devices[0], false), queue(&devices[1], true), queue(&host, false)];
        let paged = BufferOptions::new().page_size(16).from_vec(vec![100; N]).unwrap();
        let buffers = [
            Buffer::from_vec_nd((0..N as i32).collect(), N).unwrap(),
            Buffer::uninit(N).unwrap(),
            paged,
            Buffer::from_slice(&[5; N]).unwrap(),
        ];
        let models = [std::array::from_fn(|i| Some(i as i32)), [None; N], [Some(100); N], [Some(5); N]];
        Self { queues, buffers, asynchronous, returned: Vec::new(), pending: Vec::new(), models }
    }

    fn submitted(&mut self, event: oxisycl::Result<Event>, effect: impl Fn(&mut [Model; 4]) + 'static) {
        match event {
            Ok(event) => self.pending.push((event, Box::new(effect))),
            Err(error) => self.returned.push(error),
        }
    }

    fn returned<T>(&mut self, result: oxisycl::Result<T>) -> Option<T> {
        result.map_err(|error| self.returned.push(error)).ok()
    }

    /// One kernel: `to[i] = f(to[i], from[i])` in a range.
    fn combine(&mut self, queue: usize, from: usize, to: usize, range: std::ops::Range<usize>, f: fn(i32, i32) -> i32) {
        let (offset, len) = (range.start, range.len());
        let event = self.queues[queue].submit(|cg| {
            let source = cg.access_range(&self.buffers[from], Read, offset, len);
            let target = cg.access_range(&self.buffers[to], ReadWrite, offset, len);
            cg.parallel_for(len, move |item| target.update(item, |x| f(x, source.get(item))))
        });
        self.submitted(event, move |models| {
            for i in range.clone() {
                models[to][i] = models[to][i].zip(models[from][i]).map(|(x, y)| f(x, y));
            }
        });
    }

    /// One kernel: `to[i] = f(to[i])` in a range.
    fn update(&mut self, queue: usize, to: usize, range: std::ops::Range<usize>, f: fn(i32) -> i32) {
        let (offset, len) = (range.start, range.len());
        let event = self.queues[queue].submit(|cg| {
            let target = cg.access_range(&self.buffers[to], ReadWrite, offset, len);
            cg.parallel_for(len, move |item| target.update(item, f))
        });
        self.submitted(event, move |models| range.clone().for_each(|i| models[to][i] = models[to][i].map(f)));
    }

    /// Reads a buffer on the host. What it says must be right, as far as it was ever written.
    fn check(&mut self, buffer: usize) {
        let Some(data) = self.returned(self.buffers[buffer].to_vec()) else { return };
        for (event, effect) in std::mem::take(&mut self.pending) {
            match event.wait() {
                Ok(()) => effect(&mut self.models),
                Err(error) => self.returned.push(error),
            }
        }
        for (i, (seen, expected)) in data.iter().zip(&self.models[buffer]).enumerate() {
            assert!(
                expected.is_none_or(|expected| expected == *seen),
                "buffer {buffer}, element {i}: {seen}, {expected:?}"
            );
        }
    }

    fn run(&mut self) {
        const ALL: std::ops::Range<usize> = 0..N;
        let event = self.queues[0].fill(&self.buffers[1], 3);
        self.submitted(event, |models| models[1] = [Some(3); N]);
        self.update(0, 0, ALL, |x| x + 1);
        self.update(1, 0, ALL, |x| x * 2);
        let event = self.queues[1].copy(&self.buffers[0], &self.buffers[1]);
        self.submitted(event, |models| models[1] = models[0]);
        self.check(0);
        self.update(0, 2, 0..32, |x| x + 1);
        self.update(1, 2, 32..64, |x| x + 2);
        self.combine(0, 0, 2, 8..40, |x, y| x + y);
        let event = self.queues[0].submit(|cg| {
            let mut data = cg.access_host(&self.buffers[1], ReadWrite);
            cg.host_task(move |scope| data.slice_mut(scope).iter_mut().for_each(|x| *x += 5))
        });
        self.submitted(event, |models| models[1] = models[1].map(|x| x.map(|x| x + 5)));
        self.combine(1, 2, 1, ALL, |x, y| x - y);
        let barrier = self.queues[1].submit_barrier([]);
        self.submitted(barrier, |_| {});
        if let Some(mut usm) = self.returned(self.queues[0].malloc_device::<i32>(N)) {
            let copied = usm.copy_from_slice(&self.queues[0], &[9; N]);
            if self.returned(copied).is_some()
                && let Some(back) = self.returned(usm.to_vec(&self.queues[0]))
            {
                assert_eq!(back, [9; N]);
            }
        }
        self.check(1);
        let event = self.queues[0].copy_from_host(vec![11; N], &self.buffers[3]).map(|copy| copy.event().clone());
        self.submitted(event, |models| models[3] = [Some(11); N]);
        self.update(1, 3, 0..N / 2, |x| x + 1);
        let event = self.queues[1].update_host(&self.buffers[3]);
        self.submitted(event, |_| {});
        let copy = self.queues[1].copy_to_host(&self.buffers[3], vec![0; N]);
        if let Some(copy) = self.returned(copy) {
            let _ = self.returned(copy.wait());
        }
        let reserved = self.buffers[3].reserve(self.queues[0].device());
        self.returned(reserved);
        self.update(2, 0, ALL, |x| x + 10);
        self.combine(2, 0, 3, ALL, |x, y| x ^ y);
        self.update(0, 3, ALL, |x| x + 1);
        // Whatever happened, this makes two buffers good again.
        let event = self.queues[1].submit(|cg| {
            let target = cg.access(&self.buffers[2], Write.no_init());
            cg.parallel_for(N, move |item| target.set(item, -1))
        });
        self.submitted(event, |models| models[2] = [Some(-1); N]);
        let event = self.queues[2].fill(&self.buffers[1], -2);
        self.submitted(event, |models| models[1] = [Some(-2); N]);
        for buffer in 0..4 {
            self.check(buffer);
        }
        for queue in &self.queues {
            self.returned.extend(queue.wait_and_throw().err());
        }
    }
}

/// Runs the program on new devices. Returns the errors that calls returned and those that handlers got.
fn run(config: SimulatedConfig, fault: Option<(usize, Operation, u64)>) -> (Vec<Error>, Vec<Error>, SimulatedControl) {
    let live = counters().live_nodes();
    let simulator = Simulator::new(config).unwrap();
    let control = simulator.control();
    if let Some((device, operation, nth)) = fault {
        control.fail_next(device, operation, nth);
    }
    // On the host nobody injects anything.
    let bystander = Buffer::from_vec(vec![1; N]).unwrap();
    let mut program = Program::new(&simulator.devices());
    program.run();
    let event = program.queues[2].submit(|cg| {
        let data = cg.access(&bystander, ReadWrite);
        cg.parallel_for(N, move |item| data.update(item, |x| x + 1))
    });
    event.unwrap().wait().unwrap();
    assert_eq!(bystander.into_vec().unwrap(), [2; N]);
    let Program { asynchronous, returned, queues, buffers, .. } = program;
    drop((queues, buffers));
    let is_clean =
        || (0..2).all(|device| control.live_allocations(device) == 0 && control.allocated_bytes(device) == 0);
    eventually("all allocations are freed", is_clean);
    eventually("all nodes have ended", || counters().live_nodes() == live);
    let asynchronous = std::mem::take(&mut *asynchronous.lock().unwrap());
    (returned, asynchronous, control)
}

/// The text of the deepest cause.
fn root(error: &Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

fn sweep(config: &SimulatedConfig, nth: impl Fn(u64) -> Vec<u64>) -> usize {
    let (returned, asynchronous, control) = run(config.clone(), None);
    assert!(returned.is_empty() && asynchronous.is_empty(), "without faults: {returned:?} {asynchronous:?}");
    let mut n_runs = 0;
    for device in 0..2 {
        for operation in OPERATIONS {
            for nth in nth(control.attempts(device, operation)) {
                let (returned, asynchronous, control) = run(config.clone(), Some((device, operation, nth)));
                let was_hit = control.attempts(device, operation) >= nth;
                let all: Vec<&Error> = returned.iter().chain(&asynchronous).collect();
                let what = format!("{operation} number {nth} on device {device}: {all:#?}");
                assert_eq!(was_hit, !all.is_empty(), "{what}");
                let expected = format!("\"simulated device {device}\": injected fault in {operation} number {nth}");
                assert!(all.iter().all(|error| root(error).contains(&expected)), "one root: {what}");
                // The handlers hear of the command that failed itself at most once.
                let n_direct = asynchronous.iter().filter(|error| !error.to_string().contains("did not run")).count();
                assert!(n_direct <= 1, "{what}");
                n_runs += 1;
            }
        }
    }
    n_runs
}

#[test]
fn every_failure_surfaces_with_one_root_and_nothing_hangs_or_leaks() {
    let _alone = alone();
    let _watchdog = watchdog();
    let n_runs = sweep(&SimulatedConfig::new(2), |attempts| (1..=attempts).collect());
    assert!(n_runs > 30, "only {n_runs} operations");
}

#[test]
fn every_failure_surfaces_without_copies_between_devices_and_with_slow_shuffled_commands() {
    let _alone = alone();
    let _watchdog = watchdog();
    let n_runs = sweep(&SimulatedConfig::new(2).peer_copies(false), |attempts| (1..=attempts).collect());
    assert!(n_runs > 30, "only {n_runs} operations");
    for seed in 0..3 {
        let config =
            SimulatedConfig::new(2).shuffled(seed).peer_copies(seed % 2 == 0).latency(Duration::from_micros(50));
        sweep(&config, |attempts| [1, attempts / 2, attempts].into_iter().filter(|&nth| nth > 0).collect());
    }
}
