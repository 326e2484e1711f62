//! Panic hooks that are installed in front of the existing one.
//!
//! A hook that a user sets later replaces them.

use std::panic::{self, PanicHookInfo};
use std::sync::Once;

/// Installs a panic hook that calls `see` and then the hook that was there before. Does so once. On a thread that is panicking this is not
/// possible, and a later call does it.
pub fn put_in_front(done: &Once, see: fn(&PanicHookInfo<'_>)) {
    if done.is_completed() || std::thread::panicking() {
        return;
    }
    done.call_once(|| {
        let previous = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            see(info);
            previous(info);
        }));
    });
}
