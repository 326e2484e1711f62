//! The recording backend keeps the contract like any other, in the modes in which commands end without a test.

use oxisycl_backend::contract::{Subject, run_all};
use oxisycl_backend::recording::{CompletionMode, RecordingBackend, RecordingConfig};

fn subjects(mode: CompletionMode) -> Vec<Subject> {
    let devices = RecordingBackend::new(RecordingConfig::new(1).with_host().mode(mode)).devices();
    devices.into_iter().map(Subject::native).collect()
}

#[test]
fn recording_devices_keep_the_contract_when_they_are_helped() {
    for subject in subjects(CompletionMode::WhenHelped) {
        run_all(&subject);
    }
}

#[test]
fn recording_devices_that_end_commands_at_once_keep_the_contract() {
    for subject in subjects(CompletionMode::AtOnce) {
        // A kernel that waits for the host would never let `enqueue` return.
        run_all(&subject.without_endless_kernels());
    }
}
