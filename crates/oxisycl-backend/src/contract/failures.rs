//! What the failure of a command means for those that wait for it.

use super::kernels::{Affine, Gate};
use super::subject::{DeviceBytes, Enqueued, Subject, bytes_of, enqueue, line, numbers_of};
use crate::{Command, CommandFailure, FailureKind};

#[track_caller]
fn assert_caused_by(failure: &CommandFailure, root: &CommandFailure) {
    assert!(matches!(failure.kind(), FailureKind::Dependency(_)), "not for a dependency: {failure}");
    assert_eq!(failure.root().to_string(), root.to_string(), "another root");
}

/// A command does not run if a data dependency failed, and runs if only order dependencies did; whether they fail before or after
/// it is enqueued.
pub fn data_dependencies_pass_failures_on_and_order_dependencies_do_not(subject: &Subject) {
    let queue = subject.queue();
    let memory = DeviceBytes::upload(subject.device(), &queue, &bytes_of(&[0]));
    let step = |summand| subject.affine(Affine { values: memory.as_ptr().cast(), factor: 1, summand }, line(1));
    let mut may_have_run = false;
    for is_known in [false, true] {
        let failing = enqueue(&queue, subject.failing(), &[]);
        if is_known {
            failing.probe.fail(&queue);
        }
        let skipped = enqueue(&queue, step(1000), &[failing.data()]);
        let both = enqueue(&queue, step(1000), &[failing.order(), failing.data()]);
        let run = enqueue(&queue, step(1), &[failing.order(), skipped.order(), both.order()]);
        let fine = enqueue(&queue, step(10), &[run.data()]);
        let root = failing.probe.fail(&queue);
        assert!(matches!(root.kind(), FailureKind::Panic { .. } | FailureKind::Device(_)), "{root}");
        for command in [&skipped, &both] {
            let failure = command.probe.fail(&queue);
            assert_caused_by(&failure, &root);
            may_have_run |= failure.has_run();
            assert!(!failure.has_run() || (subject.runs_ahead() && !is_known), "it has run: {failure}");
        }
        run.probe.succeed(&queue);
        fine.probe.succeed(&queue);
    }
    if !may_have_run {
        assert_eq!(numbers_of(&memory.download(&queue)), [22]);
    }
}

/// Everything behind a failed command fails, however long the chain, and each failure leads back to the first.
pub fn failures_travel_along_chains_with_their_root(subject: &Subject) {
    const LINKS: usize = if cfg!(miri) { 50 } else { 5000 };
    let queue = subject.queue();
    let failing = enqueue(&queue, subject.failing(), &[]);
    let mut chain: Vec<Enqueued> = vec![enqueue(&queue, Command::Marker, &[failing.data()])];
    for _ in 1..LINKS {
        let before = [chain[chain.len() - 1].data()];
        chain.push(enqueue(&queue, Command::Marker, &before));
    }
    let root = failing.probe.fail(&queue);
    for command in &chain {
        assert_caused_by(&command.probe.fail(&queue), &root);
    }
    assert!(chain.iter().all(|command| command.probe.count() == 1));
}

/// A command that fails for a dependency completes only after its other dependencies, since what comes after it relies on that.
pub fn a_failed_dependency_is_told_after_all_dependencies(subject: &Subject) {
    let gate = Gate::new(subject);
    let queue = subject.queue();
    let failing = enqueue(&queue, subject.failing(), &[]);
    let settled = enqueue(&queue, Command::Marker, &[failing.order()]);
    let root = failing.probe.fail(&queue);
    settled.probe.succeed(&queue);
    let blocked = enqueue(&queue, subject.gate(&gate), &[]);
    let command = enqueue(&queue, Command::Marker, &[failing.data(), blocked.order()]);
    let behind = enqueue(&queue, Command::Marker, &[command.order()]);
    assert_eq!((command.probe.count(), behind.probe.count()), (0, 0), "a failure overtook a dependency");
    gate.open();
    assert_caused_by(&command.probe.fail(&queue), &root);
    behind.probe.succeed(&queue);
    blocked.probe.succeed(&queue);
}
