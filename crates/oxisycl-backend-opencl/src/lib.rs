//! OpenCL devices, through the loader that is found at run time.
//!
//! [`sys`] is the API: types, numbers, and the table of functions of a loaded library. [`bare`] runs single kernels on one device and
//! waits for each: that is how tests execute the SPIR-V that the device compiler makes. Programs cannot choose these devices yet, since
//! this crate does not implement the backend contract.

pub mod bare;
pub mod sys;
