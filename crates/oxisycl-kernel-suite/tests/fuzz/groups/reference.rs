//! Groups in plain Rust: a phase is a loop over the work-items.

use bytemuck::Zeroable;
use oxisycl::operator::{Identity, Operator};

use super::{Arguments, Changes, Element, Form, Outcomes, Place, Program, Reads, Shared, Stores, Tiles, Update, Vote};
use crate::harness::scramble;
use crate::outcome::Outcome;

/// Work-items that algorithms combine first.
const BLOCK: usize = 32;

struct Reference<'i, T, P> {
    group: usize,
    input: &'i [u32],
    near: Vec<T>,
    far: Vec<T>,
    bins: Vec<u32>,
    own: Vec<P>,
    results: Vec<Outcomes>,
}

/// What the work-items of one group give.
pub(super) fn run<G: Program<N, K>, const N: usize, const K: usize>(
    group: usize,
    input: &[u32],
    arguments: Arguments,
) -> Vec<Outcomes> {
    let tile = || vec![G::Tile::zeroed(); N];
    let (near, far, bins) = (tile(), tile(), vec![0; K]);
    let (own, results) = (vec![G::Own::default(); N], vec![Outcomes::NOTHING; N]);
    let mut form = Reference { group, input, near, far, bins, own, results };
    G::run(&mut form, arguments);
    form.results
}

impl<T: Element, P> Reference<'_, T, P> {
    fn place(&self, local: usize) -> Place {
        Place::new(self.group, local, self.near.len())
    }

    /// What a phase gives for each work-item.
    fn read_all<R>(&mut self, shared: Shared, phase: impl Reads<T, P, R>) -> Vec<R> {
        let items = self.near.len();
        let tiles = Tiles { near: &self.near, far: &self.far, bins: &self.bins };
        let run = |(local, own)| phase(Place::new(self.group, local, items), self.input, tiles, shared, own);
        self.own.iter_mut().enumerate().map(run).collect()
    }

    fn store_all<V>(&mut self, values: Vec<V>, store: impl Stores<P, V>) {
        self.own.iter_mut().zip(values).for_each(|(own, value)| store(own, value));
    }
}

/// Values up to each, in the order that the library promises.
fn scanned<V: Copy>(values: &[V], operator: impl Operator<V>) -> Vec<V> {
    let mut all: Vec<V> = Vec::new();
    for block in values.chunks(BLOCK) {
        let left = all.last().copied();
        let block = scanned_block(block, operator);
        all.extend(block.into_iter().map(|value| left.map_or(value, |left| operator.combine(left, value))));
    }
    all
}

fn scanned_block<V: Copy>(values: &[V], operator: impl Operator<V>) -> Vec<V> {
    let mut now = values.to_vec();
    let mut step = 1;
    while step < now.len() {
        let old = now.clone();
        (step..now.len()).for_each(|index| now[index] = operator.combine(old[index - step], old[index]));
        step *= 2;
    }
    now
}

/// To each value, the one whose place in its sub-group `from` names; its own if there is none.
fn gathered<V: Copy>(values: &[V], lanes: usize, from: impl Fn(usize) -> usize) -> Vec<V> {
    let of_lanes = |values: &[V]| -> Vec<V> {
        (0..values.len()).map(|lane| *values.get(from(lane)).unwrap_or(&values[lane])).collect()
    };
    values.chunks(lanes).flat_map(of_lanes).collect()
}

impl<T: Element, V: Element, P> Form<T, V, P> for Reference<'_, T, P> {
    fn group(&self) -> u32 {
        self.group as u32
    }

    fn begin(&mut self, first: impl Fn(usize) -> T + Copy + Send + Sync + 'static) {
        for local in 0..self.near.len() {
            let item = self.place(local).item as usize;
            (self.near[local], self.far[local]) = (first(2 * item), first(2 * item + 1));
        }
        self.bins.iter_mut().enumerate().for_each(|(index, bin)| *bin = scramble(index));
    }

    fn change(&mut self, shared: Shared, phase: impl Changes<T, P>) {
        for local in 0..self.near.len() {
            let (place, own) = (self.place(local), &mut self.own[local]);
            self.near[local] = phase(place, self.input, shared, own, local as u32, self.near[local]);
        }
    }

    fn change_bins(&mut self, shared: Shared, phase: impl Changes<u32, P>) {
        let items = self.near.len();
        for local in 0..items {
            for index in (local..self.bins.len()).step_by(items) {
                let (place, own) = (self.place(local), &mut self.own[local]);
                self.bins[index] = phase(place, self.input, shared, own, index as u32, self.bins[index]);
            }
        }
    }

    fn exchange(&mut self, shared: Shared, phase: impl Reads<T, P, T>) {
        self.near = self.read_all(shared, phase);
    }

    fn advance(&mut self, shared: Shared, phase: impl Reads<T, P, T>) {
        self.far = self.near.clone();
        let new = self.read_all(shared, phase);
        self.far = std::mem::replace(&mut self.near, new);
    }

    fn count(&mut self, shared: Shared, update: Update, phase: impl Reads<T, P, (u32, u32)>) {
        for (bin, value) in self.read_all(shared, phase) {
            let index = bin as usize % self.bins.len();
            let bin = &mut self.bins[index];
            *bin = match update {
                Update::Add => bin.wrapping_add(value),
                Update::Xor => *bin ^ value,
                Update::Min => value.min(*bin),
                Update::Max => value.max(*bin),
                Update::And => *bin & value,
                Update::Or => *bin | value,
            };
        }
    }

    fn read(&mut self, index: usize) -> T {
        self.near[index]
    }

    fn reduce(&mut self, shared: Shared, phase: impl Reads<T, P, V>, operator: impl Operator<V> + 'static) -> V {
        let scanned = scanned(&self.read_all(shared, phase), operator);
        scanned[scanned.len() - 1]
    }

    fn broadcast(&mut self, shared: Shared, phase: impl Reads<T, P, V>, from: usize) -> V {
        self.read_all(shared, phase)[from]
    }

    fn vote(&mut self, shared: Shared, vote: Vote, phase: impl Reads<T, P, bool>) -> bool {
        let votes = self.read_all(shared, phase);
        match vote {
            Vote::Any => votes.contains(&true),
            Vote::All => !votes.contains(&false),
            Vote::None => !votes.contains(&true),
        }
    }

    fn inclusive_scan(
        &mut self,
        shared: Shared,
        phase: impl Reads<T, P, V>,
        operator: impl Operator<V> + 'static,
        store: impl Stores<P, V>,
    ) {
        let values = self.read_all(shared, phase);
        self.store_all(scanned(&values, operator), store);
    }

    fn exclusive_scan(
        &mut self,
        shared: Shared,
        phase: impl Reads<T, P, V>,
        operator: impl Identity<V> + 'static,
        store: impl Stores<P, V>,
    ) {
        let mut values = scanned(&self.read_all(shared, phase), operator);
        values.insert(0, operator.identity());
        self.store_all(values, store);
    }

    fn exclusive_scan_from(
        &mut self,
        shared: Shared,
        phase: impl Reads<T, P, V>,
        first: V,
        operator: impl Operator<V> + 'static,
        store: impl Stores<P, V>,
    ) {
        let before = scanned(&self.read_all(shared, phase), operator);
        let others = before.into_iter().map(|before| operator.combine(first, before));
        self.store_all(std::iter::once(first).chain(others).collect(), store);
    }

    fn lanes_reduce<const W: usize>(
        &mut self,
        shared: Shared,
        phase: impl Reads<T, P, V>,
        operator: impl Operator<V> + 'static,
        store: impl Stores<P, V>,
    ) {
        let of_lanes = |values: &[V]| vec![scanned_block(values, operator)[values.len() - 1]; values.len()];
        let values = self.read_all(shared, phase).chunks(W).flat_map(of_lanes).collect();
        self.store_all(values, store);
    }

    fn lanes_shift<const W: usize>(
        &mut self,
        shared: Shared,
        phase: impl Reads<T, P, V>,
        n: usize,
        store: impl Stores<P, V>,
    ) {
        let values = self.read_all(shared, phase);
        self.store_all(gathered(&values, W, |lane| lane + n), store);
    }

    fn lanes_permute<const W: usize>(
        &mut self,
        shared: Shared,
        phase: impl Reads<T, P, V>,
        mask: usize,
        store: impl Stores<P, V>,
    ) {
        let values = self.read_all(shared, phase);
        self.store_all(gathered(&values, W, |lane| lane ^ mask), store);
    }

    fn finish(&mut self, shared: Shared, phase: impl Reads<T, P, Outcomes>) {
        self.results = self.read_all(shared, phase);
    }
}
