//! Catches what a backend tells by `tracing`, at debug level above all, for the tests of several backends.
//!
//! Only of the thread that asks, and only while it asks: tests run side by side.

use std::fmt::{self, Write};
use std::sync::{Arc, Mutex};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// Calls `what`, and gives the messages of the debug events that this thread has sent meanwhile.
pub fn debug_events<T>(what: impl FnOnce() -> T) -> (T, Vec<String>) {
    events(Level::DEBUG, what)
}

/// Runs `what`, and returns its result with the messages of the events of a level.
pub fn events<T>(level: Level, what: impl FnOnce() -> T) -> (T, Vec<String>) {
    let messages = Arc::new(Mutex::new(Vec::new()));
    let returned = tracing::subscriber::with_default(Catcher { level, messages: messages.clone() }, what);
    let messages = messages.lock().expect("no thread has panicked with it").clone();
    (returned, messages)
}

struct Catcher {
    level: Level,
    messages: Arc<Mutex<Vec<String>>>,
}

impl Subscriber for Catcher {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() == self.level
    }

    fn event(&self, event: &Event<'_>) {
        let mut message = Message(String::new());
        event.record(&mut message);
        self.messages.lock().expect("no thread has panicked with it").push(message.0);
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

struct Message(String);

impl Visit for Message {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            write!(self.0, "{value:?}").expect("a string takes everything");
        }
    }
}
