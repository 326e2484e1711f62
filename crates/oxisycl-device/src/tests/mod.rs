//! Unit tests of everything that kernels use, on plain vectors and without a runtime. They run under Miri.

mod accessors;
mod atomics;
mod blocks;
mod entries;
mod groups;
mod panic_records;
mod prints;
mod references;
mod spaces;
mod views;

use std::borrow::ToOwned;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::string::String;
use std::vec;
use std::vec::Vec;

use oxisycl_types::{HostChunk, LaunchRange};

use crate::{Accessor, AccessorParts, Id, Item, Range, Single, range_entry, single_entry};

/// Elements of a buffer, all with their position as value.
struct Memory<const D: usize> {
    elements: Vec<u32>,
    range: Range<D>,
}

impl<const D: usize> Memory<D> {
    fn new(range: [usize; D]) -> Self {
        let range = Range(range);
        Self { elements: (0..range.size() as u32).collect(), range }
    }

    /// An accessor to a part.
    fn part<M>(&mut self, range: [usize; D], offset: [usize; D]) -> Accessor<'static, u32, D, M> {
        assert!((0..D).all(|d| offset[d] + range[d] <= self.range.0[d]));
        let pointer = self.elements.as_mut_ptr();
        let parts = AccessorParts { pointer, buffer: self.range, offset: Id(offset), range: Range(range) };
        // SAFETY: the part lies inside the vector, as asserted; tests use the accessor before they touch the vector again.
        unsafe { Accessor::from_parts(parts) }
    }

    fn all<M>(&mut self) -> Accessor<'static, u32, D, M> {
        self.part(self.range.0, [0; D])
    }
}

/// Runs a kernel over a launch, cut into chunks at the given linear ids.
fn launch_cut<const D: usize, K>(extent: [usize; D], offset: [usize; D], cuts: &[usize], kernel: K)
where
    K: for<'wi> Fn(Item<'wi, D>) + Copy,
{
    let launch = LaunchRange { dimensions: D as u8, extent: Range(extent).embed(), offset: Id(offset).embed() };
    let mut begin = 0;
    for end in cuts.iter().copied().chain([launch.size()]) {
        let chunk = HostChunk::new(begin, end);
        // SAFETY: the arguments are a live kernel of this type and dimension, and the chunks are disjoint.
        unsafe { range_entry::<K, D>((&raw const kernel).cast(), &launch, &chunk) };
        begin = end;
    }
}

/// Runs a kernel over a launch.
fn launch<const D: usize, K>(extent: [usize; D], kernel: K)
where
    K: for<'wi> Fn(Item<'wi, D>) + Copy,
{
    launch_cut(extent, [0; D], &[], kernel);
}

/// Runs a single task.
fn run_single<K>(kernel: K)
where
    K: for<'wi> Fn(Single<'wi>) + Copy,
{
    let chunk = HostChunk::new(0, 1);
    // SAFETY: the arguments are a live kernel of this type, and it is run once.
    unsafe { single_entry::<K>((&raw const kernel).cast(), &LaunchRange::SINGLE, &chunk) };
}

/// The message of the panic that `f` ends with.
#[track_caller]
fn panic_message(f: impl FnOnce()) -> String {
    let payload = catch_unwind(AssertUnwindSafe(f)).expect_err("no panic");
    payload
        .downcast_ref::<String>()
        .cloned()
        .or_else(|| payload.downcast_ref().map(|text: &&str| (*text).to_owned()))
        .unwrap()
}

/// `n` zeros.
fn zeros(n: usize) -> Vec<u32> {
    vec![0; n]
}
