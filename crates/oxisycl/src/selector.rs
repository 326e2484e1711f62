//! Device selectors: functions that score devices (SYCL 2020 section 4.6.1.1).
//!
//! A selector is called for every visible root device; the highest number wins, and negative numbers exclude. Of devices with the same
//! number the first one wins in the order of [`Device::all`]. Which devices are visible is decided by `OXISYCL_DEVICE_SELECTOR`, which thereby overrides every selector.

use oxisycl_runtime::program::programs;
use oxisycl_types::{Aspect, BackendKind, DeviceType, ErrorCode};

use crate::{Device, Error, Platform, Result};

/// Prefers GPUs, then accelerators, then CPUs; a simulated device only if there is nothing else. A device that the program
/// has no code for comes last of all, and one that [cannot be used](Device::unusable) is excluded. Of several CPUs the host device wins,
/// because it is listed before those of OpenCL's drivers.
///
/// ```
/// use oxisycl::prelude::*;
/// use oxisycl::selector::default_selector;
///
/// # fn main() -> oxisycl::Result {
/// // The same as `Device::default()`.
/// let device = Device::select(default_selector)?;
/// assert_eq!(device, Device::default()?);
/// # Ok(())
/// # }
/// ```
pub fn default_selector(device: &Device) -> i32 {
    if device.unusable().is_some() {
        return -1;
    }
    if !programs().is_usable(device.backend_device().as_ref()) {
        return 0;
    }
    if device.has(Aspect::Emulated) {
        return 1;
    }
    match device.info().device_type {
        DeviceType::Gpu => 500,
        DeviceType::Accelerator => 300,
        DeviceType::Cpu => 200,
        _ => -1,
    }
}

fn only(device: &Device, device_type: DeviceType) -> i32 {
    if device.info().device_type == device_type { default_selector(device) } else { -1 }
}

/// Only CPUs.
///
/// ```
/// use oxisycl::prelude::*;
/// use oxisycl::selector::cpu_selector;
///
/// # fn main() -> oxisycl::Result {
/// match Device::select(cpu_selector) {
///     Ok(device) => println!("{}", device.name()),
///     Err(error) => println!("{error}"), // what there is instead
/// }
/// # Ok(())
/// # }
/// ```
pub fn cpu_selector(device: &Device) -> i32 {
    only(device, DeviceType::Cpu)
}

/// Only GPUs.
///
/// ```
/// use oxisycl::prelude::*;
/// use oxisycl::selector::gpu_selector;
///
/// # fn main() -> oxisycl::Result {
/// match Device::select(gpu_selector) {
///     Ok(device) => println!("{}", device.name()),
///     Err(error) => println!("{error}"), // what there is instead
/// }
/// # Ok(())
/// # }
/// ```
pub fn gpu_selector(device: &Device) -> i32 {
    only(device, DeviceType::Gpu)
}

/// Only accelerators.
///
/// ```
/// use oxisycl::prelude::*;
/// use oxisycl::selector::accelerator_selector;
///
/// # fn main() -> oxisycl::Result {
/// match Device::select(accelerator_selector) {
///     Ok(device) => println!("{}", device.name()),
///     Err(error) => println!("{error}"), // what there is instead
/// }
/// # Ok(())
/// # }
/// ```
pub fn accelerator_selector(device: &Device) -> i32 {
    only(device, DeviceType::Accelerator)
}

/// Only devices that have all of `required` and none of `denied`; without any, like the default selector.
///
/// ```
/// use oxisycl::prelude::*;
/// use oxisycl::selector::aspect_selector;
///
/// # fn main() -> oxisycl::Result {
/// let device = Device::select(aspect_selector(&[Aspect::Fp64], &[Aspect::Emulated]))?;
/// assert!(device.has(Aspect::Fp64) && !device.has(Aspect::Emulated));
/// # Ok(())
/// # }
/// ```
pub fn aspect_selector(required: &[Aspect], denied: &[Aspect]) -> impl Fn(&Device) -> i32 + use<> {
    let (required, denied) = (required.to_vec(), denied.to_vec());
    move |device| {
        let fits =
            required.iter().all(|&aspect| device.has(aspect)) && !denied.iter().any(|&aspect| device.has(aspect));
        if fits { default_selector(device) } else { -1 }
    }
}

/// The device of `devices` that `selector` prefers. Errors: `Runtime` if it excludes all.
pub(crate) fn select_from(devices: &[Device], selector: impl Fn(&Device) -> i32) -> Result<Device> {
    let mut best: Option<(i32, &Device)> = None;
    for device in devices {
        let score = selector(device);
        if score >= 0 && best.is_none_or(|(highest, _)| score > highest) {
            best = Some((score, device));
        }
    }
    best.map(|(_, device)| device.clone()).ok_or_else(|| {
        let names: Vec<String> = devices.iter().map(|d| titled(d.selector(), d.backend(), d.name())).collect();
        Error::new(
            ErrorCode::Runtime,
            match names.is_empty() {
                true => nothing_visible(),
                false => format!("the selector accepts none of the devices: {}", names.join(", ")),
            },
        )
    })
}

/// A device in a list: what names it in `OXISYCL_DEVICE_SELECTOR`, if anything does, and its name.
fn titled(selector: Option<&str>, backend: BackendKind, name: &str) -> String {
    match selector {
        Some(selector) => format!("{selector} \"{name}\""),
        None => format!("\"{name}\" ({backend})"),
    }
}

/// Why there is no device, and what can be done.
fn nothing_visible() -> String {
    let platforms = Platform::all().unwrap_or_default();
    let hidden: Vec<String> = platforms
        .iter()
        .flat_map(|platform| {
            platform.hidden_devices().map(|(name, info)| titled(Some(name), platform.backend(), &info.name))
        })
        .collect();
    let doctor = "`cargo sycl doctor` says why a device is missing";
    match std::env::var("OXISYCL_DEVICE_SELECTOR") {
        Ok(value) if hidden.is_empty() => {
            format!(
                "no device is visible: there is none for OXISYCL_DEVICE_SELECTOR={value:?} to choose from; {doctor}"
            )
        }
        Ok(value) => format!(
            "no device is visible: OXISYCL_DEVICE_SELECTOR={value:?} fits none of the devices, which are {}; {doctor}",
            hidden.join(", ")
        ),
        Err(_) => format!("no device is visible; {doctor}"),
    }
}
