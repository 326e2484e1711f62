//! Threads without work sleep; threads that are awake are not woken.

use oxisycl_backend::{Command, Partition};
use oxisycl_backend_testing::harness::help_once;

use super::support::*;

#[test]
fn no_thread_starts_before_the_first_command() {
    let (device, pool) = device_on(4, FakeTopology::default());
    let queue = queue_of(&device);
    drop(device.partition(&Partition::Equally(2)));
    assert!(!help_once(&*queue));
    assert_eq!(pool.sleepers(), 0);
    run(&queue, Command::Marker).result.expect("success");
    eventually(|| pool.sleepers() == 4);
}

#[test]
fn all_threads_sleep_when_there_is_nothing_to_do() {
    let (device, pool) = device_on(4, FakeTopology::default());
    let queue = queue_of(&device);
    for _ in 0..5 {
        run(&queue, for_each(scaled(10_000), |_| {})).result.expect("success");
        eventually(|| pool.sleepers() == 4);
    }
}

#[test]
fn the_threads_of_a_dropped_pool_end() {
    let (device, pool) = device_on(3, FakeTopology::default());
    let queue = queue_of(&device);
    run(&queue, nothing()).result.expect("success");
    assert_eq!(pool.live_threads(), 3);
    drop((device, queue));
    eventually(|| pool.live_threads() == 0);
}
