//! The thread that hands over held kernels, and what it meets.

use std::alloc::Layout;

use oxisycl_backend::UsmKind;

use crate::batches::until;
use crate::fake::Fake;
use crate::support::{enqueue, in_order, kernel, launch, line};
use crate::words::Words;

#[test]
fn a_device_lost_while_a_staged_kernel_is_handed_over_blames_it_too() {
    let fake = Fake::new();
    let device = fake.device();
    let (words, code, empty) = (Words::new(&device), kernel(&device, "gate"), kernel(&device, "empty"));
    let queue = in_order(&device);
    let gate = enqueue(&queue, words.gate(&code), &[]);
    // A launch waits until the gate is open.
    fake.set("depth", 1);
    let staged = enqueue(&queue, launch(&empty, "staged", &(), line(1)), &[]);
    until("the driver is given it", || fake.count("cuLaunchKernel") == 2);
    fake.fail("cuMemAlloc_v2", 0, 719);
    let layout = Layout::new::<u64>();
    let error = device.memory().allocate(UsmKind::Device, layout, false).expect_err("an injected failure");
    // All are told of the loss, and only then the thread that hands it over comes back.
    for command in [gate, staged] {
        command.probe.fail();
    }
    words.open();
    until("both run", || fake.ran()[0] == 2);
    let error = error.to_string();
    assert!(error.contains("kernel \"gate\"") && error.ends_with(", or in the kernel enqueued after it"), "{error}");
}
