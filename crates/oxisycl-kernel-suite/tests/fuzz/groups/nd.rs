//! Groups of an nd-range: each work-item runs the kernel, and barriers stand around what its phases write.
//!
//! Invariant: each method of the form ends behind a barrier, or has accessed no local memory. So before it begins, what others wrote is visible, and
//! no other work-item reads. All work-items come to each method, since control flow depends on what the whole group has.

use oxisycl::group::Fixed1;
use oxisycl::group::nd::{LocalAccessor, NdItem, NdKernel};
use oxisycl::operator::{Identity, Operator};
use oxisycl::prelude::*;

use super::{
    Changes, Element, Form, Kernel, Memory, Outcomes, Place, Program, Reads, Shared, Stores, Tiles, Update, Vote,
    update,
};
use crate::harness::scramble;

struct Nd<'k, 'wi, 'cg, T, P, const N: usize> {
    item: &'k mut NdItem<'wi, 'cg, 1, Fixed1<N>>,
    near: LocalAccessor<'wi, T>,
    far: LocalAccessor<'wi, T>,
    bins: LocalAccessor<'wi, u32>,
    own: &'k mut P,
    input: Accessor<'cg, u32, 1, Read>,
    results: Accessor<'cg, Outcomes, 1, Write>,
}

impl<'cg, G: Program<N, K>, const N: usize, const K: usize> NdKernel<'cg, 1, Fixed1<N>, Memory<G::Tile, N, K>>
    for Kernel<'cg, G>
{
    #[inline]
    fn run<'wi>(
        &self,
        mut item: NdItem<'wi, 'cg, 1, Fixed1<N>>,
        (near, far, bins): (LocalAccessor<'wi, G::Tile>, LocalAccessor<'wi, G::Tile>, LocalAccessor<'wi, u32>),
    ) {
        // A variable of its own, whose address phases get: nothing of the form itself has to be in memory.
        let mut own = G::Own::default();
        let &Kernel { input, results, arguments, .. } = self;
        G::run(&mut Nd { item: &mut item, near, far, bins, own: &mut own, input, results }, arguments);
    }
}

impl<'wi, 'cg, T: Element, P, const N: usize> Nd<'_, 'wi, 'cg, T, P, N> {
    #[inline(always)]
    fn place(&self) -> Place {
        Place::new(self.item.group_linear_id(), self.item.local_linear_id(), N)
    }

    /// Runs a phase that reads memory.
    ///
    /// # Safety
    /// Until the next barrier, no work-item writes the memory that `tiles` has.
    #[inline(always)]
    unsafe fn read_with<R>(&mut self, tiles: Tiles<'_, T>, shared: Shared, phase: impl Reads<T, P, R>) -> R {
        let place = self.place();
        phase(place, self.input.view(self.item.global()).as_slice(), tiles, shared, self.own)
    }

    /// Runs a phase that reads all memory, and waits for the others.
    #[inline(always)]
    fn read_all<R>(&mut self, shared: Shared, phase: impl Reads<T, P, R>) -> R {
        // SAFETY: by the invariant of this module, nothing writes before the barrier.
        let result = unsafe {
            let tiles = Tiles { near: self.near.as_slice(), far: self.far.as_slice(), bins: self.bins.as_slice() };
            self.read_with(tiles, shared, phase)
        };
        self.item.group().barrier();
        result
    }
}

impl<T: Element, V: Element, P, const N: usize> Form<T, V, P> for Nd<'_, '_, '_, T, P, N> {
    #[inline(always)]
    fn group(&self) -> u32 {
        self.item.group_linear_id() as u32
    }

    #[inline(always)]
    fn begin(&mut self, first: impl Fn(usize) -> T + Copy + Send + Sync + 'static) {
        let (local, item) = (self.item.local_linear_id(), self.item.global_linear_id());
        // SAFETY: each work-item writes elements that no other one accesses before the barrier.
        unsafe {
            self.near.set(local, first(2 * item));
            self.far.set(local, first(2 * item + 1));
            for index in (local..self.bins.len()).step_by(N) {
                self.bins.set(index, scramble(index));
            }
        }
        self.item.group().barrier();
    }

    #[inline(always)]
    fn change(&mut self, shared: Shared, phase: impl Changes<T, P>) {
        let (place, local) = (self.place(), self.item.local_linear_id());
        let input = self.input.view(self.item.global());
        // SAFETY: each work-item accesses its own element.
        unsafe {
            let new = phase(place, input.as_slice(), shared, self.own, local as u32, self.near.get(local));
            self.near.set(local, new);
        }
        self.item.group().barrier();
    }

    #[inline(always)]
    fn change_bins(&mut self, shared: Shared, phase: impl Changes<u32, P>) {
        let (place, local) = (self.place(), self.item.local_linear_id());
        let input = self.input.view(self.item.global());
        for index in (local..self.bins.len()).step_by(N) {
            // SAFETY: each work-item accesses the elements that are its own by their index.
            unsafe {
                let new = phase(place, input.as_slice(), shared, self.own, index as u32, self.bins.get(index));
                self.bins.set(index, new);
            }
        }
        self.item.group().barrier();
    }

    #[inline(always)]
    fn exchange(&mut self, shared: Shared, phase: impl Reads<T, P, T>) {
        let new = self.read_all(shared, phase);
        // SAFETY: each work-item writes its own element, behind the barrier of those that read it.
        unsafe { self.near.set(self.item.local_linear_id(), new) };
        self.item.group().barrier();
    }

    #[inline(always)]
    fn advance(&mut self, shared: Shared, phase: impl Reads<T, P, T>) {
        // SAFETY: nothing writes the near tile and the bins before the barrier, and each work-item writes its own element of the far tile.
        unsafe {
            let (near, bins) = (self.near.as_slice(), self.bins.as_slice());
            let new = self.read_with(Tiles { near, far: near, bins }, shared, phase);
            self.far.set(self.item.local_linear_id(), new);
        }
        self.item.group().barrier();
        std::mem::swap(&mut self.near, &mut self.far);
    }

    #[inline(always)]
    fn count(&mut self, shared: Shared, how: Update, phase: impl Reads<T, P, (u32, u32)>) {
        // SAFETY: nothing writes the tiles before the barrier, and all access the bins atomically.
        unsafe {
            let (near, far) = (self.near.as_slice(), self.far.as_slice());
            let (bin, value) = self.read_with(Tiles { near, far, bins: &[] }, shared, phase);
            update(self.bins.atomically(), how, bin as usize, value);
        }
        self.item.group().barrier();
    }

    #[inline(always)]
    fn read(&mut self, index: usize) -> T {
        // SAFETY: nothing writes before the barrier.
        let value = unsafe { self.near.get(index) };
        self.item.group().barrier();
        value
    }

    #[inline(always)]
    fn reduce(&mut self, shared: Shared, phase: impl Reads<T, P, V>, operator: impl Operator<V> + 'static) -> V {
        let value = self.read_all(shared, phase);
        self.item.group().reduce(value, operator)
    }

    #[inline(always)]
    fn broadcast(&mut self, shared: Shared, phase: impl Reads<T, P, V>, from: usize) -> V {
        let value = self.read_all(shared, phase);
        self.item.group().broadcast(value, from)
    }

    #[inline(always)]
    fn vote(&mut self, shared: Shared, vote: Vote, phase: impl Reads<T, P, bool>) -> bool {
        let holds = self.read_all(shared, phase);
        let mut group = self.item.group();
        match vote {
            Vote::Any => group.any(holds),
            Vote::All => group.all(holds),
            Vote::None => group.none(holds),
        }
    }

    #[inline(always)]
    fn inclusive_scan(
        &mut self,
        shared: Shared,
        phase: impl Reads<T, P, V>,
        operator: impl Operator<V> + 'static,
        store: impl Stores<P, V>,
    ) {
        let value = self.read_all(shared, phase);
        store(self.own, self.item.group().inclusive_scan(value, operator));
    }

    #[inline(always)]
    fn exclusive_scan(
        &mut self,
        shared: Shared,
        phase: impl Reads<T, P, V>,
        operator: impl Identity<V> + 'static,
        store: impl Stores<P, V>,
    ) {
        let value = self.read_all(shared, phase);
        store(self.own, self.item.group().exclusive_scan(value, operator));
    }

    #[inline(always)]
    fn exclusive_scan_from(
        &mut self,
        shared: Shared,
        phase: impl Reads<T, P, V>,
        first: V,
        operator: impl Operator<V> + 'static,
        store: impl Stores<P, V>,
    ) {
        let value = self.read_all(shared, phase);
        store(self.own, self.item.group().exclusive_scan_from(value, first, operator));
    }

    #[inline(always)]
    fn lanes_reduce<const W: usize>(
        &mut self,
        shared: Shared,
        phase: impl Reads<T, P, V>,
        operator: impl Operator<V> + 'static,
        store: impl Stores<P, V>,
    ) {
        let value = self.read_all(shared, phase);
        store(self.own, self.item.group().sub_group::<W>().reduce(value, operator));
    }

    #[inline(always)]
    fn lanes_shift<const W: usize>(
        &mut self,
        shared: Shared,
        phase: impl Reads<T, P, V>,
        n: usize,
        store: impl Stores<P, V>,
    ) {
        let value = self.read_all(shared, phase);
        store(self.own, self.item.group().sub_group::<W>().shift_left(value, n));
    }

    #[inline(always)]
    fn lanes_permute<const W: usize>(
        &mut self,
        shared: Shared,
        phase: impl Reads<T, P, V>,
        mask: usize,
        store: impl Stores<P, V>,
    ) {
        let value = self.read_all(shared, phase);
        store(self.own, self.item.group().sub_group::<W>().permute_by_xor(value, mask));
    }

    #[inline(always)]
    fn finish(&mut self, shared: Shared, phase: impl Reads<T, P, Outcomes>) {
        let result = self.read_all(shared, phase);
        self.results.set(self.item.global(), result);
    }
}
