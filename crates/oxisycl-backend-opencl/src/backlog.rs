//! Commands that the driver does not have yet.
//!
//! A driver needs memory for each command that it has: Intel's driver for CPUs takes 2.3 KB for a launch, and the panic record is 1 KiB more.
//! So the driver has at most [`DEPTH`] commands of a queue. Later ones are held back. The polling thread hands them over when earlier ones
//! are over.
//!
//! Invariants:
//! - The tasks that are held back are the last ones of the lane's ring. They are handed over in their order.
//! - A task that the driver has waits only for tasks that the driver has. Tasks of other lanes are handed over before.
//! - Tasks are held back and handed over with the ring locked.

use std::collections::VecDeque;
use std::sync::Arc;

use oxisycl_backend::Command;
use oxisycl_backend::lane::{Driver, Ring};
use smallvec::SmallVec;

use crate::emitter::Emitter;
use crate::error::{ClError, Result, check};
use crate::execute;
use crate::issued::Kept;
use crate::lane::{ClLane, ClTask, OpenCl, Waits};
use crate::sys::{Handle, Object, code};

/// The most commands of a queue that the driver has. The shortest ones take it 10 ms, and polls are 0.5 ms apart at most.
pub(crate) const DEPTH: usize = if cfg!(test) { 32 } else { 4096 };

/// What a lane's ring keeps of the tasks that are held back.
pub(crate) struct Backlog {
    /// What each of them waits for, unless that is the order of an in-order queue alone.
    waits: VecDeque<Option<Box<Before>>>,
    depth: usize,
    /// Where the next look at tasks without an order begins, among those that the driver has.
    pub(crate) next: usize,
}

impl Default for Backlog {
    fn default() -> Self {
        Self { waits: VecDeque::new(), depth: DEPTH, next: 0 }
    }
}

impl Backlog {
    /// How many tasks are held back.
    pub(crate) fn len(&self) -> usize {
        self.waits.len()
    }
}

/// What a task waits for that is held back.
#[derive(Default)]
struct Before {
    /// Events of tasks that the driver has, retained.
    events: SmallVec<[Object; 1]>,
    /// Tasks of the lane that were held back, too, when the task was issued.
    tasks: SmallVec<[Arc<ClTask>; 1]>,
}

/// How many tasks of the ring the driver has.
pub(crate) fn n_given(ring: &Ring<OpenCl>) -> usize {
    ring.pending.len() - ring.part.len()
}

/// Whether the next task is held back.
pub(crate) fn is_full(ring: &Ring<OpenCl>) -> bool {
    ring.part.len() > 0 || ring.pending.len() >= ring.part.depth
}

/// Holds back a task that is about to be put on the ring.
pub(crate) fn hold(lane: &ClLane, ring: &mut Ring<OpenCl>, task: &ClTask, waits: &Waits<'_>) -> Result<()> {
    let mut before = Before::default();
    for dependency in &waits.open {
        if dependency.issued.is_held_back() {
            let n_behind = ring.last().since(dependency.place().position);
            before.tasks.push(ring.pending[ring.pending.len() - 1 - n_behind].clone());
            continue;
        }
        for event in &dependency.issued.emitted().events {
            // SAFETY: the event lives as long as it is borrowed (`Issued::emitted`).
            let retained = check("clRetainEvent", unsafe { (lane.device.context.functions.clRetainEvent)(event.0) });
            if let Err(error) = retained {
                before.release(lane);
                return Err(error);
            }
            before.events.push(*event);
        }
    }
    task.issued.hold_back();
    let waits_for_queue = lane.keeps_order && waits.follows && !task.queue.options.in_order;
    let has_waits = waits_for_queue || !before.events.is_empty() || !before.tasks.is_empty();
    ring.part.waits.push_back(has_waits.then(|| Box::new(before)));
    Ok(())
}

impl Before {
    fn release(&self, lane: &ClLane) {
        for event in &self.events {
            // SAFETY: retained by `hold`, and released once.
            unsafe { lane.device.context.release_event(*event) };
        }
    }
}

/// Hands over as many tasks as the driver may have. Whether there were any.
pub(crate) fn refill(lane: &ClLane) -> bool {
    hand_over(lane, |ring| n_given(ring) < ring.part.depth)
}

/// Hands tasks over, in their order, while `goes_on` holds. Whether there were any. A task that the driver refuses ends with the error.
pub(crate) fn hand_over(lane: &ClLane, goes_on: impl Fn(&Ring<OpenCl>) -> bool) -> bool {
    let mut progress = false;
    let mut ring = lane.ring();
    while ring.part.len() > 0 && goes_on(&ring) {
        let task = ring.pending[n_given(&ring)].clone();
        let mut refusal = lane.device.context.is_lost().then_some(LOST);
        if refusal.is_none() && lacks_record(&task) && !ring.give_record(&task) {
            match lane.ring_after_growth(ring) {
                // Another thread may have handed the task over meanwhile.
                Ok(locked) => {
                    ring = locked;
                    continue;
                }
                Err(_) => ring = lane.ring(),
            }
            if !task.issued.is_held_back() {
                continue;
            }
            refusal = Some(NO_RECORD);
        }
        let before = ring.part.waits.pop_front().flatten();
        let given = refusal.map_or_else(|| give_held_back(lane, &task, before.as_deref()), Err);
        if let Err(error) = given {
            task.set_error(error);
        }
        task.issued.hand_over();
        // Threads that submit may wait for the lock.
        drop(ring);
        if let Some(before) = before {
            before.release(lane);
        }
        drop(task);
        progress = true;
        ring = lane.ring();
    }
    progress
}

/// The error of what is held back when the device is lost.
const LOST: ClError = ClError { call: "the command", code: code::DEVICE_NOT_AVAILABLE };
/// There is no memory for panic records.
const NO_RECORD: ClError = ClError { call: "allocating a panic record", code: code::MEM_OBJECT_ALLOCATION_FAILURE };

fn lacks_record(task: &ClTask) -> bool {
    let Command::Kernel(command) = &task.command else { return false };
    task.record().is_none() && OpenCl::kernel_of(command).is_some_and(|kernel| kernel.may_panic)
}

fn give_held_back(lane: &ClLane, task: &ClTask, before: Option<&Before>) -> Result<()> {
    let Some(before) = before else { return give(lane, task, SmallVec::new(), task.queue.options.in_order) };
    let borrowed: Vec<_> = before.tasks.iter().map(|task| task.issued.emitted()).collect();
    let events = before.events.iter().chain(borrowed.iter().flat_map(|emitted| &emitted.events));
    give(lane, task, events.map(|event| event.0).collect(), true)
}

/// Gives a task to the driver. `events` live until then. On an error the driver has nothing of it.
pub(crate) fn give(lane: &ClLane, task: &ClTask, events: SmallVec<[Handle; 4]>, follows: bool) -> Result<()> {
    let (context, raw) = (&lane.device.context, lane.stream.raw);
    let mut emitter = Emitter::new(context, raw, lane.keeps_order, task.queue.options.profiling, events);
    let mut kept = Kept::default();
    let emitted = execute::emit(task, follows, &mut emitter, &mut kept);
    let has_begun = emitter.has_begun();
    if let Err(error) = emitted {
        if !has_begun {
            return Err(error);
        }
        task.set_error(error);
    }
    task.issued.set(emitter.finish(), kept);
    if has_begun {
        lane.stream.set_unflushed();
    }
    Ok(())
}

/// Hands over a task and those before it, so that a command of another queue can wait for it.
pub(crate) fn hand_over_task(task: &ClTask) {
    if task.issued.is_held_back() {
        hand_over(task.place().lane, |_| task.issued.is_held_back());
    }
}

/// Hands everything over, and holds nothing back from now on. For a driver's queue that other code may use.
pub(crate) fn close(lane: &ClLane) {
    lane.ring().part.depth = usize::MAX;
    hand_over(lane, |_| true);
}
