//! The print buffers of a queue's launches.
//!
//! Invariants: a buffer belongs to one launch at a time. A launch that finds none free is held back on the host behind the last user of the
//! one that comes next in turn; as users are all older than it, that one ends without it. Nothing is made before the first launch
//! that may print. The content of a buffer is never trusted. What a buffer is, and who frees it, is the backend's business.

use std::sync::{Arc, Weak};

use oxisycl_image::{PanicSite, Printed, read_print_buffer};
use oxisycl_types::PrintHeader;
use parking_lot::{Mutex, MutexGuard};

use super::DriverTask;
use crate::KernelOutput;

/// Most launches of a queue that print at the same time.
const MOST_BUFFERS: usize = 16;

/// Buffers of the type `B` for launches of the type `U`, which use them until they have ended.
#[derive(Debug)]
pub struct PrintPool<B, U> {
    capacity: u32,
    state: Mutex<State<B, U>>,
}

#[derive(Debug)]
struct State<B, U> {
    slots: Vec<Slot<B, U>>,
    /// The slot that was used last.
    last: usize,
}

#[derive(Debug)]
struct Slot<B, U> {
    buffer: B,
    /// The last launch that got it.
    user: Weak<U>,
}

/// A buffer for a launch that is being enqueued. No other launch of the queue gets one as long as this exists.
#[derive(Debug)]
pub struct Reservation<'p, B, U> {
    state: MutexGuard<'p, State<B, U>>,
    index: usize,
}

impl<B: Clone, U: DriverTask> PrintPool<B, U> {
    /// An empty pool of buffers with so many bytes for records, or with as many as a buffer can have.
    pub fn new(capacity: u32) -> Self {
        let state = State { slots: Vec::new(), last: 0 };
        Self { capacity: capacity.min(PrintHeader::MAX_CAPACITY), state: Mutex::new(state) }
    }

    /// A buffer that is free, else one that `make` makes with the pool's capacity, else the one whose turn it is.
    ///
    /// # Errors
    /// That of `make`.
    pub fn reserve<E>(&self, make: impl FnOnce(u32) -> Result<B, E>) -> Result<Reservation<'_, B, U>, E> {
        let mut state = self.state.lock();
        let free = state.slots.iter().position(|slot| slot.open_user().is_none());
        let index = match free {
            Some(index) => index,
            None if state.slots.len() < MOST_BUFFERS => {
                let buffer = make(self.capacity)?;
                state.slots.push(Slot { buffer, user: Weak::new() });
                state.slots.len() - 1
            }
            None => (state.last + 1) % MOST_BUFFERS,
        };
        Ok(Reservation { state, index })
    }

    /// Gives the buffers away. Launches hold the pool until they have ended, so that nobody uses them.
    pub fn take_all(&mut self) -> impl Iterator<Item = B> {
        self.state.get_mut().slots.drain(..).map(|slot| slot.buffer)
    }
}

impl<B, U: DriverTask> Slot<B, U> {
    /// The launch that uses it, if it has not ended.
    fn open_user(&self) -> Option<Arc<U>> {
        self.user.upgrade().filter(|user| !user.has_ended())
    }
}

impl<B: Clone, U: DriverTask> Reservation<'_, B, U> {
    /// The buffer.
    pub fn buffer(&self) -> B {
        self.state.slots[self.index].buffer.clone()
    }

    /// The launch that still uses the buffer.
    pub fn open_user(&self) -> Option<Arc<U>> {
        self.state.slots[self.index].open_user()
    }

    /// Gives the buffer to a launch that was accepted.
    pub fn set_user(&mut self, user: &Arc<U>) {
        let index = self.index;
        self.state.slots[index].user = Arc::downgrade(user);
        self.state.last = index;
    }
}

/// Tells what a launch has printed, by the bytes of its buffer, which has room for `capacity` bytes of records.
pub fn tell_printed(bytes: &[u8], capacity: u32, sites: &[PanicSite], tell: &mut dyn FnMut(KernelOutput<'_>)) {
    let Printed { n_lost, n_unreadable } = read_print_buffer(bytes, sites, &mut |text| tell(KernelOutput::Text(text)));
    if n_unreadable > 0 {
        tell(KernelOutput::Unreadable { bytes: n_unreadable });
    }
    if n_lost > 0 {
        tell(KernelOutput::Lost { count: n_lost, capacity });
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;
    use crate::{Command, CommandFailure, Event, EventStatus};

    #[derive(Default)]
    struct Launch(AtomicBool);

    impl Event for Launch {
        fn status(&self) -> EventStatus {
            EventStatus::Running
        }
    }

    impl DriverTask for Launch {
        fn command(&self) -> &Command {
            &Command::Marker
        }

        fn device_name(&self) -> &str {
            "fake"
        }

        fn has_ended(&self) -> bool {
            self.0.load(Ordering::Relaxed)
        }

        fn failure(&self) -> Option<CommandFailure> {
            None
        }

        fn known_failure(&self) -> Option<CommandFailure> {
            None
        }
    }

    /// Reserves a buffer, whose number is that of those made before it, for a launch.
    fn reserve(pool: &PrintPool<usize, Launch>, n_made: &mut usize) -> (usize, Option<Arc<Launch>>, Arc<Launch>) {
        let made = pool.reserve(|_| {
            *n_made += 1;
            Ok::<_, Infallible>(*n_made - 1)
        });
        let Ok(mut reservation) = made;
        let (buffer, before, launch) = (reservation.buffer(), reservation.open_user(), Arc::new(Launch::default()));
        reservation.set_user(&launch);
        (buffer, before, launch)
    }

    #[test]
    fn a_buffer_is_used_again_once_its_launch_has_ended() {
        let (pool, mut n_made) = (PrintPool::new(100), 0);
        let (first, _, launch) = reserve(&pool, &mut n_made);
        let (second, before, _kept) = reserve(&pool, &mut n_made);
        assert!(first != second && before.is_none());
        launch.0.store(true, Ordering::Relaxed);
        assert_eq!((reserve(&pool, &mut n_made).0, n_made), (first, 2));
    }

    #[test]
    fn launches_beyond_the_last_buffer_come_after_its_users_in_turn() {
        let (pool, mut n_made) = (PrintPool::new(100), 0);
        let launches: Vec<_> = (0..MOST_BUFFERS).map(|_| reserve(&pool, &mut n_made)).collect();
        assert_eq!(n_made, MOST_BUFFERS);
        // Buffers stay in use, by those that wait.
        let mut waiting = Vec::new();
        for (expected, _, user) in &launches {
            let (buffer, before, later) = reserve(&pool, &mut n_made);
            assert!(buffer == *expected && before.is_some_and(|before| Arc::ptr_eq(&before, user)));
            waiting.push(later);
        }
        assert_eq!(n_made, MOST_BUFFERS);
    }

    #[test]
    fn a_buffer_that_cannot_be_made_is_an_error_and_is_tried_again() {
        let pool: PrintPool<u32, Launch> = PrintPool::new(u32::MAX);
        assert_eq!(pool.reserve(|_| Err("no memory")).err(), Some("no memory"));
        let reservation = pool.reserve(Ok::<_, &str>).expect("memory");
        assert_eq!(reservation.buffer(), PrintHeader::MAX_CAPACITY);
    }
}
