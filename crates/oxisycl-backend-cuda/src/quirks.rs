//! Faults of the CUDA driver, and which of them the driver at hand has.
//!
//! Versions are those of the driver's API, such as 13.0: the driver tells no other.

use oxisycl_types::{Quirk, Reproducer};

/// All of them.
#[cfg(test)]
pub(crate) const QUIRKS: &[Quirk] = &[WAITING_FREE, WAITING_COPIES, SHARED_LOSS];

const CUDA: &str = "NVIDIA CUDA";
const SEEN: &str = "13.0 (driver 580)";

const WAITING_FREE: Quirk = Quirk {
    name: "waiting-free",
    driver: CUDA,
    seen: SEEN,
    fixed: None,
    fault: "Memory of all kinds is freed only once no kernel of the context runs, and nothing can be launched meanwhile.",
    switch: "memory is kept for allocations of its size, and freed when the device has nothing to do (`retired.rs`)",
    reproducer: Reproducer::Test("freeing_memory_waits_for_running_kernels"),
};

/// The host executes such copies with any driver, since CUDA's documentation allows the driver's behaviour.
#[cfg(test)]
const WAITING_COPIES: Quirk = Quirk {
    name: "waiting-copies",
    driver: CUDA,
    seen: SEEN,
    fixed: None,
    fault: "Asynchronous copies of memory that the driver does not know wait for the device.",
    switch: "a thread of the runtime executes such copies when their dependencies have ended (`host_transfer.rs`)",
    reproducer: Reproducer::Test("copies_of_unknown_memory_wait_for_the_device"),
};

/// There is no remedy; the error message explains the loss.
#[cfg(test)]
const SHARED_LOSS: Quirk = Quirk {
    name: "shared-loss",
    driver: CUDA,
    seen: SEEN,
    fixed: None,
    fault: "A kernel that touches an illegal address costs the process the contexts of all its devices.",
    switch: "errors of the other devices name that kernel, too (`context.rs`)",
    reproducer: Reproducer::Test("a_crash_costs_the_process_all_devices"),
};

/// The driver's faults that other code checks for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Quirks {
    pub(crate) waiting_free: bool,
}

impl Quirks {
    /// The faults of a driver version.
    pub(crate) fn of(version: &str) -> Self {
        let has = |quirk: &Quirk| quirk.concerns(version) && !is_off(quirk);
        Self { waiting_free: has(&WAITING_FREE) }
    }
}

#[cfg(test)]
fn is_off(quirk: &Quirk) -> bool {
    oxisycl_backend_testing::quirks::is_off(quirk)
}

/// Only reproducers switch quirks off.
#[cfg(not(test))]
fn is_off(_quirk: &Quirk) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_known_drivers_wait_when_they_free_unless_that_is_switched_off() {
        let has_remedy = !is_off(&WAITING_FREE);
        for version in ["13.0", "11.0"] {
            assert_eq!(Quirks::of(version).waiting_free, has_remedy);
        }
    }

    #[test]
    fn the_book_has_the_quirks() {
        oxisycl_backend_testing::quirks::check_page("oxisycl-backend-cuda", &[("CUDA", QUIRKS)]);
    }
}
