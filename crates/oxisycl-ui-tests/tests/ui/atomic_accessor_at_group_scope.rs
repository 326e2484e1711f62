#![forbid(unsafe_code)]

use oxisycl::group::Fixed1;
use oxisycl::prelude::*;

fn submit(queue: &Queue, numbers: &Buffer<u32, 1>) -> oxisycl::Result<Event> {
    queue.submit(|cg| {
        let numbers = cg.access(numbers, Atomic);
        cg.parallel_for_work_group(4, Fixed1::<8>, (), move |mut group, ()| {
            if numbers.fetch_add(group.uniform(), 0, 1) == 3 {
                group.for_each((), |_, ()| ());
            }
        })
    })
}

fn main() {}
