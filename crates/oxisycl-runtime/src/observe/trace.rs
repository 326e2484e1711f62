//! The trace file: what ran when, in the JSON format that Perfetto and `chrome://tracing` open.
//!
//! Each command is written when it has finished. Invariant: between two writes the file is whole JSON with all finished commands, so a process
//! that crashes or is killed loses nothing. Keeps no spans in memory.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use oxisycl_image::Argument;
use oxisycl_types::ArgumentType;
use parking_lot::Mutex;

use crate::fork;
use crate::ids::NodeId;
use crate::plug_ins::SourcePlace;

/// One finished command.
#[derive(Clone, Debug)]
pub struct Span {
    /// What ran.
    pub name: String,
    /// Where the user's source launched or submitted it.
    pub place: Option<SourcePlace>,
    /// What is passed to a kernel beside its captures.
    pub arguments: Option<&'static ArgumentType>,
    /// The name of the code of the device compiler that a kernel ran on the host, if it was such code.
    pub code: Option<&'static str>,
    /// The kind of the command: `kernel`, `copy`, `fill`, `host_task`, `other`.
    pub category: &'static str,
    /// The device it ran on.
    pub device: String,
    /// Start in nanoseconds on the clock of the process.
    pub start: u64,
    /// End in nanoseconds on the clock of the process.
    pub end: u64,
    /// The graph node.
    pub node: NodeId,
}

/// Writes spans while it is on.
#[derive(Debug, Default)]
pub struct Trace {
    on: AtomicBool,
    output: Mutex<Option<Output>>,
}

/// What a file begins with: the only process.
const BEGIN: &str =
    "{\"traceEvents\":[\n{\"ph\":\"M\",\"pid\":1,\"name\":\"process_name\",\"args\":{\"name\":\"oxisycl\"}}";
/// What a file ends with. The next event overwrites it.
const END: &str = "\n]}\n";
/// Tracks are numbered by device, so that those of a device are shown below each other.
const TRACKS_PER_DEVICE: usize = 100_000;

#[derive(Debug)]
struct Output {
    file: File,
    /// A child that was forked from this process leaves the file alone.
    generation: u32,
    /// In the order of their first commands.
    devices: Vec<Tracks>,
    /// Whether an event could not be written: where the file ends is not known then, and later events are dropped.
    is_broken: bool,
    /// Why, until the program asks.
    error: Option<io::Error>,
}

/// The tracks of one device: the time that the last span on each ends at.
#[derive(Debug)]
struct Tracks {
    device: String,
    ends: Vec<u64>,
}

impl Trace {
    /// Whether spans are written.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.on.load(Ordering::Relaxed)
    }

    /// Starts writing to a file, which is created at once, so that a path that cannot be written is an error now.
    pub fn start(&self, path: &Path) -> io::Result<()> {
        let mut file = File::create(path)?;
        file.write_all([BEGIN, END].concat().as_bytes())?;
        let output =
            Output { file, generation: fork::generation(), devices: Vec::new(), is_broken: false, error: None };
        *self.output.lock() = Some(output);
        self.on.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Writes a finished command.
    pub fn record(&self, span: Span) {
        if self.is_on()
            && let Some(output) = self.output.lock().as_mut()
        {
            output.record(&span);
        }
    }

    /// Fails if an event could not be written since [`start`](Self::start). The error is returned once.
    pub fn check(&self) -> io::Result<()> {
        match self.output.lock().as_mut().and_then(|output| output.error.take()) {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    /// Stops writing. Fails as [`check`](Self::check) does.
    pub fn stop(&self) -> io::Result<()> {
        let result = self.check();
        self.on.store(false, Ordering::Relaxed);
        *self.output.lock() = None;
        result
    }
}

impl Output {
    fn record(&mut self, span: &Span) {
        if self.generation != fork::generation() || self.is_broken {
            return;
        }
        let events = self.events(span);
        // One write, so that the file has the old end or the new one.
        let back = -(END.len() as i64);
        let written = self.file.seek(SeekFrom::Current(back)).and_then(|_| self.file.write_all(events.as_bytes()));
        self.is_broken = written.is_err();
        self.error = written.err();
    }

    /// The event of a span behind that of its track, if the track is new, and the end of the file.
    fn events(&mut self, span: &Span) -> String {
        let position = self.devices.iter().position(|tracks| tracks.device == span.device).unwrap_or_else(|| {
            self.devices.push(Tracks { device: span.device.clone(), ends: Vec::new() });
            self.devices.len() - 1
        });
        let tracks = &mut self.devices[position];
        // Spans of a track never overlap.
        let free = tracks.ends.iter().position(|&end| end <= span.start);
        let track = free.unwrap_or(tracks.ends.len());
        let id = 1 + position * TRACKS_PER_DEVICE + track;
        let mut out = String::new();
        if free.is_none() {
            tracks.ends.push(0);
            let device = escaped(&span.device);
            let _ = write!(
                out,
                ",\n{{\"ph\":\"M\",\"pid\":1,\"tid\":{id},\"name\":\"thread_name\",\"args\":{{\"name\":\"{device}\"}}}}"
            );
        }
        tracks.ends[track] = span.end;
        let _ = write!(
            out,
            ",\n{{\"ph\":\"X\",\"pid\":1,\"tid\":{id},\"name\":\"{}\",\"cat\":\"{}\",\"ts\":{:.3},\"dur\":{:.3},\"args\":{{\"node\":{}",
            escaped(&span.name),
            span.category,
            span.start as f64 / 1000.0,
            span.end.saturating_sub(span.start) as f64 / 1000.0,
            span.node
        );
        if let Some(place) = span.place {
            let _ = write!(out, ",\"place\":\"{}\"", escaped(&place.to_string()));
        }
        if let Some(code) = span.code {
            let _ = write!(out, ",\"code\":\"{}\"", escaped(code));
        }
        if let Some(arguments) = span.arguments {
            let _ = write!(out, ",\"arguments\":\"{}\"", escaped(&listed(arguments)));
        }
        out.push_str("}}");
        out.push_str(END);
        out
    }
}

/// Most arguments of one launch that an event lists.
const MAX_ARGUMENTS: usize = 64;

fn listed(arguments: &ArgumentType) -> String {
    let mut list: Vec<_> =
        Argument::list(arguments).into_iter().take(MAX_ARGUMENTS + 1).map(|argument| argument.to_string()).collect();
    if let Some(last) = list.get_mut(MAX_ARGUMENTS) {
        "..".clone_into(last);
    }
    list.join("; ")
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

/// The process's trace.
pub fn trace() -> &'static Trace {
    static TRACE: std::sync::LazyLock<Trace> = std::sync::LazyLock::new(Trace::default);
    &TRACE
}

#[cfg(test)]
mod tests {
    use oxisycl_types::ArgumentPart;

    use super::*;

    fn span(name: &str, device: &str, start: u64, end: u64) -> Span {
        let (device, node) = (device.into(), NodeId::new(start));
        Span {
            name: name.into(),
            place: None,
            arguments: None,
            code: None,
            category: "kernel",
            device,
            start,
            end,
            node,
        }
    }

    /// What the file holds after each span, which is then removed.
    fn texts(name: &str, spans: &[Span]) -> Vec<String> {
        let path = std::env::temp_dir().join(format!("oxisycl-trace-{}-{name}.json", std::process::id()));
        let trace = Trace::default();
        trace.start(&path).unwrap();
        let mut texts = vec![std::fs::read_to_string(&path).unwrap()];
        for span in spans {
            trace.record(span.clone());
            texts.push(std::fs::read_to_string(&path).unwrap());
        }
        trace.stop().unwrap();
        trace.record(self::span("late", "cpu", 0, 1));
        assert_eq!(texts.last(), Some(&std::fs::read_to_string(&path).unwrap()));
        std::fs::remove_file(path).unwrap();
        texts
    }

    #[test]
    fn the_file_is_whole_after_each_command() {
        let texts = texts("whole", &[span("a", "cpu", 0, 10), span("b", "gpu", 5, 15)]);
        assert_eq!(texts[0], [BEGIN, END].concat());
        for (before, after) in texts.iter().zip(&texts[1..]) {
            let kept = before.strip_suffix(END).unwrap();
            let added = after.strip_prefix(kept).unwrap();
            assert!(added.starts_with(",\n{") && added.ends_with(&format!("}}{END}")), "{added}");
        }
    }

    #[test]
    fn overlapping_commands_of_a_device_get_tracks_of_their_own() {
        let spans =
            [span("a", "cpu", 0, 10), span("b", "cpu", 5, 15), span("c", "cpu", 12, 20), span("d", "gpu", 0, 1)];
        let text = texts("tracks", &spans).pop().unwrap();
        let tid = |name: &str| {
            let line = text.lines().find(|line| line.contains(&format!("\"name\":\"{name}\""))).unwrap();
            line.split("\"tid\":").nth(1).unwrap().split(',').next().unwrap().to_owned()
        };
        assert_ne!(tid("a"), tid("b"));
        assert_eq!(tid("a"), tid("c"));
        assert_eq!(tid("d"), (1 + TRACKS_PER_DEVICE).to_string());
        assert_eq!(text.matches("thread_name").count(), 3);
    }

    #[test]
    fn kernels_have_a_place_and_arguments() {
        static NUMBER: ArgumentType = ArgumentType::leaf(std::any::type_name::<f32>, 4);
        static TUPLE: ArgumentType = ArgumentType {
            type_name: std::any::type_name::<(f32, [f32; 70])>,
            size: 284,
            length: ArgumentType::NO_ARRAY,
            parts: &[
                ArgumentPart { name: "0", offset: 280, part: &NUMBER },
                ArgumentPart {
                    name: "1",
                    offset: 0,
                    part: &ArgumentType {
                        type_name: std::any::type_name::<[f32; 70]>,
                        size: 280,
                        length: 70,
                        parts: &[ArgumentPart { name: "", offset: 0, part: &NUMBER }],
                    },
                },
            ],
        };
        let place = SourcePlace::lasting(std::panic::Location::caller());
        let text = texts(
            "arguments",
            &[Span { place: Some(place), arguments: Some(&TUPLE), code: Some("x86-64-v3"), ..span("a", "cpu", 0, 1) }],
        );
        let place = format!("\"args\":{{\"node\":0,\"place\":\"{place}\",\"code\":\"x86-64-v3\",");
        assert!(text[1].contains(&place), "{}", text[1]);
        let arguments = "\"arguments\":\"0: f32, 4 bytes at 280; 1[0]: f32, 4 bytes at 0; 1[1]: f32, 4 bytes at 4; ";
        assert!(text[1].contains(arguments), "{}", text[1]);
        assert!(text[1].contains("1[62]: f32, 4 bytes at 248; ..\"}}"), "{}", text[1]);
    }

    #[test]
    fn names_are_escaped() {
        assert!(texts("escaped", &[span("a\"\\\n", "cpu", 0, 1)])[1].contains("a\\\"\\\\\\u000a"));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn an_event_that_cannot_be_written_is_an_error_once() {
        let trace = Trace::default();
        // The file is full from its first byte on.
        let error = trace.start(Path::new("/dev/full")).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        trace.check().unwrap();
        let file = File::open("/dev/null").unwrap();
        let (generation, devices) = (fork::generation(), Vec::new());
        *trace.output.lock() = Some(Output { file, generation, devices, is_broken: false, error: None });
        trace.on.store(true, Ordering::Relaxed);
        trace.record(span("a", "cpu", 0, 1));
        assert!(trace.check().is_err() && trace.check().is_ok());
        trace.record(span("b", "cpu", 1, 2));
        assert!(trace.check().is_ok(), "what comes after an event that is missing is dropped");
    }
}
