//! What the runtime lets its users see: counters, a trace file, a graph dump, and a log line for stalled waits.
//!
//! Owns the process-wide recorders. Invariant: when nothing is switched on, recording costs one relaxed load.
//! Decides nothing: no other module reads back what is recorded here.

mod counters;
mod graph_dump;
mod trace;

pub use counters::{Counters, Recorder, counters};
pub use graph_dump::{GraphDump, graph_dump};
pub use trace::{Span, Trace, trace};
