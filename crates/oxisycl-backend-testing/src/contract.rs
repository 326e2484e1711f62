//! The tests that every backend must pass: what [`Queue`](oxisycl_backend::Queue) and [`Memory`](oxisycl_backend::Memory) promise, as functions that
//! panic where a device breaks it.
//!
//! A backend's own tests make a [`Subject`] for each of its devices and call [`run_all`]. Every function stands for itself and
//! needs no other device; none of them takes longer than the device needs for a few thousand small commands.
//!
//! Covers what the runtime relies on, not how good a device is at it.

mod failures;
mod kernels;
mod memory;
mod order;
mod subject;
mod transfers;

pub use failures::{
    a_command_that_does_not_run_completes_after_all_dependencies,
    data_dependencies_pass_failures_on_and_order_dependencies_do_not, failures_travel_along_chains,
};
pub use kernels::{Affine, Gate, affine_entry, failing_entry, gate_entry, kernels_run_every_item_once, native};
pub use memory::{allocations_are_aligned_and_distinct, zeroed_memory_is_zero};
pub use order::{
    a_chain_runs_in_order, a_completion_may_issue, a_diamond_joins, a_marker_waits,
    an_in_order_queue_keeps_the_order_that_it_promises, dependencies_may_repeat_and_be_complete,
    every_command_completes_once, issue_does_not_wait, profiling_gives_times, threads_may_share_a_queue,
};
pub use subject::{Need, Subject};
pub use transfers::{copies_agree_with_a_model, fills_agree_with_a_model};

/// A test of the contract.
#[derive(Clone, Copy)]
pub struct Test {
    /// The name of its function.
    pub name: &'static str,
    /// What a device must have for it.
    pub needs: &'static [Need],
    run: fn(&Subject),
}

/// Lists tests, with what they need.
macro_rules! tests {
    ($($name:ident $([$($need:ident),+])?,)*) => {
        &[$(Test { name: stringify!($name), needs: &[$($(Need::$need),+)?], run: $name }),*]
    };
}

/// All tests.
pub const TESTS: &[Test] = tests![
    every_command_completes_once,
    a_chain_runs_in_order,
    an_in_order_queue_keeps_the_order_that_it_promises [OrderKept],
    a_diamond_joins,
    dependencies_may_repeat_and_be_complete,
    a_marker_waits,
    issue_does_not_wait [EndlessKernel],
    a_completion_may_issue,
    threads_may_share_a_queue,
    profiling_gives_times [Profiling],
    kernels_run_every_item_once,
    data_dependencies_pass_failures_on_and_order_dependencies_do_not [FailingKernel],
    failures_travel_along_chains [FailingKernel],
    a_command_that_does_not_run_completes_after_all_dependencies [FailingKernel, EndlessKernel],
    copies_agree_with_a_model,
    fills_agree_with_a_model,
    zeroed_memory_is_zero,
    allocations_are_aligned_and_distinct,
];

/// Runs every test that applies to the device, and prints its name first. Gives the names of those that do not apply, and prints the
/// reason: a backend's tests say which they are.
#[must_use = "a test that did not run shows nothing"]
pub fn run_all(subject: &Subject) -> Vec<&'static str> {
    let device = &subject.device().info().name;
    let mut left_out = Vec::new();
    for Test { name, needs, run } in TESTS {
        match needs.iter().find(|need| !subject.has(**need)) {
            Some(need) => {
                println!("{device} {name}: does not apply, {need}");
                left_out.push(*name);
            }
            None => {
                println!("{device} {name}");
                run(subject);
            }
        }
    }
    left_out
}
