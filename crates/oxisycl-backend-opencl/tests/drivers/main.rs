//! The backend on the OpenCL drivers of this machine. Needs a driver that takes SPIR-V, and `spirv-as` for the kernels; says what is
//! missing and passes where one is not there.
//!
//! The kernels are written in SPIR-V by hand (`kernels.spvasm`), since the device compiler stands above this crate.

mod contract;
#[path = "../../../oxisycl-backend/tests/support/debug_events.rs"]
mod debug_events;
mod devices;
mod failures;
mod launches;
mod memory;
mod modules;
mod native;
mod rounding;
mod sub_devices;
mod support;
