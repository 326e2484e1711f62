//! The work of a command: its number of units, how these may be cut into chunks, and how to run a chunk.
//!
//! Owns the decision how large chunks are. Does not know the threads that run them.

use oxisycl_backend::{Command, CopyCommand, FillCommand, KernelCommand};

use crate::kernel::{self, PanicReport};
use crate::transfer;

/// The work of a command.
#[derive(Clone, Copy)]
pub(crate) enum Work<'a> {
    Kernel(&'a KernelCommand),
    Copy(&'a CopyCommand),
    Fill(&'a FillCommand),
    Nothing,
}

/// How the units of a command are cut into chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WorkShape {
    /// Number of units.
    pub(crate) total: usize,
    /// The least length of a chunk.
    pub(crate) grain: usize,
    /// The number that all lengths of chunks are multiples of, except the last one.
    pub(crate) quantum: usize,
}

/// The quantum of kernels. It keeps rows of vector code whole, and threads out of each other's cache lines.
const ITEM_QUANTUM: usize = 64;
/// The least bytes per chunk of a transfer.
const TRANSFER_GRAIN: usize = 256 << 10;
/// The least nanoseconds that a chunk should take.
const CHUNK_NS: f32 = 2_000.0;
const PAGE: usize = 4096;

impl<'a> Work<'a> {
    pub(crate) fn of(command: &'a Command) -> Self {
        match command {
            Command::Kernel(kernel) => Self::Kernel(kernel),
            Command::Copy(copy) => Self::Copy(copy),
            Command::Fill(fill) => Self::Fill(fill),
            _ => Self::Nothing,
        }
    }

    /// The number of units. It is 0 if the size overflows, since such a command cannot refer to memory.
    pub(crate) fn total(&self) -> usize {
        match self {
            Self::Kernel(kernel) => transfer::units(&kernel.range.extent).unwrap_or(0),
            Self::Copy(copy) => transfer::units(&copy.extent).unwrap_or(0),
            Self::Fill(fill) => {
                transfer::units(&fill.extent).filter(|n| n.checked_mul(fill.pattern.len()).is_some()).unwrap_or(0)
            }
            Self::Nothing => 0,
        }
    }

    /// The shape of the work for `threads` threads, with items that take `cost` nanoseconds each, if known.
    pub(crate) fn shape(&self, threads: usize, cost: Option<f32>) -> WorkShape {
        let total = self.total();
        match self {
            Self::Kernel(kernel) => {
                let worthwhile = cost.map_or(1, |cost| (CHUNK_NS / cost.max(0.01)) as usize);
                let grain = (total / (threads * 64)).max(worthwhile).min(total / threads).max(1);
                let row = kernel.range.extent[2];
                let ideal = total / (threads * 4);
                let quantum = if kernel.group.is_some() {
                    1
                } else if kernel.range.dimensions > 1 && row <= ideal {
                    row
                } else if grain >= ITEM_QUANTUM {
                    ITEM_QUANTUM
                } else {
                    1
                };
                WorkShape { total, grain: grain.max(quantum), quantum }
            }
            Self::Copy(_) => WorkShape { total, grain: TRANSFER_GRAIN, quantum: PAGE },
            Self::Fill(fill) => {
                let width = fill.pattern.len().max(1);
                WorkShape { total, grain: (TRANSFER_GRAIN / width).max(1), quantum: (PAGE / width).max(1) }
            }
            Self::Nothing => WorkShape { total, grain: 1, quantum: 1 },
        }
    }

    /// Runs the units `begin..end`.
    ///
    /// # Safety
    /// `end` is at most `total()`, the promises of `Queue::issue` hold, and no other thread runs these units.
    #[inline]
    pub(crate) unsafe fn run(&self, begin: usize, end: usize) -> Result<(), PanicReport> {
        if begin >= end {
            return Ok(());
        }
        match self {
            // SAFETY: passed on from the caller.
            Self::Kernel(kernel) => return unsafe { kernel::run_chunk(kernel, begin, end) },
            // SAFETY: passed on from the caller.
            Self::Copy(copy) => unsafe { transfer::copy_range(copy, begin, end) },
            // SAFETY: passed on from the caller.
            Self::Fill(fill) => unsafe { transfer::fill_range(fill, begin, end) },
            Self::Nothing => {}
        }
        Ok(())
    }
}

impl WorkShape {
    /// Length of the chunk that begins at `begin < total`. It is a share of what is left, so chunks are long at first
    /// and the threads end together.
    pub(crate) fn chunk_length(&self, begin: usize, threads: usize) -> usize {
        let left = self.total - begin;
        let wished = (left / (2 * threads)).max(self.grain);
        let rounded = (wished / self.quantum).max(1).saturating_mul(self.quantum);
        rounded.min(left)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn chunks(shape: WorkShape, threads: usize) -> Vec<usize> {
        let mut begin = 0;
        let mut lengths = Vec::new();
        while begin < shape.total {
            let length = shape.chunk_length(begin, threads);
            assert!(length > 0 && begin + length <= shape.total, "{shape:?}");
            lengths.push(length);
            begin += length;
        }
        lengths
    }

    #[test]
    fn chunks_cover_the_total_in_multiples_of_the_quantum_and_shrink() {
        for total in [1, 2, 63, 64, 1000, 4097, 1 << 20] {
            for (grain, quantum) in [(1, 1), (64, 64), (77, 77), (500, 64), (1 << 30, 1)] {
                for threads in [1, 2, 7, 64] {
                    let lengths = chunks(WorkShape { total, grain, quantum }, threads);
                    assert_eq!(lengths.iter().sum::<usize>(), total);
                    let (_, all_but_last) = lengths.split_last().expect("at least one chunk");
                    assert!(all_but_last.iter().all(|length| length % quantum == 0));
                    assert!(all_but_last.is_sorted_by(|a, b| a >= b));
                }
            }
        }
    }

    #[test]
    fn no_thread_gets_more_than_its_half_share_at_once() {
        let lengths = chunks(WorkShape { total: 1 << 20, grain: 64, quantum: 64 }, 4);
        assert_eq!(lengths[0], 1 << 17);
        assert!(lengths.len() < 100);
    }
}
