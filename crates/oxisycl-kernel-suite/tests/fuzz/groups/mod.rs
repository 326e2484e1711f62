//! Random kernels over groups: what they are written with, and how they run on a device in both forms that the library has.
//!
//! A [`Program`] is one generated kernel. Its control flow is the same for a whole group and is written once, over a [`Form`]. A form runs
//! phases: functions of one work-item, which read the group's memory as the phase before left it. There are three: [`reference`] runs
//! phases in loops of plain Rust, [`nd`] with barriers of an nd-range, and [`phases`] with `for_each` of `parallel_for_work_group`.
//!
//! Invariant: a phase has no other way to values of other work-items than what its form lends it. So results do not depend on the order of work-items.

mod nd;
mod phases;
mod reference;

use oxisycl::group::{AtomicElements, Fixed1, Local};
use oxisycl::operator::{Identity, Operator};
use oxisycl::prelude::*;

use crate::harness::{Env, scramble};
use crate::outcome::{Outcome, Tolerance};

/// Groups of each launch.
const GROUPS: usize = 5;

/// What a work-item gives in the end.
pub(crate) type Outcomes = [u64; 2];

/// Values that are the same for the whole group, as phases get them.
pub(crate) type Shared = [u64; 4];

/// Values that kernels get from the host.
pub(crate) type Arguments = [u32; 3];

/// Which work-item a phase runs for.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub(crate) local: u32,
    pub(crate) group: u32,
    pub(crate) item: u32,
}

impl Place {
    fn new(group: usize, local: usize, items: usize) -> Self {
        Self { local: local as u32, group: group as u32, item: (group * items + local) as u32 }
    }
}

/// A group's local memory, to be read.
#[derive(Clone, Copy)]
pub(crate) struct Tiles<'t, T> {
    /// One element for each work-item.
    pub(crate) near: &'t [T],
    /// Another such tile.
    pub(crate) far: &'t [T],
    /// Numbers that work-items count in, as many as the kernel wants.
    pub(crate) bins: &'t [u32],
}

/// Elements of tiles, and values that algorithms combine.
pub(crate) trait Element: DeviceCopyable + bytemuck::AnyBitPattern {}

impl<T: DeviceCopyable + bytemuck::AnyBitPattern> Element for T {}

/// A phase that reads the group's memory: from the place, the input, the memory, the group's values and its own private ones.
pub(crate) trait Reads<T, P, R>:
    Fn(Place, &[u32], Tiles<'_, T>, Shared, &mut P) -> R + Copy + Send + Sync + 'static
{
}

impl<T, P, R, F> Reads<T, P, R> for F where
    F: Fn(Place, &[u32], Tiles<'_, T>, Shared, &mut P) -> R + Copy + Send + Sync + 'static
{
}

/// A phase that changes one element, whose index and old value come last.
pub(crate) trait Changes<T, P>:
    Fn(Place, &[u32], Shared, &mut P, u32, T) -> T + Copy + Send + Sync + 'static
{
}

impl<T, P, F> Changes<T, P> for F where F: Fn(Place, &[u32], Shared, &mut P, u32, T) -> T + Copy + Send + Sync + 'static {}

/// What puts the result of an algorithm into private values.
pub(crate) trait Stores<P, V>: Fn(&mut P, V) + Copy + Send + Sync + 'static {}

impl<P, V, F: Fn(&mut P, V) + Copy + Send + Sync + 'static> Stores<P, V> for F {}

/// How a bin is changed, in any order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Update {
    Add,
    Xor,
    Min,
    Max,
    And,
    Or,
}

/// Updates a bin.
#[inline(always)]
fn update(bins: AtomicElements<'_, u32>, how: Update, bin: usize, value: u32) {
    let index = bin % bins.len();
    match how {
        Update::Add => bins.fetch_add(index, value),
        Update::Xor => bins.fetch_xor(index, value),
        Update::Min => bins.fetch_min(index, value),
        Update::Max => bins.fetch_max(index, value),
        Update::And => bins.fetch_and(index, value),
        Update::Or => bins.fetch_or(index, value),
    };
}

/// A vote of all work-items.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Vote {
    Any,
    All,
    None,
}

/// What a kernel's control flow can do. Each method is for the whole group; the next one sees what it has written. Tiles have elements of `T`,
/// algorithms combine values of `V`, and each work-item has private values `P`.
pub(crate) trait Form<T: Element, V: Element, P> {
    /// The position of the group.
    fn group(&self) -> u32;
    /// Gives elements their first values: those of numbers that no other element has.
    fn begin(&mut self, first: impl Fn(usize) -> T + Copy + Send + Sync + 'static);
    /// Each work-item changes its own element of the near tile.
    fn change(&mut self, shared: Shared, phase: impl Changes<T, P>);
    /// Each work-item changes every so many of the bins.
    fn change_bins(&mut self, shared: Shared, phase: impl Changes<u32, P>);
    /// Each work-item reads all memory. When all have, each writes its own element of the near tile.
    fn exchange(&mut self, shared: Shared, phase: impl Reads<T, P, T>);
    /// Each work-item reads the near tile and the bins, and writes its own element of the far tile. Then the tiles change places.
    fn advance(&mut self, shared: Shared, phase: impl Reads<T, P, T>);
    /// Each work-item reads both tiles, and updates one bin with one value.
    fn count(&mut self, shared: Shared, update: Update, phase: impl Reads<T, P, (u32, u32)>);
    /// An element of the near tile, for the whole group.
    fn read(&mut self, index: usize) -> T;
    /// The values of all work-items together.
    fn reduce(&mut self, shared: Shared, phase: impl Reads<T, P, V>, operator: impl Operator<V> + 'static) -> V;
    /// The value of one work-item.
    fn broadcast(&mut self, shared: Shared, phase: impl Reads<T, P, V>, from: usize) -> V;
    /// What all work-items say.
    fn vote(&mut self, shared: Shared, vote: Vote, phase: impl Reads<T, P, bool>) -> bool;
    /// To each work-item, the values up to its own.
    fn inclusive_scan(
        &mut self,
        shared: Shared,
        phase: impl Reads<T, P, V>,
        operator: impl Operator<V> + 'static,
        store: impl Stores<P, V>,
    );
    /// To each work-item, the values before its own.
    fn exclusive_scan(
        &mut self,
        shared: Shared,
        phase: impl Reads<T, P, V>,
        operator: impl Identity<V> + 'static,
        store: impl Stores<P, V>,
    );
    /// To each work-item, a first value and those before its own.
    fn exclusive_scan_from(
        &mut self,
        shared: Shared,
        phase: impl Reads<T, P, V>,
        first: V,
        operator: impl Operator<V> + 'static,
        store: impl Stores<P, V>,
    );
    /// To each work-item, the values of its sub-group together.
    fn lanes_reduce<const W: usize>(
        &mut self,
        shared: Shared,
        phase: impl Reads<T, P, V>,
        operator: impl Operator<V> + 'static,
        store: impl Stores<P, V>,
    );
    /// To each work-item, the value of the one so many places behind it in its sub-group.
    fn lanes_shift<const W: usize>(
        &mut self,
        shared: Shared,
        phase: impl Reads<T, P, V>,
        n: usize,
        store: impl Stores<P, V>,
    );
    /// To each work-item, the value of the one whose place in the sub-group has these bits inverted.
    fn lanes_permute<const W: usize>(
        &mut self,
        shared: Shared,
        phase: impl Reads<T, P, V>,
        mask: usize,
        store: impl Stores<P, V>,
    );
    /// Notes what each work-item gives.
    fn finish(&mut self, shared: Shared, phase: impl Reads<T, P, Outcomes>);
}

/// A generated kernel over groups of `N` work-items, with `K` bins.
pub(crate) trait Program<const N: usize, const K: usize>: Copy + Send + Sync + 'static {
    /// Elements of the tiles.
    type Tile: Element;
    /// What algorithms combine.
    type Value: Element + Default;
    /// Private values of each work-item.
    type Own: DeviceCopyable + Default;

    /// Runs one group.
    fn run<F: Form<Self::Tile, Self::Value, Self::Own>>(form: &mut F, arguments: Arguments);
}

/// Local memory of a group: both tiles and the bins.
type Memory<T, const N: usize, const K: usize> = (Local<T, N>, Local<T, N>, Local<u32, K>);

const fn memory<T: Element, const N: usize, const K: usize>() -> Memory<T, N, K> {
    (Local::new(), Local::new(), Local::new())
}

/// What a kernel captures.
#[derive(Clone, Copy)]
struct Kernel<'cg, G> {
    input: Accessor<'cg, u32, 1, Read>,
    results: Accessor<'cg, Outcomes, 1, Write>,
    arguments: Arguments,
    program: std::marker::PhantomData<G>,
}

/// Compares a kernel over an nd-range.
#[track_caller]
pub(crate) fn compare_nd<G: Program<N, K>, const N: usize, const K: usize>(env: &Env, program: G, seed: u64) {
    compare(env, program, seed, |cg, kernel| {
        cg.launch_nd_range((GROUPS * N, Fixed1::<N>), memory::<G::Tile, N, K>(), oxisycl::float::Strict(kernel))
    });
}

/// Compares a kernel over groups.
#[track_caller]
pub(crate) fn compare_phases<G: Program<N, K>, const N: usize, const K: usize>(env: &Env, program: G, seed: u64) {
    compare(env, program, seed, |cg, kernel| {
        cg.launch_work_group(GROUPS, Fixed1::<N>, phases::memory::<G, N, K>(), oxisycl::float::Strict(kernel))
    });
}

/// Runs a program on the device and in loops, and compares what each work-item gives.
#[track_caller]
fn compare<G: Program<N, K>, const N: usize, const K: usize>(
    env: &Env,
    _: G,
    seed: u64,
    launch: impl for<'cg> FnOnce(&mut Handler<'cg>, Kernel<'cg, G>) -> oxisycl::Result,
) {
    crate::require_wide_numbers(env);
    // Any number, one that is small, and a choice.
    let [any, small, choice] = [0, 1, 2].map(|n| scramble(3 * seed as usize + n));
    let arguments = [any, small % 9, choice % 2];
    let input = crate::input();
    let expected: Vec<_> = (0..GROUPS).flat_map(|group| reference::run::<G, N, K>(group, &input, arguments)).collect();
    let input = Buffer::from_vec(input).expect("a buffer");
    let results = Buffer::from_vec(vec![Outcomes::NOTHING; GROUPS * N]).expect("a buffer");
    let submitted = env.queue().submit(|cg| {
        let (input, results) = (cg.access(&input, Read), cg.access(&results, Write));
        launch(cg, Kernel { input, results, arguments, program: std::marker::PhantomData })
    });
    env.finish(submitted);
    env.agree(&results.to_vec().expect("the results"), &expected, Tolerance::Exact);
}
