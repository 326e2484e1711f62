//! Commands: the work that a queue can be given.

use std::fmt;
use std::sync::Arc;

use oxisycl_image::{HostLevel, KernelDescriptor};
use oxisycl_types::{GroupSize, HostChunk, LaunchRange, NativeEntry};

use crate::{ArgumentBlock, FillPattern, KernelBox, LoadedKernel, MemoryId, NativeCommand};

/// One unit of work of a queue.
///
/// The issuing code keeps every memory that a command refers to alive, and free of conflicting use, until the command completes.
#[derive(Debug)]
pub enum Command {
    /// Run a kernel.
    Kernel(KernelBox),
    /// Copy bytes. In a box, as a fill, since every task has room for a command, and most are kernels.
    Copy(Box<CopyCommand>),
    /// Fill memory with a repeated pattern.
    Fill(Box<FillCommand>),
    /// Do nothing: completes when its dependencies have completed.
    Marker,
    /// A hint that memory will be used on the queue's device.
    Prefetch {
        /// First byte.
        pointer: *mut u8,
        /// Number of bytes.
        size: usize,
    },
    /// A hint on how memory is used.
    Advise {
        /// First byte.
        pointer: *mut u8,
        /// Number of bytes.
        size: usize,
        /// The hint.
        advice: Advice,
    },
    /// Work that other code puts on the driver's queue. Only for queues that [take it](crate::QueueInfo::takes_native).
    Native(Box<NativeCommand>),
}

// SAFETY: the pointers are addresses that the issuer keeps valid until completion; they are used by one executor at a time.
unsafe impl Send for Command {}
// SAFETY: a shared command only gives its addresses away.
unsafe impl Sync for Command {}

impl Command {
    /// The class of this command, for counters and injected faults.
    pub fn operation(&self) -> crate::Operation {
        match self {
            Self::Kernel(_) => crate::Operation::Launch,
            Self::Copy(_) => crate::Operation::Copy,
            Self::Fill(_) => crate::Operation::Fill,
            Self::Marker | Self::Prefetch { .. } | Self::Advise { .. } | Self::Native(_) => crate::Operation::Other,
        }
    }
}

impl From<CopyCommand> for Command {
    fn from(command: CopyCommand) -> Self {
        Self::Copy(Box::new(command))
    }
}

impl From<FillCommand> for Command {
    fn from(command: FillCommand) -> Self {
        Self::Fill(Box::new(command))
    }
}

impl fmt::Display for Command {
    /// The command's label in messages: kind, name and, for a kernel, where it was launched.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kernel(kernel) => {
                write!(f, "kernel \"{}\" ({})", kernel.descriptor.display_name(), kernel.descriptor.location)
            }
            Self::Copy(copy) => write!(f, "copy of {} bytes", copy.bytes()),
            Self::Fill(fill) => write!(f, "fill of {} bytes", fill.bytes()),
            Self::Marker => f.write_str("marker"),
            Self::Prefetch { size, .. } => write!(f, "prefetch of {size} bytes"),
            Self::Advise { size, .. } => write!(f, "advice on {size} bytes"),
            Self::Native(native) => write!(f, "native command \"{}\"", native.name()),
        }
    }
}

/// Code of the device compiler that runs in the place of a kernel's own native code.
#[derive(Clone, Copy, Debug)]
pub struct NativeCode {
    /// The function. The contract is that of the kernel's `host_entry`.
    pub entry: NativeEntry,
    /// What it asks of the processor; `None` if no more than the program does.
    pub level: Option<HostLevel>,
}

impl NativeCode {
    /// The name of code of a level in reports: the level's, or `baseline`.
    pub fn name(level: Option<HostLevel>) -> &'static str {
        level.map_or("baseline", HostLevel::name)
    }
}

/// One launch of a kernel.
#[derive(Debug)]
pub struct KernelCommand {
    /// The kernel.
    pub descriptor: KernelDescriptor,
    /// The kernel's code on the queue's device; `None` where kernels run as the program's own native code.
    pub code: Option<Arc<dyn LoadedKernel>>,
    /// What runs in the place of `host_entry` where kernels run as native code, and the queue's device [takes
    /// it](crate::Device::native_levels).
    pub native: Option<NativeCode>,
    /// The bytes of the kernel's arguments.
    pub arguments: ArgumentBlock,
    /// The launch's index space; never empty.
    pub range: LaunchRange,
    /// The work-groups whose number `range` is, for a kernel over groups.
    pub group: Option<GroupSize>,
}

impl KernelCommand {
    /// Runs a chunk of the launch as native code.
    ///
    /// # Safety
    /// The promises of [`Queue::issue`](crate::Queue::issue) hold for the command. `chunk` ends at the launch's size at the latest.
    #[inline]
    pub unsafe fn run(&self, chunk: &HostChunk) {
        let arguments = self.arguments.as_ptr();
        match self.native {
            // SAFETY: the caller's promise.
            None => unsafe { (self.descriptor.host_entry)(arguments, &self.range, chunk) },
            // SAFETY: as above; the entry is another form of the same code, and the issuer promises that the device takes it.
            Some(native) => unsafe { (native.entry)(arguments, &self.range, chunk) },
        }
    }

    /// The range of the launch in work-items, also for a kernel over groups.
    pub fn work_items(&self) -> LaunchRange {
        let Some(GroupSize { local, .. }) = self.group else { return self.range };
        // The launch was refused if it has more work-items than can be counted.
        let extent = std::array::from_fn(|d| self.range.extent[d].saturating_mul(local[d] as usize));
        LaunchRange { extent, ..self.range }
    }
}

/// A pitched box of bytes in one memory, given by its first byte.
#[derive(Clone, Copy, Debug)]
pub struct PitchedBox {
    /// The memory that holds it.
    pub memory: MemoryId,
    /// The first byte.
    pub pointer: *mut u8,
    /// Bytes from one row to the next.
    pub row_pitch: usize,
    /// Bytes from one slice to the next.
    pub slice_pitch: usize,
}

/// A copy of a box of bytes. Source and target do not overlap.
#[derive(Clone, Copy, Debug)]
pub struct CopyCommand {
    /// Where the bytes come from.
    pub source: PitchedBox,
    /// Where they go.
    pub target: PitchedBox,
    /// Slices, rows per slice, bytes per row. One dimension is one row of one slice.
    pub extent: [usize; 3],
}

impl CopyCommand {
    /// Number of bytes moved.
    pub fn bytes(&self) -> usize {
        self.extent.iter().product()
    }
}

/// A fill of a box of elements.
#[derive(Clone, Debug)]
pub struct FillCommand {
    /// Where to write.
    pub target: PitchedBox,
    /// The bytes of one element, never empty.
    pub pattern: FillPattern,
    /// Slices, rows per slice, elements per row.
    pub extent: [usize; 3],
}

impl FillCommand {
    /// Number of bytes written.
    pub fn bytes(&self) -> usize {
        self.extent.iter().product::<usize>() * self.pattern.len()
    }
}

/// The hints of `mem_advise`. [`Reset`](Advice::Reset) reverts earlier ones (SYCL 2020: value 0).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Advice {
    /// Back to the default.
    Reset,
    /// The memory is mostly read.
    ReadMostly,
    /// The memory should stay on the device.
    PreferDevice,
    /// The memory should stay on the host.
    PreferHost,
}
