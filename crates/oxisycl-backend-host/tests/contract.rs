//! The host device, its sub-devices and simulated devices keep the contract that the runtime relies on.

use std::sync::Arc;
use std::time::Duration;

use oxisycl_backend::{Backend, Device, Partition};
use oxisycl_backend_host::{HostBackend, SimulatedBackend, SimulatedConfig};
use oxisycl_backend_testing::contract::{Subject, run_all};

fn devices(backend: &dyn Backend) -> Vec<Arc<dyn Device>> {
    let platforms = backend.platforms().expect("the platforms");
    platforms.iter().flat_map(|platform| platform.devices()).collect()
}

/// Order is the runtime's work.
const ORDER: &str = "an_in_order_queue_keeps_the_order_that_it_promises";

fn check(backend: &dyn Backend) {
    check_but_for(backend, &[ORDER]);
}

fn check_but_for(backend: &dyn Backend, left_out: &[&str]) {
    let devices = devices(backend);
    assert!(!devices.is_empty());
    for device in devices {
        assert_eq!(run_all(&Subject::native(device)), left_out);
    }
}

#[test]
fn the_host_device_keeps_the_contract() {
    check(&HostBackend::new());
}

#[test]
fn a_sub_device_of_one_unit_keeps_the_contract() {
    let host = devices(&HostBackend::new()).remove(0);
    let parts = host.partition(&Partition::Equally(1)).expect("every processor has one unit");
    assert_eq!(run_all(&Subject::native(parts.into_iter().next().expect("a part"))), [ORDER]);
}

#[test]
fn simulated_devices_keep_the_contract() {
    check(&SimulatedBackend::new(SimulatedConfig::new(2)));
}

#[test]
fn simulated_devices_that_reorder_commands_keep_the_contract() {
    for seed in 0..4 {
        check(&SimulatedBackend::new(SimulatedConfig::new(1).shuffled(seed)));
    }
}

#[test]
fn a_simulated_device_without_profiling_keeps_the_contract() {
    check_but_for(&SimulatedBackend::new(SimulatedConfig::new(1).profiling(false)), &[ORDER, "profiling_gives_times"]);
}

#[test]
fn a_slow_simulated_device_without_peer_copies_keeps_the_contract() {
    check(&SimulatedBackend::new(SimulatedConfig::new(1).latency(Duration::from_micros(20)).peer_copies(false)));
}
