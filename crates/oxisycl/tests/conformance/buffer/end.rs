//! The end of a buffer: taking its data, final destinations, borrowed data, and when dropping blocks (H5 to H7).

use std::sync::{Arc, Mutex, mpsc};

use oxisycl::prelude::*;
use oxisycl::{BorrowedBuffer, FinalData};

use crate::harness::{Env, tests};
use crate::support::{Gate, code, doubled, iota, negated, plus_one, update, write_positions};

tests![
    into_vec_returns_the_very_same_memory,
    into_vec_waits_for_submitted_commands,
    into_vec_works_for_buffers_without_a_vector,
    into_vec_fails_while_another_handle_exists,
    into_vec_fails_inside_a_command_group_that_uses_the_buffer,
    into_vec_fails_if_the_data_is_lost,
    dropping_a_buffer_without_a_destination_does_not_block,
    a_dropped_buffer_serves_commands_that_were_submitted,
    borrowed_data_is_written_back_on_drop,
    write_back_waits_for_the_commands,
    finish_reports_a_failure_and_leaves_the_data,
    discard_neither_writes_back_nor_waits,
    a_forgotten_borrow_writes_nothing_back,
    a_borrow_ends_in_unwinding_with_a_write_back,
    final_data_goes_to_a_function,
    final_data_goes_to_a_vector_that_still_exists,
    final_data_for_a_vector_that_is_gone_is_dropped_without_waiting,
    final_data_none_cancels_a_destination,
    final_data_is_delivered_by_the_last_handle,
    final_data_waits_for_the_commands,
    final_data_tells_why_there_is_none,
    ; once:
    into_vec_fails_while_a_placeholder_exists,
    into_vec_fails_while_a_host_accessor_exists,
    a_later_final_data_replaces_an_earlier_one,
    final_data_is_not_delivered_after_into_vec,
];

fn into_vec_returns_the_very_same_memory(env: &Env) {
    let mut data = Vec::with_capacity(1000);
    data.extend(iota(100));
    let (address, capacity) = (data.as_ptr(), data.capacity());
    let buffer = Buffer::from_vec_nd(data, [10, 10]).unwrap();
    update(&env.queue(), &buffer, plus_one);
    update(&env.other_queue(), &buffer, doubled);
    let data = buffer.into_vec().unwrap();
    assert_eq!((data.as_ptr(), data.capacity(), data.len()), (address, capacity, 100));
    assert!(data.iter().enumerate().all(|(i, &x)| x == (i as i32 + 1) * 2));
}

fn into_vec_waits_for_submitted_commands(env: &Env) {
    let queue = env.queue();
    let buffer = Buffer::from_vec(iota(8)).unwrap();
    let gate = Gate::writing(&queue, &buffer);
    update(&queue, &buffer, negated);
    gate.open_later();
    assert_eq!(buffer.into_vec().unwrap(), iota(8).iter().map(|x| -x).collect::<Vec<_>>());
}

fn into_vec_works_for_buffers_without_a_vector(env: &Env) {
    let buffer = Buffer::<i32, 2>::uninit([3, 3]).unwrap();
    write_positions(&env.queue(), &buffer, 0);
    assert_eq!(buffer.into_vec().unwrap(), iota(9));
    let slice = env.queue().malloc_device::<i32>(4).unwrap();
    let buffer = BufferOptions::new().from_usm_nd(slice, 4).unwrap();
    write_positions(&env.queue(), &buffer, 7);
    assert_eq!(buffer.into_vec().unwrap(), [7, 8, 9, 10]);
}

fn into_vec_fails_while_another_handle_exists(env: &Env) {
    let mut buffer = Buffer::from_vec(iota(64)).unwrap();
    type Make = fn(&Buffer<i32, 1>) -> Box<dyn std::any::Any>;
    let makes: [Make; 3] = [
        |buffer| Box::new(buffer.clone()),
        |buffer| Box::new(buffer.sub_buffer(0, 32).unwrap()),
        |buffer| Box::new(buffer.reinterpret::<u32, 2>([8, 8]).unwrap()),
    ];
    for make in makes {
        let handle = make(&buffer);
        let failed = buffer.into_vec().unwrap_err();
        assert_eq!(failed.error().code(), ErrorCode::Invalid);
        buffer = failed.into_buffer();
        drop(handle);
    }
    update(&env.queue(), &buffer, plus_one);
    assert_eq!(buffer.into_vec().unwrap()[0], 1);
}

fn into_vec_fails_while_a_placeholder_exists() {
    let buffer = Buffer::from_vec(iota(4)).unwrap();
    let placeholder = buffer.placeholder(Read);
    let failed = buffer.into_vec().unwrap_err();
    assert_eq!(failed.error().code(), ErrorCode::Invalid);
    drop(placeholder);
    assert_eq!(failed.into_buffer().into_vec().unwrap(), iota(4));
}

fn into_vec_fails_while_a_host_accessor_exists() {
    let buffer = Buffer::from_vec(iota(4)).unwrap();
    let host = buffer.host_access(Read).unwrap();
    let failed = buffer.into_vec().unwrap_err();
    assert_eq!(failed.error().code(), ErrorCode::Invalid);
    assert_eq!(host[3], 3);
    drop(host);
    assert_eq!(failed.into_buffer().into_vec().unwrap(), iota(4));
}

fn into_vec_fails_inside_a_command_group_that_uses_the_buffer(env: &Env) {
    let buffer = Buffer::from_vec(iota(4)).unwrap();
    let submitted = env.queue().submit_with(|cg| {
        let data = cg.access(&buffer, ReadWrite);
        let failed = buffer.into_vec().unwrap_err();
        assert_eq!(failed.error().code(), ErrorCode::Invalid);
        cg.parallel_for(4, move |item| data.update(item, |x| x + 1))?;
        Ok(failed.into_buffer())
    });
    let (_, buffer) = submitted.unwrap();
    assert_eq!(buffer.into_vec().unwrap(), [1, 2, 3, 4]);
}

fn into_vec_fails_if_the_data_is_lost(env: &Env) {
    let buffer = Buffer::from_vec(iota(4)).unwrap();
    let failed = update(&env.queue(), &buffer, |x| if x == 2 { panic!("on purpose") } else { x });
    assert_eq!(code(failed.wait()), ErrorCode::Kernel);
    let failed = buffer.into_vec().unwrap_err();
    assert_eq!(failed.error().code(), ErrorCode::Kernel);
    let buffer = failed.into_buffer();
    write_positions(&env.queue(), &buffer, 5);
    assert_eq!(buffer.into_vec().unwrap(), [5, 6, 7, 8]);
}

fn dropping_a_buffer_without_a_destination_does_not_block(env: &Env) {
    let queue = env.queue();
    let slice = queue.malloc_device::<i32>(8).unwrap();
    let buffers = [
        Buffer::from_vec(iota(8)).unwrap(),
        Buffer::from_slice(&iota(8)).unwrap(),
        Buffer::from_shared_nd(Arc::from(iota(8)), 8).unwrap(),
        Buffer::uninit(8).unwrap(),
        BufferOptions::new().from_usm_nd(slice, 8).unwrap(),
    ];
    for buffer in buffers {
        let gate = Gate::writing(&queue, &buffer);
        let after = update(&queue, &buffer, plus_one);
        drop(buffer);
        // Had that blocked, nobody would ever open the gate.
        gate.open();
        after.wait().unwrap();
    }
}

fn a_dropped_buffer_serves_commands_that_were_submitted(env: &Env) {
    let queue = env.queue();
    let target = Buffer::from_vec(vec![0; 8]).unwrap();
    let source = Buffer::from_vec(iota(8)).unwrap();
    let gate = Gate::writing(&queue, &source);
    update(&queue, &source, plus_one);
    queue.copy(&source, &target).unwrap();
    drop(source);
    gate.open();
    assert_eq!(target.to_vec().unwrap(), [1, 2, 3, 4, 5, 6, 7, 8]);
}

fn borrowed_data_is_written_back_on_drop(env: &Env) {
    let mut data = iota(12);
    {
        let buffer = Buffer::from_slice_mut_nd(&mut data, [3, 4]).unwrap();
        update(&env.queue(), &buffer, plus_one);
    }
    assert_eq!(data, (1..13).collect::<Vec<_>>());
    // Also through sub-buffers and clones.
    {
        let buffer = Buffer::from_slice_mut_nd(&mut data, 12).unwrap();
        update(&env.queue(), &buffer.clone(), |x| x * 10);
    }
    assert_eq!(data, (1..13).map(|x| x * 10).collect::<Vec<_>>());
}

fn write_back_waits_for_the_commands(env: &Env) {
    let queue = env.queue();
    let mut data = iota(4);
    let buffer = Buffer::from_slice_mut_nd(&mut data, 4).unwrap();
    let gate = Gate::writing(&queue, &buffer);
    update(&queue, &buffer, |x| x + 7);
    gate.open_later();
    drop(buffer);
    assert_eq!(data, [7, 8, 9, 10]);
}

fn finish_reports_a_failure_and_leaves_the_data(env: &Env) {
    let mut data = iota(4);
    let buffer = Buffer::from_slice_mut_nd(&mut data, 4).unwrap();
    update(&env.queue(), &buffer, plus_one);
    buffer.finish().unwrap();
    assert_eq!(data, [1, 2, 3, 4]);
    let buffer = Buffer::from_slice_mut_nd(&mut data, 4).unwrap();
    let failed = update(&env.queue(), &buffer, |x| if x == 2 { panic!("on purpose") } else { -x });
    assert_eq!(code(buffer.finish()), ErrorCode::Kernel);
    assert_eq!(code(failed.wait()), ErrorCode::Kernel);
    assert_eq!(data, [1, 2, 3, 4]);
}

fn discard_neither_writes_back_nor_waits(env: &Env) {
    let queue = env.queue();
    let mut data = iota(4);
    let buffer = Buffer::from_slice_mut_nd(&mut data, 4).unwrap();
    let gate = Gate::writing(&queue, &buffer);
    let after = update(&queue, &buffer, plus_one);
    buffer.discard();
    gate.open();
    after.wait().unwrap();
    assert_eq!(data, iota(4));
}

fn a_forgotten_borrow_writes_nothing_back(env: &Env) {
    env.allow_leaks();
    let mut data = iota(4);
    let buffer = Buffer::from_slice_mut_nd(&mut data, 4).unwrap();
    let after = update(&env.queue(), &buffer, plus_one);
    std::mem::forget(buffer);
    data[0] = 50;
    after.wait().unwrap();
    assert_eq!(data, [50, 1, 2, 3]);
}

fn a_borrow_ends_in_unwinding_with_a_write_back(env: &Env) {
    let mut data = iota(4);
    let unwound = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let buffer: BorrowedBuffer<'_, i32, 1> = Buffer::from_slice_mut_nd(&mut data, 4).unwrap();
        update(&env.queue(), &buffer, plus_one);
        panic!("on purpose");
    }));
    assert!(unwound.is_err());
    assert_eq!(data, [1, 2, 3, 4]);
}

/// Sends the delivered data, or the code of the error.
fn into_channel(to: mpsc::Sender<Result<Vec<i32>, ErrorCode>>) -> FinalData<i32> {
    FinalData::call(move |result| to.send(result.map_err(|error| error.code())).unwrap())
}

fn final_data_goes_to_a_function(env: &Env) {
    let (to, delivered) = mpsc::channel();
    let buffer = Buffer::from_vec_nd(iota(4), [2, 2]).unwrap();
    buffer.set_final_data(into_channel(to));
    update(&env.queue(), &buffer, plus_one);
    drop(buffer);
    assert_eq!(delivered.try_recv(), Ok(Ok(vec![1, 2, 3, 4])));
}

fn final_data_goes_to_a_vector_that_still_exists(env: &Env) {
    let vector = Arc::new(Mutex::new(vec![9; 2]));
    let buffer = Buffer::from_vec(iota(4)).unwrap();
    buffer.set_final_data(FinalData::weak(Arc::downgrade(&vector)));
    update(&env.queue(), &buffer, |x| x * 3);
    drop(buffer);
    assert_eq!(*vector.lock().unwrap(), [0, 3, 6, 9]);
}

fn final_data_for_a_vector_that_is_gone_is_dropped_without_waiting(env: &Env) {
    let queue = env.queue();
    let vector = Arc::new(Mutex::new(Vec::new()));
    let buffer = Buffer::from_vec(iota(4)).unwrap();
    buffer.set_final_data(FinalData::weak(Arc::downgrade(&vector)));
    let gate = Gate::writing(&queue, &buffer);
    drop(vector);
    drop(buffer);
    gate.open();
    queue.wait().unwrap();
}

fn final_data_none_cancels_a_destination(env: &Env) {
    let queue = env.queue();
    let (to, delivered) = mpsc::channel();
    let buffer = Buffer::from_vec(iota(4)).unwrap();
    buffer.set_final_data(into_channel(to));
    buffer.set_final_data(FinalData::none());
    let gate = Gate::writing(&queue, &buffer);
    drop(buffer);
    gate.open();
    queue.wait().unwrap();
    assert_eq!(delivered.try_recv(), Err(mpsc::TryRecvError::Disconnected));
}

fn a_later_final_data_replaces_an_earlier_one() {
    let ((first, to_first), (second, to_second)) = (mpsc::channel(), mpsc::channel());
    let buffer = Buffer::from_vec(iota(2)).unwrap();
    buffer.set_final_data(into_channel(first));
    buffer.set_final_data(into_channel(second));
    drop(buffer);
    assert_eq!(to_first.try_recv(), Err(mpsc::TryRecvError::Disconnected));
    assert_eq!(to_second.try_recv(), Ok(Ok(vec![0, 1])));
}

fn final_data_is_delivered_by_the_last_handle(env: &Env) {
    let (to, delivered) = mpsc::channel();
    let buffer = Buffer::from_vec(iota(64)).unwrap();
    buffer.set_final_data(into_channel(to));
    let (copy, part) = (buffer.clone(), buffer.sub_buffer(0, 32).unwrap());
    let bits = part.reinterpret::<u32, 1>(32).unwrap();
    drop(buffer);
    drop(part);
    drop(copy);
    assert_eq!(delivered.try_recv(), Err(mpsc::TryRecvError::Empty));
    env.queue().fill(&bits, 5).unwrap();
    drop(bits);
    let data = delivered.try_recv().unwrap().unwrap();
    assert_eq!((data.len(), data[31], data[32]), (64, 5, 32));
}

fn final_data_waits_for_the_commands(env: &Env) {
    let queue = env.queue();
    let (to, delivered) = mpsc::channel();
    let buffer = Buffer::from_vec(iota(4)).unwrap();
    buffer.set_final_data(into_channel(to));
    let gate = Gate::writing(&queue, &buffer);
    update(&queue, &buffer, plus_one);
    gate.open_later();
    drop(buffer);
    assert_eq!(delivered.try_recv(), Ok(Ok(vec![1, 2, 3, 4])));
}

fn final_data_is_not_delivered_after_into_vec() {
    let (to, delivered) = mpsc::channel();
    let buffer = Buffer::from_vec(iota(4)).unwrap();
    buffer.set_final_data(into_channel(to));
    assert_eq!(buffer.into_vec().unwrap(), iota(4));
    assert_eq!(delivered.try_recv(), Err(mpsc::TryRecvError::Disconnected));
}

fn final_data_tells_why_there_is_none(env: &Env) {
    let (to, delivered) = mpsc::channel();
    let buffer = Buffer::from_vec(iota(4)).unwrap();
    buffer.set_final_data(into_channel(to));
    let failed = update(&env.queue(), &buffer, |_| panic!("on purpose"));
    drop(buffer);
    assert_eq!(delivered.try_recv(), Ok(Err(ErrorCode::Kernel)));
    assert_eq!(code(failed.wait()), ErrorCode::Kernel);
}
