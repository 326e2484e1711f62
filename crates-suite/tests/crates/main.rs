//! Thirty published crates. Each is called from a kernel that runs on every device and is compared with the same closure in a loop on the
//! CPU.
//!
//! `crates [--device host|cuda|opencl|all] [FILTER]`
//!
//! A kernel is named after its crate, and calls what people use that crate for. The crates are of different fields, need no operating
//! system, and are used nowhere else in this repository. Everything here is safe code. The harness is that of the kernel suite.
//! Beside the thirty there are, in `once_refused`, crates that the compiler once did not take. Without the feature `all` there are ten.
#![forbid(unsafe_code)]

// The other suite uses all of it.
#[path = "../../../crates/oxisycl-kernel-suite/tests/kernels/harness.rs"]
#[allow(dead_code, reason = "the kernel suite uses what this one does not")]
mod harness;
#[path = "../../../crates/oxisycl-kernel-suite/tests/kernels/outcome.rs"]
#[allow(dead_code, reason = "the kernel suite uses what this one does not")]
mod outcome;
mod refusals;

mod checksums;
#[cfg(feature = "all")]
mod compression;
#[cfg(feature = "all")]
mod cryptography;
#[cfg(feature = "all")]
mod dates;
mod geometry;
#[cfg(feature = "all")]
mod numbers;
#[cfg(feature = "all")]
mod once_refused;
#[cfg(feature = "all")]
mod parsing;
mod random;
mod structures;
#[cfg(feature = "all")]
mod text;

use std::process::ExitCode;

use harness::{Test, scramble};

const THEMES: &[(&str, &[Test])] = &[
    #[cfg(feature = "all")]
    ("cryptography", cryptography::TESTS),
    #[cfg(feature = "all")]
    ("numbers", numbers::TESTS),
    #[cfg(feature = "all")]
    ("parsing", parsing::TESTS),
    #[cfg(feature = "all")]
    ("text", text::TESTS),
    #[cfg(feature = "all")]
    ("compression", compression::TESTS),
    ("geometry", geometry::TESTS),
    ("random", random::TESTS),
    #[cfg(feature = "all")]
    ("dates", dates::TESTS),
    ("checksums", checksums::TESTS),
    ("structures", structures::TESTS),
    #[cfg(feature = "all")]
    ("once_refused", once_refused::TESTS),
];

/// Bytes that look random.
pub(crate) fn bytes<const N: usize>(index: usize) -> [u8; N] {
    core::array::from_fn(|k| (scramble(index * 31 + k) >> 11) as u8)
}

fn main() -> ExitCode {
    harness::main(THEMES)
}
