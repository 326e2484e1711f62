//! Litmus tests of the memory model. Two or four work-items of different groups race on a few words, many pairs at a time. Outcomes that
//! the orders of their operations forbid must not occur.
//!
//! A pair's members are half a launch apart, so that they are in different groups of a device. The words of a pair are far from each
//! other in memory. Rounds follow each other without a launch between: the words of each round are its own. That a race takes place
//! is not promised, so that only forbidden outcomes fail a test. The same races without any order may have that outcome, and the number of
//! times is written to standard error. A device where they never have it has shown little.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicU32, fence};

use oxisycl::prelude::*;

use crate::harness::{Env, kernels};

kernels![
    message_passing_by_release_and_acquire,
    message_passing_by_fences,
    message_passing_by_exchange,
    store_buffering_in_sequential_consistency,
    store_buffering_by_fences,
    load_buffering_by_acquire_and_release,
    coherence_of_one_word,
    independent_reads_of_independent_writes,
];

/// Racing groups of work-items.
const RACES: usize = 1 << 14;
/// Races of each in turn.
const ROUNDS: usize = 16;
/// What was read when nothing was.
const NOTHING: u32 = 9;

/// The words of one race.
#[derive(Clone, Copy)]
struct Race {
    words: *mut u32,
    seen: *mut u32,
    race: usize,
}

impl Race {
    fn word(&self, index: usize) -> &AtomicU32 {
        // SAFETY: below `2 * ROUNDS * RACES`, the number of words; they live for the launch and are only accessed atomically.
        unsafe { AtomicU32::from_ptr(self.words.add(index * ROUNDS * RACES + self.race)) }
    }

    fn x(&self) -> &AtomicU32 {
        self.word(0)
    }

    fn y(&self) -> &AtomicU32 {
        self.word(1)
    }

    /// Tells what was read in one of four places.
    fn see(&self, place: usize, value: u32) {
        // SAFETY: below `4 * ROUNDS * RACES`, the number of places; each is written by one work-item only.
        unsafe { self.seen.add(self.race * 4 + place).write(value) }
    }
}

/// Runs the race with `MEMBERS` work-items each, and asserts that no race saw what is forbidden.
fn race<const MEMBERS: usize>(
    env: &Env,
    member: impl Fn(&Race, usize) + Copy + Send + Sync + 'static,
    is_forbidden: fn([u32; 4]) -> bool,
) {
    let (found, n) = outcomes::<MEMBERS>(env, member, is_forbidden);
    assert_eq!(found, 0, "of {n} races saw what the memory model forbids");
}

/// Tells how often races without order see what others must not.
fn tell_weak(
    env: &Env,
    what: &str,
    member: impl Fn(&Race, usize) + Copy + Send + Sync + 'static,
    is_weak: fn([u32; 4]) -> bool,
) {
    let (found, n) = outcomes::<2>(env, member, is_weak);
    eprintln!("{what} without order: {found} of {n} races saw what is forbidden with it");
}

/// Runs the race, and counts those whose outcome is meant, among how many.
fn outcomes<const MEMBERS: usize>(
    env: &Env,
    member: impl Fn(&Race, usize) + Copy + Send + Sync + 'static,
    is_meant: fn([u32; 4]) -> bool,
) -> (usize, usize) {
    let n = ROUNDS * RACES;
    let words = Buffer::from_vec(vec![0_u32; 2 * n]).expect("a buffer");
    let seen = Buffer::from_vec(vec![NOTHING; 4 * n]).expect("a buffer");
    let submitted = env.queue().submit(|cg| {
        let (words, seen) = (cg.access(&words, ReadWrite), cg.access(&seen, ReadWrite));
        cg.parallel_for(MEMBERS * RACES, move |item| {
            let (role, place) = (item.index() / RACES, item.index() % RACES);
            for round in 0..ROUNDS {
                let race = Race { words: words.as_ptr(), seen: seen.as_ptr(), race: round * RACES + place };
                member(&race, role);
            }
        })
    });
    env.finish(submitted);
    let seen = seen.to_vec().expect("what was seen");
    assert!(seen.iter().any(|value| *value != NOTHING), "nothing was seen at all");
    (seen.as_chunks::<4>().0.iter().filter(|seen| is_meant(**seen)).count(), n)
}

/// A writer and a reader without any order.
fn relaxed_message(race: &Race, role: usize) {
    if role == 0 {
        race.x().store(1, Relaxed);
        race.y().store(1, Relaxed);
    } else {
        race.see(0, race.y().load(Relaxed));
        race.see(1, race.x().load(Relaxed));
    }
}

/// Two that write and then read without any order.
fn relaxed_stores(race: &Race, role: usize) {
    let (mine, other) = if role == 0 { (race.x(), race.y()) } else { (race.y(), race.x()) };
    mine.store(1, Relaxed);
    race.see(role, other.load(Relaxed));
}

fn message_passing_by_release_and_acquire(env: &Env) {
    let member = |race: &Race, role: usize| {
        if role == 0 {
            race.x().store(1, Relaxed);
            race.y().store(1, Release);
        } else {
            race.see(0, race.y().load(Acquire));
            race.see(1, race.x().load(Relaxed));
        }
    };
    let is_lost: fn([u32; 4]) -> bool = |[flag, data, ..]| flag == 1 && data == 0;
    race::<2>(env, member, is_lost);
    tell_weak(env, "message passing", relaxed_message, is_lost);
}

fn message_passing_by_fences(env: &Env) {
    let member = |race: &Race, role: usize| {
        if role == 0 {
            race.x().store(1, Relaxed);
            fence(Release);
            race.y().store(1, Relaxed);
        } else {
            race.see(0, race.y().load(Relaxed));
            fence(Acquire);
            race.see(1, race.x().load(Relaxed));
        }
    };
    race::<2>(env, member, |[flag, data, ..]| flag == 1 && data == 0);
}

fn message_passing_by_exchange(env: &Env) {
    // The flag is passed by read-modify-write operations, whose order LLVM's code generator drops.
    let member = |race: &Race, role: usize| {
        if role == 0 {
            race.x().store(1, Relaxed);
            race.y().fetch_add(1, AcqRel);
        } else {
            race.see(0, race.y().fetch_or(0, AcqRel));
            race.see(1, race.x().load(Relaxed));
        }
    };
    race::<2>(env, member, |[flag, data, ..]| flag == 1 && data == 0);
}

fn store_buffering_in_sequential_consistency(env: &Env) {
    let member = |race: &Race, role: usize| {
        let (mine, other) = if role == 0 { (race.x(), race.y()) } else { (race.y(), race.x()) };
        mine.store(1, SeqCst);
        race.see(role, other.load(SeqCst));
    };
    let is_lost: fn([u32; 4]) -> bool = |[a, b, ..]| a == 0 && b == 0;
    race::<2>(env, member, is_lost);
    tell_weak(env, "store buffering", relaxed_stores, is_lost);
}

fn store_buffering_by_fences(env: &Env) {
    let member = |race: &Race, role: usize| {
        let (mine, other) = if role == 0 { (race.x(), race.y()) } else { (race.y(), race.x()) };
        mine.store(1, Relaxed);
        fence(SeqCst);
        race.see(role, other.load(Relaxed));
    };
    race::<2>(env, member, |[a, b, ..]| a == 0 && b == 0);
}

fn load_buffering_by_acquire_and_release(env: &Env) {
    let member = |race: &Race, role: usize| {
        let (mine, other) = if role == 0 { (race.x(), race.y()) } else { (race.y(), race.x()) };
        race.see(role, mine.load(Acquire));
        other.store(1, Release);
    };
    race::<2>(env, member, |[a, b, ..]| a == 1 && b == 1);
}

fn coherence_of_one_word(env: &Env) {
    let member = |race: &Race, role: usize| {
        if role == 0 {
            race.x().store(1, Relaxed);
            race.x().store(2, Relaxed);
        } else {
            race.see(0, race.x().load(Relaxed));
            race.see(1, race.x().load(Relaxed));
        }
    };
    race::<2>(env, member, |[first, second, ..]| first != NOTHING && second < first);
}

fn independent_reads_of_independent_writes(env: &Env) {
    let member = |race: &Race, role: usize| match role {
        0 => race.x().store(1, SeqCst),
        1 => race.y().store(1, SeqCst),
        2 => {
            race.see(0, race.x().load(SeqCst));
            race.see(1, race.y().load(SeqCst));
        }
        _ => {
            race.see(2, race.y().load(SeqCst));
            race.see(3, race.x().load(SeqCst));
        }
    };
    race::<4>(env, member, |[x, y_after, y, x_after]| (x, y_after, y, x_after) == (1, 0, 1, 0));
}
