//! The task as an event, which the runtime keeps and passes back as a dependency.

use std::any::Any;
use std::sync::Arc;

use oxisycl_backend::{Event, EventStatus};

use crate::task::HostTask;

impl Event for HostTask {
    fn status(&self) -> EventStatus {
        self.links().status()
    }
}

/// The task behind an event, or `None` if the event is another backend's.
pub(crate) fn task_of(event: &Arc<dyn Event>) -> Option<&HostTask> {
    let event: &dyn Any = &**event;
    event.downcast_ref()
}
