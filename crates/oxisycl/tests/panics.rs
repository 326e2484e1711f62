//! Panics in code of the user that the runtime calls: each becomes an error or stays with its thread, and everything goes on.

mod support;

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::task::{Context, RawWaker, RawWakerVTable, Wake, Waker};

use oxisycl::FinalData;
use oxisycl::prelude::*;

use support::{Gate, block_on, collecting, eventually, in_order, refused, scaled, simulated, watchdog};

fn filled(n_elements: usize) -> Buffer<i32, 1> {
    Buffer::from_vec(vec![7; n_elements]).unwrap()
}

/// The queue runs kernels, host tasks and copies as if nothing had happened.
#[track_caller]
fn assert_usable(queue: &Queue) {
    let buffer = filled(1000);
    let submitted = queue.submit(|cg| {
        let data = cg.access(&buffer, ReadWrite);
        cg.parallel_for(1000, move |item| data.update(item, |x| x + 1))
    });
    submitted.unwrap().wait().unwrap();
    let submitted = queue.submit(|cg| {
        let mut data = cg.access_host(&buffer, ReadWrite);
        cg.host_task(move |scope| data.slice_mut(scope)[0] = 0)
    });
    submitted.unwrap().wait().unwrap();
    let data = buffer.into_vec().unwrap();
    assert_eq!((data[0], data[1..].iter().sum::<i32>()), (0, 999 * 8));
}

#[test]
fn a_panicking_kernel_is_an_error_with_kernel_device_item_place_and_message() {
    let _watchdog = watchdog();
    let (devices, _control) = simulated(1);
    for device in [Device::default().unwrap(), devices[0].clone()] {
        let (queue, errors) = collecting(&device);
        let submitted = queue.submit(|cg| {
            cg.name("picky");
            cg.parallel_for([4, 5], |item| assert!(item.id() != oxisycl::Id::from([2, 3]), "no {:?}", item.id()))
        });
        let event = submitted.unwrap();
        let parts = ["kernel \"picky\"", device.name(), "work-item [2, 3]", "panics.rs:", "no [2, 3]"];
        refused(event.wait(), ErrorCode::Kernel, &parts);
        // The program knows it now; the handler has yet to be told.
        queue.wait().unwrap();
        assert!(errors.lock().unwrap().is_empty(), "a wait does not call the handler");
        queue.throw_asynchronous();
        assert_eq!(errors.lock().unwrap().len(), 1);
        support::assert_error(&errors.lock().unwrap()[0], ErrorCode::Kernel, &parts);
        assert_usable(&queue);
    }
}

#[test]
fn many_panicking_kernels_leave_the_pool_usable() {
    let _watchdog = watchdog();
    let (queue, errors) = collecting(&Device::default().unwrap());
    for _ in 0..scaled(50) {
        queue.parallel_for(1000, |item| assert!(item.index() % 100 != 50)).unwrap();
        queue.single_task(|_| {}).unwrap();
    }
    assert!(queue.wait_and_throw().is_err());
    assert_eq!(errors.lock().unwrap().len(), scaled(50));
    assert_usable(&queue);
}

#[test]
fn a_panicking_kernel_leaves_every_element_old_or_new() {
    const N: usize = scaled(10_000);
    let _watchdog = watchdog();
    let queue = Queue::default().unwrap();
    let buffer = filled(N);
    let data = buffer.clone();
    let event = queue.submit(|cg| {
        let data = cg.access(&data, ReadWrite);
        cg.parallel_for(N, move |item| {
            assert!(item.index() != N / 2, "halfway");
            data.set(item, 8);
        })
    });
    refused(event.unwrap().wait(), ErrorCode::Kernel, &["halfway"]);
    refused(buffer.to_vec(), ErrorCode::Kernel, &["halfway"]);
    let address = buffer.usm_pointer(queue.device()).unwrap();
    // SAFETY: the allocation lives as long as the buffer, no command uses it, and every bit pattern is a value.
    let seen = unsafe { std::slice::from_raw_parts(address, N) };
    assert!(seen.iter().all(|&x| x == 7 || x == 8));
}

#[test]
fn a_panic_in_the_submit_closure_reaches_the_caller_and_nothing_is_enqueued() {
    static RUNS: AtomicUsize = AtomicUsize::new(0);
    let _watchdog = watchdog();
    let device = Device::default().unwrap();
    for queue in [Queue::new(&device).unwrap(), in_order(&device)] {
        let buffer = filled(4);
        let caught = catch_unwind(AssertUnwindSafe(|| {
            queue.submit(|cg| -> oxisycl::Result {
                let data = cg.access(&buffer, ReadWrite);
                cg.parallel_for(4, move |item| {
                    RUNS.fetch_add(1, Ordering::SeqCst);
                    data.set(item, 0);
                })?;
                panic!("in the closure")
            })
        }));
        let payload = caught.unwrap_err();
        assert_eq!(payload.downcast_ref(), Some(&"in the closure"));
        queue.wait().unwrap();
        assert!(queue.take_errors().is_empty());
        assert_eq!(buffer.into_vec().unwrap(), [7; 4], "the buffer is not held by what was given up");
        assert_usable(&queue);
    }
    assert_eq!(RUNS.load(Ordering::SeqCst), 0);
}

/// A panic payload whose destructor panics.
struct Explosive;

impl Drop for Explosive {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            panic!("explosive");
        }
    }
}

#[test]
fn a_panic_in_a_host_task_is_an_asynchronous_error() {
    let _watchdog = watchdog();
    let device = Device::default().unwrap();
    let (queue, errors) = collecting(&device);
    let formatted = queue.submit(|cg| cg.host_task(|_| panic!("number {}", 5)));
    refused(formatted.unwrap().wait(), ErrorCode::Kernel, &["host task", device.name(), "number 5"]);
    let strange = queue.submit(|cg| cg.host_task(|_| std::panic::panic_any(5u8)));
    refused(strange.unwrap().wait(), ErrorCode::Kernel, &["unknown type"]);
    let explosive = queue.submit(|cg| cg.host_task(|_| std::panic::panic_any(Explosive)));
    refused(explosive.unwrap().wait(), ErrorCode::Kernel, &["unknown type"]);
    let captured = Explosive;
    let drops = queue.submit(|cg| cg.host_task(move |_| drop(captured)));
    refused(drops.unwrap().wait(), ErrorCode::Kernel, &["explosive"]);
    queue.throw_asynchronous();
    assert_eq!(errors.lock().unwrap().len(), 4);
    assert_usable(&queue);
}

/// A line of this file, as messages name places in it.
fn place(line: u32) -> String {
    format!("{}:{line}:", file!())
}

#[test]
fn a_panic_in_a_host_task_tells_its_name_and_both_places() {
    let _watchdog = watchdog();
    let (simulated, _control) = simulated(1);
    for device in [Device::default().unwrap(), simulated[0].clone()] {
        let queue = Queue::new(&device).unwrap();
        let named = queue.submit(|cg| {
            cg.name("writer");
            cg.host_task(|_| panic!("full"))
        });
        let line = place(line!() - 2);
        let parts = [&format!("host task \"writer\" ({line}"), device.name(), &format!("panicked at {line}"), ": full"];
        refused(named.unwrap().wait(), ErrorCode::Kernel, &parts);
        let unnamed = queue.submit(|cg| cg.host_task(|_| _ = [0; 2][std::hint::black_box(2)]));
        let line = place(line!() - 1);
        let parts = [&format!("host task ({line}"), &format!("panicked at {line}"), "out of bounds"];
        refused(unnamed.unwrap().wait(), ErrorCode::Kernel, &parts);
        // The place is that of the panic which ended the task: one that was caught, or a kernel's, is not.
        let other = queue.clone();
        let twice = queue.submit(|cg| {
            cg.host_task(move |_| {
                std::panic::catch_unwind(|| panic!("caught")).unwrap_err();
                other.single_task(|_| panic!("in a kernel")).unwrap().wait().unwrap_err();
                panic!("at last")
            })
        });
        let line = place(line!() - 3);
        refused(twice.unwrap().wait(), ErrorCode::Kernel, &[&format!("panicked at {line}"), "at last"]);
        let caught = queue.submit(|cg| cg.host_task(|_| drop(std::panic::catch_unwind(|| panic!("caught")))));
        caught.unwrap().wait().unwrap();
    }
}

#[test]
fn what_did_not_run_is_named_with_the_place_where_it_was_submitted() {
    static GATES: [Gate; 3] = [Gate::new(), Gate::new(), Gate::new()];
    let _watchdog = watchdog();
    let (simulated, _control) = simulated(2);
    let host = Device::default().unwrap();
    // One backend, a host task in between, and two contexts.
    let pairs = [(&simulated[0], &simulated[1]), (&host, &host), (&host, &simulated[0])];
    for (gate, (first, second)) in GATES.iter().zip(pairs) {
        let (first, second) = (Queue::new(first).unwrap(), Queue::new(second).unwrap());
        let failing = first.submit(|cg| {
            cg.host_task(|_| {
                gate.pass();
                panic!("first")
            })
        });
        let failing = failing.unwrap();
        let kernel = second.submit(|cg| {
            cg.depends_on(&failing);
            cg.name("after");
            cg.parallel_for(4, |_| {})
        });
        let kernel = (kernel.unwrap(), format!("kernel \"after\" ({}", place(line!() - 2)));
        let task = second.submit(|cg| {
            cg.depends_on(&failing);
            cg.name("also after");
            cg.host_task(|_| {})
        });
        let task = (task.unwrap(), format!("host task \"also after\" ({}", place(line!() - 2)));
        let last = second.submit(|cg| {
            cg.depends_on(&kernel.0);
            cg.single_task(|_| {})
        });
        let name = "what_did_not_run_is_named_with_the_place_where_it_was_submitted";
        let last = (last.unwrap(), format!("{name}\" ({}", place(line!() - 3)));
        gate.open();
        for (event, what) in [kernel, task, last] {
            refused(event.wait(), ErrorCode::Kernel, &[&what, second.device().name(), "did not run", "first"]);
        }
    }
}

#[test]
fn captures_of_a_host_task_that_never_ran_may_panic_when_they_are_dropped() {
    static GATES: [Gate; 2] = [Gate::new(), Gate::new()];
    let _watchdog = watchdog();
    let device = Device::default().unwrap();
    for (gate, failing_is_a_kernel) in GATES.iter().zip([true, false]) {
        let (queue, errors) = collecting(&device);
        let failing = if failing_is_a_kernel {
            let failing = queue.single_task(move |_| {
                gate.pass();
                panic!("first");
            });
            gate.wait_entered();
            failing
        } else {
            queue.submit(|cg| {
                cg.host_task(move |_| {
                    gate.pass();
                    panic!("first");
                })
            })
        };
        let failing = failing.unwrap();
        let after = |captured: Explosive| {
            let task = queue.submit(|cg| {
                cg.depends_on(&failing);
                cg.host_task(move |_| std::mem::forget(captured))
            });
            task.unwrap()
        };
        let dependents = [after(Explosive), after(Explosive)];
        gate.open();
        for dependent in dependents {
            let error = refused(dependent.wait(), ErrorCode::Kernel, &["host task", "did not run", "first"]);
            assert!(support::root_says(&error, "first"));
        }
        queue.wait_and_throw().unwrap_err();
        assert_eq!(errors.lock().unwrap().len(), 3);
        for _ in 0..scaled(10) {
            assert_usable(&queue);
        }
    }
}

#[test]
fn host_memory_that_panics_when_it_is_dropped_does_not_stop_the_command() {
    struct Memory(Vec<i32>, Explosive);
    // SAFETY: as for `Vec`.
    unsafe impl oxisycl::HostMemory<i32> for Memory {
        fn pointer(&self) -> *const i32 {
            self.0.as_ptr()
        }
        fn len(&self) -> usize {
            self.0.len()
        }
    }
    let _watchdog = watchdog();
    let queue = Queue::default().unwrap();
    let buffer = filled(4);
    let copy = queue.copy_from_host(Memory(vec![1, 2, 3, 4], Explosive), &buffer).unwrap();
    let event = copy.event().clone();
    // Nobody wants the memory back, so that it ends with the command; or with the result, if the command is faster.
    let _ = catch_unwind(AssertUnwindSafe(|| drop(copy)));
    event.wait().unwrap();
    assert_eq!(buffer.into_vec().unwrap(), [1, 2, 3, 4]);
    assert_usable(&queue);
}

#[test]
fn a_panic_in_the_asynchronous_handler_hides_no_later_error() {
    let _watchdog = watchdog();
    let calls = Arc::new(AtomicUsize::new(0));
    let seen = calls.clone();
    let queue = Queue::builder()
        .handler(move |errors| {
            seen.fetch_add(errors.len(), Ordering::SeqCst);
            if errors.len() == 1 {
                panic!("handler");
            }
            std::panic::panic_any(Explosive);
        })
        .build()
        .unwrap();
    queue.single_task(|_| panic!("one")).unwrap();
    refused(queue.wait_and_throw(), ErrorCode::Kernel, &["one"]);
    for _ in 0..2 {
        queue.single_task(|_| panic!("two")).unwrap();
    }
    queue.wait().unwrap_err();
    queue.throw_asynchronous();
    assert_eq!(calls.load(Ordering::SeqCst), 3);
    assert_usable(&queue);
    // Also on a thread of the runtime, after the queue is gone.
    queue.single_task(|_| panic!("three")).unwrap();
    drop(queue);
    eventually("the handler is called", || calls.load(Ordering::SeqCst) == 4);
    assert_usable(&Queue::default().unwrap());
}

struct Panics;

impl Wake for Panics {
    fn wake(self: Arc<Self>) {
        panic!("waker");
    }
}

#[test]
fn a_panicking_waker_does_not_keep_others_from_being_woken() {
    let _watchdog = watchdog();
    let device = Device::default().unwrap();
    for is_kernel in [true, false] {
        // One for each round: behind an open gate the event could be complete before it is polled, which wakes the waker here.
        static GATES: [Gate; 2] = [Gate::new(), Gate::new()];
        let gate = &GATES[usize::from(is_kernel)];
        let queue = Queue::new(&device).unwrap();
        let event = if is_kernel {
            let event = queue.single_task(move |_| gate.pass()).unwrap();
            gate.wait_entered();
            event
        } else {
            queue.submit(|cg| cg.host_task(move |_| gate.pass())).unwrap()
        };
        let waker = Waker::from(Arc::new(Panics));
        let mut polled = event.clone();
        let _ = Pin::new(&mut polled).poll(&mut Context::from_waker(&waker));
        let waiting = std::thread::spawn({
            let event = event.clone();
            move || block_on(event)
        });
        let blocked = queue.submit(|cg| {
            cg.depends_on(&event);
            cg.host_task(|_| {})
        });
        gate.open();
        waiting.join().unwrap().unwrap();
        blocked.unwrap().wait().unwrap();
        for _ in 0..scaled(10) {
            assert_usable(&queue);
        }
    }
}

static CURIOUS: Mutex<Option<Event>> = Mutex::new(None);

/// Looks at the event from every function of a waker.
fn look() {
    if let Some(event) = &*CURIOUS.lock().unwrap() {
        let _ = (event.status(), event.is_complete(), event.dependencies(), event.clone());
    }
}

static CURIOUS_TABLE: RawWakerVTable = RawWakerVTable::new(
    |pointer| {
        look();
        RawWaker::new(pointer, &CURIOUS_TABLE)
    },
    |_| look(),
    |_| look(),
    |_| look(),
);

#[test]
fn wakers_may_look_at_the_event_while_they_are_cloned_called_and_dropped() {
    static GATE: Gate = Gate::new();
    let _watchdog = watchdog();
    let queue = Queue::default().unwrap();
    let event = queue.submit(|cg| cg.host_task(|_| GATE.pass())).unwrap();
    *CURIOUS.lock().unwrap() = Some(event.clone());
    // SAFETY: the table's functions do not use the pointer.
    let waker = unsafe { Waker::from_raw(RawWaker::new(std::ptr::null(), &CURIOUS_TABLE)) };
    let mut polled = event.clone();
    for _ in 0..2 {
        assert!(Pin::new(&mut polled).poll(&mut Context::from_waker(&waker)).is_pending());
    }
    GATE.open();
    event.wait().unwrap();
    drop(waker);
    queue.wait().unwrap();
    assert_usable(&queue);
}

#[test]
fn a_panic_in_the_destination_of_a_buffer_reaches_whoever_drops_it() {
    let _watchdog = watchdog();
    let queue = Queue::default().unwrap();
    let buffer = filled(4);
    let (told, hear) = channel();
    buffer.set_final_data(FinalData::call(move |data| {
        told.send(data.unwrap()).unwrap();
        panic!("destination");
    }));
    queue.fill(&buffer, 3).unwrap();
    let caught = catch_unwind(AssertUnwindSafe(|| drop(buffer)));
    assert_eq!(caught.unwrap_err().downcast_ref(), Some(&"destination"));
    assert_eq!(hear.recv().unwrap(), [3; 4]);
    assert_usable(&queue);
}
