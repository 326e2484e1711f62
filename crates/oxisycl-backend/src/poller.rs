//! The thread that polls devices which do not report the end of commands themselves.
//!
//! A backend issues commands, and reports them when it is polled. No thread belongs to it. The runtime, which makes the queues, starts one
//! poller for each [`Progress`]. Where the backend holds small commands back, a second thread hands them over.
//!
//! Between two polls the poller naps. A nap is a sixty-fourth of the time since the last end of a command, between 40 and 500 us. So the
//! end of a long command is reported about that much late. Polling slows down threads that submit, so the poller naps for 300 us while work
//! is being submitted. A waiting thread that is about to sleep ends such a nap.
//!
//! Invariants:
//! - A command that was counted is polled for. A submission counts its command and then rings the [bell](Counts::bell). The poller announces that
//!   it will sleep and then looks for commands. One of them sees the other.
//! - The poller keeps its device alive only while it polls.

use std::io;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use crate::driver::{Worker, spawn};
use crate::sync::{AtomicU64, Ordering};
use crate::{QueueInfo, fork};

/// The shortest time between two polls while no command ends.
const SHORTEST_NAP: Duration = Duration::from_micros(40);
/// The longest time between two polls while no command ends.
const LONGEST_NAP: Duration = Duration::from_micros(500);
/// Time between two polls while work is being submitted.
const BUSY_NAP: Duration = Duration::from_micros(300);
/// How long the thread stays up without work, so that the next submission need not wake it.
const LINGER: Duration = Duration::from_millis(4);

/// How long the flusher thread stays awake without work, and how often it checks for work meanwhile.
const FLUSHER_LINGER: Duration = Duration::from_micros(200);
const FLUSHER_NAP: Duration = Duration::from_micros(10);
/// How long the flusher thread busy-waits, if there are processors enough.
const FLUSHER_SPIN: Duration = Duration::from_micros(50);
const MANY_PROCESSORS: usize = 4;
/// The longest time for which the flusher thread keeps its device alive.
const FLUSHER_TURN: Duration = Duration::from_millis(1);

/// A value on a cache line of its own: threads that submit and threads that report write different ones.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Padded<T>(pub T);

/// The counts of a device's accepted and ended commands, and the threads to wake for them. The device's threads end when this is dropped.
#[derive(Debug)]
pub struct Counts {
    bell: Arc<Worker>,
    flusher: Arc<Worker>,
    n_accepted: Padded<AtomicU64>,
    n_ended: Padded<AtomicU64>,
    generation: u32,
}

impl Default for Counts {
    fn default() -> Self {
        fork::watch();
        Self {
            bell: Arc::default(),
            flusher: Arc::default(),
            n_accepted: Padded::default(),
            n_ended: Padded::default(),
            generation: fork::generation(),
        }
    }
}

impl Drop for Counts {
    fn drop(&mut self) {
        // A forked child has no such threads, and their locks may be held for ever.
        if !self.is_foreign() {
            self.bell.close();
            self.flusher.close();
        }
    }
}

/// A counted command that is about to be accepted. Dropping it counts the command as ended, unless it was accepted.
#[derive(Debug)]
pub struct Expected<'c> {
    counts: &'c Counts,
    /// The command's place in the order in which the device's commands were counted.
    pub number: u64,
}

impl Expected<'_> {
    /// Declares that the command was accepted.
    pub fn accept(self) {
        std::mem::forget(self);
    }
}

impl Drop for Expected<'_> {
    fn drop(&mut self) {
        self.counts.end();
    }
}

impl Counts {
    /// Whether the process was forked since the device was made. Its threads then exist in the parent only.
    pub fn is_foreign(&self) -> bool {
        self.generation != fork::generation()
    }

    /// The handle that wakes the poller thread.
    pub fn bell(&self) -> &Arc<Worker> {
        &self.bell
    }

    /// The handle that wakes the flusher thread, which issues [held-back](Progress::hand_over) commands.
    pub fn flusher(&self) -> &Arc<Worker> {
        &self.flusher
    }

    /// Counts a command that is about to be accepted, and wakes the poller for it.
    #[inline]
    pub fn expect(&self) -> Expected<'_> {
        // Sequentially consistent with the poller's going to sleep: it sees the command, or is seen to sleep.
        let number = self.n_accepted.0.fetch_add(1, Ordering::SeqCst);
        self.bell.ring();
        Expected { counts: self, number }
    }

    /// Counts a command that has ended or was refused.
    pub fn end(&self) {
        self.n_ended.0.fetch_add(1, Ordering::SeqCst);
    }

    /// How many commands were counted so far.
    pub fn n_accepted(&self) -> u64 {
        self.n_accepted.0.load(Ordering::SeqCst)
    }

    /// Whether there are commands that have not ended.
    pub fn has_commands(&self) -> bool {
        // The ended first: a command is accepted before it ends.
        self.n_ended.0.load(Ordering::SeqCst) != self.n_accepted()
    }
}

/// The unfinished commands of a device, all of its queues together.
pub trait Progress: Send + Sync {
    /// The device's counts.
    fn counts(&self) -> &Counts;

    /// Polls the device, and reports the commands that have ended. Returns whether there were any. If `is_idle`, the device has had nothing to
    /// do for a while, and what had to wait for that is done, too.
    fn poll(&self, is_idle: bool) -> bool;

    /// Issues some of the held-back commands. Returns after how long the call is to be repeated, or `None` if no command is held back.
    /// Called repeatedly by the flusher thread. Runs no user code.
    fn hand_over(&self) -> Option<Duration> {
        None
    }
}

/// Makes sure that the poller of a queue runs, if it needs one, and a flusher thread if it holds commands back.
///
/// # Errors
/// If no thread can be started.
pub fn start(info: &QueueInfo) -> io::Result<()> {
    let Some(progress) = &info.progress else { return Ok(()) };
    let weak = Arc::downgrade(progress);
    if info.holds_back {
        let (weak, flusher) = (weak.clone(), progress.counts().flusher.clone());
        progress.counts().flusher.wake(|| spawn("oxisycl-flush".to_owned(), move || flush(&weak, &flusher)))?;
    }
    let bell = progress.counts().bell.clone();
    progress.counts().bell.wake(|| spawn("oxisycl-poll".to_owned(), move || run(&weak, &bell)))
}

fn run(weak: &Weak<dyn Progress>, bell: &Worker) {
    make_naps_exact();
    let mut last_end = Instant::now();
    let mut n_accepted = 0;
    while let Some(progress) = weak.upgrade() {
        if progress.counts().is_foreign() {
            return;
        }
        let has_ended = progress.poll(false);
        let is_fed = n_accepted != progress.counts().n_accepted();
        n_accepted = progress.counts().n_accepted();
        let has_commands = progress.counts().has_commands();
        drop(progress);
        if has_ended {
            last_end = Instant::now();
        }
        let idle = last_end.elapsed();
        if is_fed {
            bell.nap(BUSY_NAP);
        } else if has_commands || idle < LINGER {
            std::thread::sleep((idle / 64).clamp(SHORTEST_NAP, LONGEST_NAP));
        } else {
            // What comes up after this poll rings the bell.
            bell.sleep(|| {
                weak.upgrade().is_none_or(|progress| progress.poll(true) || progress.counts().has_commands())
            });
            last_end = Instant::now();
        }
    }
}

/// The loop of the flusher thread, which issues held-back commands. This is a thread of its own, because the poller runs wakers of users. A
/// waker that blocks on a held-back command would keep the poller from issuing that command.
fn flush(weak: &Weak<dyn Progress>, flusher: &Worker) {
    make_naps_exact();
    let has_many = std::thread::available_parallelism().is_ok_and(|n| n.get() >= MANY_PROCESSORS);
    let spin = if has_many { FLUSHER_SPIN } else { Duration::ZERO };
    let mut last = Instant::now();
    while let Some(progress) = weak.upgrade() {
        if progress.counts().is_foreign() {
            return;
        }
        let next = hand_over(&*progress, &mut last, spin);
        drop(progress);
        match next {
            Some(time) => std::thread::sleep(time),
            None if last.elapsed() < FLUSHER_LINGER => std::thread::sleep(FLUSHER_NAP),
            None => {
                flusher.sleep(|| weak.upgrade().is_none_or(|progress| progress.hand_over().is_some()));
                last = Instant::now();
            }
        }
    }
}

/// Calls [`Progress::hand_over`] again and again while there is something to do soon, and for a while after that. Returns the result of the
/// last call.
fn hand_over(progress: &dyn Progress, last: &mut Instant, spin: Duration) -> Option<Duration> {
    let begin = Instant::now();
    loop {
        let next = progress.hand_over();
        let now = Instant::now();
        if next.is_some() {
            *last = now;
        }
        let goes_on = next.map_or(now - *last < spin, |time| time.is_zero() || time < spin);
        if !goes_on || now - begin > FLUSHER_TURN {
            return next;
        }
        // Looks at nothing meanwhile that others write.
        let until = now + next.unwrap_or_default();
        std::hint::spin_loop();
        while Instant::now() < until {
            std::hint::spin_loop();
        }
    }
}

/// Reduces the timer slack of the calling thread: by default Linux ends short sleeps up to 50 us late, to save power.
#[cfg(all(target_os = "linux", not(miri)))]
fn make_naps_exact() {
    // SAFETY: changes only how exactly the calling thread's timers are kept.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1000) };
}

#[cfg(not(all(target_os = "linux", not(miri))))]
fn make_naps_exact() {}

#[cfg(all(test, loom))]
mod loom_tests {
    use loom::model;
    use loom::thread;

    use super::*;

    /// The sleeping protocol of the poller: polls until `n_commands` commands have ended.
    fn poll_for(counts: &Counts, n_commands: u64) {
        for _ in 0..n_commands {
            while !counts.has_commands() {
                counts.bell().sleep(|| counts.has_commands());
            }
            counts.end();
        }
    }

    #[test]
    fn loom_a_command_that_was_counted_is_polled_for() {
        for n_commands in [1, 2] {
            model(move || {
                let counts = Arc::new(Counts::default());
                let mut poller = None;
                let start = || {
                    let counts = counts.clone();
                    let thread = thread::spawn(move || poll_for(&counts, n_commands));
                    let handle = thread.thread().clone();
                    poller = Some(thread);
                    Ok(handle)
                };
                counts.bell().wake(start).expect("a model has threads");
                for _ in 0..n_commands {
                    counts.expect().accept();
                }
                poller.expect("it was started").join().expect("the poller ends");
                assert!(!counts.has_commands());
            });
        }
    }

    #[test]
    fn loom_a_poller_ends_when_its_bell_is_closed() {
        model(|| {
            let counts = Arc::new(Counts::default());
            let other = counts.clone();
            let thread = thread::spawn(move || other.bell().sleep(|| false));
            let handle = thread.thread().clone();
            counts.bell().wake(|| Ok(handle)).expect("a model has threads");
            counts.bell().close();
            thread.join().expect("the poller ends");
        });
    }
}
