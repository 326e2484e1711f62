//! In which order simulated devices run commands, and when their threads end.

use std::sync::Arc;

use oxisycl_backend::{Event, Queue};

use super::simulated_commands::devices;
use super::support::*;
use crate::{SimulatedBackend, SimulatedConfig};

/// The order in which a device completes 20 commands of which each third depends on the one before it.
fn completed(config: SimulatedConfig) -> Vec<usize> {
    let backend = SimulatedBackend::new(config);
    let control = backend.control();
    let queue = queue_of(&devices(&backend)[0]);
    control.pause(0);
    let log = Log::default();
    let mut last: Option<Arc<dyn Event>> = None;
    let probes: Vec<_> = (0..20)
        .map(|number| {
            let probe = Probe::logged(&log, number);
            let dependencies: Vec<_> = last.iter().filter(|_| number % 3 == 0).map(data).collect();
            last = Some(issue(&queue, nothing(), &dependencies, &probe));
            probe
        })
        .collect();
    control.resume(0);
    probes.iter().for_each(|probe| probe.succeed());
    let log = log.lock().clone();
    for number in (3..20).step_by(3) {
        let position = |number| log.iter().position(|other| *other == number).expect("completed");
        assert!(position(number - 1) < position(number), "{log:?}");
    }
    log
}

#[test]
fn without_a_seed_independent_commands_run_in_submission_order() {
    let log = completed(SimulatedConfig::new(1));
    let independent: Vec<_> = log.iter().filter(|number| *number % 3 != 0).collect();
    assert!(independent.is_sorted(), "{log:?}");
}

#[test]
fn a_seed_gives_another_order_that_is_the_same_each_time() {
    let first = completed(SimulatedConfig::new(1).shuffled(1));
    assert!(!first.is_sorted());
    assert_eq!(first, completed(SimulatedConfig::new(1).shuffled(1)));
    assert_ne!(first, completed(SimulatedConfig::new(1).shuffled(2)));
}

#[test]
fn a_dropped_backend_finishes_its_work_and_then_its_thread_ends() {
    let backend = SimulatedBackend::new(SimulatedConfig::new(2));
    let control = backend.control();
    let queues: Vec<Arc<dyn Queue>> = devices(&backend).iter().map(queue_of).collect();
    let probes: Vec<_> = (0..50).map(|_| Probe::new()).collect();
    control.pause(0);
    let mut last: Option<Arc<dyn Event>> = None;
    for (number, probe) in probes.iter().enumerate() {
        // A chain that goes from device to device.
        let dependencies: Vec<_> = last.iter().map(data).collect();
        last = Some(issue(&queues[number % 2], nothing(), &dependencies, probe));
    }
    assert!(!probes[49].is_complete());
    drop((backend, queues));
    // No control can resume the device any more, so it goes on by itself.
    probes.iter().for_each(|probe| probe.succeed());
    eventually(|| !control.has_thread(0) && !control.has_thread(1));
}

#[test]
fn a_backend_that_never_worked_has_no_thread() {
    let backend = SimulatedBackend::new(SimulatedConfig::new(1));
    let control = backend.control();
    let queue = queue_of(&devices(&backend)[0]);
    assert!(!control.has_thread(0));
    drop((backend, queue));
}
