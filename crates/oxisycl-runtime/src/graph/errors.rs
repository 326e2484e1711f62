//! Asynchronous errors: what failed after `submit` returned, until somebody is told (SYCL 2020 section 4.13.1).
//!
//! Each failure is delivered once to a handler: the queue's, else the context's. Without a handler it is one line on standard
//! error, unless the program already got it as the result of a wait. Nothing is lost: errors of a queue that is gone, and errors
//! left at the end of the process, are delivered, too.

use std::sync::atomic::Ordering;
use std::sync::{Arc, LazyLock, Weak};

use parking_lot::Mutex;

use super::Node;
use super::start::spawn_detached;
use crate::Error;

/// Receives asynchronous errors, oldest first.
pub type AsyncHandler = Arc<dyn Fn(Vec<Error>) + Send + Sync>;

/// How many undelivered errors of commands that merely depended on a failed one are kept per queue.
const MAX_DEPENDENT_ERRORS: usize = 256;

/// The undelivered asynchronous errors of one queue.
pub struct AsyncErrors {
    state: Mutex<State>,
    handler: Option<AsyncHandler>,
    is_silent: bool,
}

#[derive(Default)]
struct State {
    failed: Vec<Arc<Node>>,
    n_dependent: usize,
    n_omitted: usize,
    orphaned: bool,
}

static ALL: LazyLock<Mutex<Vec<Weak<AsyncErrors>>>> = LazyLock::new(Mutex::default);

impl AsyncErrors {
    /// An empty list whose errors go to `handler`.
    pub fn new(handler: Option<AsyncHandler>) -> Arc<Self> {
        let errors = Arc::new(Self { state: Mutex::default(), handler, is_silent: false });
        let mut all = ALL.lock();
        if all.len() == all.capacity() {
            all.retain(|errors| errors.strong_count() > 0);
        }
        all.push(Arc::downgrade(&errors));
        errors
    }

    /// A list that keeps nothing, for commands whose failure is always told by the commands that depend on them.
    pub fn silent() -> Arc<Self> {
        Arc::new(Self { state: Mutex::default(), handler: None, is_silent: true })
    }

    /// Adds a failed command.
    pub(super) fn push(self: &Arc<Self>, node: &Arc<Node>, is_dependent: bool) {
        if self.is_silent {
            return;
        }
        let orphaned = {
            let mut state = self.state.lock();
            if is_dependent && state.n_dependent >= MAX_DEPENDENT_ERRORS {
                state.n_omitted += 1;
            } else {
                state.n_dependent += usize::from(is_dependent);
                state.failed.push(node.clone());
            }
            state.orphaned
        };
        if orphaned {
            self.deliver_later();
        }
    }

    /// The queue is gone: errors, present and future, are delivered by a thread of the runtime.
    pub fn orphan(self: &Arc<Self>) {
        let any = {
            let mut state = self.state.lock();
            state.orphaned = true;
            !state.failed.is_empty()
        };
        if any {
            self.deliver_later();
        }
    }

    fn deliver_later(self: &Arc<Self>) {
        let errors = self.clone();
        spawn_detached(Box::new(move || {
            errors.deliver();
        }));
    }

    /// The first error that nobody has seen yet, which now counts as seen. It stays undelivered for the handler, if there is one.
    pub fn observe_first(&self) -> Option<Error> {
        let mut state = self.state.lock();
        let first = state.failed.iter().find(|node| !node.observed.swap(true, Ordering::Relaxed)).cloned();
        if first.is_some() && self.handler.is_none() {
            // Whoever waits has been told that the queue failed; the rest is told with it.
            for node in &state.failed {
                node.observed.store(true, Ordering::Relaxed);
            }
            *state = State { orphaned: state.orphaned, ..State::default() };
        }
        drop(state);
        first.and_then(|node| node.failure()).map(|failure| Error::from(&failure))
    }

    /// Takes all undelivered errors, oldest first.
    pub fn take(&self) -> Vec<Error> {
        let taken = {
            let mut state = self.state.lock();
            let orphaned = state.orphaned;
            std::mem::replace(&mut *state, State { orphaned, ..State::default() })
        };
        let mut errors = Vec::with_capacity(taken.failed.len());
        for node in &taken.failed {
            // Without a handler, what a wait already returned is not told again.
            if node.observed.swap(true, Ordering::Relaxed) && self.handler.is_none() {
                continue;
            }
            errors.extend(node.failure().map(|failure| Error::from(&failure)));
        }
        if taken.n_omitted > 0 {
            let text = format!("{} more commands did not run because a command they depend on failed", taken.n_omitted);
            errors.push(Error::new(oxisycl_types::ErrorCode::Kernel, text));
        }
        errors
    }

    /// Gives all undelivered errors to the handler, or to standard error. Returns whether there were any.
    pub fn deliver(&self) -> bool {
        let errors = self.take();
        if errors.is_empty() {
            return false;
        }
        match &self.handler {
            Some(handler) => {
                let handler = handler.clone();
                // A handler that panics must not take a thread of the runtime down, nor hide the errors.
                let kept = errors.clone();
                if let Err(payload) = std::panic::catch_unwind(std::panic::AssertUnwindSafe(move || handler(errors))) {
                    // A payload's destructor may panic, too.
                    std::mem::forget(payload);
                    print(&kept);
                }
            }
            None => print(&errors),
        }
        true
    }
}

fn print(errors: &[Error]) {
    for error in errors {
        eprintln!("oxisycl: {error:?}");
    }
}

/// Prints every error of the process that nobody has been told of. For the end of the process.
pub fn report_unobserved_errors() {
    let all: Vec<_> = ALL.lock().iter().filter_map(Weak::upgrade).collect();
    for errors in all {
        let unseen: Vec<_> = errors.take();
        print(&unseen);
    }
}
