//! What a test reads of a recorded command: plain values, copies of what the record held when they were asked for.

use oxisycl_backend::{DependencyKind, MemoryId};

/// What a recorded command does.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CommandKind {
    /// A kernel.
    Kernel,
    /// A copy.
    Copy,
    /// A fill.
    Fill,
    /// A marker.
    Marker,
    /// A hint that memory will be used.
    Prefetch,
    /// A hint on how memory is used.
    Advise,
    /// Work of other code.
    Native,
}

/// Where a recorded command stands.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CommandState {
    /// Not ended.
    Pending,
    /// Ended well.
    Succeeded,
    /// Ended with a failure of its own or of a dependency.
    Failed,
}

/// A box of bytes that a recorded command uses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// The memory that it lies in.
    pub memory: MemoryId,
    /// Bytes from the beginning of the allocation, if it lies in one of the backend.
    pub offset: Option<usize>,
    /// Bytes from one row to the next.
    pub row_pitch: usize,
    /// Bytes from one slice to the next.
    pub slice_pitch: usize,
}

/// One command, in the order of submission.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Recorded {
    /// The device, by its position in [`RecordingBackend::devices`](super::RecordingBackend::devices).
    pub device: usize,
    /// The queue, by the order in which the backend's queues were made.
    pub queue: usize,
    /// What it does.
    pub kind: CommandKind,
    /// The name of the kernel; else the name of the kind.
    pub label: String,
    /// The symbol of a kernel of a device image.
    pub symbol: Option<String>,
    /// The commands it waits for, by their position in the record, as they were passed.
    pub dependencies: Vec<(usize, DependencyKind)>,
    /// What a copy reads.
    pub source: Option<Place>,
    /// What a copy or a fill writes.
    pub target: Option<Place>,
    /// Slices, rows and bytes of a copy; slices, rows and elements of a fill; the range of a kernel.
    pub extent: [usize; 3],
    /// Where it stands.
    pub state: CommandState,
}

impl Recorded {
    /// The commands it waits for without their kinds.
    pub fn waits_for(&self) -> Vec<usize> {
        self.dependencies.iter().map(|(index, _)| *index).collect()
    }

    /// Number of bytes that a copy moves.
    pub fn bytes(&self) -> usize {
        self.extent.iter().product()
    }

    /// The memories that a copy reads and writes.
    pub fn route(&self) -> Option<(MemoryId, MemoryId)> {
        Some((self.source?.memory, self.target?.memory))
    }
}
