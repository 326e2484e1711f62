//! Memory of the process for launches: of many that have ended, and of those that have not.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use oxisycl_backend::{Batching, Completion, Device, LoadedKernel, Outcome, Queue, QueueOptions, UsmKind};
use oxisycl_backend_testing::harness::{create_queue, help_once};
use oxisycl_types::PanicRecord;

use crate::fake::Fake;
use crate::support::{kernel, launch, line};

/// Bytes that the program has allocated. The fake driver is a library with an allocator of its own.
static ALLOCATED: AtomicI64 = AtomicI64::new(0);

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// SAFETY: the system's allocator does everything; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATED.fetch_add(layout.size() as i64, Ordering::Relaxed);
        // SAFETY: by the contract of this function.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        ALLOCATED.fetch_sub(layout.size() as i64, Ordering::Relaxed);
        // SAFETY: by the contract of this function.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// Bytes of the process that are in memory; 0 where the system does not tell.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kibibytes = line.and_then(|line| line.split_whitespace().next()?.parse::<usize>().ok());
    kibibytes.unwrap_or(0) << 10
}

/// Counts ends.
#[derive(Default)]
struct Counter(AtomicUsize);

impl Completion for Counter {
    unsafe fn complete(self: Arc<Self>, _outcome: Outcome) {
        self.0.fetch_add(1, Ordering::Release);
    }
}

impl Counter {
    #[track_caller]
    fn wait_for(&self, n: usize, queue: &Arc<dyn Queue>) {
        let began = Instant::now();
        while self.0.load(Ordering::Acquire) < n {
            assert!(began.elapsed() < Duration::from_secs(60), "the commands do not end");
            if !help_once(&**queue) {
                std::thread::yield_now();
            }
        }
    }
}

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
        self.counter.wait_for(self.n_launched, &self.queue);
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
        let bytes = |fake: &Fake| ALLOCATED.load(Ordering::Relaxed) + fake.held()[0];
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

/// The runtime's node is 360 bytes more, so that a launch that may panic takes 1.5 KB at most. Nothing here bounds how many records there are.
/// Launching waits when a stream of the driver is full.
#[test]
fn an_unfinished_launch_has_a_bounded_cost() {
    for batching in [Batching::On, Batching::Always, Batching::Off] {
        // Measured: at most 589 and, with the memory of graphs, 1143.
        for (name, limit) in [("empty", 660), ("failing", 660 + size_of::<PanicRecord>())] {
            let cost = Launches::new(name, batching).cost_of_unfinished();
            assert!(cost <= limit, "{cost} bytes for an unfinished launch of {name}, {batching:?}");
        }
    }
}
