//! The control over recorded commands: which there are, and how and when they end.
//!
//! A [`Recorder`] is a handle on what the devices share. It decides when a command ends; that its dependencies end before it, and
//! what its failure means to others, is the record's own business.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::CompletionMode;
use super::images::RecordedLoad;
use super::recorded::{CommandState, Recorded};
use super::shared::{Ending, Shared, lock};
#[cfg(doc)]
use oxisycl_backend::Outcome;
use oxisycl_backend::{BackendError, FailureKind, KernelGroupLimits, MemoryId, QueueOptions};

/// Sees the commands of one [`RecordingBackend`](super::RecordingBackend) and ends them. Copies are the same recorder.
#[derive(Clone)]
pub struct Recorder(Arc<Shared>);

impl Recorder {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self(shared)
    }

    /// All commands so far.
    pub fn commands(&self) -> Vec<Recorded> {
        lock(&self.0.state).entries.iter().map(|entry| entry.recorded.clone()).collect()
    }

    /// The number of commands so far; also the index of the next one.
    pub fn len(&self) -> usize {
        lock(&self.0.state).entries.len()
    }

    /// Whether there were no commands yet.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// One command.
    #[track_caller]
    pub fn command(&self, index: usize) -> Recorded {
        let state = lock(&self.0.state);
        let n = state.entries.len();
        state.entries.get(index).unwrap_or_else(|| panic!("command {index} of {n}")).recorded.clone()
    }

    /// The options that each queue so far was made with.
    pub fn queue_options(&self) -> Vec<QueueOptions> {
        lock(&self.0.queues).clone()
    }

    /// Commands that have not ended.
    pub fn pending(&self) -> Vec<usize> {
        let state = lock(&self.0.state);
        let is_pending = |&index: &usize| state.entries[index].recorded.state == CommandState::Pending;
        (0..state.entries.len()).filter(is_pending).collect()
    }

    /// Commands that have not ended although everything they wait for has.
    pub fn ready(&self) -> Vec<usize> {
        lock(&self.0.state).ready.iter().copied().collect()
    }

    /// Carries a command out and ends it: well, unless it is a kernel that panics. Panics if the command has ended, or if
    /// something that it waits for has not.
    #[track_caller]
    pub fn complete(&self, index: usize) {
        self.0.assert_ready(index);
        self.0.end(index, Ending::Run);
    }

    /// [`complete`](Self::complete), unless the command has ended or waits for something. Returns whether it ended the command.
    pub fn try_complete(&self, index: usize) -> bool {
        self.0.is_ready(index) && self.0.end(index, Ending::Run)
    }

    /// Carries out and ends commands in the order of submission until none is left, those included that are submitted meanwhile.
    pub fn complete_all(&self) {
        loop {
            let first = lock(&self.0.state).ready.first().copied();
            match first {
                Some(index) => drop(self.0.end(index, Ending::Run)),
                None => return,
            }
        }
    }

    /// Ends a command with a failure, without carrying it out. Panics as [`complete`](Self::complete) does.
    #[track_caller]
    pub fn fail(&self, index: usize, kind: FailureKind) {
        self.0.assert_ready(index);
        self.0.end(index, Ending::Fail(kind));
    }

    /// [`fail`](Self::fail) with a failure of the device.
    #[track_caller]
    pub fn lose(&self, index: usize) {
        let error = BackendError::DeviceLost { device: "recording".to_owned(), reason: "the test says so".to_owned() };
        self.fail(index, FailureKind::Device(error));
    }

    /// From now on, commands whose dependencies fail are reported to have run already ([`Outcome::has_run`]).
    pub fn run_ahead(&self) {
        lock(&self.0.state).runs_ahead = true;
    }

    /// Every command is reported twice from now on.
    pub fn report_twice(&self) {
        self.0.reports.is_doubled.store(true, Ordering::Relaxed);
    }

    /// Holds the report of a command back, so that it comes late, and those of commands behind it come early.
    pub fn hold_report(&self, index: usize) {
        lock(&self.0.reports.held).insert(index);
    }

    /// Reports a command, if it has ended and its report was held back.
    pub fn release_report(&self, index: usize) {
        self.0.release_report(index);
    }

    /// Commands that have ended and were not reported. A command that is just being reported is one of them.
    pub fn missing_reports(&self) -> Vec<usize> {
        self.0.missing_reports()
    }

    /// Whether a command has ended, and its report waits for [`release_report`](Self::release_report).
    pub fn is_held_back(&self, index: usize) -> bool {
        self.0.reports.is_waiting(index)
    }

    /// A command's name, with its number.
    pub fn name(&self, index: usize) -> String {
        format!("{} (command {index})", self.command(index).label)
    }

    /// Panics with the names of commands that have ended and were not reported. Other threads have a second for reports that they have begun.
    #[track_caller]
    pub fn assert_reported(&self) {
        let began = Instant::now();
        while !self.missing_reports().is_empty() && began.elapsed() < Duration::from_secs(1) {
            std::thread::sleep(Duration::from_millis(1));
        }
        let names: Vec<_> = self.missing_reports().into_iter().map(|index| self.name(index)).collect();
        assert!(names.is_empty(), "no report of {}", names.join(", "));
    }

    /// When commands end from now on. Those that are pending wait to be ended as before, or for their dependencies.
    pub fn set_mode(&self, mode: CompletionMode) {
        lock(&self.0.state).mode = mode;
    }

    /// The `nth` command from now is refused: its `issue` returns an error. 1 is the next one.
    pub fn refuse_command(&self, nth: u64) {
        self.0.command_faults.plan(nth);
    }

    /// The `nth` allocation from now is refused. 1 is the next one.
    pub fn refuse_allocation(&self, nth: u64) {
        self.0.allocation_faults.plan(nth);
    }

    /// The images that devices were given so far, also those that they did not take.
    pub fn loads(&self) -> Vec<RecordedLoad> {
        self.0.images.loads()
    }

    /// The next load that is not refused yet fails with `error`.
    pub fn refuse_load(&self, error: BackendError) {
        self.0.images.refuse(error);
    }

    /// Kernels of images that are loaded from now on set these limits for their work-groups.
    pub fn limit_groups(&self, limits: KernelGroupLimits) {
        self.0.images.limit(limits);
    }

    /// Loads do not return until [`release_loads`](Self::release_loads).
    pub fn hold_loads(&self) {
        self.0.images.hold(true);
    }

    /// See [`hold_loads`](Self::hold_loads).
    pub fn release_loads(&self) {
        self.0.images.hold(false);
    }

    /// Number of commands whose execution by the host has begun. They are no part of the record.
    pub fn n_executions(&self) -> usize {
        self.0.executions.n_begun()
    }

    /// Executions by the host that begin do not end until [`release_executions`](Self::release_executions).
    pub fn hold_executions(&self) {
        self.0.executions.hold(true);
    }

    /// See [`hold_executions`](Self::hold_executions).
    pub fn release_executions(&self) {
        self.0.executions.hold(false);
    }

    /// Number of modules that are loaded.
    pub fn n_modules(&self) -> usize {
        self.0.images.n_modules()
    }

    /// Number of live allocations in a memory.
    pub fn n_allocations(&self, memory: MemoryId) -> usize {
        lock(&self.0.allocations).count(memory)
    }

    /// What commands did that they must not: memory used that is not theirs, or freed while a pending copy or fill needs it.
    pub fn violations(&self) -> Vec<String> {
        lock(&self.0.state).violations.clone()
    }
}
