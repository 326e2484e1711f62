//! The end of a command, and of many, for tests that wait for them without helping.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use oxisycl_backend::{CommandFailure, Completion, FailureKind, KernelOutput, Outcome};

use crate::harness::PATIENCE;

/// A completion that keeps the outcome, and is called once.
#[derive(Debug, Default)]
pub struct Probe {
    outcome: Mutex<Option<Outcome>>,
    changed: Condvar,
}

/// What a kernel has printed.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Printed {
    /// The text.
    pub text: String,
    /// How many records found no room, and the bytes that there is room for.
    pub lost: Option<(u32, u32)>,
    /// Bytes that are no record.
    pub unreadable: usize,
}

impl Completion for Probe {
    unsafe fn complete(self: Arc<Self>, outcome: Outcome) {
        let before = self.outcome.lock().unwrap_or_else(PoisonError::into_inner).replace(outcome);
        assert!(before.is_none(), "a command completed twice");
        self.changed.notify_all();
    }
}

impl Probe {
    /// The outcome, which the backend's own threads bring about.
    ///
    /// # Panics
    /// If the command does not complete within [`PATIENCE`].
    #[track_caller]
    pub fn wait(&self) -> Outcome {
        let outcome = self.outcome.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.changed.wait_timeout_while(outcome, PATIENCE, |outcome| outcome.is_none());
        let (outcome, _) = waited.unwrap_or_else(PoisonError::into_inner);
        outcome.clone().expect("a command did not complete")
    }

    /// Whether the command has ended.
    pub fn has_ended(&self) -> bool {
        self.outcome.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Waits for the end of a command.
    ///
    /// # Panics
    /// If it has failed.
    #[track_caller]
    pub fn succeed(&self) {
        self.wait().result.expect("a command failed");
    }

    /// Why a command has failed.
    ///
    /// # Panics
    /// If it has not.
    #[track_caller]
    pub fn fail(&self) -> CommandFailure {
        self.wait().result.expect_err("a command succeeded")
    }

    /// What a command has printed, which has ended without a failure.
    #[track_caller]
    pub fn printed(&self) -> Printed {
        self.succeed();
        let mut printed = Printed::default();
        for output in self.wait().output {
            match output {
                KernelOutput::Text(text) => printed.text.push_str(&text),
                KernelOutput::Lost { count, capacity } => printed.lost = Some((count, capacity)),
                KernelOutput::Unreadable { bytes } => printed.unreadable = bytes,
            }
        }
        printed
    }

    /// Whether the command has ended.
    pub fn is_complete(&self) -> bool {
        self.outcome.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }
}

/// Counts the commands that have ended, and among them those whose kernel panicked.
#[derive(Default)]
pub struct Counter {
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
    /// Commands that have ended.
    pub fn n_ended(&self) -> usize {
        self.n_ended.load(Ordering::Acquire)
    }

    /// Commands that have ended by a panic.
    pub fn n_panicked(&self) -> usize {
        self.n_panicked.load(Ordering::Relaxed)
    }
}
