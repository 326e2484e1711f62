//! What a host accessor waits for, what it holds back, and what it leaves alone.

use std::sync::mpsc;

use oxisycl::prelude::*;

use crate::harness::{Env, tests};
use crate::support::{
    Gate, assert_completes, assert_held_back, code, counted, doubled, iota, negated, plus_one, touch, update,
    update_range,
};

tests![
    it_waits_for_the_commands_that_write,
    a_reading_one_does_not_wait_for_commands_that_read,
    a_writing_one_waits_for_commands_that_read,
    it_does_not_wait_for_other_buffers,
    it_does_not_wait_for_other_pages,
    a_writing_one_holds_conflicting_commands_back,
    a_reading_one_holds_writers_back_but_not_readers,
    it_holds_nothing_else_back,
    it_holds_only_its_own_pages_back,
    it_holds_a_host_task_back,
    several_readers_exist_at_the_same_time,
    a_conflicting_one_of_the_same_thread_is_an_error,
    a_conflicting_one_of_another_thread_waits,
    a_wait_that_it_blocks_is_an_error_on_its_thread,
    a_wait_for_something_else_is_allowed_beside_it,
    a_wait_of_another_thread_ends_when_it_is_dropped,
    a_forgotten_one_holds_its_buffer_back_and_nothing_else,
    it_is_released_in_unwinding,
    a_cancelled_wait_leaves_nothing_behind,
    a_refused_access_that_was_to_overwrite_all_has_overwritten_nothing,
    submission_beside_it_does_not_block,
    commands_run_in_the_order_of_submission_around_it,
    ; once:
    disjoint_pages_may_be_written_by_two_at_the_same_time,
];

fn it_waits_for_the_commands_that_write(env: &Env) {
    let queue = env.queue();
    let buffer = Buffer::from_vec(iota(4)).unwrap();
    let gate = Gate::writing(&queue, &buffer);
    let kernels = [update(&queue, &buffer, plus_one), update(&env.other_queue(), &buffer, doubled)];
    gate.open_later();
    let host = buffer.host_access(Read).unwrap();
    assert!(kernels.iter().all(Event::is_complete));
    assert_eq!(host.as_slice(), [2, 4, 6, 8]);
}

fn a_reading_one_does_not_wait_for_commands_that_read(env: &Env) {
    let queue = env.queue();
    let buffer = Buffer::from_vec(iota(4)).unwrap();
    let gate = Gate::new(&queue, |cg| {
        cg.access(&buffer, Read);
    });
    assert_eq!(buffer.host_access(Read).unwrap()[3], 3);
    assert!(!gate.event().is_complete());
    gate.open();
}

fn a_writing_one_waits_for_commands_that_read(env: &Env) {
    let queue = env.queue();
    let buffer = Buffer::from_vec(iota(4)).unwrap();
    let gate = Gate::new(&queue, |cg| {
        cg.access(&buffer, Read);
    });
    let reader = gate.event().clone();
    gate.open_later();
    let host = buffer.host_access(Write).unwrap();
    assert!(reader.is_complete());
    drop(host);
}

fn it_does_not_wait_for_other_buffers(env: &Env) {
    let queue = env.queue();
    let [a, b] = [(); 2].map(|()| Buffer::from_vec(iota(4)).unwrap());
    let gate = Gate::writing(&queue, &a);
    b.host_access(ReadWrite).unwrap()[0] = 1;
    assert!(!gate.event().is_complete());
    gate.open();
}

fn it_does_not_wait_for_other_pages(env: &Env) {
    let queue = env.queue();
    let buffer = BufferOptions::new().page_size(4).from_vec(iota(8)).unwrap();
    let gate = Gate::new(&queue, |cg| {
        cg.access_range(&buffer, ReadWrite, 0, 1);
    });
    buffer.host_access_range(ReadWrite, 4, 4).unwrap()[0] = 1;
    assert!(!gate.event().is_complete());
    gate.open();
}

fn a_writing_one_holds_conflicting_commands_back(env: &Env) {
    let queue = env.queue();
    let buffer = Buffer::from_vec(iota(4)).unwrap();
    let mut host = buffer.host_access(ReadWrite).unwrap();
    let (reader, writer) = (touch(&queue, &buffer), update(&queue, &buffer, plus_one));
    let elsewhere = update(&env.other_queue(), &buffer, |x| x * 10);
    assert_held_back(&reader);
    assert_held_back(&writer);
    assert_held_back(&elsewhere);
    host[0] = 50;
    drop(host);
    assert_completes(&reader);
    assert_completes(&writer);
    assert_eq!(buffer.to_vec().unwrap(), [510, 20, 30, 40]);
}

fn a_reading_one_holds_writers_back_but_not_readers(env: &Env) {
    let queue = env.queue();
    let buffer = Buffer::from_vec(iota(4)).unwrap();
    let host = buffer.host_access(Read).unwrap();
    assert_completes(&touch(&queue, &buffer));
    let writer = update(&queue, &buffer, plus_one);
    assert_held_back(&writer);
    assert_eq!(host.as_slice(), iota(4));
    drop(host);
    assert_completes(&writer);
}

fn it_holds_nothing_else_back(env: &Env) {
    let queue = env.queue();
    let [a, b] = [(); 2].map(|()| Buffer::from_vec(iota(4)).unwrap());
    let host = a.host_access(ReadWrite).unwrap();
    assert_completes(&update(&queue, &b, plus_one));
    assert_completes(&queue.single_task(|_| {}).unwrap());
    assert_completes(&queue.submit(|cg| cg.host_task(|_| {})).unwrap());
    assert_eq!(b.to_vec().unwrap(), [1, 2, 3, 4]);
    drop(host);
}

fn it_holds_only_its_own_pages_back(env: &Env) {
    let queue = env.queue();
    let buffer = BufferOptions::new().page_size(4).from_vec(iota(12)).unwrap();
    let host = buffer.host_access_range(ReadWrite, 5, 2).unwrap();
    assert_completes(&update_range(&queue, &buffer, 0, 4, negated));
    assert_completes(&update_range(&queue, &buffer, 8, 4, negated));
    let same_page = update_range(&queue, &buffer, 4, 1, negated);
    assert_held_back(&same_page);
    drop(host);
    assert_completes(&same_page);
    assert_eq!(buffer.to_vec().unwrap(), [0, -1, -2, -3, -4, 5, 6, 7, -8, -9, -10, -11]);
}

fn it_holds_a_host_task_back(env: &Env) {
    let queue = env.queue();
    let buffer = Buffer::from_vec(iota(4)).unwrap();
    let host = buffer.host_access(Read).unwrap();
    let task = queue.submit(|cg| {
        let mut data = cg.access_host(&buffer, Write);
        cg.host_task(move |scope| data.slice_mut(scope).fill(1))
    });
    let task = task.unwrap();
    assert_held_back(&task);
    drop(host);
    assert_completes(&task);
}

fn several_readers_exist_at_the_same_time(env: &Env) {
    let buffer = Buffer::from_vec(iota(8)).unwrap();
    update(&env.queue(), &buffer, plus_one);
    let first = buffer.host_access(Read).unwrap();
    let second = buffer.host_access_range(Read, 2, 4).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| assert_eq!(buffer.host_access(Read).unwrap()[7], 8));
    });
    let writer = update(&env.queue(), &buffer, negated);
    drop(first);
    assert_held_back(&writer);
    assert_eq!(second[0], 3);
    drop(second);
    assert_completes(&writer);
}

fn a_conflicting_one_of_the_same_thread_is_an_error(env: &Env) {
    let queue = env.queue();
    let buffer = Buffer::from_vec(iota(4)).unwrap();
    let mut host = buffer.host_access(ReadWrite).unwrap();
    assert_eq!(code(buffer.host_access(Read)), ErrorCode::Invalid);
    assert_eq!(code(buffer.host_access(Write)), ErrorCode::Invalid);
    assert_eq!(code(buffer.clone().host_access(Read)), ErrorCode::Invalid);
    assert_eq!(code(buffer.to_vec()), ErrorCode::Invalid);
    // Also through a command in between.
    update(&queue, &buffer, plus_one);
    assert_eq!(code(buffer.host_access(Read)), ErrorCode::Invalid);
    host[0] = 5;
    drop(host);
    assert_eq!(buffer.to_vec().unwrap(), [6, 2, 3, 4]);
    let reader = buffer.host_access(Read).unwrap();
    assert_eq!(code(buffer.host_access(Write)), ErrorCode::Invalid);
    drop(reader);
    drop(buffer.host_access(Write).unwrap());
}

fn a_conflicting_one_of_another_thread_waits(env: &Env) {
    let buffer = Buffer::from_vec(iota(4)).unwrap();
    update(&env.queue(), &buffer, plus_one);
    let (to, seen) = mpsc::channel();
    let mut host = buffer.host_access(ReadWrite).unwrap();
    std::thread::scope(|scope| {
        let buffer = &buffer;
        scope.spawn(move || to.send(buffer.host_access(ReadWrite).unwrap()[0]).unwrap());
        std::thread::sleep(std::time::Duration::from_millis(10));
        assert_eq!(seen.try_recv(), Err(mpsc::TryRecvError::Empty));
        host[0] = 77;
        drop(host);
    });
    assert_eq!(seen.try_recv(), Ok(77));
}

fn disjoint_pages_may_be_written_by_two_at_the_same_time() {
    let buffer = BufferOptions::new().page_size(4).from_vec(iota(8)).unwrap();
    let mut first = buffer.host_access_range(ReadWrite, 0, 4).unwrap();
    let mut second = buffer.host_access_range(ReadWrite, 4, 4).unwrap();
    std::mem::swap(&mut first[3], &mut second[0]);
    drop((first, second));
    assert_eq!(buffer.to_vec().unwrap(), [0, 1, 2, 4, 3, 5, 6, 7]);
}

fn a_wait_that_it_blocks_is_an_error_on_its_thread(env: &Env) {
    let queue = env.queue();
    let buffer = Buffer::from_vec(iota(4)).unwrap();
    let other = Buffer::from_vec(iota(4)).unwrap();
    let host = buffer.host_access(ReadWrite).unwrap();
    let blocked = queue.submit(|cg| {
        let (data, other) = (cg.access(&buffer, Read), cg.access(&other, ReadWrite));
        cg.parallel_for(4, move |item| other.update(item, |x| x + data.get(item)))
    });
    let blocked = blocked.unwrap();
    let behind = update(&env.other_queue(), &other, doubled);
    assert_eq!(code(blocked.wait()), ErrorCode::Invalid);
    assert_eq!(code(behind.wait()), ErrorCode::Invalid);
    assert_eq!(code(queue.wait()), ErrorCode::Invalid);
    assert_eq!(code(other.to_vec()), ErrorCode::Invalid);
    // None of that did any harm.
    drop(host);
    behind.wait().unwrap();
    queue.wait().unwrap();
    assert_eq!(other.to_vec().unwrap(), [0, 4, 8, 12]);
}

fn a_wait_for_something_else_is_allowed_beside_it(env: &Env) {
    let queue = env.queue();
    let [a, b] = [(); 2].map(|()| Buffer::from_vec(iota(4)).unwrap());
    let mut host = a.host_access(ReadWrite).unwrap();
    update(&queue, &b, plus_one).wait().unwrap();
    queue.wait().unwrap();
    host[0] = b.host_access(Read).unwrap()[3];
    drop(host);
    assert_eq!(a.to_vec().unwrap(), [4, 1, 2, 3]);
}

fn a_wait_of_another_thread_ends_when_it_is_dropped(env: &Env) {
    let queue = env.queue();
    let buffer = Buffer::from_vec(iota(4)).unwrap();
    let host = buffer.host_access(ReadWrite).unwrap();
    let kernel = update(&queue, &buffer, plus_one);
    std::thread::scope(|scope| {
        let waiting = [scope.spawn(|| kernel.wait()), scope.spawn(|| queue.wait())];
        std::thread::sleep(std::time::Duration::from_millis(10));
        assert!(waiting.iter().all(|thread| !thread.is_finished()));
        drop(host);
        for thread in waiting {
            thread.join().unwrap().unwrap();
        }
    });
}

fn a_forgotten_one_holds_its_buffer_back_and_nothing_else(env: &Env) {
    env.allow_leaks();
    let queue = env.queue();
    let buffer = Buffer::from_vec(iota(4)).unwrap();
    let other = Buffer::from_vec(iota(4)).unwrap();
    std::mem::forget(buffer.host_access(ReadWrite).unwrap());
    let held = update(&queue, &buffer, plus_one);
    assert_completes(&update(&queue, &other, plus_one));
    assert_held_back(&held);
    assert_eq!(code(held.wait()), ErrorCode::Invalid);
    assert_eq!(code(queue.wait()), ErrorCode::Invalid);
    // Neither does the end of a buffer without a destination wait.
    drop(buffer);
    assert_eq!(other.to_vec().unwrap(), [1, 2, 3, 4]);
}

fn it_is_released_in_unwinding(env: &Env) {
    let buffer = Buffer::from_vec(iota(4)).unwrap();
    let unwound = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let mut host = buffer.host_access(ReadWrite).unwrap();
        host[0] = 9;
        panic!("on purpose");
    }));
    assert!(unwound.is_err());
    assert_completes(&update(&env.queue(), &buffer, plus_one));
    assert_eq!(buffer.to_vec().unwrap(), [10, 2, 3, 4]);
}

fn a_cancelled_wait_leaves_nothing_behind(env: &Env) {
    let buffer = Buffer::from_vec(iota(4)).unwrap();
    let other = Buffer::from_vec(iota(4)).unwrap();
    let host = buffer.host_access(ReadWrite).unwrap();
    let mixed = env.queue().submit(|cg| {
        let (from, to) = (cg.access(&buffer, Read), cg.access(&other, Write));
        cg.copy(from, to)
    });
    let mixed = mixed.unwrap();
    for _ in 0..10 {
        assert_eq!(code(other.host_access(Write)), ErrorCode::Invalid);
    }
    let after = update(&env.queue(), &other, plus_one);
    drop(host);
    assert_completes(&mixed);
    assert_completes(&after);
    assert_eq!(other.to_vec().unwrap(), [1, 2, 3, 4]);
}

fn a_refused_access_that_was_to_overwrite_all_has_overwritten_nothing(env: &Env) {
    let buffer = Buffer::from_vec(vec![10, 11, 12, 13]).unwrap();
    let other = Buffer::from_vec(vec![0; 4]).unwrap();
    assert_completes(&update(&env.queue(), &other, |x| x + 5));
    let host = buffer.host_access(ReadWrite).unwrap();
    let mixed = env.queue().submit(|cg| {
        let (from, to) = (cg.access_range(&buffer, Read, 1, 3), cg.access_range(&other, Write, 1, 3));
        cg.copy(from, to)
    });
    let mixed = mixed.unwrap();
    assert_eq!(code(other.host_access(Write.no_init())), ErrorCode::Invalid);
    drop(host);
    assert_completes(&mixed);
    assert_completes(&update(&env.queue(), &other, plus_one));
    assert_eq!(other.to_vec().unwrap(), [6, 12, 13, 14]);
}

fn submission_beside_it_does_not_block(env: &Env) {
    let queue = env.queue();
    let buffer = Buffer::from_vec(vec![0; 4]).unwrap();
    let host = buffer.host_access(ReadWrite).unwrap();
    let (since, events) = counted(|| (0..200).map(|_| update(&queue, &buffer, plus_one)).collect::<Vec<_>>());
    assert_eq!(since.nodes_completed, 0);
    assert!(since.delayed_commands >= 1);
    drop(host);
    Event::wait_all(&events).unwrap();
    assert_eq!(buffer.to_vec().unwrap(), [200; 4]);
}

fn commands_run_in_the_order_of_submission_around_it(env: &Env) {
    let queues = [env.queue(), env.other_queue(), env.in_order_queue()];
    let buffer = Buffer::from_vec(vec![1; 4]).unwrap();
    let mut expected = 1i32;
    for i in 0..30 {
        update(&queues[i % 3], &buffer, move |x| x.wrapping_mul(3).wrapping_add(i as i32));
        expected = expected.wrapping_mul(3).wrapping_add(i as i32);
        let mut host = buffer.host_access(ReadWrite).unwrap();
        assert_eq!(host.as_slice(), [expected; 4]);
        let early = update(&queues[(i + 1) % 3], &buffer, |x| x ^ 5);
        host.as_mut_slice().fill(expected + 1);
        assert!(!early.is_complete());
        drop(host);
        expected = (expected + 1) ^ 5;
    }
    assert_eq!(buffer.to_vec().unwrap(), [expected; 4]);
}
