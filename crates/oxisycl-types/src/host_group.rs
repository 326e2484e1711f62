//! How work-items of one group wait for each other on a CPU.

use core::any::TypeId;
use core::cell::Cell;
use core::fmt;
use core::panic::Location;
use core::ptr;

use crate::HostChunk;

/// One work-group whose work-items the native entry of a kernel runs one after the other, until one of them waits.
///
/// A group without waiting work-items is never known outside the entry, so that its loop over work-items is an ordinary one.
pub struct HostGroup<'g> {
    /// How many work-items the group has.
    pub items: usize,
    /// Runs the work-item with that local linear id.
    pub run: &'g dyn Fn(&HostGroup<'_>, usize),
    /// Leaves the id of the work-item with that local linear id in the chunk.
    pub name: &'g dyn Fn(usize),
    /// Whether a work-item has left its id, because it panicked.
    pub has_failed: Cell<bool>,
    /// What the backend keeps of a group in which a work-item has waited; null before.
    pub waiting: Cell<*mut ()>,
}

impl<'g> HostGroup<'g> {
    /// A group that has not begun.
    #[inline(always)]
    pub fn new(items: usize, run: &'g dyn Fn(&HostGroup<'_>, usize), name: &'g dyn Fn(usize)) -> Self {
        Self { items, run, name, has_failed: Cell::new(false), waiting: Cell::new(core::ptr::null_mut()) }
    }
}

impl fmt::Debug for HostGroup<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostGroup").field("items", &self.items).field("waiting", &self.waiting).finish_non_exhaustive()
    }
}

/// Where work-items of a group wait, which is the same for all of them.
#[derive(Clone, Copy, Debug)]
pub struct HostPlace {
    /// The place in the program.
    pub location: &'static Location<'static>,
    /// The type of the values that they exchange, `()` if there are none. No work-item reads what another one has left as another type.
    pub values: TypeId,
}

impl PartialEq for HostPlace {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        // Work-items mostly bring the same address. To compare the texts behind it took most of a barrier's time.
        self.values == other.values && (ptr::eq(self.location, other.location) || self.location == other.location)
    }
}

impl Eq for HostPlace {}

/// Why a work-item goes on that has waited.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HostTurn {
    /// All have come, and the caller is the first one that goes on.
    First,
    /// All have come.
    Later,
    /// The caller has not waited, because it unwinds: others may not have come.
    Unwinds,
}

/// What a backend offers to work-items that wait.
///
/// The work-item that waits first goes on where it is. All behind it run on stacks of their own, by turns, on the same thread.
#[derive(Clone, Copy, Debug)]
pub struct HostWaiting {
    /// Returns when all work-items of the group have called it at the same place. The number is the local linear id of the caller.
    ///
    /// Calling it requires that the calling thread is running the group, by the code that made it. That code must call `finish` or
    /// `abandon` before the group ends.
    pub wait: unsafe fn(&HostGroup<'_>, usize, HostPlace) -> HostTurn,
    /// Memory of at least that many bytes, aligned to [`GroupSize::ALIGNMENT`](crate::GroupSize::ALIGNMENT), which all work-items get that ask for
    /// as many. There are two, by the last argument, and each keeps its bytes until it is asked for with another number.
    ///
    /// Calling it requires the same.
    pub exchange: unsafe fn(&HostGroup<'_>, usize, usize, bool) -> *mut u8,
    /// Calls what the first work-item does for all of them. If it panics, the group fails with it. No other work-item goes on, and the caller gets the
    /// panic again wherever it waits and at the end.
    ///
    /// Calling it requires that `wait` has returned [`HostTurn::First`] to the caller, which has not waited since.
    pub run: unsafe fn(&HostGroup<'_>, &mut dyn FnMut()),
    /// Runs the others to their end, when the work-item that waited first has ended. The argument is [`HostGroup::waiting`], which is null afterwards.
    ///
    /// Calling it requires that the group exists.
    pub finish: unsafe fn(*mut ()),
    /// Ends the others by unwinding. As `finish` otherwise.
    pub abandon: unsafe fn(*mut ()),
}

impl HostWaiting {
    /// Of a backend in which no work-item can wait.
    pub const NONE: Self = {
        fn no_wait(_: &HostGroup<'_>, _: usize, place: HostPlace) -> HostTurn {
            panic!("a work-item waits for its group at {}, which this backend cannot do", place.location)
        }
        fn no_exchange(_: &HostGroup<'_>, _: usize, _: usize, _: bool) -> *mut u8 {
            panic!("a work-item waits for its group, which this backend cannot do")
        }
        fn no_run(_: &HostGroup<'_>, _: &mut dyn FnMut()) {
            panic!("a work-item waits for its group, which this backend cannot do")
        }
        fn nothing(_: *mut ()) {}
        Self { wait: no_wait, exchange: no_exchange, run: no_run, finish: nothing, abandon: nothing }
    };
}

impl HostChunk {
    /// The chunk, in a backend where work-items can wait.
    #[inline]
    pub const fn with_waiting(mut self, waiting: &'static HostWaiting) -> Self {
        self.waiting = waiting;
        self
    }
}
