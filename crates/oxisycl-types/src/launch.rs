//! What one kernel launch looks like to the code that executes it on a CPU.

use core::cell::Cell;

/// The index space of one range launch, embedded in three dimensions (unused leading dimensions have extent 1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LaunchRange {
    /// How many dimensions the kernel sees (1 to 3); 0 for a single task.
    pub dimensions: u8,
    /// Number of work-items per dimension.
    pub extent: [usize; 3],
    /// Added to every work-item's id.
    pub offset: [usize; 3],
}

impl LaunchRange {
    /// A single task: one work-item without an index.
    pub const SINGLE: Self = Self { dimensions: 0, extent: [1; 3], offset: [0; 3] };

    /// The number of work-items.
    #[inline]
    pub const fn size(&self) -> usize {
        self.extent[0] * self.extent[1] * self.extent[2]
    }
}

/// A contiguous piece of a launch, in row-major linear work-item ids without the offset.
///
/// `item` is where the executing code leaves the id (offset included) of the work-item that panicked. With
/// `panic = "abort"` it is the first of up to [`ITEMS_PER_STORE`](Self::ITEMS_PER_STORE) consecutive work-items of a row, one of which
/// executes, so that the panic hook can read it.
#[derive(Debug)]
pub struct HostChunk {
    /// First linear id.
    pub begin: usize,
    /// One past the last linear id; never beyond the launch's size.
    pub end: usize,
    /// The work-item that is executing, as far as it is known; see the type's documentation.
    pub item: Cell<[usize; 3]>,
}

impl HostChunk {
    /// Most work-items between two stores to `item` with `panic = "abort"`: 1 where debug assertions are on, else enough that the
    /// stores cost nothing.
    pub const ITEMS_PER_STORE: usize = if cfg!(debug_assertions) { 1 } else { 64 };

    /// The chunk `begin..end`.
    #[inline]
    pub const fn new(begin: usize, end: usize) -> Self {
        Self { begin, end, item: Cell::new([0; 3]) }
    }
}

/// Native code of a kernel: runs all work-items of a chunk, with the kernel's argument bytes at the given address.
///
/// Calling it requires that the address holds a live, properly aligned value of the type the entry was made for, that the
/// launch has the dimensions it was made for. It also requires that every accessor in the arguments points to memory that is valid and
/// free of conflicting use for the duration of the call.
pub type HostEntry = unsafe fn(*const u8, &LaunchRange, &HostChunk);
