//! Asynchronous errors: what failed after `submit` returned, until that is reported (SYCL 2020 section 4.13.1).
//!
//! Each failure is delivered once to a handler: the queue's, else the context's. Without a handler it is one line on standard
//! error, unless the program already got it as the result of a wait. Nothing is lost: errors of a queue that is gone, and errors
//! left at the end of the process, are delivered, too.
//!
//! Nothing is delivered twice either. Without a handler, an error of a queue that is gone is *unclaimed* while its node
//! exists, since something can still return it. It is printed when the node is dropped and nothing has returned it.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Weak};
use std::time::{Duration, Instant};

use oxisycl_backend::{CommandFailure, FailureKind};
use parking_lot::Mutex;

use super::Node;
use super::deferred_drops::{call_user, discard};
use super::host_executor::spawn_detached;
use crate::output::report;
use crate::plug_ins::Loaded;
use crate::{Error, fork};

/// Receives asynchronous errors, oldest first.
pub type AsyncHandler = Arc<dyn Fn(Vec<Error>) + Send + Sync>;

/// How many undelivered errors of commands that merely depended on a failed one are kept per queue.
const MAX_DEPENDENT_ERRORS: usize = 256;

/// The undelivered asynchronous errors of one queue.
pub struct AsyncErrors {
    state: Mutex<State>,
    handler: Option<AsyncHandler>,
    is_silent: bool,
    /// Of the handler. Behind it, so that it is dropped later.
    library: Option<Loaded>,
}

#[derive(Default)]
struct State {
    failed: Vec<Arc<Node>>,
    /// Failed nodes of a dropped queue without a handler. The references are weak, since nodes must not keep each other and this list
    /// alive.
    unclaimed: Vec<Weak<Node>>,
    n_dependent: usize,
    n_omitted: usize,
    orphaned: bool,
}

/// The number of deliveries in progress on threads of the runtime. The end of the process waits for them.
static N_DELIVERING: AtomicUsize = AtomicUsize::new(0);

/// The number of unclaimed errors, including those that are about to be printed but do not count as deliveries yet. A list with omitted
/// errors counts once, since only its own drop reports them after its queue and all nodes are gone.
static N_UNCLAIMED: AtomicUsize = AtomicUsize::new(0);

/// Whether a command has panicked and the program has not seen the panic.
static ANY_UNSEEN_PANIC: AtomicBool = AtomicBool::new(false);

/// How long the end of the process waits for a handler.
const LAST_DELIVERY: Duration = Duration::from_secs(2);

static ALL: LazyLock<Mutex<Vec<Weak<AsyncErrors>>>> = LazyLock::new(Mutex::default);

impl AsyncErrors {
    /// An empty list whose errors go to `handler`.
    pub fn new(handler: Option<AsyncHandler>) -> Arc<Self> {
        let library = handler.as_deref().and_then(Loaded::with_methods);
        let errors = Arc::new(Self { state: Mutex::default(), handler, is_silent: false, library });
        let mut all = ALL.lock();
        if all.len() == all.capacity() {
            all.retain(|errors| errors.strong_count() > 0);
        }
        all.push(Arc::downgrade(&errors));
        errors
    }

    /// A list that keeps nothing, for commands whose failure is always reported by the commands that depend on them.
    pub fn silent() -> Arc<Self> {
        Arc::new(Self { state: Mutex::default(), handler: None, is_silent: true, library: None })
    }

    /// Adds a failed command.
    pub(super) fn push(self: &Arc<Self>, node: &Arc<Node>, is_dependent: bool) {
        if self.is_silent {
            return;
        }
        let orphaned = {
            let mut state = self.state.lock();
            if is_dependent && state.n_dependent >= MAX_DEPENDENT_ERRORS {
                if state.n_omitted == 0 {
                    N_UNCLAIMED.fetch_add(1, Ordering::AcqRel);
                }
                state.n_omitted += 1;
            } else {
                state.n_dependent += usize::from(is_dependent);
                if state.orphaned && self.handler.is_none() {
                    state.list_unclaimed(node);
                } else {
                    state.failed.push(node.clone());
                }
            }
            state.orphaned
        };
        if orphaned && self.handler.is_some() {
            self.deliver_later();
        }
    }

    /// Marks the queue as dropped. From now on a thread of the runtime delivers its errors, present and future. With a handler this happens
    /// at once, else when nothing can return them any more.
    pub fn orphan(self: &Arc<Self>) {
        let mut state = self.state.lock();
        state.orphaned = true;
        if self.handler.is_some() {
            let any = !state.failed.is_empty();
            drop(state);
            if any {
                self.deliver_later();
            }
            return;
        }
        let failed = std::mem::take(&mut state.failed);
        failed.iter().for_each(|node| state.list_unclaimed(node));
        drop(state);
        // Failures of which this was the last reference are reported now.
        drop(failed);
    }

    fn deliver_later(self: &Arc<Self>) {
        let errors = self.clone();
        N_DELIVERING.fetch_add(1, Ordering::AcqRel);
        spawn_detached(Box::new(move || {
            errors.deliver();
            N_DELIVERING.fetch_sub(1, Ordering::AcqRel);
        }));
    }

    /// Returns the first error that the program has not seen yet, and marks it as seen. With a handler it stays undelivered; without one it
    /// counts as delivered.
    pub fn take_first_unseen(&self) -> Option<Error> {
        let mut state = self.state.lock();
        let position = state.failed.iter().position(|node| !node.observed.swap(true, Ordering::Relaxed))?;
        let node = if self.handler.is_some() { state.failed[position].clone() } else { state.failed.remove(position) };
        if self.handler.is_none() {
            // What was seen otherwise is of no more use to anyone.
            state.failed.retain(|node| !node.observed.load(Ordering::Relaxed));
            state.n_dependent = state.n_dependent.min(state.failed.len());
        }
        drop(state);
        let failure = node.recorded_failure()?;
        failure.mark_seen();
        Some(Error::from(&failure))
    }

    /// Removes and returns all undelivered errors, oldest first.
    pub fn take(&self) -> Vec<Error> {
        self.take_failures().hand_over()
    }

    fn take_failures(&self) -> Failures {
        let taken = {
            let mut state = self.state.lock();
            let orphaned = state.orphaned;
            std::mem::replace(&mut *state, State { orphaned, ..State::default() })
        };
        if taken.n_omitted > 0 {
            N_UNCLAIMED.fetch_sub(1, Ordering::AcqRel);
        }
        let mut failures = Failures { known: Vec::with_capacity(taken.failed.len()), n_omitted: taken.n_omitted };
        let unclaimed: Vec<_> = taken.unclaimed.iter().filter_map(Weak::upgrade).collect();
        unclaimed.iter().for_each(|node| node.claim());
        for node in unclaimed.iter().chain(&taken.failed) {
            // Without a handler, what a wait already returned is not reported again.
            if node.observed.swap(true, Ordering::Relaxed) && self.handler.is_none() {
                continue;
            }
            failures.known.extend(node.recorded_failure());
        }
        failures
    }

    /// Gives all undelivered errors to the handler, or to standard error. Returns whether there were any.
    pub fn deliver(&self) -> bool {
        let failures = self.take_failures();
        if failures.is_empty() {
            return false;
        }
        match &self.handler {
            Some(handler) => {
                let errors = failures.hand_over();
                let handler = handler.clone();
                // A handler that panics must not take a thread of the runtime down, nor hide the errors.
                let kept = errors.clone();
                if let Err(payload) = std::panic::catch_unwind(std::panic::AssertUnwindSafe(move || handler(errors))) {
                    discard(payload);
                    print(&kept);
                }
            }
            None => failures.print(),
        }
        true
    }
}

/// Failures that were removed from a list, oldest first.
struct Failures {
    known: Vec<CommandFailure>,
    /// The number of further failures that were only counted.
    n_omitted: usize,
}

impl Failures {
    fn is_empty(&self) -> bool {
        self.known.is_empty() && self.n_omitted == 0
    }

    /// Returns the failures as errors for the program, and marks them as delivered.
    fn hand_over(&self) -> Vec<Error> {
        self.known.iter().for_each(CommandFailure::mark_seen);
        self.errors()
    }

    fn errors(&self) -> Vec<Error> {
        self.known.iter().map(Error::from).chain(omitted(self.n_omitted)).collect()
    }

    /// Prints one line on standard error for each failure.
    fn print(&self) {
        self.known.iter().for_each(note_unseen);
        print(&self.errors());
    }
}

/// Called when `failure` is printed. If the program has not seen it and it is a panic, the process may exit with status 101.
fn note_unseen(failure: &CommandFailure) {
    if matches!(failure.kind(), FailureKind::Panic { .. }) && !failure.is_seen() {
        ANY_UNSEEN_PANIC.store(true, Ordering::Release);
    }
}

impl State {
    /// Lists `node` as unclaimed, so that its drop reports the failure unless the program has seen it by then.
    fn list_unclaimed(&mut self, node: &Arc<Node>) {
        if self.unclaimed.len() == self.unclaimed.capacity() {
            self.unclaimed.retain(|node| node.strong_count() > 0);
        }
        self.unclaimed.push(Arc::downgrade(node));
        node.mark_unclaimed();
    }
}

impl Drop for AsyncErrors {
    fn drop(&mut self) {
        let n_omitted = self.state.get_mut().n_omitted;
        // A forked child leaves its parent's to the parent.
        if !fork::is_child()
            && let Some(error) = omitted(n_omitted)
        {
            report_later(format!("{error:?}"));
        }
        if n_omitted > 0 {
            N_UNCLAIMED.fetch_sub(1, Ordering::AcqRel);
        }
        // What the handler captures is the user's, and may wait for commands that only this thread reports.
        if let Some(handler) = self.handler.take()
            && !fork::is_child()
        {
            let library = self.library.take();
            spawn_detached(Box::new(move || {
                call_user(|| drop(handler));
                drop(library);
            }));
        }
    }
}

/// The error that stands for `n` failures that were only counted. `None` if `n` is 0.
fn omitted(n: usize) -> Option<Error> {
    let text = || format!("{n} more commands did not run because a command they depend on failed");
    (n > 0).then(|| Error::new(oxisycl_types::ErrorCode::Kernel, text()))
}

impl Node {
    /// Marks the failure as unclaimed, after the queue was dropped. The drop of the node reports it if the program has not seen it by then.
    fn mark_unclaimed(&self) {
        if self.unclaimed.swap(fork::generation(), Ordering::AcqRel) == 0 {
            N_UNCLAIMED.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// Marks the failure as claimed: other code reports it.
    fn claim(&self) {
        if self.unclaimed.swap(0, Ordering::AcqRel) != 0 {
            N_UNCLAIMED.fetch_sub(1, Ordering::AcqRel);
        }
    }

    /// Called when the node is dropped: reports its failure if that is unclaimed and the program has not seen it.
    pub(super) fn report_if_unclaimed(&mut self) {
        let generation = std::mem::take(self.unclaimed.get_mut());
        if generation == 0 {
            return;
        }
        // A forked child leaves its parent's to the parent.
        if generation == fork::generation()
            && !self.observed.load(Ordering::Relaxed)
            && let Some(failure) = &self.inner.get_mut().failure
        {
            note_unseen(failure);
            report_later(format!("{:?}", Error::from(failure)));
        }
        N_UNCLAIMED.fetch_sub(1, Ordering::AcqRel);
    }
}

fn print(errors: &[Error]) {
    for error in errors {
        report(&format!("{error:?}"));
    }
}

/// Lines that a thread of the runtime is about to print, oldest first. One thread prints all of them.
struct Reports {
    texts: Vec<String>,
    is_printing: bool,
}

static REPORTS: Mutex<Reports> = Mutex::new(Reports { texts: Vec::new(), is_printing: false });

/// Has a thread of the runtime print one line on standard error. For use in `drop`, which never prints itself.
pub fn report_later(text: String) {
    if fork::is_child() {
        // The thread would be the parent's, and the lock may be held for ever.
        return report(&text);
    }
    N_DELIVERING.fetch_add(1, Ordering::AcqRel);
    let mut reports = REPORTS.lock();
    reports.texts.push(text);
    if !std::mem::replace(&mut reports.is_printing, true) {
        drop(reports);
        spawn_detached(Box::new(print_reports));
    }
}

fn print_reports() {
    loop {
        let texts = {
            let mut reports = REPORTS.lock();
            reports.is_printing = !reports.texts.is_empty();
            std::mem::take(&mut reports.texts)
        };
        if texts.is_empty() {
            return;
        }
        for text in texts {
            report(&text);
            N_DELIVERING.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

/// Prints every error of the process that the program has not seen, at the end of the process. Returns whether any error that was ever
/// printed was a command's panic that the program had not seen.
pub fn report_unseen_errors() -> bool {
    let began = Instant::now();
    // What is on its way to a handler is seen.
    while N_DELIVERING.load(Ordering::Acquire) > 0 && began.elapsed() <= LAST_DELIVERY {
        std::thread::yield_now();
    }
    loop {
        let all: Vec<_> = ALL.lock().iter().filter_map(Weak::upgrade).collect();
        for errors in all {
            errors.take_failures().print();
        }
        // In this order: what is unclaimed may become a delivery.
        let is_done = N_UNCLAIMED.load(Ordering::Acquire) == 0 && N_DELIVERING.load(Ordering::Acquire) == 0;
        if is_done || began.elapsed() > LAST_DELIVERY {
            return ANY_UNSEEN_PANIC.load(Ordering::Acquire);
        }
        std::thread::yield_now();
    }
}
