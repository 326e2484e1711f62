//! Slows a thread down that submits faster than the devices work. Without that, a long loop of submissions would fill
//! the memory with waiting commands (about 800 bytes each).
//!
//! Invariants: a pause ends by itself after [`LONGEST`], whether or not any command ends meanwhile. So submitting never
//! waits for a device. The pausing thread keeps its processor: a thread that gives it away under load gets it back tens
//! of milliseconds later. After a pause in which no command ended there is none until one has. Commands that a host
//! task or a host accessor holds back wait for the host, and no pause helps them.

use std::cell::Cell;
use std::hint;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::observe::counters;

/// Commands of the process that may be unfinished without anybody being slowed down.
const PLENTY: u64 = 8192;
/// A thread looks once in so many submissions, and pauses at most once.
const EVERY: u32 = 64;
/// A device that runs more than 0.6 commands a microsecond keeps up with a thread that pauses. With a look at the clock it stays below
/// the 0.1 ms that the semantics promises (8.1).
const LONGEST: Duration = Duration::from_micros(95);

/// How many commands had ended when a pause passed in which none did.
static FRUITLESS: AtomicU64 = AtomicU64::new(u64::MAX);

/// Called once per submission, without locks.
#[inline]
pub(super) fn pace() {
    thread_local! {
        static SUBMISSIONS: Cell<u32> = const { Cell::new(0) };
    }
    let count = SUBMISSIONS.with(|count| {
        count.set(count.get().wrapping_add(1));
        count.get()
    });
    if count.is_multiple_of(EVERY) && counters().unfinished_nodes() > PLENTY {
        let began = Instant::now();
        pause(&|| counters().unfinished_nodes(), &|| counters().ended_nodes(), &FRUITLESS, &|| began.elapsed());
    }
}

/// `elapsed` tells how long the pause has lasted.
#[cold]
fn pause(unfinished: &dyn Fn() -> u64, ended: &dyn Fn() -> u64, fruitless: &AtomicU64, elapsed: &dyn Fn() -> Duration) {
    let before = ended();
    // Only a hint: a pause too many or too few does no harm.
    if fruitless.load(Ordering::Relaxed) == before {
        return;
    }
    while unfinished() > PLENTY {
        if elapsed() >= LONGEST {
            if ended() == before {
                fruitless.store(before, Ordering::Relaxed);
            }
            return;
        }
        hint::spin_loop();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::AtomicBool;
    use std::thread;

    use super::*;

    /// A clock that goes on by a microsecond with each look.
    fn clock() -> impl Fn() -> Duration {
        let microseconds = Cell::new(0);
        move || Duration::from_micros(microseconds.replace(microseconds.get() + 1))
    }

    #[test]
    fn a_pause_ends_as_soon_as_few_enough_are_unfinished() {
        let (left, fruitless) = (Cell::new(PLENTY + 3), AtomicU64::new(u64::MAX));
        pause(&|| left.replace(left.get() - 1), &|| 0, &fruitless, &clock());
        assert_eq!((left.get(), fruitless.into_inner()), (PLENTY - 1, u64::MAX));
    }

    #[test]
    fn while_commands_are_held_back_one_pause_is_tried_and_no_more() {
        let (n_looks, ended, fruitless) = (Cell::new(0_u64), Cell::new(5), AtomicU64::new(u64::MAX));
        let unfinished = || {
            n_looks.set(n_looks.get() + 1);
            PLENTY + 1
        };
        let pause = || pause(&unfinished, &|| ended.get(), &fruitless, &clock());
        pause();
        let looks = n_looks.get();
        assert!(looks > 0);
        for _ in 0..1000 {
            pause();
        }
        assert_eq!(n_looks.get(), looks, "nothing has ended since");
        ended.set(6);
        pause();
        assert!(n_looks.get() > looks);
    }

    #[test]
    fn a_pause_ends_with_the_first_look_at_the_clock_after_its_time() {
        assert!(LONGEST < Duration::from_micros(100) && EVERY >= 64, "the semantics promises 0.1 ms in 64 submissions");
        for step in [1, 7, 30, 95] {
            let (n_ended, microseconds) = (Cell::new(0), Cell::new(0));
            let elapsed = || Duration::from_micros(microseconds.replace(microseconds.get() + step));
            // Commands end all the time, but never enough of them.
            let ended = || n_ended.replace(n_ended.get() + 1);
            pause(&|| PLENTY + 1, &ended, &AtomicU64::new(u64::MAX), &elapsed);
            let last_look = microseconds.get() - step;
            assert_eq!(last_look, (LONGEST.as_micros() as u64).next_multiple_of(step), "looks every {step} us");
        }
    }

    /// A thread that gives its processor away gets it back when others have used up their time, milliseconds later.
    #[test]
    fn a_pause_keeps_the_processor_while_others_want_it() {
        let n_busy = 2 * thread::available_parallelism().map_or(1, |n| n.get());
        let (are_there, is_over) = (Barrier::new(n_busy + 1), AtomicBool::new(false));
        let middle = thread::scope(|scope| {
            for _ in 0..n_busy {
                scope.spawn(|| {
                    are_there.wait();
                    while !is_over.load(Ordering::Relaxed) {
                        hint::spin_loop();
                    }
                });
            }
            are_there.wait();
            let mut pauses: Vec<Duration> = (0..41)
                .map(|number| {
                    let began = Instant::now();
                    pause(&|| PLENTY + 1, &|| number, &AtomicU64::new(u64::MAX), &|| began.elapsed());
                    began.elapsed()
                })
                .collect();
            is_over.store(true, Ordering::Relaxed);
            pauses.sort();
            pauses[pauses.len() / 2]
        });
        // The system itself may take the processor away, but not in every second tenth of a millisecond.
        assert!((LONGEST..Duration::from_millis(1)).contains(&middle), "half of the pauses take {middle:?} or more");
    }
}
