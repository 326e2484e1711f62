//! What names a device, what it runs, and what a program does not see (A3, S-F7).

use std::collections::HashSet;

use oxisycl::group::nd::{LocalAccessor, NdItem};
use oxisycl::group::{Fixed3, Local};
use oxisycl::prelude::*;
use oxisycl::reduction::reduction_without_identity;
use oxisycl::simulated::{SimulatedConfig, Simulator};
use oxisycl::{
    AffinityDomain, BackendKind, ErrorCode, ImageTarget, KernelId, PartitionProperty, all_devices_have, any_device_has,
};

use crate::harness::{Env, tests};

tests![
    a_device_of_a_private_simulator_has_no_name,
    parts_are_named_after_their_device_two_levels_deep,
    parts_of_other_kinds_have_no_name,
    splits_that_cannot_be_have_the_code_of_their_reason,
    a_device_runs_images_or_the_programs_own_code,
    hidden_and_visible_devices_are_told_apart,
    kernels_are_told_the_same_of_all_devices_as_the_program,
    what_a_build_knows_of_its_devices_is_so,
    what_only_opencl_answers_is_an_error_elsewhere,
    kernels_have_limits_and_preferences_on_each_device,
    launches_have_as_many_groups_as_devices_promise,
    ; once:
    a_device_of_the_process_is_named_by_backend_and_index,
    devices_of_one_processor_have_different_names,
    platforms_that_no_variable_concerns_hide_nothing,
];

/// The visible root devices of the process.
fn listed() -> Vec<Device> {
    Device::all().unwrap()
}

fn is_listed(device: &Device) -> bool {
    listed().contains(device)
}

/// Two GPUs of one kind have one name. Backends that have devices for the same processor do not give them the same.
fn devices_of_one_processor_have_different_names() {
    let devices = listed();
    for (i, device) in devices.iter().enumerate() {
        for other in devices[..i].iter().filter(|other| other.backend() != device.backend()) {
            assert_ne!(device.name(), other.name(), "{:?} and {:?}", device.backend(), other.backend());
        }
    }
}

fn a_device_of_the_process_is_named_by_backend_and_index() {
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
    if split(env.device()).is_empty() {
        env.skip("the device cannot be split");
    }
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
    let parts: Vec<Device> = parts.into_iter().flatten().flatten().collect();
    if parts.is_empty() {
        env.skip("the device cannot be split");
    }
    for part in parts {
        assert_eq!(part.selector(), None);
        assert!(!is_listed(&part));
    }
}

fn splits_that_cannot_be_have_the_code_of_their_reason(env: &Env) {
    let device = env.device();
    let units = device.info().max_compute_units as usize;
    let is_supported = |property| device.info().partition_properties.contains(&property);
    let code = |split: oxisycl::Result<Vec<Device>>| split.map(|parts| parts.len()).map_err(|error| error.code());
    let invalid = |property| match is_supported(property) {
        true => Err(ErrorCode::Invalid),
        false => Err(ErrorCode::FeatureNotSupported),
    };
    for n_units in [0, units + 1, usize::MAX] {
        assert_eq!(
            code(device.partition_equally(n_units)),
            invalid(PartitionProperty::Equally),
            "{n_units} of {units}"
        );
    }
    for counts in [&[][..], &[0], &[0, 0], &[units, 1], &[usize::MAX, 1]] {
        assert_eq!(
            code(device.partition_by_counts(counts)),
            invalid(PartitionProperty::ByCounts),
            "{counts:?} of {units}"
        );
    }
    // A driver may not take a single part for a split.
    for whole in [code(device.partition_equally(units)), code(device.partition_by_counts(&[units, 0]))] {
        assert!([Ok(1), Err(ErrorCode::FeatureNotSupported)].contains(&whole), "{whole:?}");
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

fn platforms_that_no_variable_concerns_hide_nothing() {
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

fn what_a_build_knows_of_its_devices_is_so(env: &Env) {
    macro_rules! answers {
        ($($aspect:ident),* $(,)?) => {
            [$((Aspect::$aspect, any_device_has!($aspect), all_devices_have!($aspect))),*]
        };
    }
    let answers = answers![
        Cpu,
        Gpu,
        Accelerator,
        Custom,
        Emulated,
        HostDebuggable,
        Fp16,
        Fp64,
        Atomic64,
        Image,
        OnlineCompiler,
        OnlineLinker,
        QueueProfiling,
        UsmDeviceAllocations,
        UsmHostAllocations,
        UsmAtomicHostAllocations,
        UsmSharedAllocations,
        UsmAtomicSharedAllocations,
        UsmSystemAllocations,
        ExtOxisyclFloatAtomics,
        ExtOxisyclAtomic128,
    ];
    assert_eq!(answers.map(|(aspect, ..)| aspect), Aspect::ALL);
    let device = env.device();
    // Simulated devices are for tests, and do not count.
    if device.backend() != BackendKind::Simulated {
        for (aspect, any, all) in answers {
            let has = device.has(aspect);
            assert!(if has { any } else { !all }, "{aspect}: any {any}, all {all}, {} {has}", device.name());
        }
    }
    // Kernels are told the same.
    let told = Buffer::<u8, 1>::uninit(answers.len()).unwrap();
    let bits = answers.map(|(_, any, all)| u8::from(any) | u8::from(all) << 1);
    let submitted = env.queue().submit(|cg| {
        let told = cg.access(&told, Write);
        cg.single_task(move |task| {
            for (i, (_, any, all)) in answers.into_iter().enumerate() {
                told.set_at(task, i, u8::from(any) | u8::from(all) << 1);
            }
        })
    });
    submitted.unwrap();
    assert_eq!(told.to_vec().unwrap(), bits);
}

fn what_only_opencl_answers_is_an_error_elsewhere(env: &Env) {
    use oxisycl::backend_info::opencl::{
        ExecutionCapabilities, ExecutionCapability, PreferredInteropUserSync, Profile,
    };

    let device = env.device();
    let profile = device.backend_info::<Profile>();
    let executes = device.backend_info::<ExecutionCapabilities>();
    let syncs = device.backend_info::<PreferredInteropUserSync>();
    if device.backend() == BackendKind::OpenCl {
        assert!(["FULL_PROFILE", "EMBEDDED_PROFILE"].contains(&profile.unwrap().as_str()));
        assert!(executes.unwrap().contains(&ExecutionCapability::ExecKernel));
        syncs.unwrap();
        return;
    }
    let backend = device.backend();
    for (error, what) in [
        (profile.unwrap_err(), "profile"),
        (executes.unwrap_err(), "execution_capabilities"),
        (syncs.unwrap_err(), "preferred_interop_user_sync"),
    ] {
        assert_eq!(error.code(), ErrorCode::BackendMismatch);
        let text = error.to_string();
        assert!(text.contains(&format!("of backend {backend} has no {what}")) && text.contains("opencl"), "{text}");
    }
}

fn kernels_have_limits_and_preferences_on_each_device(env: &Env) {
    let turn_round = |mut item: NdItem<'_, '_, 1>, tile: LocalAccessor<'_, u32>| {
        let own = item.local_linear_id();
        // SAFETY: each work-item writes its own element before the barrier, and all only read behind it.
        let other = unsafe {
            tile.set(own, own as u32);
            item.group().barrier();
            tile.get(63 - own)
        };
        assert_eq!(other as usize, 63 - own);
    };
    let (tile, range) = (Local::<u32, 100>::new(), NdRange::new(Range::new([128]), Range::new([64])));
    env.queue().submit(|cg| cg.parallel_for_nd_range(range, tile, turn_round)).unwrap().wait().unwrap();
    let id = KernelId::of_nd_range(&range, &tile, &turn_round);
    let device = env.device();
    let info = device.kernel_info(&id).unwrap();
    assert!((64..=device.info().max_work_group_size).contains(&info.max_work_group_size), "{info:?}");
    assert!(info.preferred_work_group_size_multiple >= 1, "{info:?}");
    assert!(
        info.preferred_work_group_size.is_none_or(|size| (1..=info.max_work_group_size).contains(&size)),
        "{info:?}"
    );
    let active = |size, bytes| device.active_work_groups(&id, size, bytes).unwrap();
    assert!(active(64, 400).is_none_or(|groups| groups >= 1));
    // More memory or work-items for each group leave room for no more groups.
    let half = device.info().local_mem_size as usize / 2;
    assert!(active(64, half).is_none_or(|groups| groups <= active(64, 400).unwrap()));
    if device.backend() == BackendKind::Cuda {
        let (largest, of_64) = (active(info.max_work_group_size, 0), active(64, 400).unwrap());
        // A multiprocessor of whatever generation has 2048 work-items at most.
        assert!(largest.is_some_and(|n| (1..=2048 / info.max_work_group_size).contains(&n)), "{largest:?}");
        // Half of a group's local memory is room for fewer groups.
        assert!(active(64, half).is_some_and(|groups| (1..of_64).contains(&groups)), "{of_64}");
    }
    for size in [0, info.max_work_group_size + 1] {
        let error = device.active_work_groups(&id, size, 0).unwrap_err();
        assert_eq!(error.code(), ErrorCode::NdRange, "{error}");
        assert!(error.to_string().contains(&format!("work-groups of {size} work-items, expected 1 to")), "{error}");
    }
}

fn launches_have_as_many_groups_as_devices_promise(env: &Env) {
    let device = env.device();
    assert!(device.max_work_group_range::<3>().0.iter().all(|n| *n >= 65_536));
    assert!(device.max_work_group_range_size() >= device.max_work_group_range::<1>().0[0]);
    // Beyond what a grid has on any device, in each dimension.
    for groups in [[1, 1, 70_000], [1, 70_000, 1], [70_000, 1, 1]] {
        let last = Buffer::from_vec(vec![[0usize; 3]]).unwrap();
        let submitted = env.queue().submit(|cg| {
            let later = |a: [usize; 3], b: [usize; 3]| a.max(b);
            let into = reduction_without_identity(cg.access(&last, ReadWrite), later);
            cg.parallel_reduce_work_group(groups, Fixed3::<1, 1, 1>, (), into, |group, (), last| {
                last.combine(group.id().0)
            })
        });
        submitted.unwrap();
        assert_eq!(last.to_vec().unwrap(), [groups.map(|n| n - 1)]);
    }
}
