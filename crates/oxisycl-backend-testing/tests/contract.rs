//! The recording backend keeps the contract like any other, in the modes in which commands end without a test.

use oxisycl_backend_testing::contract::{Subject, run_all};
use oxisycl_backend_testing::recording::{CompletionMode, RecordingBackend, RecordingConfig};

/// Order is the runtime's work.
const ORDER: &str = "an_in_order_queue_keeps_the_order_that_it_promises";

fn subjects(mode: CompletionMode) -> Vec<Subject> {
    let devices = RecordingBackend::new(RecordingConfig::new(1).with_host().mode(mode)).devices();
    devices.into_iter().map(Subject::native).collect()
}

#[test]
fn recording_devices_keep_the_contract_when_they_are_helped() {
    for subject in subjects(CompletionMode::WhenHelped) {
        assert_eq!(run_all(&subject), [ORDER]);
    }
}

#[test]
fn recording_devices_that_end_commands_at_once_keep_the_contract() {
    for subject in subjects(CompletionMode::AtOnce) {
        // A kernel that waits for the host would never let `issue` return.
        let left_out = [ORDER, "issue_does_not_wait", "a_command_that_does_not_run_completes_after_all_dependencies"];
        assert_eq!(run_all(&subject.without_endless_kernels()), left_out);
    }
}
