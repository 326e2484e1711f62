//! Work-items of one group that wait for each other (SYCL 2020 section 3.8.3.4).
//!
//! The work-item that waits first stays on the stack of the thread. While it waits, it runs those behind it by turns, each on a stack of
//! its own. It stops when all wait at the same place, or when it is clear that they never will. A group without waiting work-items switches
//! no stacks, and every group stays on its thread.
//!
//! Invariants:
//! - The work-items behind the first one that waited run only within its calls of `wait`, `finish` and `abandon`. None of them is left when the last two
//!   return, so that they may use what lies in the frames of the entry.
//! - Nothing of a [`Waiting`] is borrowed while a work-item runs.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::env::VarError;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};
use oxisycl_backend::{BackendError, bytes_setting};
use oxisycl_types::{GroupSize, HostGroup, HostPlace, HostTurn, HostWaiting};

use crate::kernel::{Line, discard, message_of};
use crate::stacks::{Owner, Stacks};

/// The functions by which kernel code waits. They give each waiting work-item a stack.
pub(crate) static WAITING: HostWaiting = HostWaiting { wait, exchange, run, finish, abandon };

/// The environment variable that sets [`STACK`].
const VARIABLE: &str = "OXISYCL_ITEM_STACK";
/// The stack size of a waiting work-item in bytes; the system provides only the pages that are used. Set before the first kernel runs.
static STACK: AtomicUsize = AtomicUsize::new(DEFAULT_STACK);
const DEFAULT_STACK: usize = 256 << 10;
/// The stacks that a process may have before groups wait for each other. This is half of what Linux allows: a stack and its guard page are
/// two of 65530 memory mappings.
const MOST_STACKS: usize = 16384;

static STACKS: LazyLock<Stacks<DefaultStack>> =
    LazyLock::new(|| Stacks::new(MOST_STACKS, || DefaultStack::new(STACK.load(Ordering::Relaxed))));

/// Reads the stack size from the environment. Called once, before the host's threads start.
///
/// # Errors
/// [`BackendError::Setting`] if the variable has a wrong value.
pub(crate) fn read_stack_size() -> Result<(), BackendError> {
    STACK.store(stack_size(std::env::var(VARIABLE))?, Ordering::Relaxed);
    Ok(())
}

fn stack_size(setting: Result<String, VarError>) -> Result<usize, BackendError> {
    // Rust's own code for panics needs some of it.
    let allowed = 64 << 10..=1 << 30;
    let expected = "bytes from 64k to 1024M, or a number and k or M (powers of 1024)";
    bytes_setting(VARIABLE, setting, DEFAULT_STACK, allowed, expected)
}

thread_local! {
    /// The number of the thread's groups that hold stacks. The address of this variable identifies the thread.
    static HOLDING: Cell<usize> = const { Cell::new(0) };
}

/// The number of this thread, and how many of its groups hold stacks.
fn thread() -> (Owner, usize) {
    HOLDING.with(|holding| (ptr::from_ref(holding).addr(), holding.get()))
}

type Switch = Yielder<(), ()>;

#[derive(Clone, Copy, PartialEq, Eq)]
enum ItemState {
    /// Not begun, or resumed when its turn comes.
    Ready,
    /// Waits at the same place as the first work-item.
    AtSamePlace,
    /// Waits at another place, or while the first work-item does not wait.
    Waits(HostPlace),
    Ended,
}

/// A work-item after the one that waited first.
struct WaitingItem {
    state: Cell<ItemState>,
    /// The work-item's coroutine, once it has begun. Empty while it runs, and after it has ended.
    running: Cell<Option<Coroutine<(), (), ()>>>,
    switch: Cell<*const Switch>,
}

/// A group in which a work-item has waited.
struct Waiting {
    group: *const HostGroup<'static>,
    /// The local linear id of the work-item that waited first.
    first: usize,
    /// The place where the first work-item waits, while it waits.
    place: Cell<Option<HostPlace>>,
    others: Vec<WaitingItem>,
    /// Unused stacks: for work-items that have not begun, and of those that have ended.
    stacks: RefCell<Vec<DefaultStack>>,
    /// The number of the group's stacks; 0 before it has taken them.
    n_stacks: Cell<usize>,
    /// The reason of the group's failure. A kernel that catches it gets it again where it waits, and at the end.
    failure: RefCell<Option<String>>,
    memories: [RefCell<Vec<Line>>; 2],
}

/// The state of a group, made when its first work-item waits.
///
/// # Safety
/// The contract of [`HostWaiting::wait`]. The result is used no longer than until the next `finish` or `abandon`.
unsafe fn waiting_of<'w>(group: &HostGroup<'_>, item: usize) -> &'w Waiting {
    if group.waiting.get().is_null() {
        let other = || WaitingItem {
            state: Cell::new(ItemState::Ready),
            running: Cell::new(None),
            switch: Cell::new(ptr::null()),
        };
        let waiting = Waiting {
            group: ptr::from_ref(group).cast(),
            first: item,
            place: Cell::new(None),
            others: (item + 1..group.items).map(|_| other()).collect(),
            stacks: RefCell::new(Vec::new()),
            n_stacks: Cell::new(0),
            failure: RefCell::new(None),
            memories: [const { RefCell::new(Vec::new()) }; 2],
        };
        group.waiting.set(Box::into_raw(Box::new(waiting)).cast());
    }
    // SAFETY: made above, for this group, and freed by `finish` and `abandon`.
    unsafe { &*group.waiting.get().cast::<Waiting>() }
}

/// # Safety
/// See [`HostWaiting::wait`].
unsafe fn wait(group: &HostGroup<'_>, item: usize, place: HostPlace) -> HostTurn {
    // SAFETY: by the contract of this function.
    let waiting = unsafe { waiting_of(group, item) };
    if std::thread::panicking() {
        // In a destructor of this group, since no kernel begins on a thread that unwinds. A stack that unwinds is not left.
        waiting.fail_unless_it_has(item, place);
        return HostTurn::Unwinds;
    }
    if item == waiting.first {
        waiting.run_others(place);
        return HostTurn::First;
    }
    let own = &waiting.others[item - waiting.first - 1];
    own.state.set(if waiting.place.get() == Some(place) { ItemState::AtSamePlace } else { ItemState::Waits(place) });
    // SAFETY: the work-item runs on a stack whose switch it is.
    unsafe { (*own.switch.get()).suspend(()) };
    HostTurn::Later
}

/// # Safety
/// See [`HostWaiting::exchange`].
unsafe fn exchange(group: &HostGroup<'_>, item: usize, bytes: usize, second: bool) -> *mut u8 {
    // SAFETY: by the contract of this function.
    let mut lines = unsafe { waiting_of(group, item) }.memories[usize::from(second)].borrow_mut();
    let n_lines = bytes.div_ceil(GroupSize::ALIGNMENT).max(1);
    if lines.len() != n_lines {
        lines.clear();
        lines.resize(n_lines, Line::ZERO);
    }
    lines.as_mut_ptr().cast()
}

/// # Safety
/// See [`HostWaiting::run`].
unsafe fn run(group: &HostGroup<'_>, algorithm: &mut dyn FnMut()) {
    let Err(payload) = catch_unwind(AssertUnwindSafe(algorithm)) else { return };
    // SAFETY: by the contract of this function a work-item has waited.
    let waiting = unsafe { &*group.waiting.get().cast::<Waiting>() };
    // The kernel may catch it, and then no work-item leaves its id.
    group.has_failed.set(true);
    (group.name)(waiting.first);
    waiting.fail_by(payload)
}

/// # Safety
/// See [`HostWaiting::finish`].
unsafe fn finish(waiting: *mut ()) {
    let end = End(waiting.cast());
    // SAFETY: by the contract of this function it is a group that waits.
    let (waiting, group) = unsafe { (&*end.0, &*(*end.0).group) };
    waiting.fail_again();
    waiting.take_stacks();
    waiting.place.set(None);
    for (index, other) in waiting.others.iter().enumerate() {
        waiting.run_other(index);
        if let ItemState::Waits(place) = other.state.get() {
            let item = waiting.first + 1 + index;
            (group.name)(item);
            waiting.fail(format!(
                "{} waits at {}, and work-item {} has ended",
                of_group(item),
                place.location,
                waiting.first
            ));
        }
    }
}

/// # Safety
/// See [`HostWaiting::abandon`].
unsafe fn abandon(waiting: *mut ()) {
    let end = End(waiting.cast());
    // SAFETY: by the contract of this function it is a group that waits.
    unsafe { &*end.0 }.unwind_others();
}

/// Frees the state of a group on drop, when its work-items have ended.
struct End(*mut Waiting);

impl Drop for End {
    fn drop(&mut self) {
        // SAFETY: made by `waiting_of`, for a group that exists. No work-item is left that could use it.
        unsafe {
            let waiting = Box::from_raw(self.0);
            (*waiting.group).waiting.set(ptr::null_mut());
            waiting.give_stacks();
        }
    }
}

impl Waiting {
    /// Runs all other work-items until each waits or has ended. Resumes all of them if they wait at the same place as the first one.
    fn run_others(&self, place: HostPlace) {
        self.fail_again();
        if self.first > 0 {
            // Those before have ended without waiting.
            self.fail_at(place, "work-item 0 has ended".to_owned());
        }
        self.take_stacks();
        self.place.set(Some(place));
        for index in 0..self.others.len() {
            self.run_other(index);
        }
        for (index, other) in self.others.iter().enumerate() {
            let item = self.first + 1 + index;
            match other.state.get() {
                ItemState::AtSamePlace => {}
                ItemState::Waits(own) if own.location == place.location => {
                    self.fail_at(place, format!("work-item {item} brings values of another type there"));
                }
                ItemState::Waits(own) => self.fail_at(place, format!("work-item {item} waits at {}", own.location)),
                ItemState::Ready | ItemState::Ended => self.fail_at(place, format!("work-item {item} has ended")),
            }
        }
        for other in &self.others {
            other.state.set(ItemState::Ready);
        }
    }

    /// Runs a ready work-item until it waits or ends.
    fn run_other(&self, index: usize) {
        let other = &self.others[index];
        if other.state.get() != ItemState::Ready {
            return;
        }
        let mut running = match other.running.take() {
            Some(running) => running,
            None => self.begin(index),
        };
        // It is no longer at the place that it was at, whatever happens.
        other.state.set(ItemState::Ended);
        match catch_unwind(AssertUnwindSafe(|| running.resume(()))) {
            Ok(CoroutineResult::Yield(())) => other.running.set(Some(running)),
            Ok(CoroutineResult::Return(())) => self.keep(running),
            Err(payload) => {
                self.keep(running);
                self.fail_by(payload)
            }
        }
    }

    /// Makes the coroutine of a work-item that has not begun.
    fn begin(&self, index: usize) -> Coroutine<(), (), ()> {
        let Some(stack) = self.stacks.borrow_mut().pop() else { unreachable!("each has a stack") };
        let (waiting, item) = (ptr::from_ref(self), self.first + 1 + index);
        Coroutine::with_stack(stack, move |switch: &Switch, ()| {
            // SAFETY: a work-item exists no longer than what is kept of its group, and than the group.
            let group = unsafe {
                (&(*waiting).others)[index].switch.set(switch);
                &*(*waiting).group
            };
            (group.run)(group, item);
        })
    }

    /// Ends all other work-items by unwinding.
    fn unwind_others(&self) {
        for other in &self.others {
            other.state.set(ItemState::Ended);
            let Some(mut running) = other.running.take() else { continue };
            if let Err(payload) = catch_unwind(AssertUnwindSafe(|| running.force_unwind())) {
                // A destructor panicked, too: there is a failure already.
                discard(payload);
            }
            self.keep(running);
        }
    }

    /// Takes a stack for each of the other work-items, once.
    fn take_stacks(&self) {
        if self.n_stacks.get() > 0 || self.others.is_empty() {
            return;
        }
        let count = self.others.len();
        let (owner, n_holding) = thread();
        match STACKS.take(owner, count, n_holding > 0) {
            Ok(stacks) => {
                self.stacks.replace(stacks);
                self.n_stacks.set(count);
                HOLDING.set(n_holding + 1);
            }
            Err(error) => {
                let size = STACK.load(Ordering::Relaxed);
                self.fail(format!("no memory for stacks of {count} work-items that wait, {size} bytes each: {error}"))
            }
        }
    }

    /// Returns the stacks, when all other work-items have ended.
    fn give_stacks(&self) {
        let count = self.n_stacks.replace(0);
        if count > 0 {
            let stacks = self.stacks.take();
            let lost = count - stacks.len();
            let (owner, n_holding) = thread();
            STACKS.give(owner, stacks, lost);
            HOLDING.set(n_holding - 1);
        }
    }

    /// Keeps the stack of an ended work-item for reuse.
    fn keep(&self, ended: Coroutine<(), (), ()>) {
        if ended.done() {
            self.stacks.borrow_mut().push(ended.into_stack());
        } else {
            // It cannot be ended. Its stack is left as it is.
            std::mem::forget(ended);
        }
    }

    /// Fails in the work-item that waited first, because of another one. `what` is the reason.
    fn fail_at(&self, place: HostPlace, what: String) -> ! {
        // SAFETY: the group exists as long as it waits.
        (unsafe { &*self.group }.name)(self.first);
        self.fail(format!("{} waits at {}, and {what}", of_group(self.first), place.location))
    }

    /// Records the failure of the group, and unwinds.
    fn fail(&self, message: String) -> ! {
        // SAFETY: as above.
        unsafe { &*self.group }.has_failed.set(true);
        if cfg!(panic = "abort") {
            // The hook prints the message. To unwind the others first would end the process without it.
            panic!("{message}");
        }
        *self.failure.borrow_mut() = Some(message.clone());
        self.unwind_others();
        resume_unwind(Box::new(message))
    }

    /// Records a panic as the failure of the group, and goes on unwinding.
    fn fail_by(&self, payload: Box<dyn Any + Send>) -> ! {
        *self.failure.borrow_mut() = Some(message_of(&*payload));
        self.unwind_others();
        resume_unwind(payload)
    }

    /// Records that a work-item has not waited, if the group has not failed. The kernel may catch the panic by which the work-item unwinds. Then the
    /// group did without it.
    fn fail_unless_it_has(&self, item: usize, place: HostPlace) {
        let mut failure = self.failure.borrow_mut();
        if failure.is_none() {
            // SAFETY: as in `fail_at`.
            let group = unsafe { &*self.group };
            if !group.has_failed.get() {
                (group.name)(item);
            }
            *failure =
                Some(format!("{} came to {} while it unwound, and did not wait", of_group(item), place.location));
        }
    }

    /// Unwinds again if the group has failed.
    fn fail_again(&self) {
        let failure = self.failure.borrow().clone();
        if let Some(message) = failure {
            resume_unwind(Box::new(message));
        }
    }
}

fn of_group(item: usize) -> String {
    format!("all work-items of a group come to the same barriers and algorithms, but work-item {item}")
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_size_of_stacks_is_a_setting() {
        assert_eq!(stack_size(Err(VarError::NotPresent)), Ok(256 << 10));
        assert_eq!(stack_size(Ok("4M".to_owned())), Ok(4 << 20));
        let error = stack_size(Ok("63k".to_owned())).expect_err("too small for a panic");
        let expected = "bytes from 64k to 1024M, or a number and k or M (powers of 1024)";
        assert_eq!(error.to_string(), format!("OXISYCL_ITEM_STACK=\"63k\": expected {expected}"));
    }
}
