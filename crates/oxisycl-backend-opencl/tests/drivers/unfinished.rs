//! Many commands of a queue that have not ended. The runtime gives a queue fewer.

use std::alloc::Layout;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use oxisycl_backend::{Completion, Dependency, DependencyKind, Device, Event, FailureKind, Outcome, Queue, UsmKind};
use oxisycl_backend_testing::contract::Affine;

use crate::memory::HostByte;
use crate::support::{devices_with_host_memory, in_order, issue, kernels, launch, launch_with, out_of_order};

crate::suite::tests![
    commands_of_a_long_queue_come_after_what_they_depend_on,
    launches_of_a_long_queue_have_panic_records_of_their_own,
];

/// More than the runtime gives a queue at once.
const MANY: usize = 3 * 4096;

/// Counts ends.
#[derive(Default)]
struct Counter {
    n_ended: AtomicUsize,
    n_panicked: AtomicUsize,
}

impl Completion for Counter {
    unsafe fn complete(self: Arc<Self>, outcome: Outcome) {
        let has_panicked = outcome.result.is_err_and(|failure| matches!(failure.kind(), FailureKind::Panic { .. }));
        self.n_panicked.fetch_add(usize::from(has_panicked), Ordering::Relaxed);
        self.n_ended.fetch_add(1, Ordering::Release);
    }
}

impl Counter {
    fn wait_for(&self, n: usize) {
        crate::support::eventually("the commands end", || self.n_ended.load(Ordering::Acquire) == n);
    }
}

/// Holds a queue up until it is opened.
struct Gate {
    byte: HostByte,
    event: Arc<dyn Event>,
    end: Arc<crate::support::Probe>,
}

impl Gate {
    fn new(device: &Arc<dyn Device>, queue: &Arc<dyn Queue>) -> Self {
        let [gate] = kernels(device, ["gate"]);
        let byte = HostByte::new(device);
        let (event, end) = issue(queue, launch_with(&gate, "gate", &byte.address(), 1), &[]);
        Self { byte, event, end }
    }

    fn open(self) {
        self.byte.open();
        self.end.wait().result.expect("the gate is open");
    }
}

fn after(event: Arc<dyn Event>) -> Dependency {
    Dependency { event, kind: DependencyKind::Data }
}

fn commands_of_a_long_queue_come_after_what_they_depend_on() {
    const NUMBER: Layout = Layout::new::<u32>();
    for device in devices_with_host_memory() {
        let [affine] = kernels(&device, ["affine"]);
        let number = device.memory().allocate(UsmKind::Host, NUMBER, true).expect("there is memory").cast::<u32>();
        for queue in [in_order(&device), out_of_order(&device)] {
            let other = out_of_order(&device);
            // SAFETY: no command uses it.
            let mut expected = unsafe { number.read() };
            let counter = Arc::new(Counter::default());
            let gate = Gate::new(&device, &queue);
            let mut last = gate.event.clone();
            for link in 0..MANY {
                let summand = link as u32;
                expected = expected.wrapping_mul(3).wrapping_add(summand);
                let command =
                    launch_with(&affine, "affine", &Affine { values: number.as_ptr(), factor: 3, summand }, 1);
                // Now and then on another queue.
                let queue = if link % 5000 == 4999 { &other } else { &queue };
                // SAFETY: the number lives until all commands have ended, each of which comes after the one before.
                last = unsafe { queue.issue(command, &[after(last)], counter.clone()) }.expect("accepted");
            }
            gate.open();
            counter.wait_for(MANY);
            // SAFETY: all commands have ended.
            assert_eq!(unsafe { number.read() }, expected);
        }
        // SAFETY: allocated above.
        unsafe { device.memory().free(number.cast(), UsmKind::Host, NUMBER) };
    }
}

fn launches_of_a_long_queue_have_panic_records_of_their_own() {
    for device in devices_with_host_memory() {
        let [failing, empty] = kernels(&device, ["failing", "empty"]);
        for queue in [in_order(&device), out_of_order(&device)] {
            let counter = Arc::new(Counter::default());
            let gate = Gate::new(&device, &queue);
            for number in 0..MANY {
                let (kernel, name) = if number % 2 == 0 { (&failing, "failing") } else { (&empty, "empty") };
                let behind = [after(gate.event.clone())];
                // SAFETY: the kernels use no memory.
                unsafe { queue.issue(launch(kernel, name, 1), &behind, counter.clone()) }.expect("accepted");
            }
            gate.open();
            counter.wait_for(MANY);
            assert_eq!(counter.n_panicked.load(Ordering::Relaxed), MANY / 2);
        }
    }
}
