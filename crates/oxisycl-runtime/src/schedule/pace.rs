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
/// A device that runs more than 0.6 commands a microsecond keeps up with a thread that pauses.
const LONGEST: Duration = Duration::from_micros(100);

/// How many commands had ended when a pause passed in which none did.
static FRUITLESS: AtomicU64 = AtomicU64::new(u64::MAX);

/// Called once per submission, without locks.
#[inline]
pub(super) fn pace() {
    thread_local! {
        static SUBMISSIONS: Cell<u32> = const { Cell::new(0) };
    }
    let count = SUBMISSIONS.get().wrapping_add(1);
    SUBMISSIONS.set(count);
    if count.is_multiple_of(EVERY) && counters().unfinished_nodes() > PLENTY {
        pause(&|| counters().unfinished_nodes(), &|| counters().ended_nodes(), &FRUITLESS);
    }
}

#[cold]
fn pause(unfinished: &dyn Fn() -> u64, ended: &dyn Fn() -> u64, fruitless: &AtomicU64) {
    let before = ended();
    // Only a hint: a pause too many or too few does no harm.
    if fruitless.load(Ordering::Relaxed) == before {
        return;
    }
    let began = Instant::now();
    while unfinished() > PLENTY {
        if began.elapsed() >= LONGEST {
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
    use super::*;

    #[test]
    fn a_pause_ends_as_soon_as_few_enough_are_unfinished() {
        let (left, fruitless) = (Cell::new(PLENTY + 3), AtomicU64::new(u64::MAX));
        pause(&|| left.replace(left.get() - 1), &|| 0, &fruitless);
        assert_eq!((left.get(), fruitless.into_inner()), (PLENTY - 1, u64::MAX));
    }

    #[test]
    fn while_commands_are_held_back_one_pause_is_tried_and_no_more() {
        let (n_looks, ended, fruitless) = (Cell::new(0_u64), Cell::new(5), AtomicU64::new(u64::MAX));
        let unfinished = || {
            n_looks.set(n_looks.get() + 1);
            PLENTY + 1
        };
        let began = Instant::now();
        pause(&unfinished, &|| ended.get(), &fruitless);
        assert!(n_looks.get() > 0 && began.elapsed() >= LONGEST);
        let looks = n_looks.get();
        for _ in 0..1000 {
            pause(&unfinished, &|| ended.get(), &fruitless);
        }
        assert_eq!(n_looks.get(), looks, "nothing has ended since");
        ended.set(6);
        pause(&unfinished, &|| ended.get(), &fruitless);
        assert!(n_looks.get() > looks);
    }
}
