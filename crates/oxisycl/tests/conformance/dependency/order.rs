//! Order by data and by queues.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};

use oxisycl::prelude::*;

use crate::harness::{Env, queue_on, tests};
use crate::support::{
    Gate, assert_completes, assert_held_back, counted, doubled, iota, plus_one, read_on, touch, update, write_positions,
};

tests![
    conflicting_groups_run_in_the_order_of_submission,
    conflicting_groups_of_different_queues_run_in_the_order_of_submission,
    conflicting_groups_of_different_threads_run_in_the_order_of_submission,
    a_write_waits_for_earlier_reads,
    a_read_waits_for_the_last_write_only,
    readers_are_not_ordered_among_each_other,
    independent_groups_do_not_wait,
    every_kind_of_command_takes_part_in_the_order,
    an_in_order_queue_orders_commands_without_accessors,
    an_in_order_queue_orders_host_tasks,
    an_in_order_queue_orders_commands_on_different_buffers,
    in_order_queues_are_independent_of_each_other,
    an_out_of_order_queue_does_not_order_usm_kernels,
    submission_does_not_wait_for_a_device,
    host_tasks_delay_only_what_depends_on_them,
    more_blocked_host_tasks_than_processors_hold_nothing_up,
    groups_over_several_buffers_never_deadlock,
    a_long_chain_ends,
    a_writer_waits_for_many_readers,
    many_submissions_leave_no_nodes_behind,
    work_of_a_dropped_queue_still_runs,
    the_wait_of_a_queue_covers_all_its_commands,
];

fn conflicting_groups_run_in_the_order_of_submission(env: &Env) {
    let queue = env.queue();
    let buffer = Buffer::from_vec(iota(64)).unwrap();
    let mut expected = iota(64);
    for i in 0..50 {
        update(&queue, &buffer, move |x| x.wrapping_mul(3).wrapping_add(i));
        expected.iter_mut().for_each(|x| *x = x.wrapping_mul(3).wrapping_add(i));
    }
    assert_eq!(buffer.to_vec().unwrap(), expected);
}

fn conflicting_groups_of_different_queues_run_in_the_order_of_submission(env: &Env) {
    let queues = [env.queue(), env.in_order_queue(), env.other_queue(), env.queue(), env.third_queue()];
    let buffer = Buffer::from_vec(iota(64)).unwrap();
    let mut expected = iota(64);
    for i in 0..50 {
        update(&queues[(i * 7) % 5], &buffer, move |x| x.wrapping_mul(3).wrapping_add(i as i32));
        expected.iter_mut().for_each(|x| *x = x.wrapping_mul(3).wrapping_add(i as i32));
    }
    assert_eq!(buffer.to_vec().unwrap(), expected);
}

fn conflicting_groups_of_different_threads_run_in_the_order_of_submission(env: &Env) {
    // The threads take turns, so that there is an order.
    const N: usize = 60;
    let buffer = Buffer::from_vec(vec![1; 8]).unwrap();
    let turn = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for (me, device) in env.devices().iter().enumerate() {
            let (buffer, turn) = (&buffer, &turn);
            scope.spawn(move || {
                let queue = queue_on(device);
                for i in (me..N).step_by(3) {
                    while turn.load(Ordering::Acquire) != i {
                        std::thread::yield_now();
                    }
                    update(&queue, buffer, move |x| x.wrapping_mul(5).wrapping_add(i as i32));
                    turn.store(i + 1, Ordering::Release);
                }
            });
        }
    });
    let expected = (0..N as i32).fold(1i32, |x, i| x.wrapping_mul(5).wrapping_add(i));
    assert_eq!(buffer.to_vec().unwrap(), [expected; 8]);
}

fn a_write_waits_for_earlier_reads(env: &Env) {
    let queue = env.queue();
    let buffer = Buffer::from_vec(iota(8)).unwrap();
    let gate = Gate::new(&queue, |cg| {
        cg.access(&buffer, Read);
    });
    let writer = update(&queue, &buffer, plus_one);
    assert_held_back(&writer);
    let elsewhere = write_positions(&env.other_queue(), &buffer, 100);
    assert_held_back(&elsewhere);
    gate.open();
    assert_completes(&elsewhere);
    assert!(writer.is_complete());
}

fn a_read_waits_for_the_last_write_only(env: &Env) {
    let queue = env.queue();
    let [a, b] = [(); 2].map(|()| Buffer::from_vec(iota(8)).unwrap());
    let gate = Gate::writing(&queue, &a);
    update(&queue, &b, plus_one);
    assert_completes(&touch(&queue, &b));
    let reader = touch(&queue, &a);
    assert_held_back(&reader);
    assert_eq!(reader.dependencies(), [gate.event().clone()]);
    gate.open();
}

fn readers_are_not_ordered_among_each_other(env: &Env) {
    let queue = env.queue();
    let buffer = Buffer::from_vec(iota(8)).unwrap();
    let gate = Gate::writing(&queue, &buffer);
    let readers: Vec<Event> = (0..3).map(|_| touch(&queue, &buffer)).collect();
    for reader in &readers {
        // Each waits for the writer alone, or for the transfer that does.
        assert!(!reader.dependencies().iter().any(|event| readers.contains(event)));
    }
    gate.open();
    let second = Gate::new(&queue, |cg| {
        cg.access(&buffer, Read);
    });
    assert_completes(&touch(&queue, &buffer));
    second.open();
}

fn independent_groups_do_not_wait(env: &Env) {
    let queue = env.queue();
    let [a, b] = [(); 2].map(|()| Buffer::from_vec(iota(8)).unwrap());
    let gate = Gate::writing(&queue, &a);
    assert_completes(&update(&queue, &b, plus_one));
    assert_completes(&queue.single_task(|_| {}).unwrap());
    assert_completes(&queue.fill(&b, 1).unwrap());
    assert_eq!(b.to_vec().unwrap(), [1; 8]);
    gate.open();
}

fn every_kind_of_command_takes_part_in_the_order(env: &Env) {
    let queue = env.queue();
    let buffer = Buffer::from_vec(vec![1; 8]).unwrap();
    let copy = Buffer::from_vec(vec![0; 8]).unwrap();
    update(&queue, &buffer, plus_one);
    let task = queue.submit(|cg| {
        let mut data = cg.access_host(&buffer, ReadWrite);
        cg.host_task(move |scope| data.slice_mut(scope).iter_mut().for_each(|x| *x *= 10))
    });
    task.unwrap();
    queue.copy(&buffer, &copy).unwrap();
    queue.fill(&buffer, 7).unwrap();
    update(&env.other_queue(), &buffer, plus_one);
    queue.update_host(&buffer).unwrap();
    buffer.host_access(ReadWrite).unwrap().as_mut_slice()[0] = 50;
    update(&queue, &buffer, doubled);
    let back = queue.copy_to_host(&buffer, vec![0; 8]).unwrap();
    let fresh = queue.copy_from_host(vec![3; 8], &buffer).unwrap();
    assert_eq!(back.wait().unwrap(), [100, 16, 16, 16, 16, 16, 16, 16]);
    fresh.wait().unwrap();
    assert_eq!(copy.to_vec().unwrap(), [20; 8]);
    assert_eq!(read_on(&env.third_queue(), &buffer), [3; 8]);
}

fn an_in_order_queue_orders_commands_without_accessors(env: &Env) {
    let queue = env.in_order_queue();
    assert!(queue.is_in_order() && !env.queue().is_in_order());
    let mut slice = queue.malloc_device::<i32>(64).unwrap();
    slice.copy_from_slice(&queue, &vec![1; 64]).unwrap();
    let pointer = slice.pointer();
    for i in 0..50 {
        let kernel = queue.parallel_for(64, move |item| {
            // SAFETY: the queue runs one kernel after the other, and each work-item uses its own element.
            unsafe { pointer.write(item.index(), pointer.read(item.index()).wrapping_mul(3).wrapping_add(i)) }
        });
        kernel.unwrap();
    }
    queue.wait().unwrap();
    let expected = (0..50).fold(1i32, |x, i| x.wrapping_mul(3).wrapping_add(i));
    assert_eq!(slice.to_vec(&queue).unwrap(), [expected; 64]);
}

fn an_in_order_queue_orders_host_tasks(env: &Env) {
    let queue = env.in_order_queue();
    let (to, order) = mpsc::channel();
    for i in 0..20 {
        let to = to.clone();
        if i % 3 == 0 {
            queue.single_task(|_| {}).unwrap();
        }
        queue.submit(|cg| cg.host_task(move |_| to.send(i).unwrap())).unwrap();
    }
    queue.wait().unwrap();
    assert_eq!(order.try_iter().collect::<Vec<_>>(), iota(20));
}

fn an_in_order_queue_orders_commands_on_different_buffers(env: &Env) {
    let queue = env.in_order_queue();
    let [a, b] = [(); 2].map(|()| Buffer::from_vec(iota(8)).unwrap());
    let gate = Gate::writing(&queue, &a);
    let next = update(&queue, &b, plus_one);
    let barrier = queue.submit_barrier([]).unwrap();
    assert_held_back(&next);
    assert_held_back(&barrier);
    gate.open();
    assert_completes(&barrier);
    assert!(next.is_complete());
}

fn in_order_queues_are_independent_of_each_other(env: &Env) {
    let (first, second) = (env.in_order_queue(), env.in_order_queue());
    let gate = Gate::new(&first, |_| {});
    let held = first.single_task(|_| {}).unwrap();
    assert_completes(&second.single_task(|_| {}).unwrap());
    assert_held_back(&held);
    gate.open();
}

fn an_out_of_order_queue_does_not_order_usm_kernels(env: &Env) {
    let queue = env.queue();
    let slice = queue.malloc_device::<i32>(8).unwrap();
    let pointer = slice.pointer();
    let gate = Gate::new(&queue, |_| {});
    let first = queue.submit(|cg| {
        cg.depends_on(gate.event());
        // SAFETY: the event orders it with the second kernel, which writes something else anyway.
        cg.single_task(move |_| unsafe { pointer.write(0, 1) })
    });
    let first = first.unwrap();
    // SAFETY: as above.
    let second = queue.single_task(move |_| unsafe { pointer.write(1, 2) }).unwrap();
    assert!(second.dependencies().is_empty());
    assert_completes(&second);
    assert_held_back(&first);
    gate.open();
    queue.wait().unwrap();
    assert_eq!(slice.to_vec(&queue).unwrap()[..2], [1, 2]);
}

fn submission_does_not_wait_for_a_device(env: &Env) {
    let queue = env.queue();
    let buffer = Buffer::from_vec(iota(8)).unwrap();
    let gate = Gate::writing(&queue, &buffer);
    // None of these calls returns if it waits, since this thread opens the gate.
    let mut events = Vec::new();
    for _ in 0..100 {
        events.push(update(&queue, &buffer, plus_one));
        events.push(update(&env.other_queue(), &buffer, plus_one));
    }
    events.push(queue.fill(&buffer, 5).unwrap());
    events.push(queue.update_host(&buffer).unwrap());
    let copy = queue.copy_to_host(&buffer, vec![0; 8]).unwrap();
    assert!(events.iter().all(|event| !event.is_complete()));
    assert!(!queue.is_idle());
    gate.open();
    assert_eq!(copy.wait().unwrap(), [5; 8]);
    queue.wait().unwrap();
    assert!(queue.is_idle());
}

fn host_tasks_delay_only_what_depends_on_them(env: &Env) {
    let queue = env.queue();
    let [a, b] = [(); 2].map(|()| Buffer::from_vec(iota(8)).unwrap());
    let (open, is_open) = mpsc::channel::<()>();
    let task = queue.submit(|cg| {
        let mut data = cg.access_host(&a, ReadWrite);
        cg.host_task(move |scope| {
            let _ = is_open.recv();
            data.slice_mut(scope).fill(4);
        })
    });
    assert!(task.unwrap().is_host_task());
    let dependent = update(&queue, &a, plus_one);
    assert_completes(&update(&queue, &b, plus_one));
    assert_held_back(&dependent);
    drop(open);
    assert_eq!(a.to_vec().unwrap(), [5; 8]);
}

fn more_blocked_host_tasks_than_processors_hold_nothing_up(env: &Env) {
    let queue = env.queue();
    let gates: Vec<Gate> = (0..64).map(|_| Gate::new(&queue, |_| {})).collect();
    let buffer = Buffer::from_vec(iota(8)).unwrap();
    assert_completes(&update(&queue, &buffer, plus_one));
    assert_completes(&queue.submit(|cg| cg.host_task(|_| {})).unwrap());
    assert!(gates.iter().all(|gate| !gate.event().is_complete()));
    drop(gates);
    queue.wait().unwrap();
}

fn groups_over_several_buffers_never_deadlock(env: &Env) {
    const N: usize = 150;
    let buffers: [Buffer<i32, 1>; 3] = std::array::from_fn(|_| Buffer::from_vec(vec![0; 8]).unwrap());
    std::thread::scope(|scope| {
        for (me, device) in env.devices().iter().enumerate() {
            let buffers = &buffers;
            scope.spawn(move || {
                let queue = queue_on(device);
                for i in 0..N {
                    // Each thread names the buffers in another order.
                    let (first, second) = (&buffers[(me + i) % 3], &buffers[(me + i + 1 + i % 2) % 3]);
                    let group = queue.submit(|cg| {
                        let (a, b) = (cg.access(first, ReadWrite), cg.access(second, ReadWrite));
                        cg.parallel_for(8, move |item| {
                            a.update(item, |x| x + 1);
                            b.update(item, |x| x + 1);
                        })
                    });
                    group.unwrap();
                }
            });
        }
    });
    let total: i32 = buffers.iter().map(|buffer| buffer.to_vec().unwrap()[3]).sum();
    assert_eq!(total, 3 * 2 * N as i32);
}

fn a_long_chain_ends(env: &Env) {
    let queue = env.queue();
    let buffer = Buffer::from_vec(vec![0; 2]).unwrap();
    let gate = Gate::writing(&queue, &buffer);
    for _ in 0..5000 {
        update(&queue, &buffer, plus_one);
    }
    gate.open();
    assert_eq!(buffer.to_vec().unwrap(), [5000; 2]);
}

fn a_writer_waits_for_many_readers(env: &Env) {
    let queue = env.queue();
    let buffer = Buffer::from_vec(iota(8)).unwrap();
    let gate = Gate::new(&queue, |_| {});
    let readers: Vec<Event> = (0..1000)
        .map(|_| {
            let reader = queue.submit(|cg| {
                cg.depends_on(gate.event());
                cg.access(&buffer, Read);
                cg.single_task(|_| {})
            });
            reader.unwrap()
        })
        .collect();
    let writer = update(&queue, &buffer, plus_one);
    assert_held_back(&writer);
    gate.open();
    assert_completes(&writer);
    assert!(readers.iter().all(Event::is_complete));
}

fn many_submissions_leave_no_nodes_behind(env: &Env) {
    let queue = env.queue();
    let buffer = Buffer::from_vec(vec![0; 4]).unwrap();
    let (since, ()) = counted(|| {
        for _ in 0..20 {
            for _ in 0..200 {
                update(&queue, &buffer, plus_one);
            }
            queue.wait().unwrap();
        }
    });
    assert_eq!((since.kernels, since.live_nodes()), (4000, 0));
    assert_eq!(buffer.to_vec().unwrap(), [4000; 4]);
}

fn work_of_a_dropped_queue_still_runs(env: &Env) {
    let buffer = Buffer::from_vec(iota(8)).unwrap();
    let gate = Gate::writing(&env.queue(), &buffer);
    let last = {
        let queue = env.queue();
        update(&queue, &buffer, plus_one);
        update(&queue, &buffer, doubled)
    };
    assert_held_back(&last);
    gate.open();
    last.wait().unwrap();
    assert_eq!(buffer.to_vec().unwrap()[7], 16);
}

fn the_wait_of_a_queue_covers_all_its_commands(env: &Env) {
    let queue = env.queue();
    let buffers: Vec<Buffer<i32, 1>> = (0..10).map(|_| Buffer::from_vec(iota(64)).unwrap()).collect();
    let gate = Gate::writing(&env.other_queue(), &buffers[4]);
    let events: Vec<Event> = buffers.iter().map(|buffer| update(&queue, buffer, plus_one)).collect();
    gate.open_later();
    queue.wait().unwrap();
    assert!(events.iter().all(Event::is_complete) && queue.is_idle());
    // A second wait has nothing to do.
    queue.wait_and_throw().unwrap();
    let shared = Arc::new(queue);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| shared.wait().unwrap());
        }
    });
}
