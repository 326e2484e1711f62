//! Nothing: the kernels are in `tests/crates`, and so is what they depend on.
#![no_std]
#![forbid(unsafe_code)]
