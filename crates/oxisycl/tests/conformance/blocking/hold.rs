use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use oxisycl::prelude::*;
use oxisycl::simulated::SimulatedControl;
use oxisycl::usm::UsmSlice;
use oxisycl::{Aspect, BackendKind};

use crate::harness::Env;
use crate::support::{Gate, iota};

/// Ways to keep a command from ending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// The command is a host task, so the runtime keeps what depends on it from the device.
    HostTask,
    /// The device has it and does not end it.
    Device,
}

/// The ways to hold back commands of the device under test. A host task can keep any device waiting. Each device can also be kept from
/// ending a command, except simulated ones that the test does not control.
pub(crate) fn ways(env: &Env) -> &'static [Way] {
    let spins = env.device().backend() != BackendKind::Simulated && env.device().has(Aspect::UsmHostAllocations);
    let has_way = env.is_host() || env.control().is_some() || spins;
    if has_way { &[Way::HostTask, Way::Device] } else { &[Way::HostTask] }
}

/// A pending command that ends once this is opened or dropped. Only one at a time may hold the device itself.
pub(crate) struct Hold {
    event: Event,
    gate: Option<Gate>,
    ticket: Option<usize>,
    control: Option<SimulatedControl>,
    /// What a kernel on a device of its own looks at.
    flag: Option<UsmSlice<u32>>,
}

/// Kernels with a higher ticket than this one spin.
static OPENED: AtomicUsize = AtomicUsize::new(0);
static TICKETS: AtomicUsize = AtomicUsize::new(0);

impl Hold {
    /// A command that keeps its queue busy and nothing else; on an in-order queue everything after it is held.
    pub(crate) fn new(env: &Env, way: Way, queue: &Queue) -> Self {
        Self::with(env, way, queue, |_| {})
    }

    /// A command that writes the buffer.
    pub(crate) fn writing(env: &Env, way: Way, queue: &Queue, buffer: &Buffer<i32, 1>) -> Self {
        Self::with(env, way, queue, |cg| {
            cg.access(buffer, ReadWrite);
        })
    }

    fn with(env: &Env, way: Way, queue: &Queue, record: impl for<'cg> FnOnce(&mut Handler<'cg>)) -> Self {
        if way == Way::HostTask {
            let gate = Gate::new(queue, record);
            return Self { event: gate.event().clone(), gate: Some(gate), ticket: None, control: None, flag: None };
        }
        let control = env.control();
        if !env.is_host() && control.is_none() {
            return Self::spinning(queue, record);
        }
        if let Some(control) = &control {
            control.pause(0);
        }
        let ticket = control.is_none().then(|| 1 + TICKETS.fetch_add(1, Ordering::SeqCst));
        let submitted = queue.submit(|cg| {
            record(cg);
            cg.single_task(move |_| {
                while ticket.is_some_and(|ticket| OPENED.load(Ordering::SeqCst) < ticket) {
                    std::thread::yield_now();
                }
            })
        });
        Self { event: submitted.unwrap(), gate: None, ticket, control, flag: None }
    }

    /// A kernel that looks at memory of the host until it finds something there.
    fn spinning(queue: &Queue, record: impl for<'cg> FnOnce(&mut Handler<'cg>)) -> Self {
        let mut flag = queue.malloc_host::<u32>(1).unwrap();
        // SAFETY: no command uses the memory yet.
        unsafe { flag.as_mut_slice() }.unwrap()[0] = 0;
        let pointer = flag.pointer();
        let submitted = queue.submit(|cg| {
            record(cg);
            cg.single_task(move |_| {
                // SAFETY: the allocation outlives the command; each access of it is volatile.
                while unsafe { pointer.as_ptr().read_volatile() } == 0 {}
            })
        });
        Self { event: submitted.unwrap(), gate: None, ticket: None, control: None, flag: Some(flag) }
    }

    pub(crate) fn event(&self) -> &Event {
        &self.event
    }

    /// Lets the command end, which nothing has done before.
    #[track_caller]
    pub(crate) fn open(self) {
        assert!(!self.event.is_complete(), "nothing let the command go");
    }

    /// Lets the command end some time later.
    pub(crate) fn open_later(self) {
        assert!(!self.event.is_complete(), "nothing let the command go");
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(20));
            drop(self);
        });
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.gate = None;
        if let Some(ticket) = self.ticket {
            OPENED.fetch_max(ticket, Ordering::SeqCst);
        }
        if let Some(control) = &self.control {
            control.resume(0);
        }
        if let Some(flag) = &self.flag {
            // SAFETY: the allocation is alive, and the kernel only looks at it.
            unsafe { flag.as_ptr().write_volatile(1) };
        }
    }
}

/// A buffer of eight elements.
pub(crate) fn eight() -> Buffer<i32, 1> {
    Buffer::from_vec(iota(8)).unwrap()
}
