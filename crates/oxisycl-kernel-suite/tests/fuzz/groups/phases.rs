//! Groups in phases: safe code, in which the borrow checker proves that no work-item reaches what another one may write.

use oxisycl::group::{Atomically, Fixed1, Group, GroupKernel, Local, PhaseItem, Private, PrivateValues, Shares, Tile};
use oxisycl::operator::{Identity, Operator};
use oxisycl::prelude::*;

use super::{
    Changes, Element, Form, Kernel, Outcomes, Place, Program, Reads, Shared, Stores, Tiles, Update, Vote, update,
};
use crate::harness::scramble;

/// Memory of a group: tiles and bins, and private values: those of the program with a tile's element, one for algorithms, and one for votes.
type Memory<T, V, P, const N: usize, const K: usize> =
    (Local<T, N>, Local<T, N>, Local<u32, K>, Private<(P, T)>, Private<V>, Private<bool>);

type MemoryOf<G, const N: usize, const K: usize> =
    Memory<<G as Program<N, K>>::Tile, <G as Program<N, K>>::Value, <G as Program<N, K>>::Own, N, K>;

pub(super) fn memory<G: Program<N, K>, const N: usize, const K: usize>() -> MemoryOf<G, N, K> {
    let (near, far, bins) = super::memory();
    let own = (G::Own::default(), bytemuck::Zeroable::zeroed());
    (near, far, bins, Private::new(own), Private::new(G::Value::default()), Private::new(false))
}

struct Phases<'k, 'wg, 'cg, T, V, P, const N: usize, const K: usize> {
    group: &'k mut Group<'wg, 'cg, 1, Fixed1<N>>,
    near: Tile<'wg, T, N>,
    far: Tile<'wg, T, N>,
    bins: Tile<'wg, u32, K>,
    own: PrivateValues<'wg, (P, T)>,
    value: PrivateValues<'wg, V>,
    holds: PrivateValues<'wg, bool>,
    input: Accessor<'cg, u32, 1, Read>,
    results: Accessor<'cg, Outcomes, 1, Write>,
}

impl<'cg, G: Program<N, K>, const N: usize, const K: usize> GroupKernel<'cg, 1, Fixed1<N>, MemoryOf<G, N, K>>
    for Kernel<'cg, G>
{
    #[inline]
    fn run<'wg>(
        &self,
        mut group: Group<'wg, 'cg, 1, Fixed1<N>>,
        (near, far, bins, own, value, holds): <MemoryOf<G, N, K> as oxisycl::group::GroupArguments>::Bound<'wg>,
    ) {
        let &Kernel { input, results, arguments, .. } = self;
        let mut form = Phases { group: &mut group, near, far, bins, own, value, holds, input, results };
        G::run(&mut form, arguments);
    }
}

#[inline(always)]
fn place<const N: usize>(item: PhaseItem<'_, 1>) -> Place {
    let local = item.local_linear_id();
    Place::new((item.global().index() - local) / N, local, N)
}

impl<'wg, 'cg: 'wg, T: Element, V: Element, P: DeviceCopyable, const N: usize, const K: usize>
    Phases<'_, 'wg, 'cg, T, V, P, N, K>
{
    /// Runs a phase that reads all memory, and keeps what it gives.
    #[inline(always)]
    fn value(&mut self, shared: Shared, phase: impl Reads<T, P, V>) {
        let input = self.input;
        let lent = (&self.near, &self.far, &self.bins, &mut self.own, &mut self.value);
        self.group.for_each(lent, move |item, (near, far, bins, own, value)| {
            *value =
                phase(place::<N>(item), input.view(item).as_slice(), Tiles { near, far, bins }, shared, &mut own.0);
        });
    }

    /// Gives what an algorithm left to the program.
    #[inline(always)]
    fn store(&mut self, store: impl Stores<P, V>) {
        self.group.for_each((&mut self.own, &self.value), move |_, (own, value)| store(&mut own.0, *value));
    }
}

impl<'wg, 'cg: 'wg, T: Element, V: Element, P: DeviceCopyable, const N: usize, const K: usize> Form<T, V, P>
    for Phases<'_, 'wg, 'cg, T, V, P, N, K>
{
    #[inline(always)]
    fn group(&self) -> u32 {
        self.group.linear_id() as u32
    }

    #[inline(always)]
    fn begin(&mut self, first: impl Fn(usize) -> T + Copy + Send + Sync + 'static) {
        let lent = (&mut self.near, &mut self.far, Shares(&mut self.bins));
        self.group.for_each(lent, move |item, (near, far, bins)| {
            let number = 2 * item.global().index();
            (*near, *far) = (first(number), first(number + 1));
            bins.for_each(|(index, bin)| *bin = scramble(index));
        });
    }

    #[inline(always)]
    fn change(&mut self, shared: Shared, phase: impl Changes<T, P>) {
        let input = self.input;
        self.group.for_each((&mut self.near, &mut self.own), move |item, (near, own)| {
            let local = item.local_linear_id() as u32;
            *near = phase(place::<N>(item), input.view(item).as_slice(), shared, &mut own.0, local, *near);
        });
    }

    #[inline(always)]
    fn change_bins(&mut self, shared: Shared, phase: impl Changes<u32, P>) {
        let input = self.input;
        self.group.for_each((Shares(&mut self.bins), &mut self.own), move |item, (bins, own)| {
            for (index, bin) in bins {
                *bin = phase(place::<N>(item), input.view(item).as_slice(), shared, &mut own.0, index as u32, *bin);
            }
        });
    }

    #[inline(always)]
    fn exchange(&mut self, shared: Shared, phase: impl Reads<T, P, T>) {
        let input = self.input;
        let lent = (&self.near, &self.far, &self.bins, &mut self.own);
        self.group.for_each(lent, move |item, (near, far, bins, own)| {
            own.1 = phase(place::<N>(item), input.view(item).as_slice(), Tiles { near, far, bins }, shared, &mut own.0);
        });
        self.group.for_each((&mut self.near, &self.own), move |_, (near, own)| *near = own.1);
    }

    #[inline(always)]
    fn advance(&mut self, shared: Shared, phase: impl Reads<T, P, T>) {
        let input = self.input;
        let lent = (&self.near, &mut self.far, &self.bins, &mut self.own);
        self.group.for_each(lent, move |item, (near, far, bins, own)| {
            let tiles = Tiles { near: &near[..], far: &near[..], bins: &bins[..] };
            *far = phase(place::<N>(item), input.view(item).as_slice(), tiles, shared, &mut own.0);
        });
        std::mem::swap(&mut self.near, &mut self.far);
    }

    #[inline(always)]
    fn count(&mut self, shared: Shared, how: Update, phase: impl Reads<T, P, (u32, u32)>) {
        let input = self.input;
        let lent = (&self.near, &self.far, Atomically(&mut self.bins), &mut self.own);
        self.group.for_each(lent, move |item, (near, far, bins, own)| {
            let tiles = Tiles { near: &near[..], far: &far[..], bins: &[] };
            let (bin, value) = phase(place::<N>(item), input.view(item).as_slice(), tiles, shared, &mut own.0);
            update(bins, how, bin as usize, value);
        });
    }

    #[inline(always)]
    fn read(&mut self, index: usize) -> T {
        self.group.read(&self.near, index)
    }

    #[inline(always)]
    fn reduce(&mut self, shared: Shared, phase: impl Reads<T, P, V>, operator: impl Operator<V> + 'static) -> V {
        self.value(shared, phase);
        self.group.reduce(&self.value, operator)
    }

    #[inline(always)]
    fn broadcast(&mut self, shared: Shared, phase: impl Reads<T, P, V>, from: usize) -> V {
        self.value(shared, phase);
        self.group.broadcast(&self.value, from)
    }

    #[inline(always)]
    fn vote(&mut self, shared: Shared, vote: Vote, phase: impl Reads<T, P, bool>) -> bool {
        let input = self.input;
        let lent = (&self.near, &self.far, &self.bins, &mut self.own, &mut self.holds);
        self.group.for_each(lent, move |item, (near, far, bins, own, holds)| {
            *holds =
                phase(place::<N>(item), input.view(item).as_slice(), Tiles { near, far, bins }, shared, &mut own.0);
        });
        match vote {
            Vote::Any => self.group.any(&self.holds),
            Vote::All => self.group.all(&self.holds),
            Vote::None => self.group.none(&self.holds),
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
        self.value(shared, phase);
        self.group.inclusive_scan(&mut self.value, operator);
        self.store(store);
    }

    #[inline(always)]
    fn exclusive_scan(
        &mut self,
        shared: Shared,
        phase: impl Reads<T, P, V>,
        operator: impl Identity<V> + 'static,
        store: impl Stores<P, V>,
    ) {
        self.value(shared, phase);
        self.group.exclusive_scan(&mut self.value, operator);
        self.store(store);
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
        self.value(shared, phase);
        self.group.exclusive_scan_from(&mut self.value, first, operator);
        self.store(store);
    }

    #[inline(always)]
    fn lanes_reduce<const W: usize>(
        &mut self,
        shared: Shared,
        phase: impl Reads<T, P, V>,
        operator: impl Operator<V> + 'static,
        store: impl Stores<P, V>,
    ) {
        self.value(shared, phase);
        self.group.sub_groups::<W>().reduce(&mut self.value, operator);
        self.store(store);
    }

    #[inline(always)]
    fn lanes_shift<const W: usize>(
        &mut self,
        shared: Shared,
        phase: impl Reads<T, P, V>,
        n: usize,
        store: impl Stores<P, V>,
    ) {
        self.value(shared, phase);
        self.group.sub_groups::<W>().shift_left(&mut self.value, n);
        self.store(store);
    }

    #[inline(always)]
    fn lanes_permute<const W: usize>(
        &mut self,
        shared: Shared,
        phase: impl Reads<T, P, V>,
        mask: usize,
        store: impl Stores<P, V>,
    ) {
        self.value(shared, phase);
        self.group.sub_groups::<W>().permute_by_xor(&mut self.value, mask);
        self.store(store);
    }

    #[inline(always)]
    fn finish(&mut self, shared: Shared, phase: impl Reads<T, P, Outcomes>) {
        let (input, results) = (self.input, self.results);
        let lent = (&self.near, &self.far, &self.bins, &mut self.own);
        self.group.for_each(lent, move |item, (near, far, bins, own)| {
            let tiles = Tiles { near: &near[..], far: &far[..], bins: &bins[..] };
            let result = phase(place::<N>(item), input.view(item).as_slice(), tiles, shared, &mut own.0);
            results.set(item.global(), result);
        });
    }
}
