//! Order by events, within and across contexts; failed dependencies.

use oxisycl::prelude::*;
use oxisycl::{BackendKind, EventStatus, Result};

use crate::harness::{Env, runs_ahead, tests};
use crate::support::{
    Gate, assert_completes, assert_held_back, code, counted, iota, plus_one, update, write_positions,
};

tests![
    a_command_starts_after_an_event_it_depends_on,
    a_command_starts_after_all_events_it_depends_on,
    repeated_and_completed_events_do_no_harm,
    events_order_commands_of_different_queues,
    events_order_commands_of_different_devices,
    events_order_commands_of_different_contexts_of_one_device,
    a_dependency_on_another_context_is_counted,
    a_group_without_a_command_completes_after_its_dependencies,
    a_barrier_completes_after_the_events_named,
    a_diamond_of_events_runs_in_order,
    an_event_outlives_its_queue,
    event_handles_compare_by_command,
    the_status_of_an_event_follows_its_command,
    a_command_that_depends_on_a_failed_event_does_not_run,
    what_a_command_that_did_not_run_was_to_write_is_as_it_was_before,
    a_submission_that_depends_on_a_known_failure_is_refused,
    data_of_a_failed_writer_is_lost_until_it_is_replaced,
    a_failure_leaves_other_buffers_and_queues_alone,
    waiting_for_several_events_tells_the_first_failure,
    ; once:
    a_default_event_is_complete,
];

fn a_command_starts_after_an_event_it_depends_on(env: &Env) {
    let queue = env.queue();
    let slice = queue.malloc_device::<i32>(1).unwrap();
    let pointer = slice.pointer();
    let gate = Gate::new(&queue, |_| {});
    let mut last = gate.event().clone();
    for i in 1..20 {
        let kernel = queue.submit(|cg| {
            cg.depends_on(&last);
            // SAFETY: each kernel runs after the one before.
            cg.single_task(move |_| unsafe {
                let old = if i == 1 { 0 } else { pointer.read(0) };
                pointer.write(0, old * 2 + 1);
            })
        });
        last = kernel.unwrap();
    }
    assert_held_back(&last);
    gate.open();
    last.wait().unwrap();
    assert_eq!(slice.to_vec(&queue).unwrap(), [(1 << 19) - 1]);
}

fn a_command_starts_after_all_events_it_depends_on(env: &Env) {
    let queue = env.queue();
    let gates: Vec<Gate> = (0..4).map(|_| Gate::new(&queue, |_| {})).collect();
    let events: Vec<Event> = gates.iter().map(|gate| gate.event().clone()).collect();
    let kernel = queue.submit(|cg| {
        cg.depends_on_all(&events);
        cg.single_task(|_| {})
    });
    let kernel = kernel.unwrap();
    for gate in gates {
        assert_held_back(&kernel);
        gate.open();
    }
    assert_completes(&kernel);
}

fn repeated_and_completed_events_do_no_harm(env: &Env) {
    let queue = env.queue();
    let done = queue.single_task(|_| {}).unwrap();
    done.wait().unwrap();
    let gate = Gate::new(&queue, |_| {});
    let kernel = queue.submit(|cg| {
        for _ in 0..5 {
            cg.depends_on(&done);
            cg.depends_on(gate.event());
            cg.depends_on(&Event::default());
        }
        cg.single_task(|_| {})
    });
    let kernel = kernel.unwrap();
    assert_held_back(&kernel);
    gate.open();
    assert_completes(&kernel);
}

fn a_default_event_is_complete() {
    let event = Event::default();
    assert_eq!(event.status(), EventStatus::Complete);
    event.wait().unwrap();
    event.wait_and_throw().unwrap();
    assert!(event.dependencies().is_empty() && !event.is_host_task());
    assert_eq!(event, Event::default());
    assert_eq!(code(event.profile()), ErrorCode::Invalid);
}

/// A kernel on `second` that reads what a kernel on `first` wrote, ordered by an event only. Where the second device cannot use the
/// first one's memory, it only looks when the kernels end.
fn check_event_order(first: &Queue, second: &Queue) -> Result {
    let memory = first.malloc_host::<i32>(64)?;
    let pointer = memory.pointer();
    let gate = Gate::new(first, |_| {});
    let writer = first.submit(|cg| {
        cg.depends_on(gate.event());
        // SAFETY: each work-item writes its own element, and the reader waits for this kernel.
        cg.parallel_for(64, move |item| unsafe { pointer.write(item.index(), 7) })
    })?;
    let sums = Buffer::from_vec(vec![448])?;
    let can_read = shares_addresses(first, second);
    let reader = second.submit(|cg| {
        cg.depends_on(&writer);
        if can_read {
            let sums = cg.access(&sums, Write.no_init());
            // SAFETY: the writer has ended.
            cg.single_task(move |task| sums.set_at(task, 0, (0..64).map(|i| unsafe { pointer.read(i) }).sum()))
        } else {
            cg.single_task(|_| {})
        }
    })?;
    assert_held_back(&reader);
    gate.open();
    reader.wait()?;
    assert!(writer.is_complete());
    assert_eq!(sums.to_vec()?, [448]);
    // SAFETY: both kernels have ended.
    assert_eq!(unsafe { memory.as_slice() }?, [7; 64]);
    Ok(())
}

/// Whether kernels on both can use an allocation of either on the host.
fn shares_addresses(first: &Queue, second: &Queue) -> bool {
    let runs_on_cpu = |queue: &Queue| matches!(queue.device().backend(), BackendKind::Host | BackendKind::Simulated);
    runs_on_cpu(first) && runs_on_cpu(second) || first.device() == second.device()
}

fn events_order_commands_of_different_queues(env: &Env) {
    check_event_order(&env.queue(), &env.queue()).unwrap();
    check_event_order(&env.in_order_queue(), &env.queue()).unwrap();
    check_event_order(&env.queue(), &env.in_order_queue()).unwrap();
}

fn events_order_commands_of_different_devices(env: &Env) {
    check_event_order(&env.queue(), &env.other_queue()).unwrap();
    check_event_order(&env.other_queue(), &env.queue()).unwrap();
}

fn events_order_commands_of_different_contexts_of_one_device(env: &Env) {
    let in_own_context = || {
        let context = Context::new(std::slice::from_ref(env.device())).unwrap();
        Queue::builder().device(env.device()).context(&context).build().unwrap()
    };
    let (first, second) = (in_own_context(), in_own_context());
    assert!(first.context() != second.context());
    check_event_order(&first, &second).unwrap();
}

fn a_dependency_on_another_context_is_counted(env: &Env) {
    let first = env.queue();
    let context = Context::new(std::slice::from_ref(env.device())).unwrap();
    let second = Queue::builder().device(env.device()).context(&context).build().unwrap();
    let gate = Gate::new(&first, |_| {});
    let kernel = first.submit(|cg| {
        cg.depends_on(gate.event());
        cg.single_task(|_| {})
    });
    let kernel = kernel.unwrap();
    let (since, dependent) = counted(|| {
        let dependent = second.submit(|cg| {
            cg.depends_on(&kernel);
            cg.single_task(|_| {})
        });
        dependent.unwrap()
    });
    assert_eq!(since.cross_context_dependencies, 1);
    assert_held_back(&dependent);
    gate.open();
    assert_completes(&dependent);
    // Within one context the backend orders the commands itself.
    let (since, ()) = counted(|| {
        let gate = Gate::new(&first, |_| {});
        let kernel = first.submit(|cg| {
            cg.depends_on(gate.event());
            cg.single_task(|_| {})
        });
        let kernel = kernel.unwrap();
        let dependent = env.queue().submit(|cg| {
            cg.depends_on(&kernel);
            cg.single_task(|_| {})
        });
        gate.open();
        dependent.unwrap().wait().unwrap();
    });
    assert_eq!(since.cross_context_dependencies, 0);
}

fn a_group_without_a_command_completes_after_its_dependencies(env: &Env) {
    let queue = env.queue();
    let buffer = Buffer::from_vec(iota(4)).unwrap();
    let gate = Gate::writing(&queue, &buffer);
    let by_event = queue.submit(|cg| {
        cg.depends_on(gate.event());
        Ok(())
    });
    let by_data = queue.submit(|cg| {
        cg.access(&buffer, Read);
        Ok(())
    });
    let (by_event, by_data) = (by_event.unwrap(), by_data.unwrap());
    assert_held_back(&by_event);
    assert_held_back(&by_data);
    gate.open();
    assert_completes(&by_event);
    assert_completes(&by_data);
}

fn a_barrier_completes_after_the_events_named(env: &Env) {
    let queue = env.queue();
    let (first, second) = (Gate::new(&queue, |_| {}), Gate::new(&env.other_queue(), |_| {}));
    let barrier = queue.submit_barrier([first.event(), second.event()]).unwrap();
    assert_held_back(&barrier);
    first.open();
    assert_held_back(&barrier);
    second.open();
    assert_completes(&barrier);
}

fn a_diamond_of_events_runs_in_order(env: &Env) {
    let queues = [env.queue(), env.other_queue(), env.third_queue()];
    let (to, order) = std::sync::mpsc::channel();
    let submit = |queue: &Queue, name: char, after: &[&Event]| {
        let to = to.clone();
        let task = queue.submit(|cg| {
            cg.depends_on_all(after.iter().copied());
            cg.host_task(move |_| to.send(name).unwrap())
        });
        task.unwrap()
    };
    let top = submit(&queues[0], 'a', &[]);
    let (left, right) = (submit(&queues[1], 'b', &[&top]), submit(&queues[2], 'b', &[&top]));
    let kernel = queues[0].submit(|cg| {
        cg.depends_on(&right);
        cg.single_task(|_| {})
    });
    submit(&queues[0], 'c', &[&left, &kernel.unwrap()]).wait().unwrap();
    assert_eq!(order.try_iter().collect::<String>(), "abbc");
}

fn an_event_outlives_its_queue(env: &Env) {
    let gate = Gate::new(&env.queue(), |_| {});
    let event = {
        let queue = env.queue();
        let kernel = queue.submit(|cg| {
            cg.depends_on(gate.event());
            cg.single_task(|_| {})
        });
        kernel.unwrap()
    };
    let copy = event.clone();
    drop(event);
    assert_held_back(&copy);
    gate.open();
    copy.wait().unwrap();
    copy.wait_and_throw().unwrap();
}

fn event_handles_compare_by_command(env: &Env) {
    let queue = env.queue();
    let (a, b) = (queue.single_task(|_| {}).unwrap(), queue.single_task(|_| {}).unwrap());
    assert!(a == a.clone() && a != b && a != Event::default());
    Event::wait_all([&a, &b]).unwrap();
}

fn the_status_of_an_event_follows_its_command(env: &Env) {
    let queue = env.queue();
    let (to, begun) = std::sync::mpsc::channel();
    let (open, is_open) = std::sync::mpsc::channel::<()>();
    let gate = Gate::new(&queue, |_| {});
    let task = queue.submit(|cg| {
        cg.depends_on(gate.event());
        cg.host_task(move |_| {
            to.send(()).unwrap();
            let _ = is_open.recv();
        })
    });
    let task = task.unwrap();
    assert_eq!(task.status(), EventStatus::Submitted);
    gate.open();
    begun.recv().unwrap();
    assert_eq!(task.status(), EventStatus::Running);
    drop(open);
    task.wait().unwrap();
    assert_eq!(task.status(), EventStatus::Complete);
}

/// A kernel that panics once the gate is open.
fn failing(queue: &Queue, gate: &Gate) -> Event {
    let kernel = queue.submit(|cg| {
        cg.depends_on(gate.event());
        cg.single_task(|_| panic!("on purpose"))
    });
    kernel.unwrap()
}

/// A kernel that replaces each element by its double plus one, after the event.
fn update_after(queue: &Queue, event: &Event, buffer: &Buffer<i32, 1>, has_no_init: bool) -> Event {
    let kernel = queue.submit(|cg| {
        cg.depends_on(event);
        if has_no_init {
            let data = cg.access(buffer, Write.no_init());
            cg.parallel_for(buffer.range(), move |item| data.set(item, -1))
        } else {
            let data = cg.access(buffer, ReadWrite);
            cg.parallel_for(buffer.range(), move |item| data.update(item, |x| 2 * x + 1))
        }
    });
    kernel.unwrap()
}

/// Fails unless commands on the queue that did not run have left the data alone: consecutive numbers. Where they may have run for
/// nothing, the data may be lost instead, and are written again.
#[track_caller]
fn assert_untouched(queue: &Queue, buffer: &Buffer<i32, 1>, expected: [i32; 4]) {
    match buffer.to_vec() {
        Err(error) if runs_ahead(queue) => {
            assert_eq!(error.code(), ErrorCode::Kernel);
            write_positions(queue, buffer, expected[0]);
            assert_eq!(buffer.to_vec().unwrap(), expected);
        }
        data => assert_eq!(data.unwrap(), expected),
    }
}

fn a_command_that_depends_on_a_failed_event_does_not_run(env: &Env) {
    for queue in [env.queue(), env.other_queue()] {
        for has_no_init in [false, true] {
            let first = env.queue();
            let buffer = Buffer::from_vec(iota(4)).unwrap();
            let gate = Gate::new(&first, |_| {});
            let failed = failing(&first, &gate);
            let dependent = update_after(&queue, &failed, &buffer, has_no_init);
            gate.open();
            let error = dependent.wait().unwrap_err();
            assert_eq!(error.code(), ErrorCode::Kernel);
            let source = std::error::Error::source(&error).expect("the failure of the first command");
            assert!(source.to_string().contains("on purpose"), "{error:?}");
            assert_eq!(code(failed.wait()), ErrorCode::Kernel);
            // It changed nothing, so nothing is lost, neither here nor for later commands on any device.
            assert_untouched(&queue, &buffer, [0, 1, 2, 3]);
            update(&queue, &buffer, plus_one);
            update(&first, &buffer, plus_one);
            assert_eq!(buffer.to_vec().unwrap(), [2, 3, 4, 5]);
            let _ = (first.wait(), queue.wait());
        }
    }
}

fn what_a_command_that_did_not_run_was_to_write_is_as_it_was_before(env: &Env) {
    for queue in [env.queue(), env.other_queue()] {
        for has_no_init in [false, true] {
            let first = env.queue();
            let gate = Gate::new(&first, |_| {});
            let failed = failing(&first, &gate);
            let buffers = [(); 4].map(|()| Buffer::from_vec(iota(4)).unwrap());
            let [after_writer, twice, before_writer, lost] = &buffers;
            // Before, there may be what a pending command writes.
            update(&first, after_writer, |x| x + 10);
            let mut dependents = vec![update_after(&queue, &failed, after_writer, has_no_init)];
            // Two in a row.
            dependents.push(update_after(&queue, &failed, twice, has_no_init));
            dependents.push(update_after(&first, &failed, twice, has_no_init));
            // Who replaces the data does not need that it is good.
            dependents.push(update_after(&queue, &failed, before_writer, has_no_init));
            write_positions(&first, before_writer, 20);
            // A command that ran and failed has lost the data, and whoever comes after it without running brings nothing back.
            let cause = first.submit(|cg| {
                cg.depends_on(gate.event());
                let data = cg.access(lost, ReadWrite);
                cg.parallel_for(4, move |item| data.update(item, |_| panic!("on purpose, too")))
            });
            let cause = cause.unwrap();
            dependents.push(update_after(&queue, &failed, lost, has_no_init));
            gate.open();
            // Whoever needed the data while these are pending would depend on them, and fail with them.
            assert!(dependents.iter().all(|dependent| code(dependent.wait()) == ErrorCode::Kernel));
            assert_untouched(&queue, after_writer, [10, 11, 12, 13]);
            assert_untouched(&first, twice, [0, 1, 2, 3]);
            assert_eq!(before_writer.to_vec().unwrap(), [20, 21, 22, 23]);
            assert_eq!(code(cause.wait()), ErrorCode::Kernel);
            assert_eq!(code(lost.to_vec()), ErrorCode::Kernel);
            write_positions(&queue, lost, 30);
            assert_eq!(lost.to_vec().unwrap(), [30, 31, 32, 33]);
            let _ = (first.wait(), queue.wait());
        }
    }
}

fn a_submission_that_depends_on_a_known_failure_is_refused(env: &Env) {
    let queue = env.queue();
    let gate = Gate::new(&queue, |_| {});
    let failed = failing(&queue, &gate);
    gate.open();
    assert_eq!(code(failed.wait()), ErrorCode::Kernel);
    let (since, result) = counted(|| {
        queue.submit(|cg| {
            cg.depends_on(&failed);
            cg.single_task(|_| {})
        })
    });
    assert_eq!(code(result), ErrorCode::Event);
    assert_eq!(since.nodes, 0);
    assert_eq!(code(queue.submit_barrier([&failed])), ErrorCode::Event);
    queue.single_task(|_| {}).unwrap().wait().unwrap();
}

fn data_of_a_failed_writer_is_lost_until_it_is_replaced(env: &Env) {
    let queue = env.queue();
    let buffer = BufferOptions::new().page_size(4).from_vec(iota(8)).unwrap();
    let failed = crate::support::update_range(&queue, &buffer, 0, 4, |_| panic!("on purpose"));
    assert_eq!(code(failed.wait()), ErrorCode::Kernel);
    assert_eq!(code(buffer.to_vec()), ErrorCode::Kernel);
    let read = |queue: &Queue, first: usize| {
        queue.submit(|cg| {
            cg.access_range(&buffer, Read, first, 4);
            cg.single_task(|_| {})
        })
    };
    assert_eq!(code(read(&queue, 0).and_then(|event| event.wait())), ErrorCode::Kernel);
    assert_eq!(code(read(&env.other_queue(), 0).and_then(|event| event.wait())), ErrorCode::Kernel);
    // The other page is as it was.
    read(&queue, 4).unwrap().wait().unwrap();
    assert_eq!(buffer.host_access_range(Read, 4, 4).unwrap().as_slice(), [4, 5, 6, 7]);
    let kernel = queue.submit(|cg| {
        let data = cg.access_range(&buffer, Write.no_init(), 0, 4);
        cg.parallel_for(4, move |item| data.set(item, 9))
    });
    kernel.unwrap();
    assert_eq!(buffer.to_vec().unwrap(), [9, 9, 9, 9, 4, 5, 6, 7]);
    let _ = env.other_queue().wait();
}

fn a_failure_leaves_other_buffers_and_queues_alone(env: &Env) {
    let (queue, other) = (env.queue(), env.queue());
    let [a, b] = [(); 2].map(|()| Buffer::from_vec(iota(8)).unwrap());
    let gate = Gate::new(&queue, |_| {});
    let failed = queue.submit(|cg| {
        cg.depends_on(gate.event());
        let (a, b) = (cg.access(&a, ReadWrite), cg.access(&b, Read));
        cg.parallel_for(8, move |item| a.set(item, if b.get(item) == 5 { panic!("on purpose") } else { 0 }))
    });
    let failed = failed.unwrap();
    let beside = update(&other, &b, plus_one);
    gate.open();
    assert_eq!(code(failed.wait()), ErrorCode::Kernel);
    beside.wait().unwrap();
    other.wait().unwrap();
    update(&queue, &b, plus_one);
    assert_eq!(b.to_vec().unwrap(), (2..10).collect::<Vec<_>>());
    assert_eq!(code(a.to_vec()), ErrorCode::Kernel);
    write_positions(&queue, &a, 0);
    assert_eq!(a.to_vec().unwrap(), iota(8));
}

fn waiting_for_several_events_tells_the_first_failure(env: &Env) {
    let queue = env.queue();
    let gate = Gate::new(&queue, |_| {});
    let failed = failing(&queue, &gate);
    let late = queue.submit(|cg| {
        cg.depends_on(gate.event());
        cg.host_task(|_| std::thread::sleep(std::time::Duration::from_millis(10)))
    });
    let late = late.unwrap();
    gate.open_later();
    assert_eq!(code(Event::wait_all([&failed, &late])), ErrorCode::Kernel);
    assert!(late.is_complete());
    Event::wait_all([&late]).unwrap();
}
