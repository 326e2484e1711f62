//! How many commands of a queue its backend has at a time.
//!
//! A backend says how many it takes ([`QueueInfo::most_unfinished`](oxisycl_backend::QueueInfo::most_unfinished)), and how many of them may
//! print ([`MOST_PRINTING`](oxisycl_backend::MOST_PRINTING)). A command takes its places last, when nothing else keeps it from being issued.
//! The command gives its places back when the backend has reported its end, before code of users runs because of that. It also gives them
//! back when the backend has refused it.
//!
//! Invariants:
//! - A command that has a place is issued, is about to be issued, or waits for a place of a kind later in the [list](Place). So places are
//!   given back without help of commands that have none.
//! - Places are given in the order in which they were asked for.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;

use super::node::Node;

/// The kinds of places that a command may need, in the order in which they are taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Place {
    /// Among the launches that may print.
    Printing,
    /// Among all commands.
    Issued,
}

impl Place {
    pub(super) const ALL: [Self; 2] = [Self::Printing, Self::Issued];

    /// The kind in a set of kinds.
    pub(super) const fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// For how many waiting commands memory is kept.
const KEPT: usize = 256;

/// The places of one kind.
pub(super) struct Places {
    /// `None` where there is room for any number.
    state: Option<Mutex<State>>,
}

struct State {
    n_free: usize,
    waiting: VecDeque<Arc<Node>>,
}

impl Places {
    /// So many places; [`usize::MAX`] is any number.
    pub(super) fn new(most: usize) -> Self {
        debug_assert!(most > 0, "a backend takes commands");
        let state = State { n_free: most, waiting: VecDeque::new() };
        Self { state: (most != usize::MAX).then(|| Mutex::new(state)) }
    }

    /// Whether there is room for any number.
    pub(super) fn are_unlimited(&self) -> bool {
        self.state.is_none()
    }

    /// Takes a place if one is free.
    pub(super) fn try_take(&self) -> bool {
        let Some(state) = &self.state else { return true };
        let mut state = state.lock();
        let has_place = state.n_free > 0;
        state.n_free -= usize::from(has_place);
        has_place
    }

    /// Takes a place for `node`, or has it wait for one: who gives the place back resumes it.
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

    /// Gives a place back. The node that has it from now on is to be resumed.
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
