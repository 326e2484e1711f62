//! Commands of backends with drivers, as far as all of them are alike: what they are issued behind, and the failures they end with.
//!
//! How a command is issued to its driver, and how its end is found out, is the backend's business.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use smallvec::SmallVec;

use crate::{BackendError, Command, CommandFailure, Dependency, Event, FailureKind};

/// A command that was issued. It is also the command's event.
pub trait DriverTask: Event + Sized {
    /// What is to be done.
    fn command(&self) -> &Command;

    /// The device's name, for messages.
    fn device_name(&self) -> &str;

    /// Whether it is over: its completion is called, or has been.
    fn has_ended(&self) -> bool;

    /// The failure of this command.
    fn failure_of(&self, kind: FailureKind) -> CommandFailure {
        CommandFailure::new(self.command(), self.device_name(), kind)
    }
}

/// The dependencies of a command that have not ended. How they end is of no concern to a backend that issues commands ahead.
///
/// # Errors
/// `Unsupported` for the event of another backend.
#[inline]
pub fn open_dependencies<'d, T: DriverTask>(
    dependencies: &'d [Dependency],
    device_name: &str,
) -> Result<SmallVec<[&'d T; 4]>, BackendError> {
    let mut open = SmallVec::new();
    for Dependency { event, .. } in dependencies {
        let any: &dyn Any = &**event;
        let Some(task) = any.downcast_ref::<T>() else {
            let what = "waiting for an event of another backend".to_owned();
            return Err(BackendError::Unsupported { device: device_name.to_owned(), what });
        };
        if !task.has_ended() {
            open.push(task);
        }
    }
    Ok(open)
}

/// Tells a completion something. It must not panic; if it does, the hook has printed it, and other work goes on.
pub fn tell(completion: impl FnOnce()) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(completion)) {
        std::mem::forget(payload);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{DependencyKind, EventStatus};

    struct Fake {
        has_ended: bool,
    }

    impl Event for Fake {
        fn status(&self) -> EventStatus {
            EventStatus::Complete
        }
    }

    impl DriverTask for Fake {
        fn command(&self) -> &Command {
            &Command::Marker
        }

        fn device_name(&self) -> &str {
            "fake"
        }

        fn has_ended(&self) -> bool {
            self.has_ended
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
        let [open, ended] = [false, true].map(|has_ended| Arc::new(Fake { has_ended }));
        let both = [on(ended, DependencyKind::Data), on(open.clone(), DependencyKind::Order)];
        let waits = open_dependencies::<Fake>(&both, "fake").expect("events of one backend");
        let [task] = waits[..] else { panic!("{} open dependencies", waits.len()) };
        assert!(std::ptr::eq(task, &*open));
    }

    #[test]
    fn an_event_of_another_backend_is_refused() {
        let foreign = [on(Arc::new(Foreign), DependencyKind::Order)];
        let refused = open_dependencies::<Fake>(&foreign, "fake");
        assert!(matches!(refused, Err(BackendError::Unsupported { device, .. }) if device == "fake"));
    }
}
