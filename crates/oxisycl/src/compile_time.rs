//! What is known of devices when a program is compiled (SYCL 2020 section 4.6.4.4).
//!
//! The answers are the same on the host and in kernels, and for each way a program is built: they are about the devices that this
//! version of OxiSYCL can compile for, not about those that a build names or a machine has.

use oxisycl_types::Aspect;

/// Whether any device that a program can be compiled for may have `aspect` (`any_device_has` of SYCL). If not, no device of the program
/// has it.
pub const fn any_device_has(aspect: Aspect) -> bool {
    !matches!(aspect, Aspect::Image | Aspect::OnlineCompiler | Aspect::OnlineLinker)
}

/// Whether all devices that a program can be compiled for have `aspect` (`all_devices_have` of SYCL). Holds for none: of each aspect there
/// is a device that runs kernels without it, if only a simulated one, which lacks what its configuration says. An aspect that every
/// device is to have would be named here.
pub const fn all_devices_have(_aspect: Aspect) -> bool {
    false
}
