//! Monotonic counters of the process.

use std::sync::atomic::{AtomicU64, Ordering};

/// One counter on its own cache line, so that threads that count different things do not slow each other down.
#[repr(align(128))]
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    /// Adds to the counter.
    #[inline]
    pub(crate) fn add(&self, amount: u64) {
        self.0.fetch_add(amount, Ordering::Relaxed);
    }

    /// Counts one more. Returns the value before it, which no other call returns.
    #[inline]
    pub(crate) fn next(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed)
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        #[derive(Debug, Default)]
        /// The live counters.
        pub struct Recorder { $($(#[$doc])* pub(crate) $name: Counter,)* }

        /// A snapshot of what the process did so far. Subtract two to see what happened between them.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
        #[non_exhaustive]
        pub struct Counters { $($(#[$doc])* pub $name: u64,)* }

        impl Recorder {
            /// The values now. Exact when nothing runs; else each value is exact for some moment of the call.
            pub fn snapshot(&self) -> Counters {
                let mut counters = Counters { $($name: self.$name.get(),)* };
                // Each kernel is counted once.
                counters.kernels += counters.native_kernels;
                counters
            }
        }

        impl std::ops::Sub for Counters {
            type Output = Self;
            /// Per value; saturates at zero.
            fn sub(self, earlier: Self) -> Self {
                Self { $($name: self.$name.saturating_sub(earlier.$name),)* }
            }
        }
    };
}

counters! {
    /// Allocations that buffers made.
    buffer_allocations,
    /// Bytes of those.
    buffer_allocated_bytes,
    /// Allocations that buffers freed.
    buffer_frees,
    /// USM allocations by the user.
    usm_allocations,
    /// USM allocations freed.
    usm_frees,
    /// Copies from host to device memory.
    transfers_to_device,
    /// Bytes of those.
    bytes_to_device,
    /// Copies from device to host memory.
    transfers_to_host,
    /// Bytes of those.
    bytes_to_host,
    /// Copies from one device's memory to another's.
    transfers_between_devices,
    /// Bytes of those.
    bytes_between_devices,
    /// Copies within one memory.
    copies_within_memory,
    /// Bytes of those.
    bytes_within_memory,
    /// Kernels submitted.
    kernels,
    /// Kernels submitted that run code of the device compiler on the host.
    native_kernels,
    /// Images that devices have loaded, or tried to.
    loads,
    /// Kernels that were compiled for values of specialization constants.
    specialized_kernels,
    /// Launches with values of specialization constants that ran code which is not for these values alone.
    unspecialized_launches,
    /// Fills submitted.
    fills,
    /// Host tasks submitted.
    host_tasks,
    /// Host accessors made.
    host_accessors,
    /// Commands that had to wait for the scheduler because of a host task, a host accessor or another context.
    delayed_commands,
    /// Dependencies on a command of another context, which the scheduler waits for itself.
    cross_context_dependencies,
    /// Graph nodes made.
    nodes,
    /// Graph nodes whose command has ended.
    nodes_completed,
    /// Commands that failed.
    failures,
}

impl Recorder {
    /// The number of unfinished nodes, which a snapshot has as `live_nodes`.
    pub(crate) fn unfinished_nodes(&self) -> u64 {
        self.nodes.get().saturating_sub(self.nodes_completed.get())
    }

    /// Counts a kernel that was submitted, and whether it runs code of the device compiler on the host.
    #[inline]
    pub(crate) fn add_kernel(&self, is_native: bool) {
        if is_native { self.native_kernels.add(1) } else { self.kernels.add(1) }
    }

    /// Whether no command is unfinished.
    pub fn is_idle(&self) -> bool {
        self.unfinished_nodes() == 0
    }

    /// How many nodes have ended.
    pub(crate) fn ended_nodes(&self) -> u64 {
        self.nodes_completed.get()
    }
}

impl Counters {
    /// Graph nodes whose command has not ended.
    pub fn live_nodes(&self) -> u64 {
        self.nodes.saturating_sub(self.nodes_completed)
    }

    /// Copies that crossed a memory border in any direction.
    pub fn transfers(&self) -> u64 {
        self.transfers_to_device + self.transfers_to_host + self.transfers_between_devices
    }

    /// Bytes that crossed a memory border in any direction.
    pub fn transferred_bytes(&self) -> u64 {
        self.bytes_to_device + self.bytes_to_host + self.bytes_between_devices
    }
}

/// The process's counters.
pub fn counters() -> &'static Recorder {
    static RECORDER: std::sync::LazyLock<Recorder> = std::sync::LazyLock::new(Recorder::default);
    &RECORDER
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_counts_what_happened_between_two_snapshots() {
        let recorder = Recorder::default();
        recorder.kernels.add(2);
        let before = recorder.snapshot();
        recorder.kernels.add(3);
        recorder.nodes.add(4);
        recorder.nodes_completed.add(1);
        let delta = recorder.snapshot() - before;
        assert_eq!((delta.kernels, delta.live_nodes()), (3, 3));
    }
}
