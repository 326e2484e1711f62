//! The trace file: what ran when, in the JSON format that Perfetto and `chrome://tracing` open.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

/// One finished command.
#[derive(Clone, Debug)]
pub struct Span {
    /// What ran.
    pub name: String,
    /// Its kind: `kernel`, `copy`, `fill`, `host_task`, `other`.
    pub category: &'static str,
    /// The device it ran on.
    pub device: String,
    /// Start in nanoseconds of the device's clock.
    pub start: u64,
    /// End in nanoseconds of the device's clock.
    pub end: u64,
    /// The graph node.
    pub node: u64,
}

/// Collects spans while it is on, and writes them when asked or when the process ends.
#[derive(Debug, Default)]
pub struct Trace {
    on: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    path: Option<PathBuf>,
    spans: Vec<Span>,
}

impl Trace {
    /// Whether spans are collected.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.on.load(Ordering::Relaxed)
    }

    /// Starts collecting for a file. Creates the file at once, so that a path that cannot be written is an error now.
    pub fn start(&self, path: &Path) -> std::io::Result<()> {
        std::fs::File::create(path)?;
        let mut state = self.state.lock();
        state.path = Some(path.to_owned());
        self.on.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Adds a finished command.
    pub fn record(&self, span: Span) {
        if self.is_on() {
            self.state.lock().spans.push(span);
        }
    }

    /// Writes what was collected so far to the file given to [`start`](Self::start); does nothing if the trace was not started.
    pub fn write(&self) -> std::io::Result<()> {
        let (path, text) = {
            let state = self.state.lock();
            let Some(path) = state.path.clone() else { return Ok(()) };
            (path, render(&state.spans))
        };
        std::fs::write(path, text)
    }

    /// Writes the file and stops collecting.
    pub fn stop(&self) -> std::io::Result<()> {
        let result = self.write();
        self.on.store(false, Ordering::Relaxed);
        *self.state.lock() = State::default();
        result
    }
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            c if (c as u32) < 0x20 => {
                let _ = write!(out, "\\u{:04x}", c as u32);
            }
            c => out.push(c),
        }
    }
    out
}

/// One process; per device, as many tracks as commands overlapped, so that spans of a track never cross.
fn render(spans: &[Span]) -> String {
    let mut sorted: Vec<&Span> = spans.iter().collect();
    sorted.sort_by_key(|span| (span.start, span.node));
    let mut tracks: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    let mut assigned = Vec::with_capacity(sorted.len());
    for span in &sorted {
        let ends = tracks.entry(&span.device).or_default();
        let track = ends.iter().position(|&end| end <= span.start).unwrap_or_else(|| {
            ends.push(0);
            ends.len() - 1
        });
        ends[track] = span.end;
        assigned.push(track);
    }
    let mut first_track = BTreeMap::new();
    let mut next = 1;
    let mut out = String::from("{\"traceEvents\":[\n");
    for (device, ends) in &tracks {
        first_track.insert(*device, next);
        for track in 0..ends.len() {
            let name = escaped(device);
            let _ = writeln!(
                out,
                "{{\"ph\":\"M\",\"pid\":1,\"tid\":{},\"name\":\"thread_name\",\"args\":{{\"name\":\"{name}\"}}}},",
                next + track
            );
        }
        next += ends.len();
    }
    for (span, track) in sorted.iter().zip(&assigned) {
        let _ = writeln!(
            out,
            "{{\"ph\":\"X\",\"pid\":1,\"tid\":{},\"name\":\"{}\",\"cat\":\"{}\",\"ts\":{:.3},\"dur\":{:.3},\"args\":{{\"node\":{}}}}},",
            first_track[span.device.as_str()] + track,
            escaped(&span.name),
            span.category,
            span.start as f64 / 1000.0,
            span.end.saturating_sub(span.start) as f64 / 1000.0,
            span.node
        );
    }
    out.push_str("{\"ph\":\"M\",\"pid\":1,\"name\":\"process_name\",\"args\":{\"name\":\"oxisycl\"}}\n]}\n");
    out
}

/// The process's trace.
pub fn trace() -> &'static Trace {
    static TRACE: std::sync::LazyLock<Trace> = std::sync::LazyLock::new(Trace::default);
    &TRACE
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(name: &str, device: &str, start: u64, end: u64) -> Span {
        Span { name: name.into(), category: "kernel", device: device.into(), start, end, node: start }
    }

    #[test]
    fn overlapping_commands_of_a_device_get_tracks_of_their_own() {
        let text = render(&[span("a", "cpu", 0, 10), span("b", "cpu", 5, 15), span("c", "cpu", 12, 20)]);
        let tid = |name: &str| {
            let line = text.lines().find(|line| line.contains(&format!("\"name\":\"{name}\""))).unwrap();
            line.split("\"tid\":").nth(1).unwrap().split(',').next().unwrap().to_owned()
        };
        assert_ne!(tid("a"), tid("b"));
        assert_eq!(tid("a"), tid("c"));
    }

    #[test]
    fn names_are_escaped() {
        assert!(render(&[span("a\"\\\n", "cpu", 0, 1)]).contains("a\\\"\\\\\\u000a"));
    }
}
