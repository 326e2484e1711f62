//! What the failure of a command means for those that wait for it.

use oxisycl_backend::{Command, FailureKind, Outcome};

use super::kernels::{Affine, Gate};
use super::subject::{DeviceBytes, Issued, Subject, bytes_of, issue, line, numbers_of};

/// Checks the outcome of a command that a failed command comes before: the failure is that command's alone.
#[track_caller]
fn assert_behind(outcome: &Outcome, subject: &Subject) {
    assert!(outcome.result.is_ok(), "a command reports the failure of another one: {:?}", outcome.result);
    assert!(!outcome.has_run || subject.runs_ahead(), "a command ran although its data is lost");
}

/// A command does not run if a data dependency failed, unless it was issued ahead. It runs if only order dependencies failed. Both hold
/// whether they fail before or after it is issued.
pub fn data_dependencies_pass_failures_on_and_order_dependencies_do_not(subject: &Subject) {
    let queue = subject.queue();
    let memory = DeviceBytes::upload(subject.device(), &queue, &bytes_of(&[0]));
    let step = |summand| subject.affine(Affine { values: memory.as_ptr().cast(), factor: 1, summand }, line(1));
    let mut has_run = false;
    for is_known in [false, true] {
        let failing = issue(&queue, subject.failing(), &[]);
        if is_known {
            failing.probe.fail(&queue);
        }
        let skipped = issue(&queue, step(1000), &[failing.data()]);
        let both = issue(&queue, step(1000), &[failing.order(), failing.data()]);
        let run = issue(&queue, step(1), &[failing.order(), skipped.order(), both.order()]);
        let fine = issue(&queue, step(10), &[run.data()]);
        let root = failing.probe.fail(&queue);
        assert!(matches!(root.kind(), FailureKind::Panic { .. } | FailureKind::Device(_)), "{root}");
        for command in [&skipped, &both] {
            let outcome = command.probe.wait(&queue);
            assert_behind(&outcome, subject);
            has_run |= outcome.has_run;
        }
        for command in [&run, &fine] {
            assert!(command.probe.succeed(&queue).has_run, "a command did not run");
        }
    }
    if !has_run {
        assert_eq!(numbers_of(&memory.download(&queue)), [22]);
    }
}

/// No command behind a failed one runs, however long the chain, unless it was issued ahead; each completes once.
pub fn failures_travel_along_chains(subject: &Subject) {
    const LINKS: usize = if cfg!(miri) { 50 } else { 5000 };
    let queue = subject.queue();
    let failing = issue(&queue, subject.failing(), &[]);
    let mut chain: Vec<Issued> = vec![issue(&queue, Command::Marker, &[failing.data()])];
    for _ in 1..LINKS {
        let before = [chain[chain.len() - 1].data()];
        chain.push(issue(&queue, Command::Marker, &before));
    }
    failing.probe.fail(&queue);
    for command in &chain {
        assert_behind(&command.probe.wait(&queue), subject);
    }
    assert!(chain.iter().all(|command| command.probe.count() == 1));
}

/// A command that does not run because of a dependency completes only after its other dependencies, since what comes after it relies on
/// that.
pub fn a_command_that_does_not_run_completes_after_all_dependencies(subject: &Subject) {
    let gate = Gate::new(subject);
    let queue = subject.queue();
    let failing = issue(&queue, subject.failing(), &[]);
    let settled = issue(&queue, Command::Marker, &[failing.order()]);
    failing.probe.fail(&queue);
    settled.probe.succeed(&queue);
    let blocked = issue(&queue, subject.gate(&gate), &[]);
    let command = issue(&queue, Command::Marker, &[failing.data(), blocked.order()]);
    let behind = issue(&queue, Command::Marker, &[command.order()]);
    assert_eq!((command.probe.count(), behind.probe.count()), (0, 0), "a failure overtook a dependency");
    gate.open();
    assert_behind(&command.probe.wait(&queue), subject);
    behind.probe.succeed(&queue);
    blocked.probe.succeed(&queue);
}
