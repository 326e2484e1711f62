//! Rows 8.14 to 8.19 and 8.31 to 8.34: the end of a buffer, and what it delivers.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, TryRecvError};
use std::sync::{Arc, Mutex};

use oxisycl::prelude::*;
use oxisycl::{BackendKind, FinalData};

use super::hold::{Hold, eight, ways};
use crate::harness::{Env, tests};
use crate::support::{Gate, code, iota, plus_one, touch, update};

tests![
    row_8_14_dropping_the_last_handle_without_final_data_never_blocks,
    row_8_15_final_data_for_a_function_blocks_until_it_has_returned,
    row_8_16_final_data_for_a_vector_blocks_until_it_is_written,
    row_8_17_final_data_for_a_vector_that_is_gone_never_blocks,
    row_8_18_the_end_of_a_borrow_blocks_until_the_data_is_written_back,
    row_8_19_discard_never_blocks,
    row_8_31_no_buffer_refers_to_the_memory_it_was_made_from,
    row_8_32_a_buffer_ends_with_its_last_handle_of_any_kind,
    row_8_33_final_data_is_delivered_once_by_the_thread_of_the_last_handle,
    row_8_34_write_back_is_all_or_nothing,
];

fn row_8_14_dropping_the_last_handle_without_final_data_never_blocks(env: &Env) {
    for &way in ways(env) {
        let queue = env.queue();
        let cancelled = eight();
        cancelled.set_final_data(FinalData::call(|_| panic!("was replaced")));
        cancelled.set_final_data(FinalData::none());
        let slice = queue.malloc_device::<i32>(8).unwrap();
        let buffers =
            [eight(), cancelled, Buffer::uninit(8).unwrap(), BufferOptions::new().from_usm_nd(slice, 8).unwrap()];
        for buffer in buffers {
            let hold = Hold::writing(env, way, &queue, &buffer);
            let after = update(&queue, &buffer, |x| x ^ 1);
            drop(buffer);
            assert!(!after.is_complete(), "{way:?}");
            hold.open();
            after.wait().unwrap();
        }
    }
}

fn row_8_15_final_data_for_a_function_blocks_until_it_has_returned(env: &Env) {
    for &way in ways(env) {
        let queue = env.queue();
        let buffer = eight();
        let beside = Gate::new(&queue, |_| {});
        let hold = Hold::writing(env, way, &queue, &buffer);
        let users = [update(&queue, &buffer, plus_one), touch(&env.other_queue(), &buffer)];
        let seen = users.clone();
        let has_returned = Arc::new(AtomicBool::new(false));
        let returned = has_returned.clone();
        buffer.set_final_data(FinalData::call(move |data| {
            assert!(seen.iter().all(Event::is_complete));
            assert_eq!(data.unwrap()[7], 8);
            std::thread::sleep(std::time::Duration::from_millis(5));
            returned.store(true, Ordering::SeqCst);
        }));
        hold.open_later();
        drop(buffer);
        assert!(has_returned.load(Ordering::SeqCst) && users.iter().all(Event::is_complete), "{way:?}");
        assert!(!beside.event().is_complete());
    }
}

fn row_8_16_final_data_for_a_vector_blocks_until_it_is_written(env: &Env) {
    for &way in ways(env) {
        let queue = env.queue();
        let vector = Arc::new(Mutex::new(Vec::new()));
        let buffer = eight();
        buffer.set_final_data(FinalData::weak(Arc::downgrade(&vector)));
        let beside = Gate::new(&queue, |_| {});
        let hold = Hold::writing(env, way, &queue, &buffer);
        let users = [update(&queue, &buffer, plus_one), touch(&env.other_queue(), &buffer)];
        hold.open_later();
        drop(buffer);
        assert_eq!(*vector.lock().unwrap(), (1..9).collect::<Vec<_>>(), "{way:?}");
        assert!(users.iter().all(Event::is_complete) && !beside.event().is_complete());
    }
}

fn row_8_17_final_data_for_a_vector_that_is_gone_never_blocks(env: &Env) {
    for &way in ways(env) {
        let queue = env.queue();
        let vector = Arc::new(Mutex::new(Vec::new()));
        let buffer = eight();
        buffer.set_final_data(FinalData::weak(Arc::downgrade(&vector)));
        let hold = Hold::writing(env, way, &queue, &buffer);
        let after = update(&queue, &buffer, plus_one);
        drop(vector);
        drop(buffer);
        assert!(!after.is_complete(), "{way:?}");
        hold.open();
        after.wait().unwrap();
    }
}

fn row_8_18_the_end_of_a_borrow_blocks_until_the_data_is_written_back(env: &Env) {
    for &way in ways(env) {
        for is_finished in [false, true] {
            let queue = env.queue();
            let mut data = iota(8);
            let buffer = Buffer::from_slice_mut_nd(&mut data, 8).unwrap();
            let beside = Gate::new(&queue, |_| {});
            let hold = Hold::writing(env, way, &queue, &buffer);
            let users = [update(&queue, &buffer, plus_one), touch(&env.other_queue(), &buffer)];
            hold.open_later();
            match is_finished {
                true => buffer.finish().unwrap(),
                false => drop(buffer),
            }
            assert_eq!(data, (1..9).collect::<Vec<_>>(), "{way:?}");
            assert!(users.iter().all(Event::is_complete) && !beside.event().is_complete());
        }
    }
}

fn row_8_19_discard_never_blocks(env: &Env) {
    for &way in ways(env) {
        let queue = env.queue();
        let mut data = iota(8);
        let buffer = Buffer::from_slice_mut_nd(&mut data, 8).unwrap();
        let hold = Hold::writing(env, way, &queue, &buffer);
        let after = update(&queue, &buffer, plus_one);
        buffer.discard();
        assert!(!after.is_complete(), "{way:?}");
        // The borrow has ended, although the command has not.
        data[0] = 50;
        hold.open();
        after.wait().unwrap();
        assert_eq!(data[..2], [50, 1]);
    }
}

fn row_8_31_no_buffer_refers_to_the_memory_it_was_made_from(env: &Env) {
    for &way in ways(env) {
        let queue = env.queue();
        let (mut slice, shared, vector) = (iota(8), Arc::<[i32]>::from(iota(8)), iota(8));
        let address = vector.as_ptr();
        let buffers = [
            Buffer::from_slice_nd(&slice, 8).unwrap(),
            Buffer::from_shared_nd(shared.clone(), 8).unwrap(),
            Buffer::from_elements(slice.iter().copied()).unwrap(),
            Buffer::from_vec_nd(vector, 8).unwrap(),
        ];
        // Copied, so that neither a change nor the end of the source matters; a vector is taken over.
        assert_eq!(Arc::strong_count(&shared), 1);
        slice.fill(-1);
        drop((slice, shared));
        // OpenCL devices can be processors, too, but have memory of their own.
        let host = Device::all().unwrap().into_iter().find(|device| device.backend() == BackendKind::Host);
        let Some(host) = host else { env.skip("the host device is hidden") };
        assert_eq!(buffers[3].usm_pointer(&host).unwrap().cast_const(), address);
        for buffer in buffers {
            let seen = Buffer::<i32, 1>::uninit(8).unwrap();
            let hold = Hold::writing(env, way, &queue, &buffer);
            queue.copy(&buffer, &seen).unwrap();
            drop(buffer);
            hold.open();
            assert_eq!(seen.to_vec().unwrap(), iota(8), "{way:?}");
        }
    }
}

fn row_8_32_a_buffer_ends_with_its_last_handle_of_any_kind(env: &Env) {
    type Make = fn(&Buffer<i32, 1>) -> Box<dyn std::any::Any>;
    let makes: [Make; 4] = [
        |buffer| Box::new(buffer.clone()),
        |buffer| Box::new(buffer.sub_buffer(0, 4).unwrap()),
        |buffer| Box::new(buffer.reinterpret::<u32, 1>(8).unwrap()),
        |buffer| Box::new(buffer.placeholder(Read)),
    ];
    for &way in ways(env) {
        for make in makes {
            let queue = env.queue();
            let buffer = eight();
            let (to, delivered) = mpsc::channel();
            buffer.set_final_data(FinalData::call(move |data| to.send(data.unwrap()).unwrap()));
            let hold = Hold::writing(env, way, &queue, &buffer);
            let user = update(&queue, &buffer, plus_one);
            let handle = make(&buffer);
            drop(buffer);
            assert_eq!(delivered.try_recv(), Err(TryRecvError::Empty), "{way:?}: a handle is left");
            // The pending commands are no handles: the drop delivers, for which it waits.
            hold.open_later();
            drop(handle);
            assert!(user.is_complete());
            assert_eq!(delivered.try_recv().unwrap()[7], 8, "{way:?}");
        }
    }
}

fn row_8_33_final_data_is_delivered_once_by_the_thread_of_the_last_handle(env: &Env) {
    let (to, delivered) = mpsc::channel();
    let to_channel = |name: &'static str| {
        let to = to.clone();
        FinalData::call(move |data: oxisycl::Result<Vec<i32>>| {
            to.send((name, data.unwrap(), std::thread::current().id())).unwrap();
        })
    };
    let buffer = eight();
    buffer.set_final_data(to_channel("first"));
    buffer.clone().set_final_data(to_channel("second"));
    update(&env.queue(), &buffer, plus_one);
    let copy = buffer.clone();
    let thread = std::thread::spawn(move || {
        drop(copy);
        std::thread::current().id()
    });
    let dropper = thread.join().unwrap();
    assert_eq!(delivered.try_recv(), Err(TryRecvError::Empty));
    let thread = std::thread::spawn(move || {
        drop(buffer);
        std::thread::current().id()
    });
    let last_dropper = thread.join().unwrap();
    assert_ne!(dropper, last_dropper);
    assert_eq!(delivered.try_recv(), Ok(("second", (1..9).collect(), last_dropper)));
    assert_eq!(delivered.try_recv(), Err(TryRecvError::Empty));
    // What was taken otherwise is not delivered.
    let queue = env.queue();
    let of_usm = BufferOptions::new().from_usm_nd(queue.malloc_device::<i32>(8).unwrap(), 8).unwrap();
    let of_vec = eight();
    of_usm.set_final_data(to_channel("usm"));
    of_vec.set_final_data(to_channel("vector"));
    drop((of_usm.into_usm().unwrap(), of_vec.into_vec().unwrap()));
    assert_eq!(delivered.try_recv(), Err(TryRecvError::Empty));
}

/// Makes a kernel fail on the last element, after others may have been written.
fn fail(queue: &Queue, buffer: &Buffer<i32, 1>) -> Event {
    update(queue, buffer, |x| if x == 7 { panic!("on purpose") } else { -x })
}

fn row_8_34_write_back_is_all_or_nothing(env: &Env) {
    for queue in [env.queue(), env.other_queue()] {
        let mut data = iota(8);
        let borrowed = Buffer::from_slice_mut_nd(&mut data, 8).unwrap();
        let failed = fail(&queue, &borrowed);
        assert_eq!(code(borrowed.finish()), ErrorCode::Kernel);
        assert_eq!(code(failed.wait()), ErrorCode::Kernel);
        assert_eq!(data, iota(8));

        let (to, delivered) = mpsc::channel();
        let buffer = eight();
        buffer.set_final_data(FinalData::call(move |data| to.send(code(data)).unwrap()));
        let failed = fail(&queue, &buffer);
        drop(buffer);
        assert_eq!(delivered.try_recv(), Ok(ErrorCode::Kernel));
        assert_eq!(code(failed.wait()), ErrorCode::Kernel);
        assert!(queue.wait().is_ok(), "both failures were seen");
    }
}
