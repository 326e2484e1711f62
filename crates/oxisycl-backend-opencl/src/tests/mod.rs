//! The backend on a driver that fails when it is told to: functions of the real one, some of them replaced.
//!
//! Needs a driver; says so and passes where there is none. A replacement is a plain function, so each test has statics of its own.

#[path = "../../../oxisycl-backend/tests/support/debug_events.rs"]
#[allow(dead_code, reason = "what tests of other backends need as well")]
mod debug_events;
mod devices;
mod lender;
mod losses;
mod memory;
mod queues;
mod recent;
mod rounding;

use std::sync::{Arc, OnceLock};

use oxisycl_backend::{Device, Platform};

use crate::backend::OpenClBackend;
use crate::sys::Functions;

/// The functions of the system's loader, for replacements to call.
fn real() -> Option<&'static Functions> {
    static REAL: OnceLock<Option<Functions>> = OnceLock::new();
    let functions = REAL.get_or_init(|| {
        // SAFETY: the system's loader.
        unsafe { Functions::load(None) }.ok()
    });
    functions.as_ref()
}

/// The platforms that the backend sees through functions of which some were replaced; `None` without a loader.
fn platforms(replace: impl FnOnce(&mut Functions)) -> Option<Vec<Arc<dyn Platform>>> {
    // SAFETY: the system's loader.
    let Ok(mut functions) = (unsafe { Functions::load(None) }) else {
        skip("there is no OpenCL loader");
        return None;
    };
    real()?;
    replace(&mut functions);
    Some(OpenClBackend::new().open_all(&Arc::new(functions)).expect("platforms can be asked for"))
}

/// All devices that it sees.
fn devices(replace: impl FnOnce(&mut Functions)) -> Vec<Arc<dyn Device>> {
    let platforms = platforms(replace).unwrap_or_default();
    let devices: Vec<_> = platforms.iter().flat_map(|platform| platform.devices()).collect();
    if devices.is_empty() {
        skip("there is no OpenCL device");
    }
    devices
}

/// Says why a test does nothing. Where a driver was installed for the tests, that is a failure.
fn skip(reason: &str) {
    assert!(std::env::var_os("OPENCL_TESTS_MUST_RUN").is_none(), "the tests must run here, but {reason}");
    println!("skipped: {reason}");
}
