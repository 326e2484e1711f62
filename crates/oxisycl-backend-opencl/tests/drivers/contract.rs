//! The tests that every backend passes.

use std::sync::Arc;

use oxisycl_backend::Device;
use oxisycl_backend_opencl::SharingKind;
use oxisycl_backend_testing::contract::{Subject, run_all};
use oxisycl_types::Aspect;

use crate::support::{devices, kernels};

crate::suite::tests![
    every_device_keeps_the_contract_by_the_best_way_it_has_to_share_memory,
    every_device_keeps_the_contract_with_shared_virtual_memory,
    every_device_keeps_the_contract_with_coarse_shared_virtual_memory,
];

/// The tests that need memory that the host reaches while kernels run.
const WITHOUT_GATES: &[&str] = &["issue_does_not_wait", "a_command_that_does_not_run_completes_after_all_dependencies"];

fn subject(device: Arc<dyn Device>) -> Subject {
    let [affine, failing, gate] = kernels(&device, ["affine", "failing", "gate"]);
    // The host opens a gate, for which it must reach the gate's memory while the kernel runs.
    let has_gates = device.info().has(Aspect::UsmHostAllocations);
    // SAFETY: the code was written to do what those functions do.
    unsafe { Subject::loaded(device, affine, Some(failing), has_gates.then_some(gate)) }.running_ahead()
}

fn every_device_keeps_the_contract(sharing: SharingKind) {
    for device in devices(sharing) {
        let has_gates = device.info().has(Aspect::UsmHostAllocations);
        let expected = if has_gates { &[][..] } else { WITHOUT_GATES };
        assert_eq!(run_all(&subject(device)), expected);
    }
}

fn every_device_keeps_the_contract_by_the_best_way_it_has_to_share_memory() {
    for device in devices(SharingKind::Best) {
        println!("{:#?}", device.info());
    }
    every_device_keeps_the_contract(SharingKind::Best);
}

fn every_device_keeps_the_contract_with_shared_virtual_memory() {
    every_device_keeps_the_contract(SharingKind::Svm);
}

fn every_device_keeps_the_contract_with_coarse_shared_virtual_memory() {
    every_device_keeps_the_contract(SharingKind::CoarseSvm);
}
