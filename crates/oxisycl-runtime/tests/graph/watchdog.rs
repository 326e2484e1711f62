//! A thread that finds reports which do not come.
//!
//! A test that waits for such a report would hang. The thread names the command and releases the report, so that the wait ends. The test
//! fails when the [`Watchdog`] is dropped.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use oxisycl_backend_testing::recording::Recorder;

/// No report may be held back for longer. Code is slower under Miri, and under a sanitizer, where `cargo xtask` sets the variable.
pub(crate) fn limit() -> Duration {
    let is_slow = std::env::var_os("SANITIZED").is_some();
    Duration::from_secs(if cfg!(miri) {
        1800
    } else if is_slow {
        60
    } else {
        3
    })
}

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
    let (mut missing_since, limit) = (BTreeMap::new(), limit());
    while stopped.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
        let missing = recorder.missing_reports();
        missing_since.retain(|index, _| missing.contains(index));
        for index in missing {
            let since: Instant = *missing_since.entry(index).or_insert_with(Instant::now);
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
