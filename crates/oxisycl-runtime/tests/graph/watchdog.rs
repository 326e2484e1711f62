//! A thread that finds reports which do not come.
//!
//! A test that waits for such a report would hang. The thread names the command and releases the report, so that the wait ends. The test
//! fails when the [`Watchdog`] is dropped.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use oxisycl_backend_testing::recording::Recorder;

/// No report may be held back for longer.
pub(crate) const LIMIT: Duration = Duration::from_secs(if cfg!(miri) { 1800 } else { 3 });
/// No report may take longer once it has begun. One of a hundred thousand commands takes seconds on a slow machine.
const LIMIT_OF_BEGUN: Duration = Duration::from_secs(if cfg!(miri) { 1800 } else { 120 });

/// Time between two looks.
const INTERVAL: Duration = Duration::from_millis(if cfg!(miri) { 60_000 } else { 100 });

/// The thread that finds reports which do not come.
pub(super) struct Watchdog {
    stop: Sender<()>,
    thread: Option<JoinHandle<Vec<String>>>,
}

pub(super) fn start(recorder: Recorder) -> Watchdog {
    let (stop, stopped) = channel();
    let thread = std::thread::spawn(move || watch(&recorder, &stopped));
    Watchdog { stop, thread: Some(thread) }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        let _ = self.stop.send(());
        let late = self.thread.take().and_then(|thread| thread.join().ok());
        if !std::thread::panicking() {
            assert_eq!(late, Some(Vec::new()), "reports that did not come");
        }
    }
}

fn watch(recorder: &Recorder, stopped: &Receiver<()>) -> Vec<String> {
    let mut names = Vec::new();
    let mut missing_since = BTreeMap::new();
    while stopped.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
        let missing = recorder.missing_reports();
        missing_since.retain(|index, _| missing.contains(index));
        for index in missing {
            let since: Instant = *missing_since.entry(index).or_insert_with(Instant::now);
            let limit = if recorder.is_held_back(index) { LIMIT } else { LIMIT_OF_BEGUN };
            if since.elapsed() > limit {
                let name = recorder.name(index);
                eprintln!("no report of {name} for {limit:?}");
                names.push(name);
                recorder.release_report(index);
                missing_since.remove(&index);
            }
        }
    }
    names
}
