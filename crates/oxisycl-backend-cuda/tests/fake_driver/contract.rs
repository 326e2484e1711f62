//! The tests that every backend passes.

use std::sync::Arc;

use oxisycl_backend::{Batching, Device};
use oxisycl_backend_testing::contract::{Subject, run_all};

use crate::fake::Fake;
use crate::support::kernel;

fn check(device: Arc<dyn Device>) {
    check_with(device, Batching::On);
}

fn check_with(device: Arc<dyn Device>, batching: Batching) {
    let [affine, failing, gate] = ["affine", "failing", "gate"].map(|symbol| kernel(&device, symbol));
    // SAFETY: the code was written to do what those functions do.
    let subject = unsafe { Subject::loaded(device, affine, Some(failing), Some(gate)) }.running_ahead();
    let left_out = run_all(&subject.batching(batching));
    assert!(left_out.is_empty(), "{left_out:?}");
}

#[test]
fn a_device_keeps_the_contract() {
    check(Fake::new().device());
}

#[test]
fn a_device_whose_small_kernels_are_always_staged_keeps_the_contract() {
    let fake = Fake::new();
    check_with(fake.device(), Batching::Always);
    assert!(fake.count("cuGraphLaunch") > 0);
}

#[test]
fn a_device_that_takes_one_thread_a_block_keeps_the_contract() {
    check(Fake::with(&[("max_threads", 1), ("version", 11_040)]).device());
}

#[test]
fn a_device_of_an_old_driver_keeps_the_contract() {
    check(Fake::old().device());
}

#[test]
fn two_devices_keep_the_contract_at_the_same_time() {
    let fake = Fake::with(&[("devices", 2), ("peers", 1)]);
    std::thread::scope(|scope| {
        for device in fake.devices() {
            scope.spawn(|| check(device));
        }
    });
}

#[test]
fn nothing_is_left_behind() {
    let fake = Fake::new();
    check(fake.device());
    // A thread of the device may still hold it for a moment.
    for _ in 0..1000 {
        if fake.held() == [0; 3] {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    panic!("bytes, modules and contexts left: {:?}", fake.held());
}
