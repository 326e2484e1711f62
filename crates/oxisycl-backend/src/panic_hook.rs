//! Panic hooks in front of the one that is there.
//!
//! A user who sets a hook later replaces them.

use std::panic::{self, PanicHookInfo};
use std::sync::Once;

/// Has `see` called before the panic hook of now, unless that was done. Not possible on a thread that is panicking; a later call then does it.
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
