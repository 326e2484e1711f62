//! The tests that every backend passes.

use std::sync::Arc;

use oxisycl_backend::Device;
use oxisycl_backend::contract::{Subject, run_all};
use oxisycl_backend_opencl::SharingKind;
use oxisycl_types::Aspect;

use crate::support::{devices, kernels};

fn subject(device: Arc<dyn Device>) -> Subject {
    let [affine, failing, gate] = kernels(&device, ["affine", "failing", "gate"]);
    // The host opens a gate, for which it must reach the gate's memory while the kernel runs.
    let has_gates = device.info().has(Aspect::UsmHostAllocations);
    Subject::loaded(device, affine, Some(failing), has_gates.then_some(gate)).running_ahead()
}

fn every_device_keeps_the_contract(sharing: SharingKind) {
    for device in devices(sharing) {
        run_all(&subject(device));
    }
}

#[test]
fn every_device_keeps_the_contract_by_the_best_way_it_has_to_share_memory() {
    for device in devices(SharingKind::Best) {
        println!("{:#?}", device.info());
    }
    every_device_keeps_the_contract(SharingKind::Best);
}

#[test]
fn every_device_keeps_the_contract_with_shared_virtual_memory() {
    every_device_keeps_the_contract(SharingKind::Svm);
}

#[test]
fn every_device_keeps_the_contract_with_coarse_shared_virtual_memory() {
    every_device_keeps_the_contract(SharingKind::CoarseSvm);
}
