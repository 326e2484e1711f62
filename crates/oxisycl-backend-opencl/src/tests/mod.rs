//! The backend on a driver that fails on request: functions of the real one, some of them replaced.
//!
//! Needs a driver, which Rust's harness only learns before a test runs: each test is ignored, and run by `cargo xtask` where a driver
//! is (`cargo test -- --include-ignored`). A replacement is a plain function, so each test has statics of its own.
//! They are unit tests, since programs can replace no function, and can switch no quirk off.

mod devices;
mod driver_wait;
mod kernels;
mod losses;
mod memory;
mod queues;
mod quirks;
mod rounding;
mod submit_polling;

use std::sync::{Arc, OnceLock};

use oxisycl_backend::{Device, Platform};

use crate::backend::OpenClBackend;
use crate::device::ClDevice;
use crate::device_state::DeviceState;
use crate::sys::Functions;

/// The functions of the system's loader.
fn loaded() -> Functions {
    // SAFETY: the system's loader.
    unsafe { Functions::load(None) }.expect("there is an OpenCL loader")
}

/// The functions of the real driver, for replacements to call.
fn real() -> &'static Functions {
    static REAL: OnceLock<Functions> = OnceLock::new();
    REAL.get_or_init(loaded)
}

/// The platforms that the backend sees through functions of which some were replaced.
fn platforms(replace: impl FnOnce(&mut Functions)) -> Vec<Arc<Platform>> {
    let mut functions = loaded();
    replace(&mut functions);
    OpenClBackend::new().open_all(&Arc::new(functions)).expect("platforms can be asked for")
}

/// All devices that it sees, at least one.
fn devices(replace: impl FnOnce(&mut Functions)) -> Vec<Arc<dyn Device>> {
    let devices: Vec<_> = platforms(replace).iter().flat_map(|platform| platform.devices()).collect();
    assert!(!devices.is_empty(), "there is no OpenCL device");
    devices
}

/// The devices that can be used, at least one.
fn usable_devices(replace: impl FnOnce(&mut Functions)) -> Vec<Arc<dyn Device>> {
    let mut devices = devices(replace);
    devices.retain(|device| device.info().unusable.is_none());
    assert!(!devices.is_empty(), "no OpenCL device can be used");
    devices
}

/// What the backend has of a device.
fn state(device: &Arc<dyn Device>) -> &Arc<DeviceState> {
    &(&**device as &dyn std::any::Any).downcast_ref::<ClDevice>().expect("of this backend").state
}
