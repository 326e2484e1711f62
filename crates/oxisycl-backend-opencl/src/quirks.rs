//! Faults of OpenCL drivers, and which of them the driver of a device has.
//!
//! Invariant: a remedy is switched on for the drivers that need it, by platform, kind of device and version, and for no others. What code
//! does because OpenCL leaves it open is no quirk.

use oxisycl_types::{Quirk, Reproducer};

use crate::query::Asked;
use crate::sys::{Object, code};

/// All of them.
#[cfg(test)]
pub(crate) const QUIRKS: &[Quirk] =
    &[WAITING_THREADS, SECOND_WAITER, PROCESS_END, QUEUE_RELEASE, EQUAL_DISTANCES, SIGNED_POSITIONS, UNNAMED_LOSS];

const INTEL_CPU: &str = "Intel OpenCL CPU";
/// The fault shows in code for these processors alone.
const INTEL_CPU_512: &str = "Intel OpenCL CPU (AVX-512)";
const NVIDIA: &str = "NVIDIA OpenCL";
const ANY_CPU: &str = "any OpenCL CPU";
const SEEN: &str = "2026.22";

const WAITING_THREADS: Quirk = Quirk {
    name: "waiting-threads",
    driver: INTEL_CPU,
    seen: SEEN,
    fixed: None,
    fault: "The driver has one thread less than there are processors, and counts on threads that wait to execute work-items.",
    switch: "a thread of the backend waits in the driver for the oldest command (`driver_wait.rs`)",
    reproducer: Reproducer::Test("two_work_items_of_a_command_run_at_a_time"),
};

const SECOND_WAITER: Quirk = Quirk {
    name: "second-waiter",
    driver: INTEL_CPU,
    seen: SEEN,
    fixed: None,
    fault: "One of two threads that wait in the driver may get the other's wait within the awaited command, and neither returns.",
    switch: "one thread of the process waits in the driver at a time (`driver_wait.rs`)",
    reproducer: Reproducer::Without(
        "seen once in 20 runs of all tests of the backend, and not in 280 long commands of three contexts at a time",
    ),
};

const PROCESS_END: Quirk = Quirk {
    name: "process-end",
    driver: INTEL_CPU,
    seen: SEEN,
    fixed: None,
    fault: "The driver tears itself down at the end of the process: it waits for kernels without a limit, and was seen to abort the process.",
    switch: "the end of the process waits up to 5 s for commands, and ends it there if they still run (`process_exit.rs`)",
    reproducer: Reproducer::Test("a_process_ends_with_its_own_status_while_a_kernel_runs_on"),
};

const QUEUE_RELEASE: Quirk = Quirk {
    name: "queue-release",
    driver: INTEL_CPU,
    seen: SEEN,
    fixed: None,
    fault: "A queue that is released soon after its last command may be freed by the thread that ran the command, which then waits for itself.",
    switch: "queues are released with their context, and no earlier than 10 s after its end (`queue_pool.rs`)",
    reproducer: Reproducer::Without(
        "seen in 2 of 80 runs of all tests of the backend, and not in 77,000 queues that were released after one command",
    ),
};

const EQUAL_DISTANCES: Quirk = Quirk {
    name: "equal-distances",
    driver: ANY_CPU,
    seen: "Intel 2026.22",
    fixed: None,
    fault: "Arrays whose sizes are powers of two lie exactly that far apart, where memory serves them one after the other.",
    switch: "large allocations begin with a large page, and take one more (`memory.rs`)",
    reproducer: Reproducer::Test("large_arrays_do_not_lie_their_size_apart"),
};

/// The remedy costs no driver anything. So it is always on, without a switch in [`Quirks`].
const SIGNED_POSITIONS: Quirk = Quirk {
    name: "signed-positions",
    driver: INTEL_CPU_512,
    seen: "2026.22",
    fixed: None,
    fault: "A comparison of a work-item's position with a number may be wrong in grids of more than 2^31 - 1 positions.",
    switch: "larger launches have several grids (`launch_shape.rs`)",
    reproducer: Reproducer::Test("positions_are_compared_as_numbers_without_a_sign"),
};

const UNNAMED_LOSS: Quirk = Quirk {
    name: "unnamed-loss",
    driver: NVIDIA,
    seen: "not seen here",
    fixed: None,
    fault: "After a kernel touched memory that it must not, calls fail with -9999, a code that OpenCL does not name, and the device is lost.",
    switch: "a call that fails with this code loses the device (`error.rs`)",
    reproducer: Reproducer::Without("the driver takes no SPIR-V, so it runs no kernel"),
};

/// The faults that a device's driver has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Quirks {
    pub(crate) waiting_threads: bool,
    pub(crate) second_waiter: bool,
    pub(crate) process_end: bool,
    pub(crate) queue_release: bool,
    pub(crate) equal_distances: bool,
    pub(crate) unnamed_loss: bool,
    /// Whether work-items that end early were seen not to disturb barriers of others, which OpenCL leaves open.
    pub(crate) barriers_go_on: bool,
}

impl Quirks {
    /// The faults of a device's driver.
    pub(crate) fn of(device: Asked<'_>, platform: Object) -> Self {
        let vendor = Asked::platform(device.functions(), platform).text(code::PLATFORM_VENDOR);
        let is_cpu = device.number(code::DEVICE_TYPE) & code::DEVICE_TYPE_CPU != 0;
        Self::new(&vendor, is_cpu, &device.text(code::DRIVER_VERSION))
    }

    /// The faults of a driver by its vendor, its kind of device and its version.
    pub(crate) fn new(vendor: &str, is_cpu: bool, version: &str) -> Self {
        let has = |quirk: &Quirk| {
            let is_driver = match quirk.driver {
                INTEL_CPU => is_cpu && vendor.starts_with("Intel"),
                NVIDIA => vendor.starts_with("NVIDIA"),
                ANY_CPU => is_cpu,
                _ => true,
            };
            is_driver && quirk.concerns(version) && !is_off(quirk)
        };
        Self {
            waiting_threads: has(&WAITING_THREADS),
            second_waiter: has(&SECOND_WAITER),
            process_end: has(&PROCESS_END),
            queue_release: has(&QUEUE_RELEASE),
            equal_distances: has(&EQUAL_DISTANCES),
            unnamed_loss: has(&UNNAMED_LOSS),
            barriers_go_on: vendor.starts_with("NVIDIA") || (is_cpu && vendor.starts_with("Intel")),
        }
    }
}

/// Most positions of a grid per dimension. The calling convention of kernels has twice as many; the quirk `signed-positions` has the reason.
#[inline]
pub(crate) fn max_positions() -> u64 {
    if is_off(&SIGNED_POSITIONS) { u32::MAX.into() } else { i32::MAX as u64 }
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
    fn remedies_are_for_the_drivers_that_need_them() {
        let intel = Quirks::new("Intel(R) Corporation", true, "2026.22.10.0.31_160000");
        assert!(intel.waiting_threads && intel.process_end && intel.queue_release && intel.equal_distances);
        let gpu = Quirks::new("Intel(R) Corporation", false, "25.1");
        assert!(!gpu.waiting_threads && !gpu.process_end && !gpu.equal_distances);
        let other = Quirks::new("The pocl project", true, "6.0");
        assert!(!other.second_waiter && !other.queue_release && other.equal_distances);
        let nvidia = Quirks::new("NVIDIA Corporation", false, "580.159.04");
        assert!(intel.barriers_go_on && nvidia.barriers_go_on && !gpu.barriers_go_on && !other.barriers_go_on);
        assert!(nvidia.unnamed_loss && !intel.unnamed_loss && !gpu.unnamed_loss && !other.unnamed_loss);
    }

    #[test]
    fn the_book_has_the_quirks() {
        oxisycl_backend_testing::quirks::check_page("oxisycl-backend-opencl", &[("OpenCL", QUIRKS)]);
    }
}
