//! Parts of a device, beside each other and beside their device.

use std::sync::Arc;

use oxisycl_backend::{Device, Partition, PartitionProperty};
use oxisycl_backend_opencl::SharingKind;
use oxisycl_backend_testing::contract::{Subject, run_all};

use super::support::{devices_that, in_order, kernels, launch, succeed};

crate::suite::tests![sub_devices_keep_the_contract_side_by_side_and_outlive_their_device,];

fn subject(device: Arc<dyn Device>) -> Subject {
    let [affine, failing, gate] = kernels(&device, ["affine", "failing", "gate"]);
    // SAFETY: the code was written to do what those functions do.
    unsafe { Subject::loaded(device, affine, Some(failing), Some(gate)) }.running_ahead()
}

fn sub_devices_keep_the_contract_side_by_side_and_outlive_their_device() {
    let can_be_split = |device: &Arc<dyn Device>| {
        let info = device.info();
        info.partition_properties.contains(&PartitionProperty::Equally) && info.max_compute_units >= 2
    };
    for device in devices_that(SharingKind::Best, "can be split in two", can_be_split) {
        let half = device.info().max_compute_units as usize / 2;
        let parts = device.partition(&Partition::Equally(half)).expect("two parts");
        assert!(parts.len() >= 2, "{} parts", parts.len());
        std::thread::scope(|scope| {
            for part in parts.iter().take(2) {
                assert_eq!(part.info().max_compute_units as usize, half);
                scope.spawn(|| assert!(run_all(&subject(part.clone())).is_empty()));
            }
        });
        drop(parts);
        let parts = device.partition(&Partition::ByCounts(vec![1])).expect("a part of one unit");
        drop(device);
        let [part] = &parts[..] else { panic!("{} parts", parts.len()) };
        assert_eq!(part.info().max_compute_units, 1);
        assert_eq!(part.info().partition_type_property, Some(PartitionProperty::ByCounts));
        let [empty] = kernels(part, ["empty"]);
        succeed(&in_order(part), launch(&empty, "empty", 100));
    }
}
