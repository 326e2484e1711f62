//! The figures of the GPU benchmark: what each is, the bar for it, and which figure of the reference it is compared with.
//!
//! Tested by `xtask`, since benchmarks have no harness.

use std::collections::BTreeSet;

/// A figure.
#[derive(Debug)]
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) unit: &'static str,
    pub(crate) more_is_better: bool,
    /// The least ratio to the reference, or the greatest.
    pub(crate) bar: f64,
    pub(crate) peer: Peer,
}

/// The figure that a case is compared with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Peer {
    /// The reference's of that name.
    Reference(&'static str),
    /// Our own of that name in the same round, which is called so in the table.
    Own(&'static str, &'static str),
}

impl Case {
    const fn new(name: &'static str, unit: &'static str, more_is_better: bool, bar: f64) -> Self {
        Self { name, unit, more_is_better, bar, peer: Peer::Reference(name) }
    }

    /// Of what the reference has no loop of its own for, and which is compared with its bare launches.
    const fn beside_launches(self) -> Self {
        Self { peer: Peer::Reference(LAUNCH), ..self }
    }

    /// Of what is done together with others.
    const fn beside_one(self, peer: &'static str) -> Self {
        Self { peer: Peer::Own("one", peer), ..self }
    }

    /// Of arguments that are passed by their address, which may take 3 us more.
    const fn beside_small(self, peer: &'static str) -> Self {
        Self { peer: Peer::Own("small and 3 us", peer), ..self }
    }

    /// Of a kernel with a number that is known when the driver compiles it, beside another form of the same.
    const fn beside_form(self, label: &'static str, peer: &'static str) -> Self {
        Self { peer: Peer::Own(label, peer), ..self }
    }

    /// Of addresses of global memory, beside generic ones.
    const fn beside_generic(self, peer: &'static str) -> Self {
        Self { peer: Peer::Own("generic", peer), ..self }
    }

    /// Of what batching must not make worse.
    const fn beside_unbatched(self, peer: &'static str) -> Self {
        Self { peer: Peer::Own("unbatched", peer), ..self }
    }
}

const LAUNCH: &str = "gpu.launch";
/// Ours has one figure for both: the reference launches the kernels one by one, and as a graph.
pub(crate) const TINY: &str = "gpu.chain.tiny";
pub(crate) const TINY_GRAPH: &str = "gpu.chain.tiny.graph";
/// Mixes of other numbers of functions than the eight of `gpu.mixed`.
pub(crate) const OTHER_MIXES: [(&str, u32); 4] =
    [("gpu.mixed.2", 2), ("gpu.mixed.3", 3), ("gpu.mixed.4", 4), ("gpu.mixed.16", 16)];
/// With batching, and without.
pub(crate) const LATENCY: [&str; 2] = ["gpu.latency.batching", "gpu.latency.unbatched"];
pub(crate) const STARTED: [&str; 2] = ["gpu.started", "gpu.started.unbatched"];
/// Launches with arguments of 4 KiB, and with small ones and 3 us more for each.
pub(crate) const BLOCK4K: [&str; 2] = ["gpu.block4k", "gpu.block4k.small"];

/// A stencil whose radius is a specialization constant, and one whose radius is a const parameter.
pub(crate) const SPECIALISED: [&str; 2] = ["gpu.specialised", "gpu.specialised.const"];
/// The first again, and one whose radius is a plain argument.
pub(crate) const SPECIALISED_GAIN: [&str; 2] = ["gpu.specialised.gain", "gpu.specialised.plain"];
/// A launch with a specialization constant, and one with a plain argument and 30 ns more.
pub(crate) const SPECIALISED_HIT: [&str; 2] = ["gpu.specialised.hit", "gpu.specialised.hit.plain"];

/// All of 64 submissions of new kernels behind one that runs, and 20 ms.
pub(crate) const FIRST_LAUNCH: [&str; 2] = ["gpu.first_launch", "gpu.first_launch.allowed"];

/// Nodes of lists that are looked at, in 10^9 per second. In the reference it is the better one of generic and global addresses.
pub(crate) const LIST: &str = "gpu.list";
/// The list's figure of ours, and that of generic addresses.
pub(crate) const LIST_FORMS: [&str; 2] = ["gpu.list.global", "gpu.list.generic"];

/// Of 2^27 numbers, and the geometric mean over 2^20 to 2^27.
pub(crate) const SUMS: [&str; 2] = ["gpu.sum.f64", "gpu.sum.f64.mean"];
/// The geometric mean below that. The reference's figure is CUB's time and 3 us for each size.
pub(crate) const SMALL: &str = "gpu.sum.f64.small";
/// Three reductions in one pass, and one of them.
pub(crate) const SUM3: [&str; 2] = ["gpu.sum3", "gpu.sum3.one"];

pub(crate) const CASES: &[Case] = &[
    Case::new("gpu.stream.copy", "GB/s", true, 0.99),
    Case::new("gpu.stream.mul", "GB/s", true, 0.99),
    Case::new("gpu.stream.add", "GB/s", true, 0.99),
    Case::new("gpu.stream.triad", "GB/s", true, 0.99),
    Case::new("gpu.nbody", "G/s", true, 0.97),
    Case::new("gpu.gemm.tile16", "GFLOP/s", true, 0.97),
    Case::new("gpu.gemm.tile32", "GFLOP/s", true, 0.97),
    Case::new("gpu.nbody.local", "G/s", true, 0.98),
    Case::new("gpu.histogram", "GB/s", true, 0.95),
    Case::new("gpu.histogram.equal", "GB/s", true, 0.95),
    Case::new(SUMS[0], "GB/s", true, 0.99),
    Case::new(SUMS[1], "GB/s", true, 0.95),
    Case::new(SMALL, "us", false, 1.0),
    Case::new(SUM3[0], "us", false, 1.05).beside_one(SUM3[1]),
    Case::new("gpu.blockscan", "GB/s", true, 0.97),
    Case::new("gpu.blockreduce", "GB/s", true, 0.97),
    Case::new(LIST, "G/s", true, 0.97),
    Case::new(LIST_FORMS[0], "G/s", true, 0.99).beside_generic(LIST_FORMS[1]),
    Case::new(LAUNCH, "us", false, 1.12),
    Case::new("gpu.launch.out_of_order", "us", false, 1.5).beside_launches(),
    Case::new(BLOCK4K[0], "us", false, 1.0).beside_small(BLOCK4K[1]),
    Case::new(SPECIALISED[0], "us", false, 1.11).beside_form("const", SPECIALISED[1]),
    Case::new(SPECIALISED_GAIN[0], "us", false, 0.80).beside_form("plain", SPECIALISED_GAIN[1]),
    Case::new(SPECIALISED_HIT[0], "us", false, 1.0).beside_form("plain and 30 ns", SPECIALISED_HIT[1]),
    Case::new(FIRST_LAUNCH[0], "us", false, 1.0).beside_form("20 ms", FIRST_LAUNCH[1]),
    Case::new("gpu.chain", "us", false, 1.18).beside_launches(),
    Case::new(TINY, "us", false, 0.40),
    Case::new(TINY_GRAPH, "us", false, 1.25),
    Case::new("gpu.burst.50", "us", false, 0.55),
    Case::new("gpu.burst.10", "us", false, 0.75),
    Case::new("gpu.mixed", "us", false, 0.85),
    Case::new(OTHER_MIXES[0].0, "us", false, 1.0),
    Case::new(OTHER_MIXES[1].0, "us", false, 1.0),
    Case::new(OTHER_MIXES[2].0, "us", false, 1.0),
    Case::new(OTHER_MIXES[3].0, "us", false, 1.0),
    Case::new("gpu.latency", "us", false, 1.3),
    Case::new(LATENCY[0], "us", false, 1.02).beside_unbatched(LATENCY[1]),
    Case::new(STARTED[0], "us", false, 1.02).beside_unbatched(STARTED[1]),
    Case::new("gpu.copy.to_device", "GB/s", true, 0.95),
    Case::new("gpu.copy.to_host", "GB/s", true, 0.95),
    Case::new("gpu.copy.to_device.1gib", "GB/s", true, 0.95),
    Case::new("gpu.copy.to_host.1gib", "GB/s", true, 0.95),
];

/// The cases that are wanted, in the order of the table.
pub(crate) fn chosen(is_wanted: impl Fn(&str) -> bool) -> Vec<&'static Case> {
    CASES.iter().filter(|case| is_wanted(case.name)).collect()
}

/// The figures of the reference that these cases need, each once.
pub(crate) fn peers(cases: &[&Case]) -> BTreeSet<&'static str> {
    let reference = |case: &&Case| match case.peer {
        Peer::Reference(name) => Some(name),
        Peer::Own(..) => None,
    };
    cases.iter().filter_map(reference).collect()
}
