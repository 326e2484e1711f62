//! Faults of OpenCL drivers in what they make of valid SPIR-V.
//!
//! An image is made before its driver is known, so each of these shapes all modules. Invariant: a module that works around a fault is right for
//! every driver.

use oxisycl_types::{Quirk, Reproducer};

/// All of them.
#[cfg(test)]
pub(crate) const QUIRKS: &[Quirk] = &[
    PRIVATE_INTEGERS,
    PRIVATE_PHIS,
    NEXT_POSITIONS,
    GENERIC_ATOMICS,
    SIGNED_BOUNDS,
    PANIC_CALLS,
    MASKED_CALLS,
    MANY_ENTRIES,
];

const INTEL_CPU: &str = "Intel OpenCL CPU";
/// The fault shows in code for these processors alone.
const INTEL_CPU_512: &str = "Intel OpenCL CPU (AVX-512)";
const SEEN: &str = "2026.22";

/// See `addresses`.
pub(crate) const PRIVATE_INTEGERS: Quirk = Quirk {
    name: "private-integers",
    driver: INTEL_CPU,
    seen: SEEN,
    fixed: None,
    fault: "An integer computed from a private address, with which a loop begins, has the distance between two work-items in it twice.",
    switch: "integers computed of one address are addresses (`codegen/spirv/addresses.rs`)",
    reproducer: Reproducer::Test("a_loop_whose_end_is_an_integer_ends_there_in_each_work_item"),
};

/// See `private_phis`.
pub(crate) const PRIVATE_PHIS: Quirk = Quirk {
    name: "private-phis",
    driver: INTEL_CPU,
    seen: SEEN,
    fixed: None,
    fault: "A private address that a loop carries over a barrier is another work-item's, where the driver's vectors do not divide the group.",
    switch: "the loop carries numbers, and makes the address of them (`codegen/spirv/private_phis.rs`)",
    reproducer: Reproducer::Test("an_address_that_a_loop_carries_over_a_barrier_is_of_its_own_work_item"),
};

/// See `next_positions`.
pub(crate) const NEXT_POSITIONS: Quirk = Quirk {
    name: "next-positions",
    driver: INTEL_CPU_512,
    seen: SEEN,
    fixed: None,
    fault: "The driver's compiler crashes, and the process with it, where two loops carry a position and the next one, as those of `step_by` do.",
    switch: "the next position is computed of the position (`codegen/spirv/next_positions.rs`)",
    reproducer: Reproducer::Test("two_loops_that_carry_a_position_and_the_next_one_are_compiled"),
};

/// See `memories`.
pub(super) const GENERIC_ATOMICS: Quirk = Quirk {
    name: "generic-atomics",
    driver: INTEL_CPU,
    seen: SEEN,
    fixed: None,
    fault: "Atomic operations on generic addresses are missing, and a generic address belongs to whichever memory is asked for first.",
    switch: "one operation for each memory, of which global memory is asked for first (`codegen/spirv/memories.rs`)",
    reproducer: Reproducer::Test("operations_on_an_address_of_unknown_memory_count_for_all_work_items"),
};

/// Worked around by arithmetic of the device library, where it is right anyway. The reproducer has both forms.
#[cfg(test)]
pub(super) const SIGNED_BOUNDS: Quirk = Quirk {
    name: "signed-bounds",
    driver: INTEL_CPU,
    seen: SEEN,
    fixed: None,
    fault: "A position's comparison becomes a bound of the driver's loop over work-items as if numbers were signed, and a work-item runs at position -1.",
    switch: "ids are added to a launch's first without a check, and positions are compared with the launch's size alone (`place_in_launch` in `oxisycl-device`)",
    reproducer: Reproducer::Test("no_work_item_is_beyond_the_last"),
};

/// See `panic_outlining`.
pub(crate) const PANIC_CALLS: Quirk = Quirk {
    name: "panic-calls",
    driver: INTEL_CPU,
    seen: SEEN,
    fixed: None,
    fault: "A kernel that may call what records a panic is executed one work-item at a time.",
    switch: "such calls go through a function that passes its parameters on (`codegen/spirv/panic_outlining.rs`)",
    reproducer: Reproducer::Test("a_kernel_that_may_panic_is_executed_as_vectors"),
};

/// See `divergent_loops`.
pub(super) const MASKED_CALLS: Quirk = Quirk {
    name: "masked-calls",
    driver: INTEL_CPU,
    seen: SEEN,
    fixed: None,
    fault: "Results of `mad` are masked in loops that work-items leave at different times, which takes twice the time.",
    switch: "products and sums stay apart in such loops (`codegen/spirv/divergent_loops.rs`)",
    reproducer: Reproducer::Without(
        "results are the same, and other work on the machine hides a factor of two in time",
    ),
};

/// See `passes::frames`.
#[cfg(test)]
pub(super) const MANY_ENTRIES: Quirk = Quirk {
    name: "many-entries",
    driver: INTEL_CPU,
    seen: SEEN,
    fixed: None,
    fault: "The driver's compiler crashes where a loop of recursive functions is inlined in six places.",
    switch: "such a loop has four places at most (`MOST_ENTRIES` in `passes/frames.rs`), and the kernel is refused otherwise",
    reproducer: Reproducer::Without("the same code crashes in some runs and not in others"),
};
