//! Epochs: groups of commands of one queue, so that "everything submitted so far" can be waited for without a list of it.
//!
//! Every unfinished command holds its queue's current epoch. Rotating starts a new epoch. The old one dies when its
//! commands and all older epochs have ended, since each epoch keeps the next newer one alive. An epoch's garbage is
//! dropped when it dies. So memory outlives all commands that were submitted before its owner was dropped.

use std::any::Any;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::Thread;

use parking_lot::Mutex;

/// A group of commands; see the module documentation.
#[derive(Default)]
pub struct Epoch {
    signal: Arc<EpochSignal>,
    garbage: Mutex<Vec<Box<dyn Any + Send>>>,
    next: OnceLock<Arc<Epoch>>,
}

/// Signals that an epoch has died.
#[derive(Default)]
pub struct EpochSignal {
    dead: AtomicBool,
    threads: Mutex<Vec<Thread>>,
}

impl Epoch {
    /// Replaces `current` by a new epoch and returns the signal of the old one. Returns `None` and keeps `current` if there is nothing to
    /// wait for: the epoch has no commands, and no older epoch is alive.
    pub fn rotate(current: &mut Arc<Self>) -> Option<Arc<EpochSignal>> {
        if Self::is_idle(current) {
            return None;
        }
        let next = Arc::new(Self::default());
        let old = std::mem::replace(current, next.clone());
        let already_linked = old.next.set(next).is_err();
        debug_assert!(!already_linked, "an epoch is rotated once");
        Some(old.signal.clone())
    }

    /// Keeps `garbage` until every command submitted before now has ended, then drops it.
    pub fn discard(current: &mut Arc<Self>, garbage: Box<dyn Any + Send>) {
        if Self::is_idle(current) {
            return;
        }
        current.garbage.lock().push(garbage);
        Self::rotate(current);
    }
}

impl Drop for Epoch {
    fn drop(&mut self) {
        // A loop instead of recursion: many epochs may die at once.
        let mut next = self.die();
        while let Some(mut epoch) = next {
            next = epoch.die();
        }
    }
}

impl Epoch {
    /// Ends this epoch. Returns the next newer one if that ends with it.
    fn die(&mut self) -> Option<Self> {
        self.garbage.get_mut().clear();
        // Released before the signal, so that a queue is idle for a thread that waited for it.
        let next = self.next.take().and_then(Arc::into_inner);
        self.signal.fire();
        next
    }

    /// Whether the epoch has no commands, and no older epoch is alive. If so, everything that the holders of the epoch did happened before
    /// this call.
    pub fn is_idle(current: &mut Arc<Self>) -> bool {
        // Not `strong_count` and a fence: ThreadSanitizer knows no fences, and would report what is freed after this.
        Arc::get_mut(current).is_some()
    }
}

impl EpochSignal {
    fn fire(&self) {
        self.dead.store(true, Ordering::Release);
        for thread in std::mem::take(&mut *self.threads.lock()) {
            thread.unpark();
        }
    }

    /// Whether the epoch has died.
    pub fn is_dead(&self) -> bool {
        self.dead.load(Ordering::Acquire)
    }

    /// Registers the current thread to be unparked when the epoch dies.
    pub(crate) fn register_thread(&self) {
        let thread = std::thread::current();
        let mut threads = self.threads.lock();
        if !threads.iter().any(|known| known.id() == thread.id()) {
            threads.push(thread);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_epoch_dies_after_its_commands_and_all_older_epochs() {
        let mut current = Arc::new(Epoch::default());
        assert!(Epoch::rotate(&mut current).is_none());
        let first = current.clone();
        let first_signal = Epoch::rotate(&mut current).unwrap();
        let second = current.clone();
        let second_signal = Epoch::rotate(&mut current).unwrap();
        drop(second);
        assert!(!second_signal.is_dead());
        drop(first);
        assert!(first_signal.is_dead() && second_signal.is_dead());
    }

    #[test]
    fn garbage_lives_as_long_as_the_commands_before_it() {
        let mut current = Arc::new(Epoch::default());
        let command = current.clone();
        let garbage = Arc::new(());
        Epoch::discard(&mut current, Box::new(garbage.clone()));
        assert_eq!(Arc::strong_count(&garbage), 2);
        drop(command);
        assert_eq!(Arc::strong_count(&garbage), 1);
    }

    #[test]
    fn many_epochs_can_die_at_once() {
        let mut current = Arc::new(Epoch::default());
        let first = current.clone();
        for _ in 0..if cfg!(miri) { 200 } else { 200_000 } {
            Epoch::discard(&mut current, Box::new(()));
            let _keep_counted = current.clone();
        }
        drop(current);
        drop(first);
    }
}
