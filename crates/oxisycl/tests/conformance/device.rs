//! What names a device, what it runs, and what a program does not see (A3, S-F7).

use std::collections::HashSet;

use oxisycl::prelude::*;
use oxisycl::simulated::{SimulatedConfig, Simulator};
use oxisycl::{AffinityDomain, BackendKind, ImageTarget, KernelId, all_devices_have, any_device_has};

use crate::harness::{Env, tests};

tests![
    a_device_of_the_process_is_named_by_backend_and_index,
    a_device_of_a_private_simulator_has_no_name,
    parts_are_named_after_their_device_two_levels_deep,
    parts_of_other_kinds_have_no_name,
    a_device_runs_images_or_the_programs_own_code,
    hidden_and_visible_devices_are_told_apart,
    platforms_that_no_variable_concerns_hide_nothing,
    kernels_are_told_the_same_of_all_devices_as_the_program,
];

/// The visible root devices of the process.
fn listed() -> Vec<Device> {
    Device::all().unwrap()
}

fn is_listed(device: &Device) -> bool {
    listed().contains(device)
}

fn a_device_of_the_process_is_named_by_backend_and_index(_env: &Env) {
    let mut names = HashSet::new();
    for device in listed() {
        let name = device.selector().expect("what the variable shows, it can name").to_owned();
        let (backend, path) = name.split_once(':').unwrap();
        assert_eq!(backend, device.backend().name());
        assert!(path.split('.').all(|index| index.parse::<usize>().is_ok()) && path.split('.').count() <= 3, "{name}");
        assert!(names.insert(name), "a name stands for one device");
        assert_eq!(device.selector(), device.clone().selector());
    }
    // The same device has the same name at every call.
    assert_eq!(names, listed().iter().filter_map(|device| device.selector().map(str::to_owned)).collect());
}

fn a_device_of_a_private_simulator_has_no_name(env: &Env) {
    for device in env.devices() {
        assert_eq!(device.selector().is_some(), is_listed(device), "{device:?}");
    }
}

fn parts_are_named_after_their_device_two_levels_deep(env: &Env) {
    let split =
        |device: &Device| device.partition_by_affinity_domain(AffinityDomain::NextPartitionable).unwrap_or_default();
    let Some(name) = env.device().selector().map(str::to_owned) else {
        assert!(split(env.device()).iter().all(|part| part.selector().is_none()));
        return;
    };
    let is_root = !name.contains('.');
    for (i, part) in split(env.device()).iter().enumerate() {
        assert!(!is_root || part.selector() == Some(&format!("{name}.{i}")), "{part:?}");
        for (j, unit) in split(part).iter().enumerate() {
            assert!(!is_root || unit.selector() == Some(&format!("{name}.{i}.{j}")), "{unit:?}");
            assert!(!is_root || split(unit).iter().all(|deeper| deeper.selector().is_none()), "{unit:?}");
        }
    }
}

fn parts_of_other_kinds_have_no_name(env: &Env) {
    let device = env.device();
    let parts = [device.partition_equally(1), device.partition_by_counts(&[1])];
    for part in parts.into_iter().flatten().flatten() {
        assert_eq!(part.selector(), None);
        assert!(!is_listed(&part));
    }
}

fn a_device_runs_images_or_the_programs_own_code(env: &Env) {
    let device = env.device();
    let targets = device.image_targets();
    let kinds: HashSet<String> = targets.iter().map(ImageTarget::to_string).collect();
    assert_eq!(kinds.len(), targets.len(), "{targets:?}");
    match device.backend() {
        BackendKind::Host | BackendKind::Simulated => {
            assert_eq!(targets, []);
            let kernel = KernelId::of_range::<1, _>(&|_: Item<1>| {});
            assert!(device.is_compatible([&kernel]), "its own code is in the program");
        }
        BackendKind::Cuda => {
            assert!(targets.iter().all(|target| matches!(target, ImageTarget::Ptx { sm: 70.. })), "{targets:?}");
            assert!(targets.contains(&ImageTarget::Ptx { sm: 70 }), "what is built by default runs: {targets:?}");
        }
        _ => assert!(!targets.is_empty()),
    }
}

fn hidden_and_visible_devices_are_told_apart(env: &Env) {
    for platform in Platform::all().unwrap().iter().chain([&env.device().platform()]) {
        let visible = platform.devices();
        let visible: HashSet<&str> = visible.iter().filter_map(Device::selector).collect();
        let mut hidden = HashSet::new();
        for (name, info) in platform.hidden_devices() {
            assert!(!visible.contains(name) && hidden.insert(name), "{name} is hidden once and not visible");
            assert!(name.starts_with(platform.backend().name()) && !name.contains('.'), "{name} is a root device");
            assert!(!info.name.is_empty());
        }
        if std::env::var_os("OXISYCL_DEVICE_SELECTOR").is_none() {
            assert_eq!(hidden.len(), 0);
        }
    }
}

fn platforms_that_no_variable_concerns_hide_nothing(_env: &Env) {
    let platform = Simulator::new(SimulatedConfig::new(3)).unwrap().platform();
    assert!(!Platform::all().unwrap().contains(&platform));
    assert_eq!(platform.hidden_devices().count(), 0);
    assert_eq!(platform.devices().len(), 3);
}

fn kernels_are_told_the_same_of_all_devices_as_the_program(env: &Env) {
    let answers = |aspect| u8::from(any_device_has(aspect)) | u8::from(all_devices_have(aspect)) << 1;
    let told = Buffer::<u8, 1>::uninit(Aspect::ALL.len()).unwrap();
    let submitted = env.queue().submit(|cg| {
        let told = cg.access(&told, Write);
        cg.parallel_for(Aspect::ALL.len(), move |item| told.set(item, answers(Aspect::ALL[item.linear_id()])))
    });
    submitted.unwrap();
    let expected: Vec<u8> = Aspect::ALL.iter().map(|aspect| answers(*aspect)).collect();
    assert_eq!(told.to_vec().unwrap(), expected);
}
