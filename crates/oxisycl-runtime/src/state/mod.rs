//! The state of buffer data: which part of a buffer is in which condition.
//!
//! Owns the box algebra of a buffer's index space ([`Region`], [`coalesce`], [`decompose_interval`]). Owns the map from
//! elements to values on which the tracking of that state is built ([`RegionMap`]). One- and two-dimensional buffers
//! are embedded in three dimensions with leading extents of 1; the last dimension is contiguous in memory.
//!
//! Invariant: nothing here grows with the number of pages or elements of a buffer, only with the
//! number of regions whose values differ.
//!
//! Deliberately does not know what the values mean, does not lock, does not allocate device memory,
//! copy data or call a backend. Pages exist only in [`Region::round_out`]: callers round an access
//! to its page range once, and everything after that is exact.

mod allocations;
mod interval_map;
mod region;
mod region_map;

pub use allocations::{AllocationIdx, AllocationSet};
pub use region::{Region, coalesce, coalesce_slice, decompose_interval};
pub use region_map::RegionMap;

/// Settings of this module's property tests: `OXISYCL_TEST_CASES` is the number of cases (default 256).
#[cfg(test)]
fn property_config() -> proptest::test_runner::Config {
    let cases = std::env::var("OXISYCL_TEST_CASES").ok().and_then(|text| text.parse().ok());
    proptest::test_runner::Config { cases: cases.unwrap_or(256), failure_persistence: None, ..Default::default() }
}
