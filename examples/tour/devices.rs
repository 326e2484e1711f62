//! Which devices take part.

use oxisycl::BackendKind;
use oxisycl::prelude::Device;

use crate::failure::Failure;

/// The devices that `wanted` names, each once, in the order of the names; without names the default device and all simulated ones.
pub(crate) fn choose(all: &[Device], wanted: &[String]) -> Result<Vec<Device>, Failure> {
    let mut chosen: Vec<Device> = Vec::new();
    if wanted.is_empty() {
        let simulated = all.iter().filter(|device| device.backend() == BackendKind::Simulated);
        chosen.push(Device::default()?);
        chosen.extend(simulated.cloned());
    }
    for name in wanted {
        let named: Vec<_> = all.iter().enumerate().filter(|(i, device)| is_named(*i, device, name)).collect();
        if named.is_empty() {
            return Err(Failure::new(format!("there is no device \"{name}\", but there is {}", names(all))));
        }
        chosen.extend(named.into_iter().map(|(_, device)| device.clone()));
    }
    let mut seen = Vec::new();
    chosen.retain(|device| !seen.contains(device) && (seen.push(device.clone()), true).1);
    Ok(chosen)
}

fn is_named(position: usize, device: &Device, name: &str) -> bool {
    name.parse() == Ok(position)
        || name == "all"
        || name == device.info().device_type.name()
        || name == device.backend().name()
        || Some(name) == device.selector()
}

/// What tables call a device.
pub(crate) fn short_name(device: &Device) -> &str {
    device.selector().unwrap_or(device.name())
}

fn names(all: &[Device]) -> String {
    let names = all.iter().enumerate().map(|(i, device)| format!("{i} ({})", short_name(device)));
    names.collect::<Vec<_>>().join(", ")
}
