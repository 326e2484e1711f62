//! Waits that could never end are reported instead of hanging, lose nothing, and leave everything usable.

mod support;

use std::future::Future;
use std::sync::mpsc::channel;
use std::sync::{Arc, Barrier, Mutex, OnceLock};

use oxisycl::group::Fixed1;
use oxisycl::prelude::*;
use oxisycl::{BufferOptions, FinalData};

use support::{Gate, add_one, filled, in_order, refused, simulated, watchdog};

#[test]
fn a_second_host_accessor_of_a_thread_that_the_first_blocks_is_refused() {
    let _watchdog = watchdog();
    let buffer = filled(4);
    let mut first = buffer.host_access(ReadWrite).unwrap();
    refused(buffer.host_access(Read), ErrorCode::Invalid, &["this thread holds a host accessor"]);
    refused(buffer.host_access(ReadWrite), ErrorCode::Invalid, &["this thread holds a host accessor"]);
    refused(buffer.host_access(Write.no_init()), ErrorCode::Invalid, &["this thread holds a host accessor"]);
    refused(buffer.to_vec(), ErrorCode::Invalid, &["this thread holds a host accessor"]);
    first[0] = 1;
    drop(first);
    let read = buffer.host_access(Read).unwrap();
    let again = buffer.host_access(Read).unwrap();
    assert_eq!((read[0], again[1]), (1, 7));
    refused(buffer.host_access(Write), ErrorCode::Invalid, &["this thread holds a host accessor"]);
}

#[test]
fn host_accessors_of_one_thread_to_different_pages_or_buffers_go_together() {
    let _watchdog = watchdog();
    let buffer = BufferOptions::new().page_size(4).from_vec(vec![0; 8]).unwrap();
    let other = filled(1);
    let mut front = buffer.host_access_range(ReadWrite, 0, 4).unwrap();
    let mut back = buffer.host_access_range(ReadWrite, 4, 4).unwrap();
    let mut rest = other.host_access(ReadWrite).unwrap();
    (front[0], back[0], rest[0]) = (1, 2, 3);
    drop((front, back, rest));
    assert_eq!(buffer.into_vec().unwrap(), [1, 0, 0, 0, 2, 0, 0, 0]);
}

#[test]
fn waits_for_a_command_that_the_threads_own_host_accessor_blocks_are_refused() {
    let _watchdog = watchdog();
    let (devices, _control) = simulated(1);
    for device in [Device::default().unwrap(), devices[0].clone()] {
        for queue in [Queue::new(&device).unwrap(), in_order(&device)] {
            let buffer = filled(4);
            let host = buffer.host_access(Read).unwrap();
            let event = add_one(&queue, &buffer);
            let after = queue.submit(|cg| {
                cg.depends_on(&event);
                cg.single_task(|_| {})
            });
            refused(event.wait(), ErrorCode::Invalid, &["cannot end", "this thread holds a host accessor"]);
            refused(after.unwrap().wait(), ErrorCode::Invalid, &["cannot end"]);
            refused(queue.wait(), ErrorCode::Invalid, &["cannot end"]);
            refused(queue.wait_and_throw(), ErrorCode::Invalid, &["cannot end"]);
            refused(Event::wait_all([&event]), ErrorCode::Invalid, &["cannot end"]);
            assert!(!event.is_complete() && !queue.is_idle());
            assert_eq!(host[0], 7);
            drop(host);
            event.wait().unwrap();
            queue.wait().unwrap();
            assert_eq!(buffer.into_vec().unwrap(), [8; 4]);
        }
    }
}

#[test]
fn a_refused_host_accessor_does_not_discard_what_a_blocked_command_writes() {
    let _watchdog = watchdog();
    let (devices, _control) = simulated(1);
    let queue = Queue::new(&devices[0]).unwrap();
    let buffer = filled(4);
    let host = buffer.host_access(Read).unwrap();
    let event = add_one(&queue, &buffer);
    refused(buffer.host_access(Write.no_init()), ErrorCode::Invalid, &["this thread holds a host accessor"]);
    refused(buffer.host_access(ReadWrite), ErrorCode::Invalid, &["this thread holds a host accessor"]);
    drop(host);
    event.wait().unwrap();
    assert_eq!(buffer.to_vec().unwrap(), [8; 4]);
}

#[test]
fn a_refused_host_accessor_does_not_discard_pages_on_a_device() {
    let _watchdog = watchdog();
    let (devices, _control) = simulated(1);
    let queue = Queue::new(&devices[0]).unwrap();
    let buffer = BufferOptions::new().page_size(4).from_vec(vec![7; 8]).unwrap();
    add_one(&queue, &buffer).wait().unwrap();
    let host = buffer.host_access_range(Read, 0, 4).unwrap();
    refused(buffer.host_access(Write.no_init()), ErrorCode::Invalid, &["this thread holds a host accessor"]);
    drop(host);
    assert_eq!(buffer.to_vec().unwrap(), [8; 8]);
}

#[test]
fn a_buffer_with_a_destination_that_is_dropped_under_a_host_accessor_of_the_thread_reports_it() {
    let _watchdog = watchdog();
    let queue = Queue::default().unwrap();
    for has_command in [false, true] {
        let buffer = filled(4);
        let (told, hear) = channel();
        buffer.set_final_data(FinalData::call(move |data| told.send(data).unwrap()));
        let host = buffer.host_access(ReadWrite).unwrap();
        let event = has_command.then(|| add_one(&queue, &buffer));
        drop(buffer);
        refused(hear.recv().unwrap(), ErrorCode::Invalid, &["this thread holds a host accessor"]);
        assert_eq!(host[3], 7);
        drop(host);
        event.map_or(Ok(()), |event| event.wait()).unwrap();
    }
}

#[test]
fn a_borrowed_buffer_that_ends_under_a_host_accessor_of_the_thread_reports_it() {
    let _watchdog = watchdog();
    let mut data = [1, 2, 3];
    let buffer = Buffer::from_slice_mut_nd(&mut data, 3).unwrap();
    let mut host = buffer.host_access(ReadWrite).unwrap();
    host[0] = 9;
    refused(buffer.finish(), ErrorCode::Invalid, &["this thread holds a host accessor"]);
    drop(host);
    assert_eq!(data, [1, 2, 3], "nothing is written back on an error");
}

#[test]
fn a_host_accessor_of_another_thread_is_waited_for() {
    let _watchdog = watchdog();
    let queue = Queue::default().unwrap();
    let buffer = filled(4);
    let (ready, is_held) = channel();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut host = buffer.host_access(ReadWrite).unwrap();
            ready.send(()).unwrap();
            std::thread::sleep(std::time::Duration::from_millis(30));
            host[0] = 1;
        });
        is_held.recv().unwrap();
        add_one(&queue, &buffer).wait().unwrap();
    });
    assert_eq!(buffer.into_vec().unwrap(), [2, 8, 8, 8]);
}

#[test]
fn a_host_task_that_waits_for_its_own_queue_gets_an_error() {
    let _watchdog = watchdog();
    let device = Device::default().unwrap();
    for queue in [Queue::new(&device).unwrap(), in_order(&device)] {
        let (told, hear) = channel();
        let own = queue.clone();
        let event = queue.submit(|cg| cg.host_task(move |_| told.send((own.wait(), own.wait_and_throw())).unwrap()));
        let (wait, wait_and_throw) = hear.recv().unwrap();
        refused(wait, ErrorCode::Invalid, &["host task waits for its own queue"]);
        refused(wait_and_throw, ErrorCode::Invalid, &["host task waits for its own queue"]);
        event.unwrap().wait().unwrap();
        queue.wait().unwrap();
    }
}

#[test]
fn a_host_task_may_wait_for_what_it_submits_to_its_own_queue_unless_that_waits_for_the_task() {
    let _watchdog = watchdog();
    let device = Device::default().unwrap();
    for (queue, works) in [(Queue::new(&device).unwrap(), true), (in_order(&device), false)] {
        let (told, hear) = channel();
        let own = queue.clone();
        let task = queue.submit(|cg| {
            cg.host_task(move |_| {
                let inner = own.single_task(|_| {}).unwrap();
                let waited = inner.wait();
                told.send((inner, waited)).unwrap();
            })
        });
        let (inner, waited) = hear.recv().unwrap();
        if works {
            waited.unwrap();
        } else {
            refused(waited, ErrorCode::Invalid, &["depends on the host task that waits for it"]);
        }
        task.unwrap().wait().unwrap();
        inner.wait().unwrap();
    }
}

#[test]
fn a_host_task_that_waits_for_a_command_on_its_own_buffer_gets_an_error() {
    let _watchdog = watchdog();
    let (queue, other) = (Queue::default().unwrap(), Queue::default().unwrap());
    let buffer = filled(4);
    let inside = buffer.clone();
    let (told, hear) = channel();
    let task = queue.submit(|cg| {
        let mut data = cg.access_host(&buffer, ReadWrite);
        cg.host_task(move |scope| {
            data.slice_mut(scope)[0] = 1;
            let event = add_one(&other, &inside);
            let results = (event.wait(), other.wait(), inside.host_access(Read).map(drop), inside.to_vec().map(drop));
            told.send(results).unwrap();
        })
    });
    let (event, queue_wait, host, copy) = hear.recv().unwrap();
    for refusal in [event, queue_wait, host, copy] {
        refused(refusal, ErrorCode::Invalid, &["depends on the host task that waits for it"]);
    }
    task.unwrap().wait().unwrap();
    assert_eq!(buffer.to_vec().unwrap(), [2, 8, 8, 8]);
}

#[test]
fn a_host_task_that_drops_its_buffer_with_a_destination_reports_it() {
    let _watchdog = watchdog();
    let queue = Queue::default().unwrap();
    let buffer = filled(4);
    let (told, hear) = channel();
    buffer.set_final_data(FinalData::call(move |data| told.send(data).unwrap()));
    let task = queue.submit(move |cg| {
        let data = cg.access_host(&buffer, Read);
        cg.host_task(move |scope| {
            assert_eq!(data.slice(scope), [7; 4]);
            drop(buffer);
        })
    });
    refused(hear.recv().unwrap(), ErrorCode::Invalid, &["host task"]);
    task.unwrap().wait().unwrap();
}

#[test]
fn more_blocked_host_tasks_than_threads_all_run_at_once() {
    const N_TASKS: usize = if cfg!(miri) { 10 } else { 100 };
    let _watchdog = watchdog();
    let queue = Queue::default().unwrap();
    let meeting = Arc::new(Barrier::new(N_TASKS));
    for _ in 0..N_TASKS {
        let meeting = meeting.clone();
        queue.submit(|cg| cg.host_task(move |_| _ = meeting.wait())).unwrap();
    }
    queue.wait().unwrap();
}

#[test]
fn blocked_host_tasks_do_not_hold_up_kernels() {
    static GATE: Gate = Gate::new();
    let _watchdog = watchdog();
    let queue = Queue::default().unwrap();
    let tasks: Vec<_> = (0..8).map(|_| queue.submit(|cg| cg.host_task(|_| GATE.pass())).unwrap()).collect();
    let buffer = filled(100);
    add_one(&queue, &buffer).wait().unwrap();
    assert!(tasks.iter().all(|task| !task.is_complete()));
    GATE.open();
    Event::wait_all(&tasks).unwrap();
    assert_eq!(buffer.into_vec().unwrap(), [8; 100]);
}

type Refusals = Mutex<Vec<(&'static str, oxisycl::Result)>>;

/// Everything that must not be called in a kernel or a waker.
fn try_everything(queue: &Queue, event: &Event, buffer: &Buffer<i32, 1>, results: &Refusals) {
    let mut results = results.lock().unwrap();
    results.push(("submit", queue.submit(|cg| cg.single_task(|_| {})).map(drop)));
    results.push(("shortcut", queue.single_task(|_| {}).map(drop)));
    results.push(("host task", queue.submit(|cg| cg.host_task(|_| {})).map(drop)));
    results.push(("barrier", queue.submit_barrier([]).map(drop)));
    results.push(("event wait", event.wait()));
    results.push(("wait for all", Event::wait_all([event])));
    results.push(("queue wait", queue.wait()));
    results.push(("wait_and_throw", queue.wait_and_throw()));
    results.push(("host_access", buffer.host_access(Read).map(drop)));
    results.push(("to_vec", buffer.to_vec().map(drop)));
    results.push(("into_vec", buffer.clone().into_vec().map(drop).map_err(Error::from)));
    results.push(("release", buffer.release(queue.device())));
}

#[test]
fn everything_that_submits_or_blocks_is_refused_in_a_kernel() {
    static INSIDE: OnceLock<(Queue, Event, Buffer<i32, 1>)> = OnceLock::new();
    static RESULTS: Refusals = Mutex::new(Vec::new());
    static GATE: Gate = Gate::new();
    let _watchdog = watchdog();
    let (devices, _control) = simulated(1);
    let host = Queue::default().unwrap();
    let pending = host.submit(|cg| cg.host_task(|_| GATE.pass())).unwrap();
    INSIDE.set((host.clone(), pending.clone(), filled(4))).unwrap();
    fn try_inside() {
        let (queue, event, buffer) = INSIDE.get().unwrap();
        try_everything(queue, event, buffer, &RESULTS);
    }
    // At group scope, in a phase, and in a work-item that has a stack of its own.
    type Start = fn(&Queue) -> oxisycl::Result<Event>;
    let forms: [(&str, Start); 4] = [
        ("a task", |queue| queue.single_task(|_| try_inside())),
        ("a group", |queue| queue.submit(|cg| cg.parallel_for_work_group(1, Fixed1::<2>, (), |_, ()| try_inside()))),
        ("a phase", |queue| {
            queue.submit(|cg| {
                cg.parallel_for_work_group(1, Fixed1::<1>, (), |mut group, ()| {
                    group.for_each((), |_, ()| try_inside());
                })
            })
        }),
        ("an item of an nd-range", |queue| {
            queue.submit(|cg| {
                cg.parallel_for_nd_range((2, Fixed1::<2>), (), |mut item, ()| {
                    item.group().barrier();
                    if item.local_linear_id() == 1 {
                        try_inside();
                    }
                    item.group().barrier();
                })
            })
        }),
    ];
    for queue in [host, Queue::new(&devices[0]).unwrap()] {
        for (form, start) in forms {
            start(&queue).unwrap().wait().unwrap();
            let results = std::mem::take(&mut *RESULTS.lock().unwrap());
            assert!(!results.is_empty(), "{form}");
            for (what, result) in results {
                let inside: &[&str] = if what == "into_vec" { &[] } else { &["inside a kernel"] };
                let Err(error) = result else { panic!("{what} was accepted in {form}") };
                support::assert_error(&error, ErrorCode::Invalid, inside);
            }
        }
    }
    GATE.open();
    pending.wait().unwrap();
    let (queue, _, buffer) = INSIDE.get().unwrap();
    add_one(queue, buffer).wait().unwrap();
    assert_eq!(buffer.to_vec().unwrap(), [8; 4]);
}

#[test]
fn everything_that_submits_or_blocks_is_refused_in_a_waker() {
    struct Trying {
        queue: Queue,
        pending: Event,
        buffer: Buffer<i32, 1>,
        results: Refusals,
        done: Gate,
    }
    impl std::task::Wake for Trying {
        fn wake(self: Arc<Self>) {
            try_everything(&self.queue, &self.pending, &self.buffer, &self.results);
            self.done.open();
        }
    }
    static GATE: Gate = Gate::new();
    static BLOCK: Gate = Gate::new();
    let _watchdog = watchdog();
    let queue = Queue::default().unwrap();
    let pending = queue.submit(|cg| cg.host_task(|_| BLOCK.pass())).unwrap();
    let mut event = queue.submit(|cg| cg.host_task(|_| GATE.pass())).unwrap();
    let (results, done) = (Mutex::default(), Gate::new());
    let trying = Arc::new(Trying { queue: queue.clone(), pending: pending.clone(), buffer: filled(4), results, done });
    let waker = trying.clone().into();
    let polled = std::pin::Pin::new(&mut event).poll(&mut std::task::Context::from_waker(&waker));
    assert!(polled.is_pending());
    GATE.open();
    trying.done.pass();
    for (what, result) in std::mem::take(&mut *trying.results.lock().unwrap()) {
        let inside: &[&str] = if what == "into_vec" { &[] } else { &["inside a waker"] };
        let Err(error) = result else { panic!("{what} was accepted in a waker") };
        support::assert_error(&error, ErrorCode::Invalid, inside);
    }
    BLOCK.open();
    pending.wait().unwrap();
    queue.wait().unwrap();
}

#[test]
fn a_command_group_may_submit_and_wait_while_it_is_being_recorded() {
    let _watchdog = watchdog();
    let device = Device::default().unwrap();
    for queue in [Queue::new(&device).unwrap(), in_order(&device)] {
        let (buffer, other) = (filled(4), filled(4));
        let event = queue.submit(|cg| {
            let data = cg.access(&buffer, ReadWrite);
            add_one(&queue, &other).wait()?;
            queue.wait()?;
            let n = other.host_access(Read)?[0];
            cg.parallel_for(4, move |item| data.update(item, |x| x + n))
        });
        event.unwrap().wait().unwrap();
        assert_eq!((buffer.into_vec().unwrap(), other.into_vec().unwrap()), (vec![15; 4], vec![8; 4]));
    }
}
