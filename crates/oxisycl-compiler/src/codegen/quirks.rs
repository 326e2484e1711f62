//! Faults of LLVM's own code generators that a target works around.
//!
//! Those of the drivers that take the translator's modules are in [`spirv`](super::spirv).

use oxisycl_types::{Quirk, Reproducer};

/// All of them.
#[cfg(test)]
pub(crate) const QUIRKS: &[Quirk] = &[NEGATED_CONDITIONS];

/// See `passes::negations`.
pub(crate) const NEGATED_CONDITIONS: Quirk = Quirk {
    name: "negated-conditions",
    driver: "LLVM",
    seen: "22.1",
    fixed: None,
    fault: "The pass `slsr` takes an extended negated condition for a sum, and computes another address.",
    switch: "code for NVIDIA and AMD GPUs selects by the condition instead (`passes/negations.rs`)",
    reproducer: Reproducer::Test("addresses_by_a_condition_and_by_its_negation_are_right"),
};

/// Whether to work around the fault. It is unknown which driver will load the image, so only tests switch this off.
#[cfg(not(test))]
pub(crate) fn is_worked_around(_quirk: &Quirk) -> bool {
    true
}

#[cfg(test)]
pub(crate) fn is_worked_around(quirk: &Quirk) -> bool {
    !oxisycl_backend_testing::quirks::is_off(quirk)
}

#[cfg(test)]
mod tests {
    use oxisycl_backend_testing::quirks::check_page;

    #[test]
    fn the_book_has_the_quirks() {
        let spirv = crate::codegen::spirv::QUIRKS;
        check_page("oxisycl-compiler", &[("SPIR-V", spirv), ("LLVM", super::QUIRKS)]);
    }
}
