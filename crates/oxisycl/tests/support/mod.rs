//! What the tests of this folder share: a limit on their time, gates that hold kernels back, checks of errors, a tiny executor.

#![allow(dead_code, reason = "each test file uses a part of it")]

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake};
use std::thread::Thread;
use std::time::{Duration, Instant};

use oxisycl::simulated::{SimulatedConfig, SimulatedControl, Simulator};
use oxisycl::{Buffer, Device, Error, ErrorCode, Event, Queue, ReadWrite, Result};

/// Ends the process if the test that holds it takes longer than its limit: a hang is a failure, not a wait.
pub(crate) struct Watchdog {
    _done: Sender<()>,
}

/// A limit of one minute for the current test.
pub(crate) fn watchdog() -> Watchdog {
    watchdog_of(60)
}

/// A limit for the current test, in seconds.
pub(crate) fn watchdog_of(seconds: u64) -> Watchdog {
    let seconds = seconds * SLOWER;
    let (done, ended): (Sender<()>, Receiver<()>) = channel();
    let name = std::thread::current().name().unwrap_or("a test").to_owned();
    std::thread::spawn(move || {
        if ended.recv_timeout(Duration::from_secs(seconds)) == Err(RecvTimeoutError::Timeout) {
            eprintln!("{name} hangs: more than {seconds} s");
            std::process::abort();
        }
    });
    Watchdog { _done: done }
}

/// How much longer everything takes in an interpreter.
const SLOWER: u64 = if cfg!(miri) { 30 } else { 1 };

/// A number of rounds that an interpreter can cope with, too.
pub(crate) const fn scaled(n_rounds: usize) -> usize {
    if cfg!(miri) { n_rounds.div_ceil(25) } else { n_rounds }
}

/// Held by tests that compare process-wide counters.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits up to half a minute for a condition that needs no call of the library to become true.
#[track_caller]
pub(crate) fn eventually(what: &str, condition: impl Fn() -> bool) {
    let began = Instant::now();
    while !condition() {
        assert!(began.elapsed() < Duration::from_secs(30 * SLOWER), "{what}: not within 30 s");
        std::thread::sleep(Duration::from_micros(200));
    }
}

/// Holds a kernel or host task back until the test lets it go.
pub(crate) struct Gate {
    n_entered: AtomicUsize,
    is_open: AtomicBool,
}

impl Gate {
    /// A closed gate.
    pub(crate) const fn new() -> Self {
        Self { n_entered: AtomicUsize::new(0), is_open: AtomicBool::new(false) }
    }

    /// Called by the kernel: returns once the gate is open.
    pub(crate) fn pass(&self) {
        self.n_entered.fetch_add(1, Ordering::SeqCst);
        while !self.is_open.load(Ordering::SeqCst) {
            std::thread::yield_now();
        }
    }

    /// How many came to the gate so far.
    pub(crate) fn n_entered(&self) -> usize {
        self.n_entered.load(Ordering::SeqCst)
    }

    /// Waits until somebody stands at the gate. To be called before anything that may run kernels on this thread.
    pub(crate) fn wait_entered(&self) {
        eventually("a kernel reaches its gate", || self.n_entered() > 0);
    }

    /// Lets everybody through, now and later.
    pub(crate) fn open(&self) {
        self.is_open.store(true, Ordering::SeqCst);
    }
}

/// That many simulated devices with queues to them.
pub(crate) fn simulated(n_devices: usize) -> (Vec<Device>, SimulatedControl) {
    let simulator = Simulator::new(SimulatedConfig::new(n_devices)).unwrap();
    (simulator.devices(), simulator.control())
}

/// An in-order queue on a device.
pub(crate) fn in_order(device: &Device) -> Queue {
    Queue::builder().device(device).in_order().build().unwrap()
}

/// A queue whose asynchronous errors go to the list.
pub(crate) fn collecting(device: &Device) -> (Queue, Arc<Mutex<Vec<Error>>>) {
    let errors = Arc::new(Mutex::new(Vec::new()));
    let list = errors.clone();
    let queue = Queue::builder()
        .device(device)
        .handler(move |delivered| list.lock().unwrap().extend(delivered))
        .build()
        .unwrap();
    (queue, errors)
}

/// The error of `result`, which must have that code, and all of `parts` in its message or a cause's.
#[track_caller]
pub(crate) fn refused<T>(result: Result<T>, code: ErrorCode, parts: &[&str]) -> Error {
    let Err(error) = result else { panic!("this was accepted, expected {code} with {parts:?}") };
    assert_error(&error, code, parts);
    error
}

/// `error` has that code, and all of `parts` in its message or a cause's.
#[track_caller]
pub(crate) fn assert_error(error: &Error, code: ErrorCode, parts: &[&str]) {
    let text = format!("{error:?}");
    assert_eq!(error.code(), code, "{text}");
    for part in parts {
        assert!(text.contains(part), "{part:?} is missing in: {text}");
    }
}

/// How many causes deep an error is, and whether the deepest one says `text`.
pub(crate) fn root_says(error: &Error, text: &str) -> bool {
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string().contains(text)
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Runs a future on this thread.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    let waker = Arc::new(Unpark(std::thread::current())).into();
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}

/// A buffer of sevens.
pub(crate) fn filled(n_elements: usize) -> Buffer<i32, 1> {
    Buffer::from_vec(vec![7; n_elements]).unwrap()
}

/// Adds one to each element.
pub(crate) fn add_one(queue: &Queue, buffer: &Buffer<i32, 1>) -> Event {
    let submitted = queue.submit(|cg| {
        let data = cg.access(buffer, ReadWrite);
        cg.parallel_for(buffer.range(), move |item| data.update(item, |x| x + 1))
    });
    submitted.unwrap()
}

/// A number in a variable of the environment, or what holds without it.
pub(crate) fn setting(variable: &str, default: u64) -> u64 {
    std::env::var(variable).map_or(default, |text| text.parse().expect("the variable is a number"))
}

/// Random numbers (SplitMix64).
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        x ^ (x >> 31)
    }

    /// A number below `end`.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    /// A begin and a length of at least one, inside `extent`.
    pub(crate) fn interval(&mut self, extent: usize) -> (usize, usize) {
        let begin = self.below(extent);
        (begin, 1 + self.below(extent - begin))
    }
}
