//! The tests that every backend passes.

use std::sync::Arc;

use oxisycl_backend::Device;
use oxisycl_backend::contract::{Subject, run_all};

use crate::fake::Fake;
use crate::support::kernel;

fn subject(device: Arc<dyn Device>) -> Subject {
    let [affine, failing, gate] = ["affine", "failing", "gate"].map(|symbol| kernel(&device, symbol));
    Subject::loaded(device, affine, Some(failing), Some(gate)).running_ahead()
}

#[test]
fn a_device_keeps_the_contract() {
    run_all(&subject(Fake::new().device()));
}

#[test]
fn a_device_that_takes_one_thread_a_block_keeps_the_contract() {
    run_all(&subject(Fake::with(&[("max_threads", 1), ("version", 11_040)]).device()));
}

#[test]
fn a_device_of_an_old_driver_keeps_the_contract() {
    run_all(&subject(Fake::old().device()));
}

#[test]
fn two_devices_keep_the_contract_at_the_same_time() {
    let fake = Fake::with(&[("devices", 2), ("peers", 1)]);
    std::thread::scope(|scope| {
        for device in fake.devices() {
            scope.spawn(|| run_all(&subject(device)));
        }
    });
}

#[test]
fn nothing_is_left_behind() {
    let fake = Fake::new();
    run_all(&subject(fake.device()));
    // A thread of the device may still hold it for a moment.
    for _ in 0..1000 {
        if fake.held() == [0; 3] {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    panic!("bytes, modules and contexts left: {:?}", fake.held());
}
