//! Panics in kernels.

use std::panic::panic_any;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use oxisycl_backend::{CommandFailure, FailureKind, Queue};
use oxisycl_backend_testing::harness::help_once;
use oxisycl_types::LaunchRange;

use super::support::*;

/// Message, location, item.
type Parts = (String, Option<String>, Option<(u8, [usize; 3])>);

fn parts(failure: &CommandFailure) -> Parts {
    match failure.kind() {
        FailureKind::Panic { message, location, item } => (message.clone(), location.clone(), *item),
        other => panic!("{other:?}"),
    }
}

fn fails(queue: &Arc<dyn Queue>, command: oxisycl_backend::Command) -> CommandFailure {
    run(queue, command).result.expect_err("a panic")
}

#[test]
fn message_location_and_item_are_told() {
    let queue = queue(2);
    let line = line!() + 1;
    let failure = fails(&queue, for_each(10, |item| assert!(item != 7, "item {item} is bad")));
    let (message, location, item) = parts(&failure);
    assert_eq!(message, "item 7 is bad");
    assert!(location.expect("a location").starts_with(&format!("{}:{line}:", file!())));
    assert_eq!(item, Some((1, [0, 0, 7])));
    assert_eq!(failure.device(), "test CPU");
    assert!(failure.to_string().contains("panicked in work-item [7] at"), "{failure}");
}

#[test]
fn the_id_has_the_launch_dimensions_and_the_offset() {
    let queue = queue(2);
    let body: Body = |item| assert!(item != 5);
    let launch = LaunchRange { dimensions: 2, extent: [1, 3, 4], offset: [0, 10, 20] };
    let (_, _, item) = parts(&fails(&queue, kernel(&body, body_entry, launch)));
    assert_eq!(item, Some((2, [0, 11, 21])));
    let launch = LaunchRange { dimensions: 3, extent: [2, 2, 3], offset: [1, 2, 3] };
    let (_, _, item) = parts(&fails(&queue, kernel(&body, body_entry, launch)));
    assert_eq!(item, Some((3, [1, 3, 5])));
    let body: Body = |_| panic!();
    let failure = fails(&queue, kernel(&body, body_entry, LaunchRange::SINGLE));
    assert_eq!(parts(&failure).2, Some((0, [0; 3])));
}

#[test]
fn the_pool_survives_panics_in_many_chunks_and_skips_the_rest() {
    static RUNS: AtomicUsize = AtomicUsize::new(0);
    // Under Miri each takes seconds.
    const N_LAUNCHES: usize = if cfg!(miri) { 2 } else { 20 };
    let queue = queue(4);
    for _ in 0..N_LAUNCHES {
        let failure = fails(
            &queue,
            for_each(scaled(100_000), |item| {
                RUNS.fetch_add(1, Ordering::Relaxed);
                assert!(item % 1000 != 999, "bad");
            }),
        );
        assert_eq!(parts(&failure).0, "bad");
    }
    // Each of four threads ends its chunk at the first panic, and takes no other.
    assert!(RUNS.load(Ordering::Relaxed) <= N_LAUNCHES * 8 * 1000, "{RUNS:?}");
    assert!(run(&queue, for_each(scaled(100_000), |_| {})).result.is_ok());
}

/// Used to stay on the pool's list for ever, since the thread that claims the last chunk takes it off, and no thread did.
#[test]
fn a_job_that_panics_is_forgotten() {
    let queue = queue(4);
    let probe = Probe::new();
    // Without the hook, and with slow items, so that chunks are left.
    let command = for_each(64, |item| match item {
        0 => std::panic::resume_unwind(Box::new("in the first chunk")),
        _ => std::thread::sleep(std::time::Duration::from_millis(1)),
    });
    let event = issue(&queue, command, &[], &probe);
    assert!(probe.wait().result.is_err());
    eventually(|| Arc::strong_count(&event) == 1);
}

#[test]
fn any_payload_is_survived() {
    struct Nasty;
    impl Drop for Nasty {
        fn drop(&mut self) {
            panic!("in the destructor");
        }
    }
    let queue = queue(1);
    assert_eq!(parts(&fails(&queue, for_each(1, |_| panic_any(String::from("owned"))))).0, "owned");
    assert_eq!(parts(&fails(&queue, for_each(1, |_| panic_any("static")))).0, "static");
    assert_eq!(parts(&fails(&queue, for_each(1, |_| panic_any(3)))).0, "panic payload of unknown type");
    assert_eq!(parts(&fails(&queue, for_each(1, |_| panic_any(Nasty)))).0, "panic payload of unknown type");
    assert!(run(&queue, nothing()).result.is_ok());
}

#[test]
fn a_kernel_may_catch_its_own_panics() {
    let queue = queue(1);
    let outcome = run(&queue, for_each(1, |_| drop(std::panic::catch_unwind(|| panic!("inner")))));
    assert!(outcome.result.is_ok());
}

#[test]
fn a_helping_thread_survives_a_panic() {
    let queue = queue(1);
    for _ in 0..50 {
        let probe = Probe::new();
        issue(&queue, for_each(1, |_| panic!("on purpose")), &[], &probe);
        assert!(probe.help(&queue).result.is_err());
    }
    assert!(!crate::in_kernel());
}

#[test]
fn only_kernel_code_is_in_a_kernel() {
    static INSIDE: AtomicUsize = AtomicUsize::new(0);
    let queue = queue(2);
    assert!(!crate::in_kernel());
    run(&queue, for_each(10, |_| _ = INSIDE.fetch_add(usize::from(crate::in_kernel()), Ordering::SeqCst)));
    assert_eq!(INSIDE.load(Ordering::SeqCst), 10);
    assert!(!crate::in_kernel());
}

#[test]
fn help_inside_a_kernel_does_nothing() {
    static QUEUE: std::sync::OnceLock<Arc<dyn Queue>> = std::sync::OnceLock::new();
    static HELPED: AtomicUsize = AtomicUsize::new(0);
    let queue = QUEUE.get_or_init(|| queue(1));
    let (first, second) = (Probe::new(), Probe::new());
    let command = for_each(1, |_| {
        let queue = QUEUE.get().expect("set above");
        std::thread::sleep(std::time::Duration::from_millis(2));
        HELPED.fetch_add(usize::from(help_once(&**queue)), Ordering::SeqCst);
    });
    issue(queue, command, &[], &first);
    issue(queue, nothing(), &[], &second);
    first.succeed();
    second.succeed();
    assert_eq!(HELPED.load(Ordering::SeqCst), 0);
}

#[test]
fn a_completion_that_panics_does_not_end_its_thread() {
    struct Bad;
    impl oxisycl_backend::Completion for Bad {
        unsafe fn complete(self: Arc<Self>, _: oxisycl_backend::Outcome) {
            panic!("in a completion");
        }
    }
    let queue = queue(1);
    // SAFETY: the command uses no memory.
    unsafe { queue.issue(nothing(), &[], Arc::new(Bad)) }.expect("an accepted command");
    assert!(run(&queue, nothing()).result.is_ok());
}
