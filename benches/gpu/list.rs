//! Lists in memory, each followed by a work-item: what addresses of global memory gain beside generic ones, and beside CUDA C++.
//!
//! The nodes are one ring in an order that follows from the seed. Each work-item begins at a node of its own. `reference.cu` makes the same ring.

use bytemuck::AnyBitPattern;
use oxisycl::Result;
use oxisycl::multi_ptr::{MultiPtr, space};
use oxisycl::prelude::*;

use crate::cases::{LIST, LIST_FORMS};
use crate::random::Random;
use crate::{Measured, best_of};

/// A power of two.
const NODES: usize = 1 << 24;
const LISTS: usize = 1 << 18;
/// Nodes that a work-item looks at.
const STEPS: usize = 64;
/// Lists whose sums are computed in plain Rust.
const PLACES: usize = 200;

/// An element of a list.
#[derive(Clone, Copy, Debug, DeviceCopyable, AnyBitPattern)]
#[repr(C, align(16))]
struct Node {
    next: MultiPtr<Node, space::Global>,
    value: f32,
}

/// The node behind each node: a generator of random numbers that comes by all numbers below a power of two.
#[derive(Clone, Copy, Debug)]
struct Ring {
    factor: usize,
    step: usize,
}

impl Ring {
    fn new(random: &mut Random) -> Self {
        let [factor, step] = [random.next(), random.next()].map(|number| number as usize % NODES);
        Self { factor: factor & !7 | 5, step: step | 1 }
    }

    fn behind(self, node: usize) -> usize {
        node.wrapping_mul(self.factor).wrapping_add(self.step) % NODES
    }
}

/// What a node has, so that sums are exact.
fn value(node: usize) -> f32 {
    (node % 16) as f32
}

pub(crate) fn measure(device: &Device, measured: &mut Measured<'_>) -> Result {
    if !measured.options.wants_any(&[LIST, LIST_FORMS[0]]) {
        return Ok(());
    }
    let mut random = measured.random();
    let lists = Lists::new(device, Ring::new(&mut random))?;
    let mut best = [f64::INFINITY; 2];
    for run in [Lists::global, Lists::generic] {
        run(&lists)?;
        lists.check(&mut random)?;
    }
    // In turn, so that what changes meanwhile changes both.
    for _ in 0..20 {
        best[0] = best[0].min(best_of(1, || lists.global())?);
        best[1] = best[1].min(best_of(1, || lists.generic())?);
    }
    let [global, generic] = best.map(|time| (LISTS * STEPS) as f64 / time / 1e9);
    measured.add(LIST, || Ok(global))?;
    measured.add_pair(LIST_FORMS, || Ok([global, generic]))
}

struct Lists {
    queue: Queue,
    ring: Ring,
    nodes: Buffer<Node, 1>,
    sums: Buffer<f32, 1>,
}

impl Lists {
    fn new(device: &Device, ring: Ring) -> Result<Self> {
        let queue = Queue::builder().device(device).in_order().build()?;
        let nodes = Buffer::<Node, 1>::uninit(NODES)?;
        let made = queue.submit(|cg| {
            let nodes = cg.access(&nodes, Write.no_init());
            cg.parallel_for(NODES, move |item| {
                let next = nodes.multi_ptr(item).wrapping_add(ring.behind(item.index()));
                nodes.set(item, Node { next, value: value(item.index()) });
            })
        });
        made?.wait()?;
        Ok(Self { queue, ring, nodes, sums: Buffer::from_vec(vec![0.0; LISTS])? })
    }

    /// Each address is one of global memory.
    fn global(&self) -> Result {
        let event = self.queue.submit(|cg| {
            let (nodes, sums) = (cg.access(&self.nodes, Read), cg.access(&self.sums, Write));
            cg.parallel_for(LISTS, move |item| {
                let mut at = nodes.multi_ptr(item).wrapping_add(item.index());
                let mut sum = 0.0;
                for _ in 0..STEPS {
                    // SAFETY: a node of the buffer, as each node names one, and nothing writes them.
                    let node = unsafe { at.read() };
                    (at, sum) = (node.next, sum + node.value);
                }
                sums.set(item, sum);
            })
        });
        event?.wait()
    }

    /// Each address but the first may be one of any memory.
    fn generic(&self) -> Result {
        let event = self.queue.submit(|cg| {
            let (nodes, sums) = (cg.access(&self.nodes, Read), cg.access(&self.sums, Write));
            cg.parallel_for(LISTS, move |item| {
                let mut at: MultiPtr<Node> = nodes.multi_ptr(item).wrapping_add(item.index()).into();
                let mut sum = 0.0;
                for _ in 0..STEPS {
                    // SAFETY: a node of the buffer, as each node names one, and nothing writes them.
                    let node = unsafe { at.read() };
                    (at, sum) = (node.next.into(), sum + node.value);
                }
                sums.set(item, sum);
            })
        });
        event?.wait()
    }

    /// Compares sums with plain Rust.
    fn check(&self, random: &mut Random) -> Result {
        let sums = self.sums.to_vec()?;
        for _ in 0..PLACES {
            let list = random.below(LISTS);
            let nodes = std::iter::successors(Some(list), |node| Some(self.ring.behind(*node)));
            let expected: f32 = nodes.take(STEPS).map(value).sum();
            assert_eq!(sums[list], expected, "list {list} has the sum that it has in plain Rust");
        }
        // The next kernel has to write all of them.
        self.queue.fill(&self.sums, -1.0)?.wait()
    }
}
