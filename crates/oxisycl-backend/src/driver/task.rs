//! Commands of backends with drivers, as far as all of them are alike: what they wait for, and the failures they end with.
//!
//! How a command is put to its driver, and how its end is found out, is the backend's business.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use smallvec::SmallVec;

use crate::{BackendError, Command, CommandFailure, Dependency, DependencyKind, Event, FailureKind};

/// A command that was accepted. It is also the command's event.
pub trait DriverTask: Event + Sized {
    /// What is to be done.
    fn command(&self) -> &Command;

    /// The device's name, for messages.
    fn device_name(&self) -> &str;

    /// Whether its completion has been told.
    fn has_ended(&self) -> bool;

    /// Why it failed, if it has ended with a failure.
    fn failure(&self) -> Option<CommandFailure>;

    /// Why it will not run, or has failed.
    fn known_failure(&self) -> Option<CommandFailure>;

    /// The failure of this command for a reason of its own.
    fn failure_of(&self, kind: FailureKind) -> CommandFailure {
        CommandFailure::new(self.command(), self.device_name(), kind)
    }

    /// The failure of this command, which did not run because `cause` happened.
    fn dependency_failure(&self, cause: &CommandFailure) -> CommandFailure {
        CommandFailure::dependency(self.command(), self.device_name(), cause)
    }

    /// The failure of this command, which had run when `cause` became known. A marker has done nothing.
    fn spoiled_failure(&self, cause: &CommandFailure) -> CommandFailure {
        match self.command() {
            Command::Marker => self.dependency_failure(cause),
            command => CommandFailure::spoiled(command, self.device_name(), cause),
        }
    }
}

/// A dependency that had not ended when it was last looked at.
#[derive(Debug)]
pub struct TaskDependency<T> {
    /// The earlier command.
    pub task: Arc<T>,
    /// What its failure means.
    pub kind: DependencyKind,
}

impl<T> Clone for TaskDependency<T> {
    fn clone(&self) -> Self {
        Self { task: self.task.clone(), kind: self.kind }
    }
}

/// What a command waits for.
pub type Dependencies<T> = SmallVec<[TaskDependency<T>; 2]>;

/// What is known of a command's dependencies when it is accepted.
#[derive(Debug)]
pub struct Sorted<T> {
    /// Those that have not ended.
    pub open: Dependencies<T>,
    /// The failure of one that must not fail.
    pub cause: Option<CommandFailure>,
}

impl<T: DriverTask> Sorted<T> {
    /// Of a command without dependencies.
    #[inline]
    pub fn new() -> Self {
        Self { open: Dependencies::new(), cause: None }
    }

    /// Looks at dependencies of a command of a device with that name.
    ///
    /// # Errors
    /// `Unsupported` for the event of another backend.
    #[inline]
    pub fn add(&mut self, dependencies: &[Dependency], device_name: &str) -> Result<(), BackendError> {
        for Dependency { event, kind } in dependencies {
            let any: &dyn Any = &**event;
            let Some(task) = any.downcast_ref::<T>() else {
                let what = "waiting for an event of another backend".to_owned();
                return Err(BackendError::Unsupported { device: device_name.to_owned(), what });
            };
            let has_ended = task.has_ended();
            if *kind == DependencyKind::Data && self.cause.is_none() {
                self.cause = if has_ended { task.failure() } else { task.known_failure() };
            }
            if has_ended {
                continue;
            }
            let any: Arc<dyn Any + Send + Sync> = event.clone();
            if let Ok(task) = any.downcast() {
                self.open.push(TaskDependency { task, kind: *kind });
            }
        }
        Ok(())
    }
}

impl<T: DriverTask> Default for Sorted<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// The first failure among the dependencies that must not fail.
pub fn cause_among<T: DriverTask>(dependencies: &[TaskDependency<T>]) -> Option<CommandFailure> {
    let data = dependencies.iter().filter(|dependency| dependency.kind == DependencyKind::Data);
    data.map(|dependency| &dependency.task).find_map(|task| task.failure())
}

/// Tells a completion something. It must not panic; if it does, the hook has printed it, and other work goes on.
pub fn tell(completion: impl FnOnce()) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(completion)) {
        std::mem::forget(payload);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::EventStatus;

    struct Fake {
        command: Command,
        has_ended: bool,
        fails: bool,
    }

    impl Fake {
        fn event(has_ended: bool, fails: bool) -> Arc<Self> {
            Arc::new(Self { command: Command::Prefetch { pointer: std::ptr::null_mut(), size: 4 }, has_ended, fails })
        }
    }

    impl Event for Fake {
        fn status(&self) -> EventStatus {
            EventStatus::Complete
        }
    }

    impl DriverTask for Fake {
        fn command(&self) -> &Command {
            &self.command
        }

        fn device_name(&self) -> &str {
            "fake"
        }

        fn has_ended(&self) -> bool {
            self.has_ended
        }

        fn failure(&self) -> Option<CommandFailure> {
            self.known_failure().filter(|_| self.has_ended)
        }

        fn known_failure(&self) -> Option<CommandFailure> {
            let panic = FailureKind::Panic { message: "why".to_owned(), location: None, item: None };
            self.fails.then(|| self.failure_of(panic))
        }
    }

    struct Foreign;

    impl Event for Foreign {
        fn status(&self) -> EventStatus {
            EventStatus::Complete
        }
    }

    fn on(event: Arc<dyn Event>, kind: DependencyKind) -> Dependency {
        Dependency { event, kind }
    }

    #[test]
    fn only_what_has_not_ended_is_waited_for() {
        let (open, ended) = (Fake::event(false, false), Fake::event(true, false));
        let mut sorted = Sorted::<Fake>::new();
        let both = [on(ended, DependencyKind::Data), on(open.clone(), DependencyKind::Order)];
        sorted.add(&both, "fake").expect("events of one backend");
        assert!(sorted.cause.is_none());
        let [TaskDependency { task, kind: DependencyKind::Order }] = &sorted.open[..] else {
            panic!("{} open dependencies", sorted.open.len())
        };
        assert!(Arc::ptr_eq(task, &open));
    }

    #[test]
    fn a_failure_is_a_cause_for_what_needs_the_data_and_not_for_what_comes_after() {
        for has_ended in [false, true] {
            let failed = Fake::event(has_ended, true);
            let mut sorted = Sorted::<Fake>::new();
            sorted.add(&[on(failed.clone(), DependencyKind::Order)], "fake").expect("an event of this backend");
            assert!(sorted.cause.is_none());
            sorted.add(&[on(failed, DependencyKind::Data)], "fake").expect("an event of this backend");
            let cause = sorted.cause.as_ref().expect("its failure is known");
            let failure = Fake::event(false, false).dependency_failure(cause);
            assert!(!failure.has_run() && failure.root().to_string() == cause.to_string());
            assert!(cause_among(&sorted.open).is_none(), "one that is open has not failed yet");
        }
    }

    #[test]
    fn an_event_of_another_backend_is_refused() {
        let refused = Sorted::<Fake>::new().add(&[on(Arc::new(Foreign), DependencyKind::Order)], "fake");
        assert!(matches!(refused, Err(BackendError::Unsupported { device, .. }) if device == "fake"));
    }

    #[test]
    fn a_marker_has_not_run_when_what_it_came_after_failed() {
        let cause = Fake::event(true, true).failure().expect("it fails");
        assert!(Fake::event(false, false).spoiled_failure(&cause).has_run());
        let marker = Fake { command: Command::Marker, has_ended: false, fails: false };
        assert!(!marker.spoiled_failure(&cause).has_run());
    }
}
