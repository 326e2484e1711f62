//! Threads that run host tasks, and the runtime's own calls of user code that must not happen in a driver callback or `drop`.
//!
//! Grows whenever all threads are busy. A host task may block for as long as it likes, also for another host task, so a fixed pool could
//! deadlock. Idle threads end after a while. Invariant: a job never waits for another job to end before it starts.

use std::collections::VecDeque;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use crate::fork;

pub(super) type Job = Box<dyn FnOnce() + Send>;

const IDLE_TIME: Duration = Duration::from_secs(2);

#[derive(Default)]
struct State {
    /// Queued jobs with their numbers, oldest first.
    jobs: VecDeque<(u64, Job)>,
    n_spawned: u64,
    n_idle: usize,
}

#[derive(Default)]
struct Executor {
    /// The fork generation of the process that used the executor first; 0 before that.
    generation: AtomicU32,
    state: Mutex<State>,
    work: Condvar,
}

static EXECUTOR: LazyLock<Executor> = LazyLock::new(Executor::default);

/// Runs `job` on a thread of the executor. If no new thread can be started, the job waits for an existing one. If there is none at all, the
/// job is returned with the error.
pub(super) fn spawn(job: Job) -> Result<(), (Job, std::io::Error)> {
    let executor = &*EXECUTOR;
    let generation = fork::generation();
    let known = executor.generation.compare_exchange(0, generation, Ordering::Relaxed, Ordering::Relaxed);
    if known.is_err_and(|known| known != generation) {
        // The threads are the parent's, and the lock may be held for ever.
        return Err((job, std::io::Error::other("the process was forked after host tasks had run")));
    }
    let mut state = executor.state.lock();
    let number = state.n_spawned;
    state.n_spawned += 1;
    state.jobs.push_back((number, job));
    if state.n_idle >= state.jobs.len() {
        executor.work.notify_one();
        return Ok(());
    }
    drop(state);
    match std::thread::Builder::new().name("oxisycl-host-task".into()).spawn(run) {
        Ok(_) => Ok(()),
        Err(error) => {
            // This job, not just any: others may have come since, and this one may have begun on another thread.
            let jobs = &mut executor.state.lock().jobs;
            let own = jobs.iter().position(|(other, _)| *other == number);
            match own.and_then(|position| jobs.remove(position)) {
                Some((_, job)) => Err((job, error)),
                None => Ok(()),
            }
        }
    }
}

/// Runs `job` on a thread of the runtime, outside all locks. If no thread can be started, `job` runs on the calling thread.
pub(super) fn spawn_detached(job: Job) {
    if let Err((job, _)) = spawn(job) {
        job();
    }
}

fn run() {
    let executor = &*EXECUTOR;
    let mut state = executor.state.lock();
    loop {
        while let Some((_, job)) = state.jobs.pop_front() {
            drop(state);
            job();
            state = executor.state.lock();
        }
        state.n_idle += 1;
        let timed_out = executor.work.wait_for(&mut state, IDLE_TIME).timed_out();
        state.n_idle -= 1;
        if timed_out && state.jobs.is_empty() {
            return;
        }
    }
}
