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
    /// The reference's figure.
    pub(crate) peer: &'static str,
}

impl Case {
    const fn new(name: &'static str, unit: &'static str, more_is_better: bool, bar: f64) -> Self {
        Self { name, unit, more_is_better, bar, peer: name }
    }

    /// Of what the reference has no loop of its own for, and which is compared with its bare launches.
    const fn beside_launches(self) -> Self {
        Self { peer: LAUNCH, ..self }
    }
}

const LAUNCH: &str = "gpu.launch";

pub(crate) const CASES: &[Case] = &[
    Case::new("gpu.stream.copy", "GB/s", true, 0.99),
    Case::new("gpu.stream.mul", "GB/s", true, 0.99),
    Case::new("gpu.stream.add", "GB/s", true, 0.99),
    Case::new("gpu.stream.triad", "GB/s", true, 0.99),
    Case::new("gpu.nbody", "G/s", true, 0.97),
    Case::new(LAUNCH, "us", false, 1.25),
    Case::new("gpu.launch.out_of_order", "us", false, 1.5).beside_launches(),
    Case::new("gpu.chain", "us", false, 1.5).beside_launches(),
    Case::new("gpu.latency", "us", false, 1.3),
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
    cases.iter().map(|case| case.peer).collect()
}
