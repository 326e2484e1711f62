//! Writes buffers, and makes what outlives a call: a pending command, a buffer, a queue with a handler.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use oxisycl::prelude::*;

#[unsafe(no_mangle)]
pub fn write_numbers(queue: &Queue, numbers: &Buffer<f32, 1>, gate: Option<&Event>) -> Event {
    let submitted = queue.submit(|cg| {
        if let Some(gate) = gate {
            cg.depends_on(gate);
        }
        let view = cg.access(numbers, Write);
        cg.parallel_for(numbers.range(), move |item| view.set(item, 1.0 + item.index() as f32))
    });
    submitted.unwrap()
}

/// Panics in one work-item.
#[unsafe(no_mangle)]
pub fn refuse_77(queue: &Queue, numbers: &Buffer<f32, 1>) -> Event {
    let submitted = queue.submit(|cg| {
        let view = cg.access(numbers, ReadWrite);
        cg.parallel_for(numbers.range(), move |item| {
            let number = view.get(item);
            assert!(item.index() != 77, "the number {number} of item {}", item.index());
            view.set(item, number * number + 1.0);
        })
    });
    submitted.unwrap()
}

/// A host task that ends when it may.
#[unsafe(no_mangle)]
pub fn begin_task(queue: &Queue, has_begun: Arc<AtomicBool>, may_end: Arc<AtomicBool>) -> Event {
    let submitted = queue.submit(|cg| {
        cg.host_task(move |_| {
            has_begun.store(true, Ordering::Release);
            while !may_end.load(Ordering::Acquire) {
                std::thread::yield_now();
            }
        })
    });
    submitted.unwrap()
}

#[unsafe(no_mangle)]
pub fn make_buffer() -> Buffer<f32, 1> {
    Buffer::from_vec(vec![5.0; 3]).unwrap().named("numbers of a plug-in")
}

/// A buffer without memory of this library's, which counts its elements at its end.
#[unsafe(no_mangle)]
pub fn make_counting(n_elements: Arc<AtomicUsize>) -> Buffer<f32, 1> {
    let numbers = Buffer::uninit(7).unwrap();
    let count = move |data: oxisycl::Result<Vec<f32>>| {
        n_elements.fetch_add(data.unwrap().len(), Ordering::Relaxed);
    };
    numbers.set_final_data(oxisycl::FinalData::call(count));
    numbers
}

#[unsafe(no_mangle)]
pub fn make_queue(n_errors: Arc<AtomicUsize>) -> Queue {
    let handler = move |errors: Vec<Error>| {
        n_errors.fetch_add(errors.len(), Ordering::Relaxed);
    };
    Queue::builder().handler(handler).build().unwrap()
}

/// Needs nothing of the program. Gives 0 and a message if there is no queue.
#[unsafe(no_mangle)]
pub extern "C" fn alone() -> f32 {
    let queue = match Queue::default() {
        Ok(queue) => queue,
        Err(error) => {
            println!("{error}");
            return 0.0;
        }
    };
    let numbers = Buffer::from_vec(vec![0.0; 4]).unwrap();
    write_numbers(&queue, &numbers, None).wait().unwrap();
    numbers.into_vec().unwrap().iter().sum()
}
