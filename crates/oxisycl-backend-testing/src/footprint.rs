//! Memory that a process holds for its commands, for tests of how much that is.
//!
//! Bytes are those of the process, so such tests are run [`alone`]. Does not see what a driver allocates, except in [`resident`].

use std::alloc::{GlobalAlloc, Layout, System};
use std::process::Command as Process;
use std::sync::atomic::{AtomicI64, Ordering};

use crate::suite;

/// Bytes that the program has allocated and not freed.
static ALLOCATED: AtomicI64 = AtomicI64::new(0);

/// The system's allocator, which counts. For `#[global_allocator]` of a program of tests.
pub struct Counting;

// SAFETY: the system's allocator does everything; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATED.fetch_add(layout.size() as i64, Ordering::Relaxed);
        // SAFETY: by the contract of this function.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        ALLOCATED.fetch_sub(layout.size() as i64, Ordering::Relaxed);
        // SAFETY: by the contract of this function.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// Bytes that the program has allocated by [`Counting`] and not freed. A library with an allocator of its own, as drivers are, is not seen.
pub fn allocated() -> i64 {
    ALLOCATED.load(Ordering::Relaxed)
}

/// Bytes of the process that are in memory; 0 where the system does not tell.
pub fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kibibytes = line.and_then(|line| line.split_whitespace().next()?.parse::<usize>().ok());
    kibibytes.unwrap_or(0) << 10
}

/// Runs the test that is called `name` in a process of its own. A runner that starts each test in a process anyway runs it at once.
///
/// # Panics
/// If the test fails in its process, or the process cannot be started.
pub fn alone(name: &str, test: impl FnOnce()) {
    const CHILD: &str = "TEST_RUNS_ALONE";
    if std::env::var_os(CHILD).is_some_and(|of| of == name) || std::env::var_os("NEXTEST").is_some() {
        return test();
    }
    let program = std::env::current_exe().expect("a program has a path");
    let output = Process::new(program).args([name, "--exact", "--nocapture"]).env(CHILD, name).output();
    let output = output.expect("a program can be started again");
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{name}, in a process of its own: {text}");
    if !text.contains("1 passed") {
        suite::skip(format!("not run in a process of its own: {text}"));
    }
}
