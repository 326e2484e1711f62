//! Events: status, waits, futures, profiling times, dependencies.

mod support;

use std::time::Duration;

use oxisycl::EventStatus;
use oxisycl::operator::Sum;
use oxisycl::prelude::*;

use support::{Gate, add_one, block_on, filled, refused, scaled, simulated, watchdog};

#[test]
fn a_default_event_is_complete_without_dependencies() {
    let event = Event::default();
    assert_eq!(event.status(), EventStatus::Complete);
    assert!(event.is_complete() && event.dependencies().is_empty() && !event.is_host_task());
    event.wait().unwrap();
    event.wait_and_throw().unwrap();
    block_on(event.clone()).unwrap();
    assert_eq!(event, Event::default());
    let queue = Queue::default().unwrap();
    let after = queue.submit(|cg| {
        cg.depends_on(&event);
        cg.single_task(|_| {})
    });
    after.unwrap().wait().unwrap();
}

#[test]
fn the_status_goes_from_submitted_over_running_to_complete() {
    static GATE: Gate = Gate::new();
    let _watchdog = watchdog();
    let (devices, control) = simulated(1);
    control.pause(0);
    let event = Queue::new(&devices[0]).unwrap().single_task(|_| GATE.pass()).unwrap();
    assert_eq!(event.status(), EventStatus::Submitted);
    control.resume(0);
    GATE.wait_entered();
    assert_eq!(event.status(), EventStatus::Running);
    assert!(!event.is_complete());
    GATE.open();
    event.wait().unwrap();
    assert_eq!(event.status(), EventStatus::Complete);
}

#[test]
fn a_host_task_and_what_waits_for_it_have_a_status_and_dependencies() {
    static GATE: Gate = Gate::new();
    let _watchdog = watchdog();
    let queue = Queue::default().unwrap();
    let task = queue.submit(|cg| cg.host_task(|_| GATE.pass())).unwrap();
    let kernel = queue.submit(|cg| {
        cg.depends_on(&task);
        cg.single_task(|_| {})
    });
    let kernel = kernel.unwrap();
    GATE.wait_entered();
    assert_eq!((task.status(), kernel.status()), (EventStatus::Running, EventStatus::Submitted));
    assert!(task.is_host_task() && !kernel.is_host_task());
    assert_eq!(kernel.dependencies(), std::slice::from_ref(&task));
    GATE.open();
    kernel.wait().unwrap();
    assert_eq!((task.status(), kernel.status()), (EventStatus::Complete, EventStatus::Complete));
    assert!(kernel.dependencies().is_empty());
}

#[test]
fn seeing_a_command_complete_shows_its_writes() {
    let _watchdog = watchdog();
    let queue = Queue::default().unwrap();
    for _ in 0..scaled(200) {
        let buffer = filled(16);
        let event = add_one(&queue, &buffer);
        let address = buffer.usm_pointer(queue.device()).unwrap();
        while event.status() != EventStatus::Complete {
            std::hint::spin_loop();
        }
        // SAFETY: the only command that uses the buffer has ended.
        let seen = unsafe { std::slice::from_raw_parts(address, 16) };
        assert_eq!(seen, [8; 16]);
        event.wait().unwrap();
    }
}

#[test]
fn wait_all_waits_for_every_event_and_returns_the_first_error() {
    static GATE: Gate = Gate::new();
    let _watchdog = watchdog();
    let queue = Queue::default().unwrap();
    let slow = queue.submit(|cg| cg.host_task(|_| GATE.pass())).unwrap();
    let events = [
        queue.single_task(|_| {}).unwrap(),
        queue.single_task(|_| panic!("first")).unwrap(),
        slow.clone(),
        queue.single_task(|_| panic!("second")).unwrap(),
        Event::default(),
    ];
    let opener = std::thread::spawn(|| {
        std::thread::sleep(Duration::from_millis(20));
        GATE.open();
    });
    refused(Event::wait_all(&events), ErrorCode::Kernel, &["first"]);
    assert!(slow.is_complete());
    opener.join().unwrap();
    Event::wait_all([]).unwrap();
}

#[test]
fn an_event_is_a_future() {
    static GATE: Gate = Gate::new();
    let _watchdog = watchdog();
    let (devices, _control) = simulated(1);
    for device in [Device::default().unwrap(), devices[0].clone()] {
        let queue = Queue::new(&device).unwrap();
        let buffer = filled(100);
        block_on(async {
            add_one(&queue, &buffer).await?;
            let task = queue.submit(|cg| {
                let mut data = cg.access_host(&buffer, ReadWrite);
                cg.host_task(move |scope| data.slice_mut(scope)[0] = 0)
            });
            task?.await?;
            let back = queue.copy_to_host(&buffer, vec![0; 100])?.await?;
            assert_eq!((back[0], back[99]), (0, 8));
            let memory = queue.copy_from_host(back, &buffer)?.await?;
            assert_eq!(memory.len(), 100);
            Ok::<(), Error>(())
        })
        .unwrap();
        let failing = block_on(queue.single_task(|_| panic!("awaited")).unwrap());
        refused(failing, ErrorCode::Kernel, &["awaited"]);
    }
    // Woken although nobody else waits.
    let queue = Queue::default().unwrap();
    let slow = queue.submit(|cg| cg.host_task(|_| GATE.pass())).unwrap();
    let waiting = std::thread::spawn(move || block_on(slow));
    GATE.wait_entered();
    GATE.open();
    waiting.join().unwrap().unwrap();
}

#[test]
fn an_unfinished_host_copy_keeps_its_memory_and_gives_it_back_once() {
    let _watchdog = watchdog();
    let (devices, control) = simulated(1);
    let queue = Queue::new(&devices[0]).unwrap();
    let buffer = filled(3);
    control.pause(0);
    let (event, slot) = queue
        .submit_with(|cg| {
            let source = cg.access(&buffer, Read);
            cg.copy_to_host(source, vec![0; 3])
        })
        .unwrap();
    assert!(slot.take().is_none(), "the command uses it");
    control.resume(0);
    event.wait().unwrap();
    assert_eq!(slot.take(), Some(vec![7; 3]));
    assert!(slot.take().is_none());
}

#[test]
fn profiling_times_are_ordered() {
    static GATE: Gate = Gate::new();
    let _watchdog = watchdog();
    let (devices, _control) = simulated(1);
    for device in [Device::default().unwrap(), devices[0].clone()] {
        let queue = Queue::builder().device(&device).in_order().profiling().build().unwrap();
        assert!(queue.has_profiling() && queue.is_in_order());
        let buffer = filled(1000);
        let events = [
            add_one(&queue, &buffer),
            queue.fill(&buffer, 3).unwrap(),
            queue.copy(&buffer, &filled(1000)).unwrap(),
            queue.submit(|cg| cg.host_task(|_| std::thread::sleep(Duration::from_millis(2)))).unwrap(),
            queue.single_task(|_| {}).unwrap(),
            queue.parallel_for(0, |_| {}).unwrap(),
            queue.submit_barrier([]).unwrap(),
        ];
        let profiles: Vec<_> = events.iter().map(|event| event.profile().unwrap()).collect();
        for (i, profile) in profiles.iter().enumerate() {
            assert!(profile.submitted <= profile.start && profile.start <= profile.end, "command {i}: {profile:?}");
        }
        assert!(profiles.windows(2).all(|pair| pair[0].end <= pair[1].start), "{profiles:?}");
        assert!(profiles[3].end - profiles[3].start >= 1_900_000, "nanoseconds: {:?}", profiles[3]);
        let failed = queue.single_task(|_| panic!("profiled")).unwrap();
        let profile = failed.profile().unwrap();
        assert!(profile.start <= profile.end);
        refused(failed.wait(), ErrorCode::Kernel, &["profiled"]);
        let blocked = queue.submit(|cg| cg.host_task(|_| GATE.pass())).unwrap();
        GATE.open();
        assert!(blocked.profile().is_ok(), "waits for the command");
    }
}

#[test]
fn the_times_of_a_command_are_those_of_all_its_launches() {
    // The tiles of 4096 elements are more than a second launch leaves.
    const N: usize = 4096 * 64 + 1;
    const PAUSE: Duration = Duration::from_millis(3);
    let _watchdog = watchdog();
    let (devices, _control) = simulated(1);
    for device in [Device::default().unwrap(), devices[0].clone()] {
        let queue = Queue::builder().device(&device).profiling().build().unwrap();
        let numbers = Buffer::from_elements((0..N).map(|i| u32::from(i > 0))).unwrap();
        // The first launch sleeps, those behind it add up what it leaves.
        let slowly = |n| {
            if n == 0 {
                std::thread::sleep(PAUSE);
            }
            n
        };
        let sum = queue.transform_reduce(&numbers, slowly, Sum).unwrap();
        assert_eq!(sum.get().unwrap(), N as u32 - 1);
        let profile = sum.event().profile().unwrap();
        assert!(profile.submitted <= profile.start && profile.start <= profile.end, "{profile:?}");
        assert!(profile.duration() >= PAUSE, "{profile:?}");
    }
}

#[test]
fn a_command_that_did_not_run_has_no_profiling_times() {
    static GATE: Gate = Gate::new();
    let _watchdog = watchdog();
    let queue = Queue::builder().profiling().build().unwrap();
    let failing = queue.submit(|cg| {
        cg.host_task(|_| {
            GATE.pass();
            panic!("cause");
        })
    });
    let failing = failing.unwrap();
    let after = queue.submit(|cg| {
        cg.depends_on(&failing);
        cg.single_task(|_| {})
    });
    GATE.open();
    let parts = ["kernel \"events::a_command_that_did_not_run_has_no_profiling_times\" (", "did not run"];
    refused(after.unwrap().profile(), ErrorCode::Profiling, &parts);
    assert!(failing.profile().is_ok());
    refused(failing.wait(), ErrorCode::Kernel, &["cause"]);
}

#[test]
fn events_outlive_queue_buffer_context_and_device() {
    let _watchdog = watchdog();
    let event = {
        let (devices, control) = simulated(1);
        control.pause(0);
        let context = Context::new(&devices).unwrap();
        let queue = Queue::builder().context(&context).device(&devices[0]).profiling().build().unwrap();
        let event = add_one(&queue, &filled(1000));
        drop((context, queue, devices));
        assert!(!event.is_complete());
        control.resume(0);
        event
    };
    event.wait().unwrap();
    assert!(event.profile().is_ok());
    assert_eq!(event.clone(), event);
}

#[test]
fn the_result_of_a_reduction_is_awaited() {
    static GATE: Gate = Gate::new();
    let _watchdog = watchdog();
    let (devices, _control) = simulated(1);
    for queue in [Queue::default().unwrap(), Queue::new(&devices[0]).unwrap()] {
        let buffer = filled(10_000);
        let ready = queue.reduce(&buffer, Sum).unwrap();
        assert_eq!(block_on(ready).unwrap(), 70_000);
        // The failure of the reduction itself.
        let failing = queue.transform_reduce(&buffer, |x| if x == 7 { panic!("no sevens") } else { x }, Sum).unwrap();
        let error = block_on(failing).unwrap_err();
        assert_eq!(error.code(), ErrorCode::Kernel);
        assert!(error.to_string().contains("no sevens"), "{error}");
    }
    // One that has to wait.
    let queue = Queue::default().unwrap();
    let buffer = filled(10_000);
    let task = queue.submit(|cg| {
        let mut data = cg.access_host(&buffer, ReadWrite);
        cg.host_task(move |scope| {
            GATE.pass();
            data.slice_mut(scope)[0] = 8;
        })
    });
    let sum = queue.reduce(&buffer, Sum).unwrap();
    assert!(!sum.event().is_complete());
    let opener = std::thread::spawn(|| {
        GATE.wait_entered();
        GATE.open();
    });
    assert_eq!(block_on(sum).unwrap(), 70_001);
    opener.join().unwrap();
    task.unwrap().wait().unwrap();
}
