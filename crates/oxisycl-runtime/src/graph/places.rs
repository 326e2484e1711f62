//! How many commands of a queue its backend has at a time.
//!
//! A backend says how many it takes ([`QueueInfo::max_unfinished`](oxisycl_backend::QueueInfo::max_unfinished)), and how many of them may
//! print ([`MAX_PRINTING`](oxisycl_backend::MAX_PRINTING)). A command takes its places last, when nothing else keeps it from being issued.
//! The command gives its places back when the backend has reported its end, before code of users runs because of that. It also gives them
//! back when the backend has refused it.
//!
//! Invariants:
//! - A command that has a place is issued, is about to be issued, or waits for a place of a kind later in the [list](Place). So places are
//!   given back without help of commands that have none.
//! - Places are given in the order in which they were asked for.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use oxisycl_backend::Command;
use parking_lot::Mutex;

use super::gate::Phase;
use super::node::Node;

/// The kinds of places that a command may need, in the order in which they are taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Place {
    /// A place among the unfinished launches that may print.
    Printing,
    /// A place among all unfinished commands of the queue.
    Issued,
}

impl Place {
    pub(super) const ALL: [Self; 2] = [Self::Printing, Self::Issued];

    /// The kind's bit in a set of kinds.
    pub(super) const fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// Takes the places that a command needs to be issued. Returns the kind of the first one that is not free.
#[inline]
fn take_places(node: &Node, command: &Command) -> Option<Place> {
    while let Some(place) = missing_place(node, command) {
        if !node.shared.places(place).try_take() {
            return Some(place);
        }
        node.set_place(place);
    }
    None
}

#[inline]
fn missing_place(node: &Node, command: &Command) -> Option<Place> {
    let is_needed = |place| match place {
        Place::Printing => match command {
            Command::Kernel(kernel) => kernel.code.as_ref().is_some_and(|code| code.info().may_print),
            _ => false,
        },
        Place::Issued => !node.shared.places(place).are_unlimited(),
    };
    Place::ALL.into_iter().find(|&place| is_needed(place) && !node.has_place(place))
}

/// What keeps a command from being issued whose dependencies do not.
pub(super) enum Obstacle {
    /// A place of that kind is not free.
    Place(Place),
    /// The gate of its device is closed.
    Gate,
}

/// Takes what a command needs to be issued. Returns the first that it has to wait for.
#[inline]
pub(super) fn obstacle(node: &Node, command: &Command) -> Option<Obstacle> {
    if let Some(place) = take_places(node, command) {
        return Some(Obstacle::Place(place));
    }
    let gate = node.shared.gate.as_ref()?;
    // Copies and waits do not keep a driver from loading code.
    let may_run_kernels = match command {
        Command::Kernel(_) | Command::Fill(_) => true,
        Command::Native(native) => native.may_run_kernels(),
        _ => false,
    };
    if !may_run_kernels {
        return None;
    }
    match gate.try_enter() {
        Some(phase) => node.set_passed(phase),
        None => return Some(Obstacle::Gate),
    }
    None
}

/// Queues a delayed node for what it needs. Returns true instead if it can go on, or has to ask again.
pub(super) fn wait_for(node: &Arc<Node>, obstacle: Obstacle) -> bool {
    match obstacle {
        Obstacle::Place(place) => {
            let has_place = node.shared.places(place).take_or_wait(node);
            if has_place {
                node.set_place(place);
            }
            has_place
        }
        Obstacle::Gate => !node.shared.gate.as_ref().is_some_and(|gate| gate.wait(node.clone())),
    }
}

impl Node {
    /// Records that the command has passed the gate of its device.
    pub(super) fn set_passed(&self, phase: Phase) {
        self.phase.store(phase as u8 + 1, Ordering::Relaxed);
    }

    /// Tells the gate of the device that the command has ended or was refused, if it has passed.
    #[inline]
    pub(super) fn leave_gate(&self) {
        let Some(gate) = &self.shared.gate else { return };
        if self.phase.load(Ordering::Relaxed) != 0 {
            let phase = self.phase.swap(0, Ordering::Relaxed);
            gate.leave(usize::from(phase) - 1);
        }
    }
}

/// The number of waiting commands for which the queue keeps memory.
const KEPT: usize = 256;

/// The places of one kind.
pub(super) struct Places {
    /// `None` if the number of places is unlimited.
    state: Option<Mutex<State>>,
}

struct State {
    n_free: usize,
    waiting: VecDeque<Arc<Node>>,
}

impl Places {
    /// `most` places; [`usize::MAX`] is an unlimited number.
    pub(super) fn new(most: usize) -> Self {
        debug_assert!(most > 0, "a backend takes commands");
        let state = State { n_free: most, waiting: VecDeque::new() };
        Self { state: (most != usize::MAX).then(|| Mutex::new(state)) }
    }

    /// Whether the number of places is unlimited.
    pub(super) fn are_unlimited(&self) -> bool {
        self.state.is_none()
    }

    /// Takes a place if one is free. Returns whether one was.
    pub(super) fn try_take(&self) -> bool {
        let Some(state) = &self.state else { return true };
        let mut state = state.lock();
        let has_place = state.n_free > 0;
        state.n_free -= usize::from(has_place);
        has_place
    }

    /// Takes a place for `node` and returns true, or queues the node for one. The thread that gives a place back then resumes it.
    pub(super) fn take_or_wait(&self, node: &Arc<Node>) -> bool {
        let Some(state) = &self.state else { return true };
        let mut state = state.lock();
        if state.n_free == 0 {
            state.waiting.push_back(node.clone());
            return false;
        }
        state.n_free -= 1;
        true
    }

    /// Gives a place back. If a node waits for one, the place passes to that node, which is returned for the caller to resume.
    pub(super) fn give_back(&self) -> Option<Arc<Node>> {
        let mut state = self.state.as_ref()?.lock();
        let next = state.waiting.pop_front();
        if next.is_none() {
            state.n_free += 1;
            state.waiting.shrink_to(KEPT);
        }
        next
    }
}
