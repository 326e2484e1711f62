//! Memory of the process for launches: of many that have ended, and of those that have not.

use std::alloc::Layout;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use oxisycl_backend::{Batching, Device, LoadedKernel, Queue, QueueOptions, UsmKind};
use oxisycl_backend_testing::footprint::{Counting, allocated, alone, resident};
use oxisycl_backend_testing::harness::{create_queue, help_once};
use oxisycl_backend_testing::probe::Counter;
use oxisycl_types::PanicRecord;

use crate::fake::Fake;
use crate::support::{kernel, launch, line};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Launches of one kernel on one queue.
struct Launches {
    fake: Fake,
    device: Arc<dyn Device>,
    queue: Arc<dyn Queue>,
    code: Arc<dyn LoadedKernel>,
    name: &'static str,
    counter: Arc<Counter>,
    n_launched: usize,
}

impl Launches {
    fn new(name: &'static str, batching: Batching) -> Self {
        let fake = Fake::new();
        let device = fake.device();
        let options = QueueOptions { in_order: true, batching, ..QueueOptions::default() };
        let queue = create_queue(&device, &options).expect("a queue");
        let code = kernel(&device, name);
        Self { fake, device, queue, code, name, counter: Arc::default(), n_launched: 0 }
    }

    fn launch(&mut self, n: usize) {
        for _ in 0..n {
            let command = launch(&self.code, self.name, &(), line(1));
            // SAFETY: the kernel uses no memory.
            drop(unsafe { self.queue.issue(command, &[], self.counter.clone()) }.expect("accepted"));
        }
        self.n_launched += n;
    }

    fn wait(&self) {
        let began = Instant::now();
        while self.counter.n_ended() < self.n_launched {
            assert!(began.elapsed() < Duration::from_secs(60), "the commands do not end");
            if !help_once(&*self.queue) {
                std::thread::yield_now();
            }
        }
    }

    /// Bytes for a launch that has not ended, its panic record included, but not what the driver keeps.
    fn cost_of_unfinished(&mut self) -> usize {
        const N_LAUNCHES: usize = 20_000;
        let layout = Layout::new::<u8>();
        let gate = self.device.memory().allocate(UsmKind::Host, layout, true).expect("there is memory");
        let code = kernel(&self.device, "gate");
        let blocker = launch(&code, "gate", &(gate.as_ptr() as usize), line(1));
        // SAFETY: the byte is freed after the commands have ended.
        drop(unsafe { self.queue.issue(blocker, &[], self.counter.clone()) }.expect("accepted"));
        self.n_launched += 1;
        let bytes = |fake: &Fake| allocated() + fake.held()[0];
        let before = bytes(&self.fake);
        self.launch(N_LAUNCHES);
        let after = bytes(&self.fake);
        // SAFETY: the byte is alive, and the kernel reads it as an atomic.
        unsafe { (*gate.as_ptr().cast::<AtomicBool>()).store(true, Ordering::Release) };
        self.wait();
        // SAFETY: allocated above; the commands have ended.
        unsafe { self.device.memory().free(gate, UsmKind::Host, layout) };
        (after - before) as usize / N_LAUNCHES
    }
}

#[test]
fn many_launches_keep_no_memory() {
    alone("memory::many_launches_keep_no_memory", launch_many);
}

fn launch_many() {
    // A quick build does a fifth.
    const N_THOUSANDS: usize = if cfg!(debug_assertions) { 200 } else { 1000 };
    /// Of memory that grows. A million launches may keep 20 MiB.
    const LIMIT: usize = N_THOUSANDS * (20 << 20) / 1000;
    for batching in [Batching::On, Batching::Always, Batching::Off] {
        let mut launches = Launches::new("empty", batching);
        let mut run = |n_rounds: usize| {
            for _ in 0..n_rounds {
                launches.launch(1000);
                launches.wait();
            }
            resident()
        };
        let before = run(N_THOUSANDS / 10);
        let growth = run(N_THOUSANDS).saturating_sub(before);
        assert!(growth < LIMIT, "{growth} bytes more after {N_THOUSANDS} thousand launches, {batching:?}");
    }
}

/// The runtime's node is 360 bytes more, so that a launch that may panic takes 1.5 KB at most. Its test `a_node_takes_at_most_360_bytes` holds
/// that. Nothing here bounds how many records there are.
/// Launching waits when a stream of the driver is full.
#[test]
fn an_unfinished_launch_has_a_bounded_cost() {
    alone("memory::an_unfinished_launch_has_a_bounded_cost", leave_unfinished);
}

fn leave_unfinished() {
    for batching in [Batching::On, Batching::Always, Batching::Off] {
        // With the node, and with the record of one that may panic: 1536.
        for (name, limit) in [("empty", 664), ("failing", 664 + size_of::<PanicRecord>())] {
            let cost = Launches::new(name, batching).cost_of_unfinished();
            assert!(cost <= limit, "{cost} bytes for an unfinished launch of {name}, {batching:?}");
        }
    }
}
