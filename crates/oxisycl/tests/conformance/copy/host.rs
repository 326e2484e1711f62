//! Copies between accessors and host memory, owned or by pointer, and `update_host`.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use oxisycl::prelude::{Buffer, BufferOptions, ErrorCode, Event, Queue, Read, ReadWrite, Write};

use crate::harness::{Env, tests};
use crate::support::{Gate, code, counted, iota, plus_one, read_on, update, write_positions};

tests![
    a_vector_is_copied_into_a_buffer,
    shared_and_static_elements_are_copied_into_a_buffer,
    host_memory_that_is_too_short_is_refused,
    host_memory_may_be_longer,
    a_buffer_is_copied_into_a_vector,
    the_vector_comes_back_at_its_place,
    a_slot_gives_nothing_before_the_copy_has_ended,
    a_slot_gives_its_memory_once,
    a_dropped_copy_keeps_its_memory_until_the_end,
    a_copy_can_be_awaited,
    a_strided_part_is_copied_from_and_to_the_host,
    pointers_are_copied_from_and_to,
    a_copy_from_the_host_needs_no_old_data_with_no_init,
    newest_data_is_copied_to_the_host,
    update_host_makes_the_host_current,
    update_host_waits_for_writers,
    a_failed_copy_is_an_error,
];

fn a_vector_is_copied_into_a_buffer(env: &Env) {
    let queue = env.queue();
    let buffer = Buffer::<i32, 2>::uninit([2, 3]).unwrap();
    let copy = queue.copy_from_host(iota(6), &buffer).unwrap();
    assert_eq!(read_on(&queue, &buffer), iota(6));
    assert_eq!(copy.wait().unwrap(), iota(6));
}

fn shared_and_static_elements_are_copied_into_a_buffer(env: &Env) {
    static ELEMENTS: [i32; 4] = [4, 3, 2, 1];
    let queue = env.queue();
    let buffer = Buffer::<i32, 1>::uninit(4).unwrap();
    let shared: Arc<[i32]> = iota(4).into();
    let back = queue.copy_from_host(shared.clone(), &buffer).unwrap().wait().unwrap();
    assert!(Arc::ptr_eq(&back, &shared));
    assert_eq!(buffer.to_vec().unwrap(), iota(4));
    queue.copy_from_host(&ELEMENTS[..], &buffer).unwrap();
    assert_eq!(buffer.to_vec().unwrap(), ELEMENTS);
}

fn host_memory_that_is_too_short_is_refused(env: &Env) {
    let queue = env.queue();
    let buffer = Buffer::from_vec_nd(iota(6), [2, 3]).unwrap();
    let (since, ()) = counted(|| {
        assert_eq!(code(queue.copy_from_host(iota(5), &buffer)), ErrorCode::Invalid);
        assert_eq!(code(queue.copy_from_host(Vec::new(), &buffer)), ErrorCode::Invalid);
        assert_eq!(code(queue.copy_to_host(&buffer, iota(5))), ErrorCode::Invalid);
        assert_eq!(code(queue.copy_to_host(&buffer, Vec::with_capacity(6))), ErrorCode::Invalid);
    });
    assert_eq!(since.nodes, 0);
    assert_eq!(buffer.to_vec().unwrap(), iota(6));
}

fn host_memory_may_be_longer(env: &Env) {
    let queue = env.queue();
    let buffer = Buffer::<i32, 1>::uninit(4).unwrap();
    assert_eq!(queue.copy_from_host(iota(10), &buffer).unwrap().wait().unwrap().len(), 10);
    assert_eq!(buffer.to_vec().unwrap(), iota(4));
    let back = queue.copy_to_host(&buffer, vec![-1; 6]).unwrap().wait().unwrap();
    assert_eq!(back, [0, 1, 2, 3, -1, -1]);
}

fn a_buffer_is_copied_into_a_vector(env: &Env) {
    let buffer = Buffer::from_vec_nd(iota(6), [2, 3]).unwrap();
    update(&env.other_queue(), &buffer, |x| x * x);
    let back = env.queue().copy_to_host(&buffer, vec![0; 6]).unwrap();
    assert_eq!(back.wait().unwrap(), [0, 1, 4, 9, 16, 25]);
}

fn the_vector_comes_back_at_its_place(env: &Env) {
    let queue = env.queue();
    let buffer = Buffer::<i32, 1>::uninit(4).unwrap();
    let source = iota(4);
    let address = source.as_ptr();
    let source = queue.copy_from_host(source, &buffer).unwrap().wait().unwrap();
    assert_eq!(source.as_ptr(), address);
    let target = queue.copy_to_host(&buffer, source).unwrap().wait().unwrap();
    assert_eq!((target.as_ptr(), target), (address, iota(4)));
}

fn a_slot_gives_nothing_before_the_copy_has_ended(env: &Env) {
    let queue = env.queue();
    let buffer = Buffer::from_vec(vec![0; 4]).unwrap();
    let gate = Gate::writing(&queue, &buffer);
    let submitted = queue.submit_with(|cg| {
        let target = cg.access(&buffer, Write);
        cg.copy_from_host(iota(4), target)
    });
    let (event, slot) = submitted.unwrap();
    assert!(slot.take().is_none() && slot.clone().take().is_none());
    gate.open();
    event.wait().unwrap();
    assert_eq!(slot.take(), Some(iota(4)));
    assert_eq!(buffer.to_vec().unwrap(), iota(4));
}

fn a_slot_gives_its_memory_once(env: &Env) {
    let queue = env.queue();
    let buffer = Buffer::from_vec(iota(4)).unwrap();
    let submitted = queue.submit_with(|cg| {
        let source = cg.access(&buffer, Read);
        cg.copy_to_host(source, vec![0; 4])
    });
    let (event, slot) = submitted.unwrap();
    event.wait().unwrap();
    let copy = slot.clone();
    assert_eq!(slot.take(), Some(iota(4)));
    assert!(slot.take().is_none() && copy.take().is_none());
}

fn a_dropped_copy_keeps_its_memory_until_the_end(env: &Env) {
    let queue = env.queue();
    let buffer = Buffer::from_vec(vec![0; 10_000]).unwrap();
    let gate = Gate::writing(&queue, &buffer);
    drop(queue.copy_from_host(iota(10_000), &buffer).unwrap());
    drop(queue.copy_to_host(&buffer, vec![0; 10_000]).unwrap());
    // Whoever gets the freed memory of a wrong program overwrites it here.
    let others: Vec<Vec<i32>> = (0..8).map(|_| vec![-1; 10_000]).collect();
    gate.open();
    assert_eq!(buffer.to_vec().unwrap(), iota(10_000));
    assert!(others.iter().all(|other| other[0] == -1 && other[9_999] == -1));
}

/// Runs a future to its end on this thread.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(std::thread::Thread);
    impl std::task::Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}

fn a_copy_can_be_awaited(env: &Env) {
    let queue = env.queue();
    let buffer = Buffer::from_vec(vec![0; 4]).unwrap();
    let gate = Gate::writing(&queue, &buffer);
    gate.open_later();
    let result = block_on(async {
        let source = queue.copy_from_host(iota(4), &buffer)?.await?;
        update(&queue, &buffer, plus_one).await?;
        queue.copy_to_host(&buffer, source)?.await
    });
    assert_eq!(result.unwrap(), [1, 2, 3, 4]);
    block_on(Event::default()).unwrap();
}

fn a_strided_part_is_copied_from_and_to_the_host(env: &Env) {
    let queue = env.queue();
    let buffer = Buffer::from_vec_nd(vec![-1; 60], [3, 4, 5]).unwrap();
    let submitted = queue.submit_with(|cg| {
        let target = cg.access_range(&buffer, Write, [1, 1, 2], [2, 2, 3]);
        cg.copy_from_host(iota(12), target)
    });
    submitted.unwrap();
    let mut expected = vec![-1; 60];
    for i in 0..12 {
        expected[(1 + i / 6) * 20 + (1 + i / 3 % 2) * 5 + 2 + i % 3] = i as i32;
    }
    assert_eq!(read_on(&queue, &buffer), expected);
    let submitted = queue.submit_with(|cg| {
        let source = cg.access_range(&buffer, Read, [1, 0, 1], [2, 3, 2]);
        cg.copy_to_host(source, vec![0; 12])
    });
    let (event, slot) = submitted.unwrap();
    event.wait().unwrap();
    assert_eq!(slot.take().unwrap(), [-1, -1, -1, 0, -1, 3, -1, -1, -1, 6, -1, 9]);
}

fn pointers_are_copied_from_and_to(env: &Env) {
    let queue = env.queue();
    let buffer = Buffer::from_vec_nd(vec![-1; 20], [4, 5]).unwrap();
    let source = iota(6);
    let mut target = vec![0; 4];
    let write = queue.submit(|cg| {
        let to = cg.access_range(&buffer, Write, [1, 1], [2, 3]);
        // SAFETY: the vector has as many elements as the accessor, and lives until the second command has ended.
        unsafe { cg.copy_from_pointer(source.as_ptr(), to) }
    });
    write.unwrap();
    let read = queue.submit(|cg| {
        let from = cg.access_range(&buffer, Read, [1, 2], [2, 2]);
        // SAFETY: the vector has as many elements as the accessor, and lives until the command has ended.
        unsafe { cg.copy_to_pointer(from, target.as_mut_ptr()) }
    });
    read.unwrap().wait().unwrap();
    assert_eq!(target, [1, 2, 4, 5]);
}

fn a_copy_from_the_host_needs_no_old_data_with_no_init(env: &Env) {
    let queue = env.queue();
    let buffer = Buffer::<i32, 1>::uninit(16).unwrap();
    write_positions(&env.other_queue(), &buffer, 0).wait().unwrap();
    let (since, ()) = counted(|| {
        let submitted = queue.submit_with(|cg| {
            let target = cg.access_range(&buffer, Write.no_init(), 8, 4);
            cg.copy_from_host(vec![-1; 4], target)
        });
        submitted.unwrap().0.wait().unwrap();
    });
    // The copy itself, and nothing else.
    let crosses = u64::from(!env.is_host());
    assert_eq!((since.transfers(), since.transferred_bytes()), (crosses, 16 * crosses));
    let mut expected = iota(16);
    expected[8..12].fill(-1);
    assert_eq!(buffer.to_vec().unwrap(), expected);
}

fn newest_data_is_copied_to_the_host(env: &Env) {
    let buffer = BufferOptions::new().page_size(4).from_vec(iota(12)).unwrap();
    crate::support::update_range(&env.other_queue(), &buffer, 0, 4, |x| x + 100);
    crate::support::update_range(&env.third_queue(), &buffer, 8, 4, |x| x + 200);
    let queues: [Queue; 3] = [env.queue(), env.other_queue(), env.third_queue()];
    for queue in &queues {
        let back = queue.copy_to_host(&buffer, vec![0; 12]).unwrap().wait().unwrap();
        assert_eq!(back, [100, 101, 102, 103, 4, 5, 6, 7, 208, 209, 210, 211]);
    }
}

fn update_host_makes_the_host_current(env: &Env) {
    let buffer = Buffer::<i32, 1>::uninit(8).unwrap();
    for queue in [env.queue(), env.other_queue()] {
        write_positions(&queue, &buffer, 3);
        queue.update_host(&buffer).unwrap().wait().unwrap();
        let (since, data) = counted(|| buffer.to_vec().unwrap());
        assert_eq!((since.transfers(), data), (0, (3..11).collect()));
        // The device's data stays current.
        assert!(buffer.is_current_on(queue.device()));
    }
}

fn update_host_waits_for_writers(env: &Env) {
    let queue = env.queue();
    let buffer = Buffer::from_vec(iota(4)).unwrap();
    let gate = Gate::writing(&queue, &buffer);
    update(&queue, &buffer, plus_one);
    let fresh = queue.update_host(&buffer).unwrap();
    let later = update(&queue, &buffer, |x| x * 100);
    crate::support::assert_held_back(&fresh);
    gate.open();
    later.wait().unwrap();
    assert!(fresh.is_complete());
    assert_eq!(buffer.host_access(ReadWrite).unwrap().as_slice(), [100, 200, 300, 400]);
}

fn a_failed_copy_is_an_error(env: &Env) {
    let queue = env.queue();
    let buffer = Buffer::from_vec(iota(4)).unwrap();
    let gate = Gate::new(&queue, |_| {});
    let failed = queue.submit(|cg| {
        cg.depends_on(gate.event());
        let data = cg.access(&buffer, ReadWrite);
        cg.parallel_for(4, move |item| data.update(item, |_| panic!("on purpose")))
    });
    let failed = failed.unwrap();
    let copy = queue.copy_to_host(&buffer, vec![0; 4]).unwrap();
    gate.open();
    assert_eq!(code(copy.wait()), ErrorCode::Kernel);
    assert_eq!(code(failed.wait()), ErrorCode::Kernel);
    let _ = queue.wait();
}
