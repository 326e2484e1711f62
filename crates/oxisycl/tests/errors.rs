//! Asynchronous errors: who gets them, when, and that each arrives once.

mod support;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use oxisycl::prelude::*;

use support::{Gate, assert_error, collecting, eventually, in_order, refused, root_says, scaled, simulated, watchdog};

type List = Arc<Mutex<Vec<Error>>>;

fn len(errors: &List) -> usize {
    errors.lock().unwrap().len()
}

/// A context whose handler fills the list.
fn collecting_context(device: &Device) -> (Context, List) {
    let errors = List::default();
    let list = errors.clone();
    let context = Context::with_handler(std::slice::from_ref(device), move |delivered| {
        list.lock().unwrap().extend(delivered);
    });
    (context.unwrap(), errors)
}

#[test]
fn each_error_is_delivered_once() {
    let _watchdog = watchdog();
    let (devices, _control) = simulated(1);
    for device in [Device::default().unwrap(), devices[0].clone()] {
        let (queue, errors) = collecting(&device);
        for message in ["a", "b"] {
            queue.submit(|cg| cg.host_task(move |_| panic!("{message}"))).unwrap().wait().unwrap_err();
        }
        assert_eq!(len(&errors), 0, "a wait does not call the handler");
        queue.throw_asynchronous();
        assert_eq!(len(&errors), 2);
        queue.throw_asynchronous();
        queue.wait_and_throw().unwrap();
        queue.wait().unwrap();
        assert!(queue.take_errors().is_empty());
        drop(queue);
        std::thread::sleep(std::time::Duration::from_millis(20));
        let errors = errors.lock().unwrap();
        assert_eq!(errors.len(), 2);
        assert_error(&errors[0], ErrorCode::Kernel, &["panicked at", ": a"]);
        assert_error(&errors[1], ErrorCode::Kernel, &["panicked at", ": b"]);
    }
}

#[test]
fn wait_and_throw_waits_and_delivers() {
    static GATE: Gate = Gate::new();
    let _watchdog = watchdog();
    let (queue, errors) = collecting(&Device::default().unwrap());
    let failing = |queue: &Queue| {
        let task = queue.submit(|cg| {
            cg.host_task(|_| {
                GATE.pass();
                panic!("late")
            })
        });
        task.unwrap()
    };
    let event = failing(&queue);
    queue.throw_asynchronous();
    assert_eq!(len(&errors), 0, "nothing has failed yet");
    GATE.open();
    refused(event.wait_and_throw(), ErrorCode::Kernel, &["late"]);
    assert_eq!(len(&errors), 1);
    failing(&queue);
    refused(queue.wait_and_throw(), ErrorCode::Kernel, &["late"]);
    assert_eq!(len(&errors), 2);
    event.wait_and_throw().unwrap_err();
    assert_eq!(len(&errors), 2, "the event's own error comes again, the handler's does not");
}

#[test]
fn wait_and_throw_of_an_event_also_delivers_the_errors_of_its_dependencies() {
    static GATE: Gate = Gate::new();
    let _watchdog = watchdog();
    let (queue, errors) = collecting(&Device::default().unwrap());
    let root = queue.submit(|cg| {
        cg.host_task(|_| {
            GATE.pass();
            panic!("root")
        })
    });
    let root = root.unwrap();
    let dependent = queue.submit(|cg| {
        cg.name("dependent");
        cg.depends_on(&root);
        cg.single_task(|_| {})
    });
    let dependent = dependent.unwrap();
    GATE.open();
    let error = refused(dependent.wait_and_throw(), ErrorCode::Kernel, &["kernel \"dependent\"", "did not run"]);
    assert!(root_says(&error, "root"));
    let errors = errors.lock().unwrap();
    assert_eq!(errors.len(), 2);
    assert_error(&errors[0], ErrorCode::Kernel, &["host task", "root"]);
    assert_error(&errors[1], ErrorCode::Kernel, &["kernel \"dependent\"", "root"]);
}

#[test]
fn a_queue_handler_goes_before_a_context_handler() {
    let _watchdog = watchdog();
    let device = Device::default().unwrap();
    let (context, of_context) = collecting_context(&device);
    let of_queue = List::default();
    let list = of_queue.clone();
    let with_handler = Queue::builder()
        .context(&context)
        .handler(move |delivered| list.lock().unwrap().extend(delivered))
        .build()
        .unwrap();
    let without = Queue::builder().context(&context).build().unwrap();
    with_handler.single_task(|_| panic!("for the queue")).unwrap();
    with_handler.wait_and_throw().unwrap_err();
    assert_eq!((len(&of_queue), len(&of_context)), (1, 0));
    without.single_task(|_| panic!("for the context")).unwrap();
    without.wait_and_throw().unwrap_err();
    assert_eq!((len(&of_queue), len(&of_context)), (1, 1));
    assert_error(&of_context.lock().unwrap()[0], ErrorCode::Kernel, &["for the context"]);
}

#[test]
fn without_a_handler_a_wait_tells_the_error_once() {
    let _watchdog = watchdog();
    let queue = Queue::default().unwrap();
    queue.single_task(|_| panic!("untold")).unwrap();
    refused(queue.wait(), ErrorCode::Kernel, &["untold"]);
    queue.wait().unwrap();
    assert!(queue.take_errors().is_empty());
}

#[test]
fn taken_errors_come_in_order_and_do_not_go_to_the_handler() {
    let _watchdog = watchdog();
    let (queue, errors) = collecting(&Device::default().unwrap());
    let texts = ["first", "second", "third"];
    for text in texts {
        queue.submit(|cg| cg.host_task(move |_| panic!("{text}"))).unwrap().wait().unwrap_err();
    }
    let taken = queue.take_errors();
    assert_eq!(taken.len(), 3);
    for (error, text) in taken.iter().zip(texts) {
        assert_error(error, ErrorCode::Kernel, &[text]);
    }
    queue.wait_and_throw().unwrap();
    assert_eq!(len(&errors), 0);
}

#[test]
fn errors_reach_the_handler_after_the_queue_is_dropped() {
    static GATE: Gate = Gate::new();
    let _watchdog = watchdog();
    let device = Device::default().unwrap();
    // Failed before the drop, and after it.
    let (queue, before) = collecting(&device);
    let event = queue.single_task(|_| panic!("before")).unwrap();
    event.wait().unwrap_err();
    drop(queue);
    eventually("the error before the drop is delivered", || len(&before) == 1);
    let (queue, after) = collecting(&device);
    let (context, of_context) = collecting_context(&device);
    let contextual = Queue::builder().context(&context).build().unwrap();
    for queue in [queue, contextual] {
        let task = queue.submit(|cg| {
            cg.host_task(|_| {
                GATE.pass();
                panic!("after")
            })
        });
        drop((queue, task));
    }
    drop(context);
    GATE.open();
    eventually("the errors after the drop are delivered", || len(&after) == 1 && len(&of_context) == 1);
    assert_error(&after.lock().unwrap()[0], ErrorCode::Kernel, &["after"]);
}

#[test]
fn no_error_is_lost_when_queues_are_dropped_while_their_commands_fail() {
    const N_QUEUES: usize = scaled(300);
    let _watchdog = watchdog();
    let (devices, _control) = simulated(1);
    let device = Device::default().unwrap();
    let n_errors = Arc::new(AtomicUsize::new(0));
    for i in 0..N_QUEUES {
        let count = n_errors.clone();
        let queue = Queue::builder()
            .device(if i % 3 == 0 { &devices[0] } else { &device })
            .handler(move |errors| _ = count.fetch_add(errors.len(), Ordering::SeqCst))
            .build()
            .unwrap();
        if i % 3 == 1 {
            queue.submit(|cg| cg.host_task(|_| panic!("task"))).unwrap();
        } else {
            queue.single_task(|_| panic!("kernel")).unwrap();
        }
    }
    eventually("every error arrives", || n_errors.load(Ordering::SeqCst) == N_QUEUES);
}

#[test]
fn an_event_of_a_failed_command_cannot_be_a_dependency() {
    static RAN: AtomicUsize = AtomicUsize::new(0);
    let _watchdog = watchdog();
    let device = Device::default().unwrap();
    let (queue, errors) = collecting(&device);
    let other = in_order(&device);
    let failed = queue.single_task(|_| panic!("known")).unwrap();
    failed.wait().unwrap_err();
    for queue in [&queue, &other] {
        let submitted = queue.submit(|cg| {
            cg.depends_on(&failed);
            cg.single_task(|_| _ = RAN.fetch_add(1, Ordering::SeqCst))
        });
        let error = refused(submitted, ErrorCode::Event, &["depends on an event whose command failed"]);
        assert!(root_says(&error, "known"));
        queue.wait().unwrap();
    }
    assert_eq!(RAN.load(Ordering::SeqCst), 0);
    queue.throw_asynchronous();
    assert_eq!(len(&errors), 1);
}

#[test]
fn what_depends_on_a_command_that_fails_later_does_not_run_and_says_why() {
    static GATE: Gate = Gate::new();
    static RAN: AtomicUsize = AtomicUsize::new(0);
    let _watchdog = watchdog();
    let (devices, _control) = simulated(1);
    let host = Device::default().unwrap();
    let (queue, errors) = collecting(&host);
    let cause = queue.submit(|cg| {
        cg.host_task(|_| {
            GATE.pass();
            panic!("the cause")
        })
    });
    let mut last = cause.unwrap();
    let mut dependents = Vec::new();
    for device in [&host, &devices[0], &host] {
        let queue = Queue::new(device).unwrap();
        let next = queue.submit(|cg| {
            cg.depends_on(&last);
            cg.single_task(|_| _ = RAN.fetch_add(1, Ordering::SeqCst))
        });
        last = next.unwrap();
        let task = queue.submit(|cg| {
            cg.depends_on(&last);
            cg.host_task(|_| _ = RAN.fetch_add(1, Ordering::SeqCst))
        });
        dependents.extend([last.clone(), task.unwrap()]);
    }
    let unrelated = queue.single_task(|_| {}).unwrap();
    GATE.open();
    for dependent in &dependents {
        let error =
            refused(dependent.wait(), ErrorCode::Kernel, &["did not run because a command it depends on failed"]);
        assert!(root_says(&error, "the cause"), "{error:?}");
    }
    unrelated.wait().unwrap();
    assert_eq!(RAN.load(Ordering::SeqCst), 0);
    queue.throw_asynchronous();
    assert_eq!(len(&errors), 1);
}

#[test]
fn many_dependents_of_one_failure_are_summed_up() {
    static GATE: Gate = Gate::new();
    let _watchdog = watchdog();
    let (queue, errors) = collecting(&Device::default().unwrap());
    let cause = queue.submit(|cg| {
        cg.host_task(|_| {
            GATE.pass();
            panic!("the cause")
        })
    });
    let cause = cause.unwrap();
    for _ in 0..2000 {
        let dependent = queue.submit(|cg| {
            cg.depends_on(&cause);
            cg.single_task(|_| {})
        });
        dependent.unwrap();
    }
    GATE.open();
    queue.wait_and_throw().unwrap_err();
    let errors = errors.lock().unwrap();
    assert!(errors.len() < 500, "{} errors", errors.len());
    let n_told = errors.len() - 2;
    let rest = format!("{} more commands did not run", 2000 - n_told);
    assert!(errors.last().unwrap().to_string().contains(&rest), "{:?} of {}", errors.last(), errors.len());
}

#[test]
fn a_handler_may_use_the_queue() {
    static RAN: AtomicUsize = AtomicUsize::new(0);
    let _watchdog = watchdog();
    let device = Device::default().unwrap();
    let other = Queue::new(&device).unwrap();
    let inside = other.clone();
    let queue = Queue::builder()
        .device(&device)
        .handler(move |_| {
            inside.single_task(|_| _ = RAN.fetch_add(1, Ordering::SeqCst)).unwrap().wait().unwrap();
        })
        .build()
        .unwrap();
    queue.single_task(|_| panic!("one")).unwrap();
    queue.wait_and_throw().unwrap_err();
    assert_eq!(RAN.load(Ordering::SeqCst), 1);
    queue.single_task(|_| panic!("two")).unwrap();
    drop(queue);
    eventually("the handler has run a kernel", || RAN.load(Ordering::SeqCst) == 2);
    other.wait().unwrap();
}

#[test]
fn errors_are_cheap_to_share_and_name_their_causes() {
    let cause = Error::invalid("deep");
    let error = Error::with_source(ErrorCode::Runtime, "shallow", cause);
    assert_eq!(error.to_string(), "shallow");
    assert_eq!(format!("{:?}", error.clone()), "runtime error: shallow: caused by: deep");
    let shared: Box<dyn std::error::Error + Send + Sync> = error.into();
    assert!(shared.source().is_some());
}
