#![forbid(unsafe_code)]

use oxisycl::group::{Fixed1, Local, Private};
use oxisycl::prelude::*;

fn submit(queue: &Queue, numbers: &Buffer<u32, 1>) -> oxisycl::Result<Event> {
    queue.submit(|cg| {
        let numbers = cg.access(numbers, ReadWrite);
        let memory = (Local::<u32, 8>::new(), Private::new(0u32));
        cg.parallel_for_work_group(4, Fixed1::<8>, memory, move |mut group, (mut tile, mut values)| {
            let state = std::sync::atomic::AtomicU32::new(0);
            group.for_each((), |_, ()| {
                state.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            });
            if state.into_inner() > 3 {
                group.for_each((), |_, ()| ());
            }
            let _ = (numbers, &mut group, &mut values);
        })
    })
}

fn main() {}
