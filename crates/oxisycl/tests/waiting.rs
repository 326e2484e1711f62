//! Work-items that wait on stacks of their own on the host, and what code of the user may do there: unwind, catch, launch, forget.

mod support;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use bytemuck::AnyBitPattern;
use oxisycl::group::nd::{NdGroup, NdItem};
use oxisycl::group::{Fixed1, Local};
use oxisycl::operator::Sum;
use oxisycl::prelude::*;

use support::watchdog;

const SIZE: usize = 16;
type Sixteen<'wi, 'cg> = NdItem<'wi, 'cg, 1, Fixed1<SIZE>>;

fn launch(kernel: impl for<'wi, 'cg> Fn(Sixteen<'wi, 'cg>) + Copy + Send + Sync + 'static) -> oxisycl::Result {
    let queue = Queue::default()?;
    queue.parallel_for_nd_range((4 * SIZE, Fixed1::<SIZE>), (), move |item, ()| kernel(item))?.wait()
}

/// The message of a launch that fails; afterwards each thread runs groups as if nothing had been.
#[track_caller]
fn failure(kernel: impl for<'wi, 'cg> Fn(Sixteen<'wi, 'cg>) + Copy + Send + Sync + 'static) -> String {
    let error = launch(kernel).expect_err("the launch must fail");
    assert_eq!(error.code(), ErrorCode::Kernel);
    launch(|mut item| assert_eq!(barrier(&mut item), 0..SIZE)).expect("the next launch succeeds");
    error.to_string()
}

/// A barrier and an algorithm.
fn barrier(item: &mut Sixteen<'_, '_>) -> std::ops::Range<usize> {
    // SAFETY: on the host, what is not met by all is an error.
    let mut group = unsafe { item.unchecked() };
    group.barrier();
    0..group.reduce(1, Sum)
}

#[test]
fn a_failure_that_a_kernel_catches_stays_one() {
    let _watchdog = watchdog();
    let text = failure(|mut item| {
        for round in 0..5 {
            if round == 3 && item.local_linear_id() == 5 {
                return;
            }
            let _ = catch_unwind(AssertUnwindSafe(|| barrier(&mut item)));
        }
    });
    assert!(text.contains("but work-item 0 waits at") && text.contains("work-item 5 has ended"), "{text}");
}

#[test]
fn a_panic_of_another_work_item_that_a_kernel_catches_stays_one() {
    let _watchdog = watchdog();
    let text = failure(|mut item| {
        for round in 0..5 {
            assert!(round != 2 || item.global_linear_id() != 21, "the only one");
            let _ = catch_unwind(AssertUnwindSafe(|| barrier(&mut item)));
        }
    });
    assert!(text.contains("the only one") && text.contains("[21]"), "{text}");
}

/// Whether an error is of the first work-item of a group. Any of the groups may fail first.
fn names_a_first_one(text: &str) -> bool {
    (0..4).any(|group| text.contains(&format!("work-item [{}]", group * SIZE)))
}

#[test]
fn a_panic_within_an_algorithm_that_a_kernel_catches_stays_one() {
    let _watchdog = watchdog();
    let add = |a: u8, b: u8| a.checked_add(b).expect("too much");
    // The first work-item runs the algorithm for all of its group. No other one goes on with what is not there.
    fn tries<R>(
        item: &mut Sixteen<'_, '_>,
        algorithm: impl FnOnce(&mut NdGroup<'_, '_, '_, 1, Fixed1<SIZE>, true>) -> R,
    ) {
        let is_done = catch_unwind(AssertUnwindSafe(|| algorithm(&mut item.group()))).is_ok();
        assert!(!is_done, "work-item {} goes on", item.local_linear_id());
    }
    let text = failure(move |mut item| tries(&mut item, |group| group.reduce(60, add)));
    assert!(text.contains("too much") && names_a_first_one(&text), "{text}");
    let text = failure(move |mut item| tries(&mut item, |group| group.sub_group::<8>().inclusive_scan(60, add)));
    assert!(text.contains("too much"), "{text}");
    let text = failure(move |mut item| {
        tries(&mut item, |group| group.sub_group::<8>().joint_reduce(&[60; 32], 0, add));
    });
    assert!(text.contains("too much"), "{text}");
    let text = failure(|mut item| tries(&mut item, |group| group.broadcast(1, SIZE)));
    assert!(text.contains("16"), "{text}");
    // Those that come to another algorithm afterwards fail there, and one that ends is no success.
    let text = failure(move |mut item| {
        let _ = catch_unwind(AssertUnwindSafe(|| item.group().reduce(60, add)));
        barrier(&mut item);
        unreachable!("the group has failed");
    });
    assert!(text.contains("too much"), "{text}");
}

/// Exchanges a value with the group, at one place for all types.
fn first<T: DeviceCopyable + AnyBitPattern>(item: &mut Sixteen<'_, '_>, value: T) -> T {
    item.group().broadcast(value, 0)
}

#[test]
fn values_of_types_with_one_name_are_of_other_types() {
    let _watchdog = watchdog();
    let text = failure(|mut item| {
        if item.is_leader() {
            #[derive(Clone, Copy, DeviceCopyable, AnyBitPattern)]
            #[repr(C)]
            struct Value(u8, u32);
            first(&mut item, Value(1, 2));
        } else {
            #[derive(Clone, Copy, DeviceCopyable, AnyBitPattern)]
            #[repr(C)]
            struct Value(u32, u32);
            first(&mut item, Value(1, 2));
        }
    });
    assert!(text.contains("brings values of another type"), "{text}");
}

#[test]
fn an_own_panic_that_a_kernel_catches_is_none() {
    let _watchdog = watchdog();
    let launched = launch(|mut item| {
        for round in 0..5 {
            assert_eq!(barrier(&mut item), 0..SIZE);
            let panics = round == 2 && item.local_linear_id() % 3 == 0;
            assert_eq!(catch_unwind(|| assert!(!panics)).is_err(), panics);
        }
    });
    launched.expect("each work-item catches its own panic");
}

static ALIVE: AtomicUsize = AtomicUsize::new(0);
static MADE: AtomicUsize = AtomicUsize::new(0);

/// Counts values that exist.
struct Counted;

impl Counted {
    fn new() -> Self {
        MADE.fetch_add(1, Relaxed);
        ALIVE.fetch_add(1, Relaxed);
        Self
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        ALIVE.fetch_sub(1, Relaxed);
    }
}

#[test]
fn values_of_a_group_that_fails_are_dropped_once() {
    let _watchdog = watchdog();
    for at in [0, 9, SIZE - 1] {
        let made = MADE.load(Relaxed);
        let queue = Queue::default().expect("a queue");
        let event = queue.parallel_for_nd_range((SIZE, Fixed1::<SIZE>), (), move |mut item, ()| {
            let _first = Counted::new();
            barrier(&mut item);
            let _second = Counted::new();
            assert!(item.local_linear_id() != at);
            barrier(&mut item);
        });
        let text = event.and_then(|event| event.wait()).expect_err("a work-item panics").to_string();
        assert!(text.contains(&format!("[{at}]")), "{text}");
        // All have made the first value, and those up to the one that panicked the second.
        assert_eq!(MADE.load(Relaxed) - made, SIZE + at + 1);
        assert_eq!(ALIVE.load(Relaxed), 0);
    }
}

/// Waits when it is dropped.
struct Waits<'a, 'wi, 'cg>(&'a mut Sixteen<'wi, 'cg>);

impl Drop for Waits<'_, '_, '_> {
    fn drop(&mut self) {
        barrier(self.0);
    }
}

#[test]
fn a_destructor_may_wait() {
    let _watchdog = watchdog();
    launch(|mut item| drop(Waits(&mut item))).expect("all destructors wait");
    let text = failure(|mut item| {
        let panics = item.global_linear_id() == 21;
        let _waits = Waits(&mut item);
        assert!(!panics, "beside a destructor");
    });
    assert!(text.contains("beside a destructor") && text.contains("[21]"), "{text}");
}

#[test]
fn a_destructor_that_did_not_wait_is_a_failure_also_where_its_panic_is_caught() {
    let _watchdog = watchdog();
    // All come there equally often, and none gets what the group has.
    let text = failure(|mut item| {
        let caught = catch_unwind(AssertUnwindSafe(|| {
            let _waits = Waits(&mut item);
            resume_unwind(Box::new("caught"));
        }));
        assert!(caught.is_err());
    });
    assert!(
        text.contains("work-item 0 came to") && text.contains("while it unwound") && names_a_first_one(&text),
        "{text}"
    );
    // A later wait fails, too.
    let text = failure(|mut item| {
        let is_fifth = item.local_linear_id() == 5;
        let _ = catch_unwind(AssertUnwindSafe(|| {
            let _waits = Waits(&mut item);
            if is_fifth {
                resume_unwind(Box::new("caught"));
            }
        }));
        barrier(&mut item);
        unreachable!("the group has failed");
    });
    assert!(text.contains("work-item 5 came to"), "{text}");
}

/// Waits for a queue when it is dropped.
struct WaitsFor<'a>(&'a Queue);

impl Drop for WaitsFor<'_> {
    fn drop(&mut self) {
        self.0.wait().expect("the launch succeeds");
    }
}

#[test]
fn groups_meet_while_the_thread_that_waits_for_them_unwinds() {
    let _watchdog = watchdog();
    let queue = Queue::default().expect("a queue");
    for _ in 0..20 {
        let sums = Buffer::from_vec(vec![0; 500 * SIZE]).expect("a buffer");
        let caught = catch_unwind(AssertUnwindSafe(|| {
            let _waits = WaitsFor(&queue);
            let submitted = queue.submit(|cg| {
                let sums = cg.access(&sums, Write);
                cg.parallel_for_nd_range((500 * SIZE, Fixed1::<SIZE>), (), move |mut item, ()| {
                    assert!(!std::thread::panicking(), "no work-item unwinds");
                    sums.set(item.global(), barrier(&mut item).end);
                })
            });
            submitted.expect("a launch");
            resume_unwind(Box::new("elsewhere"));
        }));
        assert_eq!(caught.expect_err("a panic").downcast_ref(), Some(&"elsewhere"));
        assert!(sums.to_vec().expect("the launch succeeded").iter().all(|sum| *sum == SIZE));
    }
}

#[test]
fn a_destructor_that_panics_while_its_group_is_unwound_changes_nothing() {
    let _watchdog = watchdog();
    struct Panics;
    impl Drop for Panics {
        fn drop(&mut self) {
            if std::thread::panicking() {
                let _ = catch_unwind(|| panic!("in a destructor"));
            }
        }
    }
    let text = failure(|mut item| {
        let _panics = Panics;
        barrier(&mut item);
        assert!(item.local_linear_id() != 7, "the cause");
        barrier(&mut item);
    });
    assert!(text.contains("the cause"), "{text}");
}

#[test]
fn a_launch_between_barriers_is_refused() {
    let _watchdog = watchdog();
    let queue: &'static Queue = Box::leak(Box::new(Queue::default().expect("a queue")));
    let launched =
        queue.parallel_for_nd_range((4 * SIZE, Fixed1::<SIZE>), Local::<u32, SIZE>::new(), |mut item, tile| {
            // SAFETY: own elements before the barrier, and only reads behind it.
            unsafe { tile.set(item.local_linear_id(), item.global_linear_id() as u32) };
            assert_eq!(barrier(&mut item), 0..SIZE);
            // The group is left as it was.
            inside_a_kernel(queue.parallel_for_nd_range((32, Fixed1::<8>), (), |mut item, ()| {
                // SAFETY: all come to it.
                assert_eq!(unsafe { item.unchecked() }.reduce(1, Sum), 8);
                unreachable!("a kernel of a kernel");
            }));
            assert_eq!(barrier(&mut item), 0..SIZE);
            let first = item.global_linear_id() - item.local_linear_id();
            // SAFETY: nobody writes behind the barrier.
            assert!((0..SIZE).all(|i| unsafe { tile.get(i) } as usize == first + i));
        });
    launched.and_then(|event| event.wait()).expect("the launch succeeds");
    queue.wait().expect("there are no others");
}

/// Asserts that a call was refused because a kernel made it.
#[track_caller]
fn inside_a_kernel<T>(result: oxisycl::Result<T>) {
    let error = result.err().expect("a kernel must not do that");
    assert_eq!(error.code(), ErrorCode::Invalid, "{error}");
    assert!(error.to_string().contains("inside a kernel"), "{error}");
}

/// What keeps a kernel from that is of the thread. Work-items that wait change stacks, and others run on the thread meanwhile.
#[test]
fn a_work_item_that_has_waited_starts_and_awaits_nothing() {
    static REFUSED: AtomicUsize = AtomicUsize::new(0);
    let _watchdog = watchdog();
    fn kept<T>(value: T) -> &'static T {
        Box::leak(Box::new(value))
    }
    let queue = kept(Queue::default().expect("a queue"));
    let numbers = kept(Buffer::from_vec(vec![7u32; 4]).expect("a buffer"));
    // Nothing has ended, so that each wait would be one.
    let reading = numbers.host_access(ReadWrite).expect("an accessor");
    let left = queue.submit(|cg| {
        let numbers = cg.access(numbers, ReadWrite);
        cg.parallel_for(4, move |item| numbers.set(item, 1))
    });
    let (left, sum) = (kept(left.expect("a launch")), kept(queue.reduce(numbers, Sum).expect("a launch")));
    let tries = move || {
        inside_a_kernel(queue.submit(|cg| cg.single_task(|_| ())));
        inside_a_kernel(queue.wait());
        inside_a_kernel(left.wait());
        inside_a_kernel(numbers.host_access(Read).map(drop));
        inside_a_kernel(sum.get());
        REFUSED.fetch_add(1, Relaxed);
    };
    launch(move |mut item| {
        for _ in 0..3 {
            tries();
            assert_eq!(barrier(&mut item), 0..SIZE);
        }
        tries();
    })
    .expect("the launch succeeds");
    assert_eq!(REFUSED.load(Relaxed), 4 * SIZE * 4);
    assert!(reading.iter().all(|number| *number == 7) && !left.is_complete());
    drop(reading);
    assert_eq!(sum.get().expect("the launches succeed"), 4);
}

#[test]
fn a_forgotten_item_and_a_deep_stack_are_no_harm() {
    let _watchdog = watchdog();
    fn deep(n: usize) -> usize {
        let room = std::hint::black_box([n; 64]);
        if n == 0 { 0 } else { deep(n - 1) + room[n % 64] }
    }
    let launched = launch(|mut item| {
        barrier(&mut item);
        assert_eq!(deep(100), 5050);
        barrier(&mut item);
        std::mem::forget((item, vec![0u8; 8]));
    });
    launched.expect("the launch succeeds");
}
