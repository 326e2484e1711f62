//! What one kernel launch looks like to the code that executes it on a CPU.

use core::cell::Cell;

use crate::HostWaiting;

/// The index space of one launch, embedded in three dimensions (unused leading dimensions have extent 1).
///
/// Its units are work-items, or work-groups for a kernel over groups, whose launch has a [`GroupSize`], too.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct LaunchRange {
    /// How many dimensions the kernel sees (1 to 3); 0 for a single task.
    pub dimensions: u8,
    /// Number of units per dimension.
    pub extent: [usize; 3],
    /// Added to every work-item's id; zero for groups.
    pub offset: [usize; 3],
}

impl LaunchRange {
    /// A single task: one work-item without an index.
    pub const SINGLE: Self = Self { dimensions: 0, extent: [1; 3], offset: [0; 3] };

    /// The number of units.
    #[inline]
    pub const fn size(&self) -> usize {
        self.extent[0] * self.extent[1] * self.extent[2]
    }
}

/// The work-groups of a launch over groups, embedded in three dimensions (unused leading dimensions have extent 1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GroupSize {
    /// Work-items of a group per dimension, none of them zero.
    pub local: [u32; 3],
    /// Bytes of local memory of each group, a multiple of [`ALIGNMENT`](Self::ALIGNMENT).
    pub local_bytes: usize,
    /// Bytes that the native entry needs in [`HostChunk::group_memory`], a multiple of [`ALIGNMENT`](Self::ALIGNMENT). They are for local
    /// memory, and for private values of work-items that are too large for its stack.
    pub host_bytes: usize,
}

impl GroupSize {
    /// The alignment of a group's local memory, and of each part of it, in bytes.
    pub const ALIGNMENT: usize = 64;
    /// How a kernel's description tells the device compiler that its launches are over groups: this is added to their dimensions.
    pub const FORM: u32 = 1 << 8;
    /// Bits of each extent of a fixed group in a kernel's description, along `x` lowest.
    pub const EXTENT_BITS: u32 = 21;

    /// Most work-items of a group of fixed size. More are on no device.
    pub const MAX_FIXED: usize = 1 << 16;

    /// The extents of a fixed group in a kernel's description; zeros if there is none.
    #[inline]
    pub const fn extents(description: u64) -> [u32; 3] {
        const MASK: u64 = (1 << GroupSize::EXTENT_BITS) - 1;
        [
            (description >> (2 * Self::EXTENT_BITS) & MASK) as u32,
            (description >> Self::EXTENT_BITS & MASK) as u32,
            (description & MASK) as u32,
        ]
    }

    /// Work-items that algorithms over a group take together.
    pub const BLOCK: usize = 32;

    /// Bytes of local memory that a kernel's algorithms use, beside that of its arguments. They are one element for each work-item and two for each
    /// block, rounded up to [`ALIGNMENT`](Self::ALIGNMENT). `None` if they cannot be counted.
    #[inline]
    pub const fn scratch_bytes(items: usize, bytes_of_element: usize) -> Option<usize> {
        let Some(elements) = items.checked_add(2 * items.div_ceil(Self::BLOCK)) else { return None };
        match elements.checked_mul(bytes_of_element) {
            Some(bytes) => bytes.checked_next_multiple_of(Self::ALIGNMENT),
            None => None,
        }
    }

    /// Work-items of a group.
    #[inline]
    pub const fn items(&self) -> usize {
        self.local[0] as usize * self.local[1] as usize * self.local[2] as usize
    }
}

/// A contiguous piece of a launch, in row-major linear ids of its units without the offset.
///
/// `item` is where the executing code leaves the id (offset included) of the work-item that panicked. With `panic = "abort"` it is the
/// first of up to [`ITEMS_PER_STORE`](Self::ITEMS_PER_STORE) consecutive work-items of a row, so that the panic hook can read it. One of
/// these executes.
#[derive(Debug)]
#[repr(C)]
pub struct HostChunk {
    /// First linear id.
    pub begin: usize,
    /// One past the last linear id; never beyond the launch's size.
    pub end: usize,
    /// The work-item that is executing, as far as it is known; see the type's documentation.
    pub item: Cell<[usize; 3]>,
    /// [`GroupSize::host_bytes`] bytes, aligned to [`GroupSize::ALIGNMENT`] and initialised, which the groups of the chunk use one after the
    /// other. Dangling if a group needs none.
    pub group_memory: *mut u8,
    /// How work-items of a group wait for each other.
    pub waiting: &'static HostWaiting,
}

impl HostChunk {
    /// Most work-items between two stores to `item` with `panic = "abort"`: 1 where debug assertions are on, else enough that the
    /// stores cost nothing.
    pub const ITEMS_PER_STORE: usize = if cfg!(debug_assertions) { 1 } else { 64 };

    /// The chunk `begin..end`.
    #[inline]
    pub const fn new(begin: usize, end: usize) -> Self {
        Self {
            begin,
            end,
            item: Cell::new([0; 3]),
            group_memory: core::ptr::without_provenance_mut(GroupSize::ALIGNMENT),
            waiting: &HostWaiting::NONE,
        }
    }
}

/// Native code of a kernel: runs all work-items of a chunk, with the kernel's argument bytes at the given address.
///
/// When it is called, the address must hold a live, properly aligned value of the type that the entry was made for. The launch must have
/// the dimensions that the entry was made for. Every accessor in the arguments must point to memory that is valid and free of conflicting
/// use for the duration of the call.
pub type HostEntry = unsafe fn(*const u8, &LaunchRange, &HostChunk);

/// Native code of a kernel that the device compiler made, as it is in a link unit's table of native entries. The contract is that of
/// [`HostEntry`].
///
/// [`HostEntry`] has Rust's calling convention, which two code generators need not agree on. This one is C's: three addresses are passed,
/// nothing is returned, and a panic of the kernel unwinds through the function. The launch and the chunk are laid out as C lays out their
/// fields.
pub type NativeEntry = unsafe extern "C-unwind" fn(*const u8, &LaunchRange, &HostChunk);
