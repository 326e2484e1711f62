//! Loading code waits for all kernels, and no kernel is launched meanwhile, if the test wants it so.

use std::sync::{Condvar, Mutex};

use crate::config;

struct State {
    /// Kernels that were launched and have not ended.
    n_launched: usize,
    n_loading: usize,
}

static STATE: Mutex<State> = Mutex::new(State { n_launched: 0, n_loading: 0 });
static CHANGED: Condvar = Condvar::new();

fn is_on() -> bool {
    config(|config| config.loads_wait) || std::env::var_os("FAKE_DRIVER_LOADS_WAIT").is_some()
}

/// A launch of kernels that have not ended.
pub struct Launched;

impl Launched {
    /// Waits until no code is being loaded.
    pub fn new() -> Self {
        let mut state = STATE.lock().unwrap();
        while state.n_loading > 0 {
            state = CHANGED.wait(state).unwrap();
        }
        state.n_launched += 1;
        Self
    }
}

impl Drop for Launched {
    fn drop(&mut self) {
        STATE.lock().unwrap().n_launched -= 1;
        CHANGED.notify_all();
    }
}

/// Waits as a load does.
pub fn wait_for_kernels() {
    if !is_on() {
        return;
    }
    let mut state = STATE.lock().unwrap();
    state.n_loading += 1;
    while state.n_launched > 0 {
        state = CHANGED.wait(state).unwrap();
    }
    state.n_loading -= 1;
    CHANGED.notify_all();
}
