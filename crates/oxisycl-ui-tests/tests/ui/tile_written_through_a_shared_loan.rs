#![forbid(unsafe_code)]

use oxisycl::group::{Fixed1, Local, Private};
use oxisycl::prelude::*;

fn submit(queue: &Queue, numbers: &Buffer<u32, 1>) -> oxisycl::Result<Event> {
    queue.submit(|cg| {
        let numbers = cg.access(numbers, ReadWrite);
        let memory = (Local::<u32, 8>::new(), Private::new(0u32));
        cg.parallel_for_work_group(4, Fixed1::<8>, memory, move |mut group, (mut tile, mut values)| {
            group.for_each(&tile, move |item, all| all[item.local_linear_id()] = 1);
            let _ = (numbers, &mut group, &mut values);
        })
    })
}

fn main() {}
