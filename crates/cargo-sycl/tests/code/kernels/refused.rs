//! Kernels that no GPU can run, one construct each, with the warning that the build gives in `refused.stderr`.

use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use oxisycl::prelude::*;

static COUNTER: AtomicU32 = AtomicU32::new(0);
static LIMIT: u32 = 7;
/// Other code may change what these begin with, or look at what was stored.
static LEVEL: AtomicU32 = AtomicU32::new(1);
static KEPT: AtomicU32 = AtomicU32::new(u32::MAX);
static DONE: AtomicU32 = AtomicU32::new(0);
static FORCED: AtomicU32 = AtomicU32::new(0);
static ONCE: OnceLock<u32> = OnceLock::new();

thread_local! {
    static DEPTH: Cell<u32> = const { Cell::new(0) };
    static OWN: Cell<u32> = const { Cell::new(1) };
}

struct Link(u32, Option<Box<Link>>);

fn chain(n: u32) -> Option<Box<Link>> {
    (n > 0).then(|| Box::new(Link(n, chain(n / 2))))
}

fn linked_sum(n: u32) -> u32 {
    let (mut sum, mut next) = (0, chain(n));
    while let Some(link) = next {
        sum += link.0;
        next = link.1;
    }
    sum
}

fn size_of_file(x: u32) -> u32 {
    std::fs::read("Cargo.toml").map_or(x, |bytes| bytes.len() as u32)
}

fn in_a_thread(x: u32) -> u32 {
    std::thread::spawn(move || x + 1).join().unwrap_or(0)
}

fn deeper(x: u32) -> u32 {
    DEPTH.with(|depth| depth.replace(x))
}

fn assembled(x: u32) -> u32 {
    // SAFETY: it does nothing.
    unsafe { core::arch::asm!("nop", options(nomem, nostack)) };
    x
}

fn counted(x: u32) -> u32 {
    COUNTER.fetch_add(x, Ordering::Relaxed)
}

fn only_loaded(x: u32) -> u32 {
    x * LEVEL.load(Ordering::Relaxed)
}

fn only_stored(x: u32) -> u32 {
    DONE.store(1, Ordering::Relaxed);
    x
}

fn set_elsewhere(x: u32) -> u32 {
    ONCE.get().map_or(x, |factor| factor * x)
}

fn of_the_thread(x: u32) -> u32 {
    OWN.get() * x
}

#[cfg(target_arch = "x86_64")]
fn has_feature() -> bool {
    std::arch::is_x86_feature_detected!("avx2")
}

#[cfg(not(target_arch = "x86_64"))]
fn has_feature() -> bool {
    false
}

/// Would be a cache of the answer, if the host did not store something else there.
fn beside_a_question(x: u32) -> u32 {
    match KEPT.load(Ordering::Relaxed) {
        u32::MAX => {
            let answer = u32::from(has_feature());
            KEPT.store(answer, Ordering::Relaxed);
            x + answer
        }
        answer => x + answer,
    }
}

/// The host stores something else here in a function that asks the processor itself.
fn force(level: u32) {
    assert!(level != 2 || has_feature());
    FORCED.store(level, Ordering::Relaxed);
}

fn set_by_who_asks(x: u32) -> u32 {
    match FORCED.load(Ordering::Relaxed) {
        0 => {
            let level = 1 + u32::from(has_feature());
            FORCED.store(level, Ordering::Relaxed);
            x * level
        }
        level => x * level,
    }
}

fn update(buffer: &Buffer<u32, 1>, f: impl Fn(u32) -> u32 + Copy + Send + Sync + 'static) -> oxisycl::Result {
    let queue = Queue::builder().build()?;
    queue
        .submit(|cg| {
            let data = cg.access(buffer, ReadWrite);
            cg.parallel_for(64, move |item| data.update(item, f))
        })?
        .wait()
}

fn main() -> oxisycl::Result {
    let buffer = Buffer::from_vec(vec![1; 64])?;
    update(&buffer, linked_sum)?;
    update(&buffer, size_of_file)?;
    update(&buffer, in_a_thread)?;
    update(&buffer, deeper)?;
    update(&buffer, assembled)?;
    update(&buffer, counted)?;
    LEVEL.store(3, Ordering::Relaxed);
    KEPT.store(3, Ordering::Relaxed);
    force(3);
    update(&buffer, only_loaded)?;
    update(&buffer, only_stored)?;
    update(&buffer, set_elsewhere)?;
    update(&buffer, of_the_thread)?;
    update(&buffer, beside_a_question)?;
    update(&buffer, set_by_who_asks)?;
    // Every device can run this one.
    update(&buffer, move |x| x.min(LIMIT))
}
