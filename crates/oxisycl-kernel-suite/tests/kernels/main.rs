//! Kernels of ordinary Rust code, each run on every device and compared with the same closure in a loop on the CPU.
//!
//! `kernels [--device host|cuda|opencl|all] [--strict] [--repeat N] [FILTER]`
//!
//! A kernel is a function over an [`Env`](harness::Env) that calls one of its `compare` functions with one closure, listed once in its
//! theme's file. Integers agree bit for bit. Floating-point results agree within the tolerance that the kernel names. With `--strict`, a
//! program that was built with `--float strict` compares kernels without library functions bit for bit. The litmus tests have no reference:
//! they assert that an outcome that the memory model forbids never occurs.

#![allow(
    clippy::eq_op,
    clippy::inspect_for_each,
    clippy::manual_is_multiple_of,
    clippy::needless_range_loop,
    reason = "kernels use the language in all ways that people do"
)]

mod harness;
mod outcome;
mod refusals;

mod algorithms;
mod arrays;
mod atomics;
mod control;
mod crates;
mod floats;
mod formats;
mod generics;
mod glam;
mod half_floats;
mod half_functions;
mod half_operators;
mod half_vectors;
mod hashes;
mod integers;
mod iterators;
mod litmus;
mod memory;
mod nalgebra;
mod numerics;
mod pixels;
mod sorting;
mod sse;
mod text;
mod wide_integers;

use std::process::ExitCode;

use harness::Test;

const THEMES: &[(&str, &[Test])] = &[
    ("generics", generics::TESTS),
    ("iterators", iterators::TESTS),
    ("control", control::TESTS),
    ("arrays", arrays::TESTS),
    ("sorting", sorting::TESTS),
    ("integers", integers::TESTS),
    ("wide_integers", wide_integers::TESTS),
    ("floats", floats::TESTS),
    ("half_floats", half_floats::TESTS),
    ("half_functions", half_functions::TESTS),
    ("half_operators", half_operators::TESTS),
    ("half_vectors", half_vectors::TESTS),
    ("text", text::TESTS),
    ("formats", formats::TESTS),
    ("memory", memory::TESTS),
    ("atomics", atomics::TESTS),
    ("numerics", numerics::TESTS),
    ("algorithms", algorithms::TESTS),
    ("hashes", hashes::TESTS),
    ("crates", crates::TESTS),
    ("glam", glam::TESTS),
    ("nalgebra", nalgebra::TESTS),
    ("pixels", pixels::TESTS),
    ("sse", sse::TESTS),
    ("litmus", litmus::TESTS),
];

fn main() -> ExitCode {
    harness::main(THEMES)
}
