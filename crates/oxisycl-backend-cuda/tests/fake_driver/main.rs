//! The backend on a driver without a GPU: the contract, errors, limits, and what a driver can lack.
//!
//! The driver is a real shared library, made from the sources in `library` by the compiler that built this test. Every test loads a
//! copy of its own, and so has its own devices.

mod adopted;
mod batches;
mod contract;
mod drivers;
mod fake;
#[cfg(unix)]
mod forks;
mod graphs;
mod hand_over;
mod held;
mod launches;
mod losses;
mod memory;
mod modules;
mod native;
mod prints;
mod raw;
mod retirement;
mod support;
mod transfers;
mod unloading;
mod words;
