//! What happens inside: counters, a trace file, a dump of the graph. Each also by environment variable; see the book.

use std::path::Path;

use oxisycl_runtime::observe;
use oxisycl_types::ErrorCode;

pub use oxisycl_runtime::observe::Counters;

use crate::{Error, Result};

/// What the process did so far. Subtract two snapshots to see what happened between them.
///
/// ```
/// use oxisycl::observe;
/// use oxisycl::prelude::*;
///
/// # fn main() -> oxisycl::Result {
/// let before = observe::counters();
/// Queue::default()?.single_task(|_| {})?.wait()?;
/// println!("{:?}", observe::counters() - before);
/// # Ok(())
/// # }
/// ```
pub fn counters() -> Counters {
    observe::counters().snapshot()
}

fn unwritable(path: &Path) -> impl Fn(std::io::Error) -> Error + '_ {
    move |error| Error::with_source(ErrorCode::Invalid, format!("cannot write \"{}\": {error}", path.display()), error)
}

/// Starts a trace that Perfetto and `chrome://tracing` open. Each command is written when it has finished, so the file is complete even if the
/// process crashes.
/// Commands of queues that were made before have no times, and are not in it unless their queue has profiling.
///
/// Errors: `Invalid` if the file cannot be written.
pub fn start_trace(path: impl AsRef<Path>) -> Result {
    observe::trace().start(path.as_ref()).map_err(unwritable(path.as_ref()))
}

/// Ends the trace. Does nothing without one.
///
/// Errors: `Invalid` if a command could not be written.
pub fn stop_trace() -> Result {
    observe::trace()
        .stop()
        .map_err(|error| Error::with_source(ErrorCode::Invalid, format!("cannot write the trace file: {error}"), error))
}

/// Starts recording the dependency graph, for [`graph_dot`].
pub fn start_graph() -> Result {
    observe::graph_dump().start(None).map_err(unwritable(Path::new("")))
}

/// Ends the recording that [`start_graph`] began, and gives the graph in DOT.
pub fn stop_graph() -> String {
    observe::graph_dump().stop()
}

/// The graph recorded since [`start_graph`] in DOT: a node per command, and an edge for each dependency that was still pending
/// when it was needed.
pub fn graph_dot() -> String {
    observe::graph_dump().render()
}
